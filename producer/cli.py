"""The `parley` command: its verbs, each loaded when it is used, and how failures become exit codes."""

import importlib
import sys
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup


class Verb(NamedTuple):
    """Where a verb's function is (`module:function`) and what the list of verbs says of it."""

    target: str
    summary: str


VERBS = {
    "run": Verb("producer.run:run", "Make a recipe's conversations on this machine; the same command resumes."),
    "submit": Verb("producer.submit:submit", "Feed a recipe's conversations to a cluster; the same command resumes."),
    "status": Verb("producer.status:status", "Say how far a run is."),
    "pending": Verb("producer.pending:pending", "List the calls that wait for answers from outside."),
    "answer": Verb("producer.answer:answer", "Give a waiting conversation its answers from outside."),
    "show": Verb("producer.show:show", "Show one conversation of a run."),
    "fork": Verb("producer.fork:fork", "Go on with a conversation from one of its turns, several times."),
    "replay": Verb("producer.replay:replay", "Run recorded conversations again, at no cost, and compare."),
    "export": Verb("producer.export:export", "Write the conversations of a run as training data."),
    "validate": Verb("producer.validate:validate", "Check a recipe, its tools and its job lines; nothing is sent."),
    "mock-model": Verb("producer.mock_model:mock_model", "Serve a model that needs no network, OpenAI-compatible."),
}


class LazyVerbs(TyperGroup):
    """Imports a verb's module when the verb is used: `parley --help` must not wait for Celery and the like."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the verb as usual, then put the real command in the place of its row in the list."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else _load(name), rest


app = typer.Typer(
    name="parley",
    cls=LazyVerbs,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # Locals can hold keys.
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Generates tool-calling conversations in bulk.",
    epilog="Exit codes: 0 all ok, 1 internal, 2 usage, 3 configuration or input invalid, 4 ended with jobs that are "
    "not ok, 5 a dependency is unreachable, 130 interrupted.",
)


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - only this flag needs it

        typer.echo(f"parley {version('parley')}")
        raise typer.Exit


@app.callback()
def _parley(
    _version: Annotated[
        bool, typer.Option("--version", help="Say the version and exit.", is_eager=True, callback=_say_version)
    ] = False,
) -> None:
    """Generates tool-calling conversations in bulk."""


def _not_loaded() -> None:
    """Stand in the list of verbs; `LazyVerbs` puts the real command in its place."""


for _name, _verb in VERBS.items():
    app.command(_name, help=_verb.summary)(_not_loaded)


def _load(name: str) -> Any:
    from producer.logs import log_to_stderr  # noqa: PLC0415 - `parley --help` needs no logs

    log_to_stderr()  # before anything is listed or asked: a verb that keeps a log of its own says so later
    module, _, function = VERBS[name].target.partition(":")
    one = typer.Typer(add_completion=False, pretty_exceptions_show_locals=False)
    one.command(name)(getattr(importlib.import_module(module), function))
    return typer.main.get_command(one)


def main() -> None:
    """Run the command line; failures that have an answer become one message on stderr and an exit code."""
    try:
        app()
    except Exception as error:
        from producer.failures import exit_code_of, message_of  # noqa: PLC0415 - loaded only to explain a failure

        code = exit_code_of(error)
        if code is None:
            raise
        sys.stdout.flush()
        from producer.terminal import say  # noqa: PLC0415

        say(message_of(error))
        sys.exit(code)
