"""The official `openai` package as a model (`provider: openai-sdk`): slower than our own client, and its referee."""

import time
from collections.abc import Callable
from typing import Any

from conversations.errors import MalformedReply, ModelError, ModelTimeout, ModelUnavailable
from conversations.messages import JSONObject
from conversations.models.model import ModelReply, ModelRequest
from conversations.models.openai_compatible import random_call_id
from conversations.models.redaction import redactor
from conversations.models.refusals import error_of_status
from conversations.models.replies import reply_of
from conversations.models.settings import ModelSettings
from conversations.wire.openai import call_ids_in
from engines.network.retry_after import asked_wait_seconds

_SHOWN_CHARS = 1 << 16


class OpenAISDKModel:
    """One model of one server, asked through the SDK; its own retries are off, so that ours see every try."""

    def __init__(
        self,
        settings: ModelSettings,
        *,
        clock: Callable[[], float] = time.time,
        make_call_id: Callable[[], str] = random_call_id,
    ) -> None:
        """Imports nothing yet: the package takes seconds."""
        self._settings, self._clock, self._make_call_id = settings, clock, make_call_id
        self._client: Any = None
        self._place = f"model {settings.model_name!r} at {settings.endpoint} (openai-sdk)"
        key = settings.api_key.get_secret_value() if settings.api_key else ""
        self._redact = redactor([key, *(value.get_secret_value() for value in settings.headers.values())])

    def __repr__(self) -> str:
        """Names the place and nothing secret."""
        return f"<{type(self).__name__} {self._place}>"

    @property
    def model_id(self) -> str:
        """The model's name as the server knows it."""
        return self._settings.model_name

    async def open(self) -> None:
        """Make the SDK's client; ModelError when the package is not installed."""
        if self._client is not None:
            return
        try:
            import httpx2  # noqa: PLC0415 - heavy, and behind an extra
            import openai  # noqa: PLC0415
        except ImportError as error:
            message = "provider openai-sdk needs the package openai; install it: pip install 'parley[openai-sdk]'"
            raise ModelError(message, type="model_configuration", retryable=False) from error
        settings = self._settings
        verify: Any = str(settings.ca_file) if settings.ca_file is not None else settings.verify_tls
        self._client = openai.AsyncOpenAI(
            api_key=settings.api_key.get_secret_value() if settings.api_key else "none",
            base_url=settings.endpoint,
            max_retries=0,
            timeout=httpx2.Timeout(settings.timeout_seconds, connect=settings.connect_timeout_seconds),
            default_headers={name: value.get_secret_value() for name, value in settings.headers.items()},
            http_client=openai.DefaultAsyncHttpxClient(
                verify=verify,
                cert=str(settings.client_certificate_file) if settings.client_certificate_file else None,
                trust_env=settings.environment_proxy,
                follow_redirects=False,
            ),
        )

    async def close(self) -> None:
        """Close it."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    async def ask(self, request: ModelRequest) -> ModelReply:
        """One try; a reply or a typed error."""
        if self._client is None:
            raise RuntimeError(f"{self!r} is not open; call open() before ask()")
        import openai  # noqa: PLC0415 - loaded by open()

        try:
            completion = await self._client.chat.completions.create(
                **self._arguments(request), extra_headers={"X-Session-ID": request.session_id}
            )
        except openai.APITimeoutError as error:
            raise ModelTimeout(f"{self._place}: no reply within {self._settings.timeout_seconds:g} s") from error
        except openai.APIStatusError as error:
            raise self._of_status(error) from None
        except openai.APIConnectionError as error:
            cause = self._redact(str(error.__cause__ or error))
            raise ModelUnavailable(f"{self._place}: connection failed: {cause}") from None
        except (openai.OpenAIError, ValueError, RecursionError) as error:  # of JSON that is none, or nested too deeply
            raise MalformedReply(f"{self._place}: {self._redact(str(error))[:300]}") from None
        return self._read(completion, request)

    def _arguments(self, request: ModelRequest) -> JSONObject:
        settings = self._settings.saying(request.parameters)
        chosen = {
            "model": settings.model_name,
            "messages": request.messages,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_tokens": settings.max_tokens,
            "stop": list(settings.stop) if isinstance(settings.stop, tuple) else settings.stop,
            "tools": request.tools or None,
            "tool_choice": request.tool_choice if request.tools else None,
            "response_format": request.response_format,
            "n": request.candidates if request.candidates > 1 else None,
            "logprobs": request.logprobs or None,
            "seed": request.seed,
        }
        given = {key: value for key, value in chosen.items() if value is not None}
        return given | ({"extra_body": settings.extra} if settings.extra else {})

    def _read(self, completion: Any, request: ModelRequest) -> ModelReply:
        try:
            body = completion.model_dump(mode="json", warnings=False)
            return reply_of(
                body,
                model=self._settings.model_name,
                make_call_id=self._make_call_id,
                taken_ids=call_ids_in(request.messages),
                keep_reasoning=self._settings.reasoning == "keep",
                wants_alternatives=request.candidates > 1 or request.logprobs,
            )
        except MalformedReply as error:
            raise MalformedReply(f"{self._place}: {self._redact(error.message)}") from None
        except Exception as error:  # noqa: BLE001 - the SDK checks nothing: a body may be of any type
            raise MalformedReply(f"{self._place}: the reply is no completion ({type(error).__name__})") from None

    def _of_status(self, error: Any) -> ModelError:
        headers = error.response.headers
        wait = asked_wait_seconds(
            retry_after_ms=headers.get("retry-after-ms"),
            retry_after=headers.get("retry-after"),
            date=headers.get("date"),
            now=self._clock(),
        )
        body = error.response.text[:_SHOWN_CHARS]
        return error_of_status(
            error.status_code, body, place=self._place, retry_after_seconds=wait, redact=self._redact
        )
