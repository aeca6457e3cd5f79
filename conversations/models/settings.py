"""What a recipe's `model` block may say, and how the lm engine's `lm_config` maps onto it."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

Provider = Literal["openai", "ollama", "anthropic", "openai-sdk", "offline"]
DEFAULT_BASE_URLS: Mapping[str, str] = MappingProxyType(
    {
        "openai": "https://api.openai.com/v1",
        "openai-sdk": "https://api.openai.com/v1",
        "ollama": "http://localhost:11434/v1",
        "anthropic": "https://api.anthropic.com",
    }
)
OFFLINE_MODEL = "offline"
# The request's own keys: `extra` may not fight with them.
_OWN_KEYS = frozenset({"messages", "model", "n", "response_format", "seed", "stream", "tool_choice", "tools"})
_OWN_HEADERS = frozenset({"connection", "content-length", "content-type", "host", "transfer-encoding", "x-session-id"})
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_NAMES_SECRET = re.compile(r"(?i)key|token|secret|sig|password")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
_LM_TYPES: Mapping[str, tuple[Provider, str | None]] = MappingProxyType(
    {
        "offline": ("offline", None),
        "ollama": ("ollama", None),
        "openai": ("openai", None),
        "openai-sdk": ("openai-sdk", None),
        "anthropic": ("anthropic", None),
        "vllm": ("openai", "http://localhost:8000/v1"),
        "vllm-remote": ("openai", "http://localhost:8000/v1"),
    }
)
_LM_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "max_new_tokens": "max_tokens",
        "model_id_or_path": "model",
        "stop_sequences": "stop",
    }
)


class OfflineSettings(BaseModel):
    """How the offline model behaves; `turns` = N means exactly N replies, one tool call in each but the last."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    turns: int | None = Field(default=None, ge=1)
    latency_ms: float = Field(default=0.0, ge=0)
    seed: int = 0


class Sampling(BaseModel):
    """How a model is to choose its words: what a recipe says for all requests, and a caller for the next ones."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    stop: str | tuple[str, ...] | None = None
    extra: dict[str, Any] = {}

    @field_validator("extra")
    @classmethod
    def _leaves_own_keys_alone(cls, extra: dict[str, Any]) -> dict[str, Any]:
        if clash := sorted(_OWN_KEYS & extra.keys()):
            raise ValueError(f"{', '.join(clash)}: set by the client itself; leave it out")
        return extra


class ModelSettings(Sampling):
    """One language model and how to reach it. Secrets never show in a repr or in an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    provider: Provider
    model: str = Field(default="", max_length=512)
    base_url: str = ""
    api_key: SecretStr | None = None
    reasoning: Literal["keep", "drop"] = "keep"
    stream: bool = False
    prompt_cache: bool = True
    timeout_seconds: float = Field(default=600.0, gt=0)
    connect_timeout_seconds: float = Field(default=30.0, gt=0)
    max_retries: int = Field(default=5, ge=0)
    retry_cap_seconds: float = Field(default=120.0, ge=0)
    max_reply_bytes: int = Field(default=16 << 20, ge=1024)
    headers: dict[str, SecretStr] = {}
    ca_file: Path | None = None
    client_certificate_file: Path | None = None
    verify_tls: bool = True
    environment_proxy: bool = False
    offline: OfflineSettings = OfflineSettings()
    fallback: "tuple[ModelSettings, ...]" = ()

    @classmethod
    def from_lm_config(cls, lm_config: Mapping[str, Any]) -> Self:
        """The lm engine's `lm_config` (`type`, `model_id_or_path`, …); this class's own keys too (rule D30)."""
        given = {_LM_KEYS.get(key, key): value for key, value in lm_config.items()}
        kind = given.pop("type", None)
        if kind not in _LM_TYPES:
            known = ", ".join(_LM_TYPES)
            raise ValueError(f"lm_config.type: {kind!r} is no kind of model; known: {known}")
        provider, base_url = _LM_TYPES[kind]
        if base_url and not given.keys() & {"base_url", "url"}:
            given["base_url"] = base_url
        return cls.model_validate({"provider": provider, **given})

    @model_validator(mode="before")
    @classmethod
    def _url_means_base_url(cls, data: Any) -> Any:
        """`url` and `base_url` both mean the base URL (decision 11)."""
        if not isinstance(data, dict) or "url" not in data:
            return data
        if "base_url" in data:
            raise ValueError("`url` and `base_url` mean the same; give one of them")
        return {("base_url" if key == "url" else key): value for key, value in data.items()}

    @field_validator("base_url")
    @classmethod
    def _is_plain_http_url(cls, url: str) -> str:
        if not url:
            return url
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("must be an http:// or https:// URL such as http://localhost:8000/v1")
        if parts.username or parts.password:
            raise ValueError("must hold no user or password; put them into `api_key` or `headers`")
        if parts.fragment:
            raise ValueError("must have no #fragment")
        if any(_NAMES_SECRET.search(pair.partition("=")[0]) for pair in parts.query.split("&")):
            raise ValueError("must hold no key in its query; put it into `api_key` or `headers`")
        if parts.port == 0:  # asking for the port refuses one that is no number up to 65535
            raise ValueError("port 0 is none")
        return url

    @field_validator("headers")
    @classmethod
    def _are_sendable(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value.get_secret_value()):
                raise ValueError(f"header {name!r} holds characters that no header may hold")
            if name.lower() in _OWN_HEADERS:
                raise ValueError(f"header {name!r} is set by the client itself; leave it out")
        return headers

    @field_validator("api_key")
    @classmethod
    def _key_is_sendable(cls, key: SecretStr | None) -> SecretStr | None:
        if key is None or not key.get_secret_value().strip():
            return None
        stripped = key.get_secret_value().strip()  # a key read from a file ends with a newline
        if not _HEADER_VALUE.fullmatch(stripped):
            raise ValueError("holds characters that no header may hold")
        return SecretStr(stripped)

    @model_validator(mode="after")
    def _names_a_model(self) -> Self:
        if not self.model and self.provider != "offline":
            raise ValueError(f"model: provider {self.provider!r} needs the name of a model, such as `model: qwen3`")
        return self

    def __hash__(self) -> int:
        """Equal settings are one model, so that they can be a key; the rest of the fields decides by equality."""
        return hash((self.provider, self.model, self.base_url))

    @property
    def endpoint(self) -> str:
        """The base URL given, or the provider's own."""
        return self.base_url or DEFAULT_BASE_URLS.get(self.provider, "")

    def saying(self, parameters: Mapping[str, Any]) -> Self:
        """These settings with the values of a `Sampling` over them; what it leaves out stays."""
        return self.model_copy(update=dict(parameters)) if parameters else self

    @property
    def model_name(self) -> str:
        """The model's name as the server knows it."""
        return self.model or OFFLINE_MODEL


class WeightedModel(ModelSettings):
    """One of several models: of every `weight` summed over all, so many conversations go to this one."""

    weight: float = Field(default=1.0, gt=0, le=1_000_000)

    __hash__ = ModelSettings.__hash__


class RoutedModels(BaseModel):
    """Several models that share the conversations of a run, each conversation keeping to one of them."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    routes: tuple[WeightedModel, ...] = Field(min_length=1, max_length=100)


ModelChoice = ModelSettings | RoutedModels
"""What a role of a conversation (assistant, user, judge) may be played by."""


def model_choice(block: Any) -> ModelChoice:
    """Read a recipe's `model` block: one model, or `routes` to several; pydantic's ValidationError says where."""
    if isinstance(block, dict) and "routes" in block:
        return RoutedModels.model_validate(block)
    return ModelSettings.model_validate(block)
