"""Where an API is (rule D49)."""

from typing import Any

import pytest

from engines.errors import InvalidTool
from engines.loaders.openapi.servers import BaseURL, Whereabouts

SPEC = "https://api.example.com/docs/v2/openapi.json?token=t#x"


def at(url: str, **more: Any) -> list[dict[str, Any]]:
    return [{"url": url, **more}, {"url": "https://second.example"}]


def test_d49_the_entrys_base_url_wins() -> None:
    whereabouts = Whereabouts("http://localhost:8080/v1/", SPEC)

    assert whereabouts.of(at("https://elsewhere.example")) == BaseURL("http://localhost:8080/v1", "recipe")


@pytest.mark.parametrize(
    "url", ["https://elsewhere.example/v1", "https://elsewhere.example/v1/", "https://elsewhere.example/v1?a=b"]
)
def test_d49_else_the_first_server_is_the_base_and_the_document_named_it(url: str) -> None:
    assert Whereabouts().of(at(url)) == BaseURL("https://elsewhere.example/v1", "document")


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("/api/v3", "https://api.example.com/api/v3"),
        ("v3", "https://api.example.com/docs/v2/v3"),
        ("../v3", "https://api.example.com/docs/v3"),
        (".", "https://api.example.com/docs/v2"),
        ("", "https://api.example.com"),
        ("https://API.example.com:443/x", "https://API.example.com:443/x"),
    ],
)
def test_d49_a_relative_server_starts_at_the_documents_own_url_which_the_recipe_named(url: str, base: str) -> None:
    assert Whereabouts(None, SPEC).of(at(url)) == BaseURL(base, "recipe")


@pytest.mark.parametrize(
    "url", ["https://evil.example/x", "//evil.example/x", "http://api.example.com", "http://169.254.169.254"]
)
def test_d49_sec_s7_another_host_that_a_document_names_is_the_documents(url: str) -> None:
    assert Whereabouts(None, SPEC).of(at(url)).named_by == "document"


def test_d49_a_document_without_servers_lies_where_the_api_is() -> None:
    assert Whereabouts(None, SPEC).of(None) == BaseURL("https://api.example.com", "recipe")


@pytest.mark.parametrize("servers", [None, [], [{}], [{"url": "/"}], "nonsense", ["nonsense"]])
def test_d49_a_file_without_servers_leaves_the_url_to_the_engine(servers: Any) -> None:
    assert Whereabouts().of(servers) == BaseURL(None)


def test_d49_a_relative_server_of_a_file_is_an_error() -> None:
    with pytest.raises(InvalidTool, match="'/api/v3' is relative, and to what is not known; give base_url"):
        Whereabouts().of(at("/api/v3"))


def test_d49_variables_have_their_default_values() -> None:
    variables = {"region": {"default": "eu", "enum": ["eu", "us"]}, "port": {"default": 8443}}

    base = Whereabouts().of(at("https://{region}.example.com:{port}/v1", variables=variables))

    assert base.url == "https://eu.example.com:8443/v1"


@pytest.mark.parametrize(
    ("url", "cause"),
    [
        ("https://{host}/v1", r"needs a value for \{host\}; give base_url"),
        ("ftp://files.example", "its server 'ftp://files.example' must be an http"),
        ("https://user:pass@api.example", "no user or password"),
        ("https://", "names no host"),
        ("https://a.example/../../x", "give base_url"),
        ("file:///etc/passwd", "must be an http"),
    ],
)
def test_d49_a_server_that_cannot_be_a_base_is_an_error(url: str, cause: str) -> None:
    with pytest.raises(InvalidTool, match=cause):
        Whereabouts().of(at(url))
