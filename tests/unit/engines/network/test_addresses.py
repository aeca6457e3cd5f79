"""Which addresses may be connected to (rule S7)."""

from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from engines.network.addresses import AddressRules, allowed, check_as_written, resolved, system_resolver
from engines.network.failures import AddressRefused, FailureKind, NetworkFailure
from engines.network.origins import Origin

NAME = Origin.of("http://api.example")
DENIED = [
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "169.254.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::7f00:1",
    "64:ff9b:1::808:808",
    "::8.8.8.8",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "2001::1",
    "2001:db8::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
PUBLIC = [
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
    "8.8.8.8",
    "93.184.216.34",
    "2606:4700:4700::1111",
    "2a00:1450:4001:80b::200e",
]


def resolver_of(*addresses: str) -> object:
    async def resolver(_host: str, _port: int) -> Sequence[str]:
        return addresses

    return resolver


@pytest.mark.parametrize("address", DENIED)
def test_sec_s7_only_public_addresses_are_allowed_to_a_name(address: str) -> None:
    assert not AddressRules.of(NAME).is_allowed(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_sec_s7_public_addresses_are_allowed(address: str) -> None:
    assert AddressRules.of(NAME).is_allowed(ip_address(address))


def test_sec_s7_a_configured_literal_allows_itself_alone() -> None:
    rules = AddressRules.of(Origin.of("http://10.0.0.5:80"))

    assert rules.is_allowed(ip_address("10.0.0.5"))
    assert not rules.is_allowed(ip_address("10.0.0.6"))
    assert not rules.is_allowed(ip_address("127.0.0.1"))


def test_sec_s7_configured_localhost_allows_the_loopback_alone() -> None:
    rules = AddressRules.of(Origin.of("http://localhost."))

    assert all(rules.is_allowed(ip_address(address)) for address in ("127.0.0.1", "127.0.0.53", "::1"))
    assert not any(rules.is_allowed(ip_address(address)) for address in ("10.0.0.1", "169.254.169.254", "0.0.0.0"))


@pytest.mark.parametrize("url", ["http://localhost", "http://127.0.0.1", "http://[::1]", "http://10.0.0.5"])
def test_sec_s7_a_documents_url_allows_nothing_private(url: str) -> None:
    rules = AddressRules.of(Origin.of(url), is_configured=False)

    assert not any(rules.is_allowed(ip_address(address)) for address in DENIED)


def test_sec_s7_a_network_that_is_allowed_covers_its_addresses_however_they_are_carried() -> None:
    rules = AddressRules.of(NAME, ["10.0.0.0/8", "[fd00:1::1]"])

    assert rules.is_allowed(ip_address("10.9.9.9"))
    assert rules.is_allowed(ip_address("::ffff:10.9.9.9"))
    assert rules.is_allowed(ip_address("fd00:1::1"))
    assert not rules.is_allowed(ip_address("192.168.0.1"))


def test_sec_s7_a_host_that_is_allowed_may_be_private_and_never_metadata() -> None:
    rules = AddressRules.of(NAME, ["api.example"])
    metadata = ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "::ffff:169.254.169.254"]

    assert all(rules.is_allowed(ip_address(each)) for each in ("10.0.0.1", "127.0.0.1", "100.64.0.1", "fc00::1", "::1"))
    assert not any(
        rules.is_allowed(ip_address(each)) for each in [*metadata, "0.0.0.0", "::", "224.0.0.1", "240.0.0.1"]
    )
    assert not AddressRules.of(NAME, ["other.example"]).is_allowed(ip_address("10.0.0.1"))


def test_sec_s7_metadata_takes_its_own_address_in_the_configuration() -> None:
    assert AddressRules.of(NAME, ["169.254.169.254"]).is_allowed(ip_address("169.254.169.254"))


@pytest.mark.parametrize("text", ["10.0.0.1/8", "10.0.0.0/33", "http://x", "a b", "", "host:80", "2130706433", "x/24"])
def test_an_entry_that_is_no_address_network_or_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="for example"):
        allowed(text)


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "017700000001", "0x7f000001", "127.1", "0"])
async def test_sec_s7_numbers_count_as_what_the_system_makes_of_them(host: str) -> None:
    origin = Origin.of(f"http://{host}:80")

    with pytest.raises(AddressRefused, match=r"address (127\.0\.0\.1|0\.0\.0\.0) .*allow_addresses"):
        await resolved(origin.host, 80, AddressRules.of(origin), system_resolver)


async def test_sec_s7_every_address_of_a_name_is_checked() -> None:
    rules = AddressRules.of(NAME)

    assert await resolved("api.example", 80, rules, resolver_of("8.8.8.8", "8.8.4.4")) == (  # type: ignore[arg-type]
        ip_address("8.8.8.8"),
        ip_address("8.8.4.4"),
    )
    with pytest.raises(AddressRefused, match=r"^api\.example: its address 10\.0\.0\.7 is private.*\[10\.0\.0\.7\]"):
        await resolved("api.example", 80, rules, resolver_of("8.8.8.8", "10.0.0.7"))  # type: ignore[arg-type]


async def test_sec_s7_a_public_name_for_the_loopback_is_refused() -> None:
    origin = Origin.of("http://127.0.0.1.nip.example")

    with pytest.raises(AddressRefused, match="loopback"):
        await resolved(origin.host, 80, AddressRules.of(origin), resolver_of("127.0.0.1"))  # type: ignore[arg-type]


async def test_sec_s7_a_literal_is_not_resolved_and_checked_all_the_same() -> None:
    async def resolver(_host: str, _port: int) -> Sequence[str]:
        raise AssertionError

    with pytest.raises(AddressRefused, match="link-local or a cloud's metadata"):
        await resolved("169.254.169.254", 80, AddressRules.of(NAME), resolver)


@pytest.mark.parametrize("addresses", [(), ("no address",)])
async def test_a_name_without_an_address_is_no_connection(addresses: tuple[str, ...]) -> None:
    with pytest.raises(NetworkFailure, match=r"api\.example: the name") as caught:
        await resolved("api.example", 80, AddressRules.of(NAME), resolver_of(*addresses))  # type: ignore[arg-type]
    assert caught.value.kind is FailureKind.connect
    assert caught.value.nothing_was_sent


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "2130706433", "0x7f.1", "localhost", "a.localhost", "169.254.169.254", "9999999999"]
)
def test_sec_s7_what_a_url_tells_of_its_address_is_checked_for_a_proxy_too(host: str) -> None:
    origin = Origin.of(f"http://{host}/")

    with pytest.raises(AddressRefused):
        check_as_written(origin, AddressRules.of(origin, is_configured=False))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "api.example", "8.8.8.8"])
def test_sec_s7_a_proxy_is_asked_for_what_the_operator_wrote(host: str) -> None:
    origin = Origin.of(f"http://{host}/")

    check_as_written(origin, AddressRules.of(origin))
