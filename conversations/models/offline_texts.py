"""What the offline model says: final answers that mention the tools' results, and plain answers when there are none."""

import re
from collections.abc import Sequence
from random import Random
from typing import Any

import orjson

from conversations.user_settings import GOAL_MARK

_SHOWN_RESULTS = 3
_SHOWN_FACTS = 4
_SHOWN_CHARS = 160
_VERBS = re.compile(
    r"^(?:get|fetch|find|search|list|lookup|look_up|read|retrieve|calculate|check|create|generate|convert)_"
)
_OPENINGS = (
    "Here is what I found.",
    "I looked that up for you.",
    "Thanks for your patience; this is what came back.",
    "I have the details now.",
    "Done, here is the summary.",
)
_CLOSINGS = (
    "Let me know if you need anything else.",
    "Tell me if I should look into something further.",
    "I can go into more detail if that helps.",
    "Is there anything else you would like to know?",
)
_ADVICE = (
    "The short answer is that it depends on what matters most to you, but a simple start is usually the best one.",
    "Most people begin with the basics, check the result, and then refine it step by step.",
    "There are a few good options, and the differences between them are smaller than they look at first.",
    "A good first step is to write down what you already know and what is still open.",
)
_REQUESTS = ("Hello, could you help me with something?", "Hi! I have a question for you.")
_FOLLOW_UPS = (
    "Could you tell me a little more about that?",
    "Thanks. Can you check that once more for me?",
    "And what would you do in my place?",
    "I see. Is there anything I should watch out for?",
)
_MOST_QUESTIONS = 3
_ACKNOWLEDGEMENTS = ("Happy to help with that.", "Good question.", "Sure, let me explain.", "Of course.")


def user_line(instructions: str, said_before: int, chance: Random) -> str:
    """What the offline model says where it plays the user: the goal first, a few more questions, then the stop."""
    goal = next((line.removeprefix(GOAL_MARK) for line in instructions.splitlines() if line.startswith(GOAL_MARK)), "")
    if said_before == 0:
        return f"Hello! I have a request. {goal}".strip() if goal else chance.choice(_REQUESTS)
    if said_before > chance.randint(1, _MOST_QUESTIONS):
        stop = re.search(r"write (\S+) and nothing else", instructions)
        return stop[1] if stop else ""
    return chance.choice(_FOLLOW_UPS)


def answer_from_results(results: Sequence[tuple[str, str]], chance: Random) -> str:
    """A final text about `(tool name, content)` pairs, the latest ones."""
    sentences = [result_sentence(name, content) for name, content in results[-_SHOWN_RESULTS:]]
    return " ".join([chance.choice(_OPENINGS), *dict.fromkeys(sentences), chance.choice(_CLOSINGS)])


def plain_answer(question: str, chance: Random) -> str:
    """A final text where no tool was called."""
    topic = re.sub(r"\s+", " ", question).strip().rstrip("?!. ")[:80]
    about = f'About "{topic}": ' if topic else ""
    first, second = chance.sample(_ADVICE, 2)
    return f"{chance.choice(_ACKNOWLEDGEMENTS)} {about}{first} {second} {chance.choice(_CLOSINGS)}"


def result_sentence(name: str, content: str) -> str:
    """One sentence about one result."""
    label = thing_of(name).replace("_", " ")
    if content.lower().startswith("error"):
        return f"The {label} request did not succeed ({_cut(content.partition(':')[2].strip() or content)})."
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        return f"The {label} result says: {_cut(content)}."
    match value:
        case dict() if facts := _facts(value):
            return f"The {label}{facts}."
        case list() if value:
            first = _facts(value[0]) if isinstance(value[0], dict) else f": {_shown(value[0])}"
            return f"The {label} list holds {len(value)}; the first{first}."
        case dict() | list():
            return f"The {label} request returned nothing further."
        case _:
            return f"The {label} result is {_shown(value)}."


def thing_of(name: str) -> str:
    """What a tool is about: `weather` for `weather_api__get_weather`."""
    bare = name.rpartition("__")[2] or name
    return _VERBS.sub("", bare) or bare


def _facts(value: dict[str, Any]) -> str:
    """` for Oslo: temperature 21.5, condition sunny`: the first text names the thing, the rest follows."""
    pairs = [(key, item) for key, item in value.items() if not isinstance(item, dict | list) and item is not None]
    if not pairs:
        nested = ", ".join(key.replace("_", " ") for key in list(value)[:_SHOWN_FACTS])
        return f": there is {nested}" if nested else ""
    named = isinstance(pairs[0][1], str) and len(pairs) > 1
    said = [f"{key.replace('_', ' ')} {_shown(item)}" for key, item in pairs[named : _SHOWN_FACTS + named]]
    return (f" for {_shown(pairs[0][1])}: " if named else ": ") + ", ".join(said)


def _shown(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS].rsplit(" ", 1)[0] + " …"
