"""An agent's card: fetched, read, and its skills made tools that are pinned by a digest (rule S9)."""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from a2a.client.card_resolver import parse_agent_card
from a2a.types import AgentCard, AgentSkill
from google.protobuf.json_format import ParseError

from engines.a2a.settings import DIGEST, SKILL, URL
from engines.errors import InvalidTool
from engines.mcp.text import printable
from engines.network.http_client import HttpClient
from engines.plain import JSONObject, canonical
from engines.tool import Tool

WELL_KNOWN = "/.well-known/agent-card.json"
_OK = range(200, 300)
_JSON = "application/json"
_NAME_CHARS = 64
_DESCRIPTION_CHARS = 4096
_EXAMPLES = 3
_UNNAMEABLE = re.compile(r"[^A-Za-z0-9_-]+")


class CardUnusable(Exception):
    """An agent without a card that can be read."""


async def fetched_card(client: HttpClient, url: str) -> AgentCard:
    """The card of the agent at `url` (or the card at it, when it ends in `.json`); NetworkFailure or CardUnusable."""
    place = url if url.endswith(".json") else url.rstrip("/") + WELL_KNOWN
    answer = await client.request("GET", place, headers=[("accept", _JSON)])
    if answer.status not in _OK:
        raise CardUnusable(f"{place}: HTTP {answer.status} instead of an agent card")
    try:
        return parse_agent_card(json.loads(answer.body))
    except (ValueError, ParseError, RecursionError) as error:
        raise CardUnusable(f"{place}: the agent card cannot be read: {printable(str(error), 300)}") from None


def tools_of(card: AgentCard, *, url: str, namespace: str, skills: Sequence[str] | None) -> list[Tool]:
    """A tool for each skill, or for those that are named; InvalidTool for a name that is none."""
    known = {skill.id: skill for skill in card.skills}
    for name in skills or ():
        if name not in known:
            raise InvalidTool(f"the agent has no skill {name!r}; it has: {', '.join(map(repr, known)) or 'none'}")
    chosen = known.values() if skills is None else [known[name] for name in skills]
    if not chosen:
        raise InvalidTool("the agent's card names no skills, so there is nothing to call")
    return [_tool(skill, card, url=url, namespace=namespace) for skill in chosen]


def digest_of(skill: AgentSkill) -> str:
    """SHA-256 over all that tells what the skill is and takes."""
    texts = [skill.id, skill.name, skill.description]
    lists = [list(each) for each in (skill.tags, skill.examples, skill.input_modes, skill.output_modes)]
    return hashlib.sha256(canonical([texts, lists]).encode()).hexdigest()


def _tool(skill: AgentSkill, card: AgentCard, *, url: str, namespace: str) -> Tool:
    said = f"{skill.name}: {skill.description}" if skill.description else skill.name
    if skill.examples:
        said += "\nExamples: " + "; ".join(skill.examples[:_EXAMPLES])
    return Tool.from_dict(
        {
            "name": _UNNAMEABLE.sub("_", skill.id)[:_NAME_CHARS],
            "namespace": namespace,
            "description": printable(said, _DESCRIPTION_CHARS),
            "parameters": _parameters(skill.input_modes or card.default_input_modes),
            "metadata": {URL: url, SKILL: skill.id, DIGEST: digest_of(skill)},
        }
    )


def _parameters(modes: Sequence[str]) -> JSONObject:
    properties: dict[str, Any] = {
        "message": {"type": "string", "minLength": 1, "description": "What the agent is asked to do, in full."}
    }
    if _JSON in modes:
        properties["data"] = {"type": "object", "description": "Structured input that goes with the message."}
    return {"type": "object", "properties": properties, "required": ["message"], "additionalProperties": False}
