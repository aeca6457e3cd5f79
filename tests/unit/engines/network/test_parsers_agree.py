"""What passes our reading of a URL is read in the same way by those who connect: no gap to slip through (S5, S7)."""

import socket
from ipaddress import ip_address
from urllib.parse import unquote

import httpx
from hypothesis import example, given
from hypothesis import strategies as st
from pyreqwest.http import Url

from engines.network.origins import Origin, OriginInvalid

_PIECES = [
    *(
        "http",
        "https",
        "file",
        ":",
        "//",
        "/",
        "\\",
        "@",
        "#",
        "?",
        "[",
        "]",
        "%",
        "%2e",
        "%2F",
        "%00",
        ".",
        "..",
        ":80",
        ":443",
    ),
    *("evil.example", "api.example", "127.0.0.1", "0x7f.1", "2130706433", "017700000001", "::1", "::ffff:127.0.0.1"),
    *(
        "localhost",
        "\t",
        "\n",
        " ",
        "\u3002",
        "\uff0e",
        "\uff11",
        "\u2488",
        "\u00ad",
        "\u200d",
        "ß",
        "ü",
        "xn--",
        "-",
        "_",
        "a",
    ),
]
URLS = st.lists(st.sampled_from(_PIECES), max_size=9).map("".join)
OWN = Origin("http", "api.example", 8080)


@given(st.one_of(URLS.map("http://{}".format), URLS.map("https://api.example{}".format), URLS))
@example("http://evil.example#@api.example")
@example("http://api.example\\@evil.example")
@example("http://faß.example")
@example("http://127.0.0.1.")
def test_sec_s7_every_parser_finds_the_host_that_we_found(url: str) -> None:
    try:
        origin = Origin.of(url)
    except OriginInvalid:
        return
    if origin.is_number:
        try:
            number = ip_address(socket.inet_aton(origin.host))
        except OSError:
            return  # the system does not resolve it either
        assert ip_address(Url.parse(str(origin)).host_str or "") == number
        return
    try:
        both = (Url.parse(url), Url.parse(str(origin)))
    except ValueError:
        return  # `xn--` with nonsense behind it: nobody connects
    for parsed in both:
        assert (parsed.scheme, (parsed.host_str or "").strip("[]").removesuffix(".")) == (origin.scheme, origin.host)
        assert parsed.port_or_known_default == origin.port
    written = httpx.URL(str(origin))
    assert (written.raw_host.decode().strip("[]"), written.port or origin.port) == (origin.host, origin.port)


@given(st.one_of(URLS, st.text()).map("/{}".format))
@example("/%2e%2e/admin")
@example("/a/.%2E?x=/../y")
@example("//evil.example/x")
def test_sec_s5_every_parser_keeps_the_path_that_we_let_through(url: str) -> None:
    try:
        target = OWN.target(url)
    except OriginInvalid:
        return
    sent = Url.parse(str(httpx.Request("GET", str(OWN) + target).url))

    assert (sent.scheme, sent.host_str, sent.port) == ("http", "api.example", 8080)
    path = target.partition("?")[0]
    assert sent.path.count("/") == path.count("/")
    assert not {".", ".."} & {unquote(segment) for segment in sent.path.split("/")}
    if path.isascii() and path.replace("/", "").replace("-", "").isalnum():
        assert sent.path == path
    assert sent.fragment is None
