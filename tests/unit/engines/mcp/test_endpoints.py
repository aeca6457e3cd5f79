"""Where a server is looked for."""

import pytest

from engines.mcp.endpoints import Endpoint, candidates, shown

HTTP, SSE = "http", "sse"


@pytest.mark.parametrize(
    ("url", "transport", "tried"),
    [
        ("http://localhost:8080", None, ["http http://localhost:8080/mcp", "sse http://localhost:8080/sse"]),
        ("http://localhost:8080/", None, ["http http://localhost:8080/mcp", "sse http://localhost:8080/sse"]),
        ("http://h/mcp", None, ["http http://h/mcp"]),
        ("http://h/mcp/", None, ["http http://h/mcp/"]),
        ("http://h/sse", None, ["sse http://h/sse"]),
        ("http://h/tools", None, ["http http://h/tools", "sse http://h/tools/sse"]),
        ("http://h/tools", "sse", ["sse http://h/tools"]),
        ("http://h/sse", "http", ["http http://h/sse"]),
        ("http://h", "sse", ["sse http://h/sse"]),
        ("http://h?key=1", None, ["http http://h/mcp?key=1", "sse http://h/sse?key=1"]),
    ],
)
def test_d40_a_bare_host_is_asked_at_the_usual_paths_and_a_path_is_taken_at_its_word(
    url: str, transport: str | None, tried: list[str]
) -> None:
    assert [f"{each.kind} {each.url}" for each in candidates(url, transport)] == tried


def test_d40_what_was_found_when_the_tools_were_listed_is_tried_first() -> None:
    found = Endpoint("sse", "http://h/sse")
    assert [each.kind for each in candidates("http://h", None, found=found)] == ["sse", "http"]
    elsewhere = Endpoint("sse", "http://other/sse")
    assert [each.kind for each in candidates("http://h", None, found=elsewhere)] == ["http", "sse"]


def test_sec_s11_a_shown_url_holds_no_user_query_or_fragment() -> None:
    assert shown("https://user:secret@h:8443/mcp?api_key=secret#secret") == "https://h:8443/mcp"
