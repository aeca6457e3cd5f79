"""A model opened for a while: what looks at the tools when they are loaded may ask one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic import ValidationError

from conversations.models.kinds import build_model
from conversations.models.settings import ModelSettings
from conversations.models.speaking import speak_with
from engines.speak import Speak


@asynccontextmanager
async def opened_speak(lm_config: dict[str, Any]) -> AsyncIterator[Speak]:
    """The model of an `lm_config`, open; ValueError, without the values themselves, for one that cannot be used."""
    try:
        settings = ModelSettings.from_lm_config(lm_config)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise ValueError(f"{place}: {first['msg'].removeprefix('Value error, ')}".removeprefix(": ")) from None
    model = build_model(settings)
    await model.open()
    try:
        yield speak_with(model)
    finally:
        await model.close()
