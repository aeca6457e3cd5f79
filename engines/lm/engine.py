"""The `lm` engine: a model plays the tool, consistent with everything the session has called before (D19-D31)."""

from collections.abc import Sequence
from typing import Any, Self

from pydantic import Field

from engines.calling.effects import Effects
from engines.chance import derive_seed
from engines.checked import checked
from engines.engine import ToolEngine
from engines.errors import ConfigurationInvalid, ToolFailed
from engines.kind_settings import EngineParts, EngineSettings
from engines.lm.output import NOT_VALID, Accepted, Rejected, judged
from engines.lm.prompt import messages_for, response_format_for
from engines.plain import JSONObject
from engines.registry import ToolRegistry
from engines.session import Session
from engines.speak import Speak, Utterance
from engines.tool import ErrorType, Tool, ToolCall, ToolResult
from engines.toolset import Toolset


class LMSettings(EngineSettings):
    """`lm_config` goes to the model floor as it is; of the `candidates` of a call the likeliest valid one is kept."""

    lm_config: JSONObject
    candidates: int = Field(default=1, ge=1, le=128)


class LMToolEngine(ToolEngine):
    """Asks a model for each result; the registry gives the specifications of other engines' calls in the history."""

    effects = Effects.session

    def __init__(
        self,
        toolsets: Sequence[Toolset],
        speak: Speak,
        *,
        registry: ToolRegistry | None = None,
        candidates: int = 1,
        **contract: Any,
    ) -> None:
        super().__init__(toolsets, **contract)
        self._speak = speak
        self._registry = ToolRegistry(toolsets) if registry is None else registry
        self._candidates = candidates

    @classmethod
    def from_parts(cls, parts: EngineParts) -> Self:
        """Build the model's Speak now: a wrong `lm_config` must not wait for the first call (rule D30)."""
        settings = checked(LMSettings, parts.settings, at=parts.at)
        at = (*parts.at, "lm_config")
        if not settings.lm_config.get("type"):
            raise ConfigurationInvalid("lm_config needs a type (for example ollama)", at=(*at, "type"))
        try:
            speak = parts.speak_for(settings.lm_config)
        except ConfigurationInvalid as error:
            raise ConfigurationInvalid(error.message, at=error.at or at) from error
        except ValueError as error:
            raise ConfigurationInvalid(str(error), at=at) from error
        return cls(
            parts.toolsets,
            speak,
            registry=parts.registry,
            candidates=settings.candidates,
            **parts.contract(settings),
        )

    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> ToolResult:
        messages = messages_for(
            call, tool, list(session.history), model_id=self._speak.model_id, specification_of=self._specification
        )
        utterances = await self._speak(
            messages,
            response_format=response_format_for(tool),
            candidates=self._candidates,
            seed=derive_seed("lm", session.seed, session.call_number),
            session_id=session.id,
        )
        return _result(call, chosen(utterances, tool), utterances)

    def _specification(self, qualified_name: str) -> Tool | None:
        return self._registry.get(qualified_name) if qualified_name in self._registry else None


def chosen(utterances: Sequence[Utterance], tool: Tool) -> Accepted | Rejected:
    """Return the valid candidate of the highest log probability (rule D26), else why the likeliest is not one."""
    if not utterances:
        raise ToolFailed(ErrorType.unparseable_result, f"{NOT_VALID}: the model said nothing")
    likeliest_first = sorted(utterances, key=_logprob, reverse=True)
    verdicts = [judged(utterance.text, tool) for utterance in likeliest_first]
    return next((verdict for verdict in verdicts if isinstance(verdict, Accepted)), verdicts[0])


def _result(call: ToolCall, verdict: Accepted | Rejected, utterances: Sequence[Utterance]) -> ToolResult:
    usage = {
        "input_tokens": sum(utterance.input_tokens for utterance in utterances),
        "output_tokens": sum(utterance.output_tokens for utterance in utterances),
    }
    metadata = {name: tokens for name, tokens in usage.items() if tokens}
    match verdict:
        case Accepted(result):
            return ToolResult(call.call_id, call.qualified_name, result=result, metadata=metadata)
        case Rejected(error_type, message):
            return ToolResult.failed(call, error_type, message, **metadata)


def _logprob(utterance: Utterance) -> float:
    return float("-inf") if utterance.logprob is None else utterance.logprob
