"""Tools written in the recipe itself, and what workers load: `{type: inline, tools: […], namespace?, engine?}`."""

from typing import Any

from engines.checked import checked
from engines.errors import ConfigurationInvalid, InvalidTool
from engines.loaders.entries import Entry, Surroundings
from engines.plain import JSONObject
from engines.tool import DEFAULT_NAMESPACE, Tool


class InlineEntry(Entry):
    """A list of tool definitions (rule D74)."""

    tools: list[Any]


def load(entry: JSONObject, surroundings: Surroundings) -> list[Tool]:
    """Read the tools; ConfigurationInvalid stands at the definition that is wrong."""
    settings = checked(InlineEntry, entry, at=surroundings.at)
    tools = []
    for index, definition in enumerate(settings.tools):
        try:
            tools.append(Tool.from_dict(definition, namespace=settings.namespace or DEFAULT_NAMESPACE))
        except InvalidTool as error:
            surroundings.leave_out(ConfigurationInvalid(str(error), at=(*surroundings.at, "tools", index)))
    return tools
