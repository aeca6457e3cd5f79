"""`parley show`: one conversation of a run, for people."""

import json
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from producer.run_address import JOB_ARGUMENT, RESULTS_OPTION, RUN_ARGUMENT, find_job, find_run
from producer.terminal import printable

JSONObject = dict[str, Any]
_STYLES = {"system": "dim", "developer": "dim", "user": "bold cyan", "assistant": "bold green", "tool": "bold yellow"}
_UNLIMITED = 1 << 20  # columns: what is piped into a file or a pager is not wrapped


def show(
    *,
    run: Annotated[str, RUN_ARGUMENT],
    job: Annotated[str, JOB_ARGUMENT] = "0",
    results: Annotated[str | None, RESULTS_OPTION] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record as it is stored.")] = False,
) -> None:
    """Show one conversation of RUN: its messages, tool calls and results."""
    record = find_job(find_run(run, results), job)
    if as_json:
        sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
        return
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _UNLIMITED)
    for part in conversation(record):
        console.print(part)


def conversation(record: JSONObject) -> Iterator[Text | Padding]:
    """A record as lines for the terminal; text of models and tools is made harmless."""
    usage = record["usage"]
    yield Text(
        printable(
            f"{record['run_id']} #{record['index']} {record['job_id']}: {record['status']}, {record['model']}, "
            f"{usage['model_calls']} model calls, {usage['tool_calls']} tool calls, "
            f"{usage['input_tokens']} + {usage['output_tokens']} tokens"
        ),
        style="bold",
    )
    results = {result["call_id"]: result for result in record["tool_results"]}
    for message in record["messages"]:
        yield from _message(message, results)
    if record["error"]:
        yield Text(printable(f"\nerror: {record['error']['type']}: {record['error']['message']}"), style="bold red")


def _message(message: JSONObject, results: dict[str, JSONObject]) -> Iterator[Text | Padding]:
    role = str(message["role"])
    title = role
    result = results.get(str(message.get("tool_call_id")))
    if result is not None:
        title = f"{role} {result['name']}" + (f" ({result['error_type']})" if result["error"] else "")
    yield Text(printable(f"\n{title}"), style=_STYLES.get(role, "bold"))
    if content := _text(message.get("content")):
        yield _indented(content)
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield _indented(f"→ {function['name']}({function['arguments']})", style="magenta")


def _text(content: Any) -> str:
    """A message's content: a string, or the texts of its parts."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in content)
    return str(content) if content else ""


def _indented(text: str, style: str = "") -> Padding:
    return Padding(Text(printable(text), style=style), (0, 0, 0, 2), expand=False)
