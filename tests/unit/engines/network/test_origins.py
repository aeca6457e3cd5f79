"""One spelling of an origin, and nothing that two parsers could read in two ways (rules S5, S7)."""

import pytest

from engines.network.origins import Origin, OriginInvalid, within


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://Example.COM", Origin("http", "example.com", 80)),
        ("https://example.com.:443/x?y", Origin("https", "example.com", 443)),
        ("HTTPS://example.com:8443", Origin("https", "example.com", 8443)),
        ("http://localhost.:8080", Origin("http", "localhost", 8080)),
        ("http://127.0.0.1:1/", Origin("http", "127.0.0.1", 1)),
        ("http://[::0001]:80/", Origin("http", "::1", 80)),
        ("http://bücher.example/", Origin("http", "xn--bcher-kva.example", 80)),
        ("http://my_service:80", Origin("http", "my_service", 80)),
    ],
)
def test_sec_s7_an_origin_has_one_spelling(url: str, origin: Origin) -> None:
    assert Origin.of(url) == origin
    assert Origin.of(str(origin)) == origin


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://127.0.0.1:70/",
        "ftp://example.com",
        "//evil.example",
        "example.com",
        "",
        "http://",
        "http:///path",
        "http://ok@evil.example",
        "http://user:secret@ok.example",
        "http://ok.example\\@evil.example",
        "http://ok.example\\.evil.example/",
        "http://evil.example:80:90/",
        "http://evil.example:port/",
        "http://example.com:0/",
        "http://example.com:99999/",
        "http://exa mple.com/",
        "http://example.com\r\nHost: evil",
        "http://example.com/\n",
        "\thttp://example.com",
        "http://%31%32%37.0.0.1/",
        "http://[::1",
        "http://[fe80::1%25eth0]/",
        "http://[v1.x]/",
        "http://-x-.example/",
        "http://a..b/",
        "http://" + "a" * 64 + ".example/",
        "http://127\u30020\u30020\u30021/",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://\u2460\u2461\u2466.0.0.1/",
    ],
)
def test_sec_s7_a_url_that_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(OriginInvalid):
        Origin.of(url)


def test_sec_s7_a_fragment_hides_no_host() -> None:
    assert Origin.of("http://evil.example#@ok.example").host == "evil.example"


def test_sec_s11_a_refusal_tells_no_password() -> None:
    with pytest.raises(OriginInvalid) as caught:
        Origin.of("http://user:hunter2@ok.example")
    assert "hunter2" not in str(caught.value)
    assert "basic_auth" in str(caught.value)


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "017700000001", "0x7f000001", "127.1", "1.2.3.0x4"])
def test_sec_s7_numbers_are_told_from_names(host: str) -> None:
    assert Origin.of(f"http://{host}/").is_number


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "x1.example", "1.example", "0x7f.example"])
def test_names_and_plain_addresses_are_no_numbers(host: str) -> None:
    assert not Origin.of(f"http://{host}/").is_number


OWN = Origin.of("http://api.example:8080")


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("/v1/x?y=1", "/v1/x?y=1"),
        ("/", "/"),
        ("http://api.example:8080", "/"),
        ("http://API.example.:8080?q=1", "/?q=1"),
        ("http://api.example:8080/a%2Fb/c#fragment", "/a%2Fb/c"),
        ("/a?next=../x", "/a?next=../x"),
        ("/v1.2/x...y/.z", "/v1.2/x...y/.z"),
    ],
)
def test_a_target_is_path_and_query(url: str, target: str) -> None:
    assert OWN.target(url) == target


@pytest.mark.parametrize(
    "url",
    [
        "//evil.example/x",
        "http://evil.example:8080/",
        "http://api.example/",
        "https://api.example:8080/",
        "/a/../admin",
        "/a/%2e%2e/admin",
        "/a/%2E./admin",
        "/a/.%2e",
        "/./a",
        "/..",
        "/a\\..\\b",
        "/a b",
        "/a\r\nX: y",
        "/a\x00",
        "relative",
        "?q=1",
    ],
)
def test_sec_s5_no_target_leaves_its_origin_or_its_path(url: str) -> None:
    with pytest.raises(OriginInvalid):
        OWN.target(url)


@pytest.mark.parametrize(
    ("url", "base", "is_within"),
    [
        ("http://a.example/v1/x", "http://a.example/v1", True),
        ("http://a.example/v1", "http://a.example/v1/", True),
        ("http://a.example/v1/x?y=/../", "http://A.example:80/v1/", True),
        ("http://a.example/v10", "http://a.example/v1", False),
        ("http://a.example/v1/../x", "http://a.example/v1", False),
        ("https://a.example/v1/x", "http://a.example/v1", False),
        ("http://b.example/v1/x", "http://a.example/v1", False),
        ("http://a.example/x", "http://a.example", True),
        ("not a url", "http://a.example", False),
    ],
)
def test_within_compares_origin_and_whole_segments(url: str, base: str, is_within: bool) -> None:
    assert within(url, base) is is_within
