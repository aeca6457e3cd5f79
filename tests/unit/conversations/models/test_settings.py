"""Model settings: what a recipe may say, and that no secret shows."""

import json
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from conversations.models.settings import ModelSettings

CANARY = "canary-key-77"


def settings(**given: Any) -> ModelSettings:
    return ModelSettings.model_validate({"provider": "openai", "model": "m"} | given)


def refusal(**given: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        settings(**given)
    return str(caught.value)


def test_decision_11_url_and_base_url_mean_the_same() -> None:
    assert settings(url="http://a/v1").base_url == settings(base_url="http://a/v1").base_url == "http://a/v1"
    assert "mean the same" in refusal(url="http://a", base_url="http://b")


def test_decision_11_unknown_keys_are_refused() -> None:
    assert "temprature" in refusal(temprature=1)


def test_providers_know_their_addresses() -> None:
    assert settings().endpoint == "https://api.openai.com/v1"
    assert settings(provider="ollama").endpoint == "http://localhost:11434/v1"
    assert settings(base_url="http://a/v1").endpoint == "http://a/v1"


def test_only_the_offline_model_needs_no_name() -> None:
    assert ModelSettings(provider="offline").model_name == "offline"
    assert "needs the name of a model" in refusal(model="")


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000", "ftp://a/v1", "http://", "file:///etc/passwd", "http://user:pw@a/v1", "http://a/v1#x",
        "http://[bad/v1", "http://a:99999/v1", "http://a/v1?api_key=s3cr3t", "http://a/v1?sig=s3cr3t",
    ],
)  # fmt: skip
def test_base_urls_that_cannot_be_used_or_hold_secrets_are_refused(url: str) -> None:
    said = refusal(base_url=url)

    assert "base_url" in said
    assert "pw" not in said
    assert "s3cr3t" not in said


def test_sec_s11_secrets_show_in_no_repr_dump_or_error() -> None:
    made = settings(api_key=CANARY, headers={"X-Key": CANARY})

    assert CANARY not in f"{made!r} {made} {made.model_dump()} {made.model_dump_json()}"
    assert CANARY not in refusal(api_key=CANARY, headers={"X-Key": CANARY + "\r\nX: y"}, temperature=-1)
    assert CANARY not in refusal(api_key=CANARY + "\n\n" + CANARY)


def test_a_key_read_from_a_file_loses_its_newline_and_an_empty_one_is_none() -> None:
    assert settings(api_key=f" {CANARY}\n").api_key == SecretStr(CANARY)
    assert settings(api_key=" ").api_key is None


@pytest.mark.parametrize(
    "headers", [{"Host": "a"}, {"content-length": "3"}, {"X-Session-ID": "a"}, {"a b": "c"}, {"a": "b\r\nc: d"}]
)
def test_sec_s6_headers_that_would_break_the_request_are_refused(headers: dict[str, str]) -> None:
    assert "header" in refusal(headers=headers)


@pytest.mark.parametrize("key", ["messages", "tools", "stream", "n", "model", "seed"])
def test_extra_does_not_fight_with_the_clients_own_keys(key: str) -> None:
    assert key in refusal(extra={key: 1})


def test_other_settings_other_model_same_settings_same_model() -> None:
    first, same, other = (
        settings(api_key="a", headers={"X": "1"}),
        settings(api_key="a", headers={"X": "1"}),
        settings(api_key="b"),
    )

    assert {first: 1}[same] == 1
    assert first != other
    assert len({first, same, other}) == 2


def test_settings_round_trip_through_json_without_secrets() -> None:
    made = settings(temperature=0.5, stop=("a", "b"), offline={"turns": 5}, extra={"a": {"b": 1}})

    assert ModelSettings.model_validate(json.loads(made.model_dump_json())) == made


def test_d30_the_seeds_lm_config_is_understood() -> None:
    made = ModelSettings.from_lm_config({"type": "ollama", "model_id_or_path": "granite3.3:8b"})

    assert (made.provider, made.model, made.endpoint) == ("ollama", "granite3.3:8b", "http://localhost:11434/v1")


@pytest.mark.parametrize(
    ("lm_config", "expected"),
    [
        ({"type": "openai", "model": "gpt-5", "api_key": "k"}, ("openai", "gpt-5", "https://api.openai.com/v1")),
        ({"type": "vllm", "model_id_or_path": "q"}, ("openai", "q", "http://localhost:8000/v1")),
        ({"type": "vllm", "model_id_or_path": "q", "url": "http://b/v1"}, ("openai", "q", "http://b/v1")),
        ({"type": "offline"}, ("offline", "", "")),
    ],
)
def test_d30_further_kinds_of_lm_config(lm_config: dict[str, Any], expected: tuple[str, str, str]) -> None:
    made = ModelSettings.from_lm_config(lm_config)

    assert (made.provider, made.model, made.endpoint) == expected


def test_d30_generation_keys_of_an_lm_config_are_kept() -> None:
    made = ModelSettings.from_lm_config(
        {"type": "ollama", "model_id_or_path": "g", "temperature": 0, "max_new_tokens": 9, "stop_sequences": ["x"]}
    )

    assert (made.temperature, made.max_tokens, made.stop) == (0, 9, ("x",))


@pytest.mark.parametrize("lm_config", [{}, {"type": "gpt4all", "model_id_or_path": "x"}, {"model_id_or_path": "x"}])
def test_d30_an_lm_config_without_a_known_type_is_refused(lm_config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"lm_config\.type: .* known: offline, ollama, openai"):
        ModelSettings.from_lm_config(lm_config)
