"""Which calls a recipe lets an engine run: refused ones are answered before anything is contacted (rule E12)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from engines.calling.matching import best_match
from engines.calling.prepared import PreparedTool
from engines.configuration import PermissionRule, PermissionSettings
from engines.errors import ConfigurationInvalid, InvalidTool, Place
from engines.name_patterns import EVERY_TOOL
from engines.plain import JSONObject
from engines.registry import ToolRegistry
from engines.schemas import Validator, checked_schema, compiled
from engines.tool import ToolCall
from engines.tool_settings import CONFIRM, EXTERNAL, is_on
from engines.toolset import EXTERNAL_ENGINE


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule about one tool: about every call of it, or about those whose arguments fit a schema."""

    arguments: Validator | None = None

    def fits(self, arguments: JSONObject, *, in_doubt: bool) -> bool:
        """Whether the rule is about a call with these arguments; `in_doubt` for what no validator can look at."""
        if self.arguments is None:
            return True
        try:
            return self.arguments.is_valid(arguments)
        except ValueError:
            return in_doubt


@dataclass(frozen=True, slots=True)
class ToolRules:
    """The rules about one name; `allow` is None where everything is allowed."""

    overloads: tuple[PreparedTool, ...]
    allow: tuple[Rule, ...] | None
    deny: tuple[Rule, ...]
    confirm: tuple[Rule, ...]

    def refusal(self, call: ToolCall) -> str | None:
        """Say why the call may not be run; None when it may."""
        filled, problem = self._arguments_of(call)
        if any(_is_about(rule, call.arguments, filled) for rule in self.deny):
            return f"Permission denied: {call.qualified_name} may not be called{_so(self.deny)}."
        if self.allow is None or any(rule.fits(filled, in_doubt=False) for rule in self.allow):
            return None
        if self.allow and problem:
            # Perhaps allowed once they are right: the engine says what is wrong with them, and runs nothing.
            return None
        return f"Permission denied: {call.qualified_name} may not be called{_so(self.allow)}."

    def wants_confirmation(self, call: ToolCall) -> bool:
        """Whether somebody outside has to answer the call; never for one that is refused."""
        if not self.confirm or self.refusal(call) is not None:
            return False
        filled, _ = self._arguments_of(call)
        return any(_is_about(rule, call.arguments, filled) for rule in self.confirm)

    def _arguments_of(self, call: ToolCall) -> tuple[JSONObject, str]:
        """Return the arguments as the tool would get them, and what is wrong with them."""
        meant = best_match([prepared.tool for prepared in self.overloads], call.arguments)
        return next(each for each in self.overloads if each.tool is meant).arguments_for(call.arguments)


class Permissions:
    """The recipe's permissions, worked out for each tool of a registry: `deny` wins over `allow`, both over `confirm`.

    A rule with a schema is asked about the arguments as the tool would get them, schema defaults put in, so that no
    default slips past it; `deny` and `confirm` also about those that were sent.
    """

    def __init__(self, rules: dict[str, ToolRules]) -> None:
        self._rules = rules

    @classmethod
    def of(cls, settings: PermissionSettings, registry: ToolRegistry) -> Self:
        """Work the rules out; ConfigurationInvalid for a pattern that names no tool and for a broken schema."""
        allow = _by_name(settings.allow or (), registry, ("permissions", "allow"))
        deny = _by_name(settings.deny, registry, ("permissions", "deny"))
        confirm = _by_name(settings.confirm, registry, ("permissions", "confirm"))
        for tool in registry:
            is_external = registry.toolsets[tool.namespace].engine == EXTERNAL_ENGINE or is_on(tool, EXTERNAL)
            if is_external or is_on(tool, CONFIRM):
                confirm.setdefault(tool.qualified_name, []).append(Rule())
        rules = {}
        for name in registry.tool_names():
            if settings.allow is None and name not in deny and name not in confirm:
                continue
            rules[name] = ToolRules(
                overloads=_prepared(name, registry),
                allow=None if settings.allow is None else tuple(allow.get(name, ())),
                deny=tuple(deny.get(name, ())),
                confirm=tuple(confirm.get(name, ())),
            )
        return cls(rules)

    def refusal(self, call: ToolCall) -> str | None:
        """Say, for the model, why the call may not be run; None when it may, or when there is no such tool."""
        rules = self._rules.get(call.qualified_name)
        return None if rules is None else rules.refusal(call)

    def wants_confirmation(self, call: ToolCall) -> bool:
        """Whether the call is not for the engines but for somebody outside."""
        rules = self._rules.get(call.qualified_name)
        return rules is not None and rules.wants_confirmation(call)


NO_RULES = Permissions({})


def _by_name(rules: Sequence[PermissionRule], registry: ToolRegistry, at: Place) -> dict[str, list[Rule]]:
    by_name: dict[str, list[Rule]] = {}
    for index, written in enumerate(rules):
        rule = Rule(_validator(written, (*at, index, "arguments")))
        for name in _named(written.tool, registry, (*at, index)):
            by_name.setdefault(name, []).append(rule)
    return by_name


def _named(pattern: str, registry: ToolRegistry, at: Place) -> Iterator[str]:
    if pattern == EVERY_TOOL:
        yield from registry.tool_names()
    else:
        yield from registry.names.named([pattern], at=at)


def _validator(written: PermissionRule, at: Place) -> Validator | None:
    if written.arguments is None:
        return None
    try:
        checked_schema(written.arguments, of="arguments")
    except InvalidTool as error:
        raise ConfigurationInvalid(str(error), at=at) from error
    return compiled(written.arguments)


def _prepared(name: str, registry: ToolRegistry) -> tuple[PreparedTool, ...]:
    return tuple(PreparedTool.of(tool, registry.toolsets[tool.namespace]) for tool in registry.overloads(name))


def _is_about(rule: Rule, given: JSONObject, filled: JSONObject) -> bool:
    return rule.fits(given, in_doubt=True) or rule.fits(filled, in_doubt=True)


def _so(rules: Sequence[Rule]) -> str:
    """Say what another call could do about it."""
    return " with these arguments" if rules and all(rule.arguments is not None for rule in rules) else ""
