"""The keys that say how to reach a server and as whom; every engine and loader that contacts one takes them."""

import base64
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, field_validator, model_validator

from engines.network.addresses import allowed
from engines.network.headers import header_problem
from engines.network.origins import Origin

DEFAULT_MAX_RESPONSE_BYTES = 4 << 20


class BasicAuth(BaseModel):
    """User name and password; the name has no colon (RFC 7617)."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    username: str
    password: SecretStr

    @field_validator("username")
    @classmethod
    def _has_no_colon(cls, username: str) -> str:
        if ":" in username:
            raise ValueError("a user name must not hold a colon")
        return username


class ApiKey(BaseModel):
    """A key sent as a header or as a query parameter."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str = Field(min_length=1)
    value: SecretStr
    location: Literal["header", "query"] = "header"


def _user_and_password(given: Any) -> Any:
    """`user:password` is the short form."""
    if not isinstance(given, str):
        return given
    username, colon, password = given.partition(":")
    if not colon:
        raise ValueError("must be user:password, or a table with username and password")
    return {"username": username, "password": password}


class ConnectionSettings(BaseModel):
    """Where the server is and what it is shown; to be inherited by the settings of an engine and by a loader's entry.

    Credentials belong to the origin of `url` and go nowhere else (rule S8). `timeout` is in seconds; None leaves it to
    whoever connects.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: str | None = None
    bearer_token: SecretStr | None = None
    basic_auth: Annotated[BasicAuth, BeforeValidator(_user_and_password)] | None = None
    api_key: ApiKey | None = None
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    verify: bool | str = True
    client_certificate: Path | None = None
    client_key: Path | None = None
    timeout: float | None = Field(default=None, gt=0, le=86_400)
    allow_addresses: tuple[str, ...] = ()
    environment_proxy: bool = False
    max_response_bytes: int = Field(default=DEFAULT_MAX_RESPONSE_BYTES, ge=1, le=1 << 30)

    @model_validator(mode="before")
    @classmethod
    def _base_url_means_url(cls, data: Any) -> Any:
        """`url` and `base_url` both mean the base URL (decision 11)."""
        if not isinstance(data, dict) or "base_url" not in data:
            return data
        if data.get("url", data["base_url"]) != data["base_url"]:
            raise ValueError("`url` and `base_url` mean the same and differ; give one of them")
        return {"url": data["base_url"], **{key: value for key, value in data.items() if key != "base_url"}}

    @field_validator("url")
    @classmethod
    def _has_an_origin(cls, url: str | None) -> str | None:
        if url is not None:
            Origin.of(url)
            if "#" in url:
                raise ValueError("must have no #fragment")
        return url

    @field_validator("verify")
    @classmethod
    def _is_no_empty_path(cls, verify: bool | str) -> bool | str:  # noqa: FBT001 (a validator takes the value alone)
        if not isinstance(verify, bool) and not verify.strip():
            raise ValueError("must be true, false or the path of a CA file")
        return verify

    @field_validator("allow_addresses")
    @classmethod
    def _are_addresses(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        for text in texts:
            allowed(text)
        return texts

    @model_validator(mode="after")
    def _says_once_who_asks(self) -> Self:
        """Two schemes would leave it to chance which one the server sees (rule D56)."""
        named = [key for key in ("bearer_token", "basic_auth") if getattr(self, key) is not None]
        headers = [name.lower() for name in self.headers]
        if "authorization" in headers:
            named.append("headers.Authorization")
        if self.api_key is not None and self.api_key.location == "header":
            if self.api_key.name.lower() == "authorization":
                named.append("api_key.name: Authorization")
            elif self.api_key.name.lower() in headers:
                raise ValueError(f"`api_key` and `headers` both give {self.api_key.name}; give one of them")
        if len(named) > 1:
            raise ValueError(f"{' and '.join(named)} are several ways to say who is asking; give one of them")
        if len(set(headers)) < len(headers):
            raise ValueError("`headers` gives the same name twice")
        for name, value in self.credential_headers:
            if problem := header_problem(name, value):
                raise ValueError(problem)
        if self.client_key is not None and self.client_certificate is None:
            raise ValueError("`client_key` needs `client_certificate`")
        return self

    @property
    def origin(self) -> Origin | None:
        """The origin of `url`, which the credentials belong to."""
        return None if self.url is None else Origin.of(self.url)

    @property
    def has_credentials(self) -> bool:
        """Whether anything here must stay with the origin of `url`."""
        return bool(self.headers or self.bearer_token or self.basic_auth or self.api_key or self.client_certificate)

    @property
    def credential_headers(self) -> tuple[tuple[str, str], ...]:
        """What is sent with each request, in plain text: never to be logged, nor put into a message."""
        headers = [(name, value.get_secret_value()) for name, value in self.headers.items()]
        if self.bearer_token is not None:
            headers.append(("Authorization", f"Bearer {self.bearer_token.get_secret_value()}"))
        if self.basic_auth is not None:
            pair = f"{self.basic_auth.username}:{self.basic_auth.password.get_secret_value()}"
            headers.append(("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
        if self.api_key is not None and self.api_key.location == "header":
            headers.append((self.api_key.name, self.api_key.value.get_secret_value()))
        return tuple(headers)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret in plain text, for whoever must mask them."""
        texts = [value.get_secret_value() for value in self.headers.values()]
        texts += [each.get_secret_value() for each in (self.bearer_token,) if each is not None]
        texts += [self.basic_auth.password.get_secret_value()] if self.basic_auth is not None else []
        texts += [self.api_key.value.get_secret_value()] if self.api_key is not None else []
        return tuple(texts)
