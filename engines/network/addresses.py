"""Which addresses may be connected to: public ones, and those that the configuration itself names (rule S7)."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from engines.network.failures import AddressRefused, FailureKind, NetworkFailure
from engines.network.origins import Address, Origin, OriginInvalid

Network = IPv4Network | IPv6Network
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host and a port to every address of it, as text."""

_LOOPBACK: tuple[Network, ...] = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
# What clouds keep their credentials behind: never reached by naming a host, only by naming the address itself.
_METADATA: tuple[Network, ...] = tuple(
    ip_network(text)
    for text in (
        "169.254.0.0/16",
        "fe80::/10",
        "fd00:ec2::254/128",
        "100.100.100.200/32",
        "168.63.129.16/32",
        "192.0.0.192/32",
        "fd20:ce::254/128",
    )
)
_CGNAT = ip_network("100.64.0.0/10")
_THIS_NETWORK = ip_network("0.0.0.0/8")
# Addresses that carry an IPv4 address inside and lead to it, and how many bits stand behind it. Other ways to carry one
# (IPv4-compatible, translated, Teredo, local NAT64) lie in reserved or private networks and are refused with them.
_CARRIERS: tuple[tuple[IPv6Network, int], ...] = (
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64, which networks without IPv4 resolve every IPv4 server to
    (IPv6Network("2002::/16"), 80),  # 6to4
)


@dataclass(frozen=True, slots=True)
class AddressRules:
    """What one origin's host may stand at; `named` networks were written down by the operator as addresses."""

    host: str
    named: tuple[Network, ...] = ()
    allows_private: bool = False
    """The operator named this host in `allow_addresses`: private addresses of it are meant, metadata never."""

    @classmethod
    def of(cls, origin: Origin, allow_addresses: Sequence[str] = (), *, is_configured: bool = True) -> "AddressRules":
        """Make the rules of an origin; `is_configured` is False for a URL that a document or a server gave.

        A configured URL allows what it names itself: its literal address, or for `localhost` the loopback.
        """
        named: list[Network] = []
        allows_private = False
        for text in allow_addresses:
            match allowed(text):
                case str(host):
                    allows_private = allows_private or host == origin.host
                case network:
                    named.append(network)
        if is_configured and origin.address is not None:
            named.append(ip_network(origin.address))
        if is_configured and origin.host == "localhost":
            named.extend(_LOOPBACK)
        return cls(origin.host, tuple(named), allows_private)

    def is_allowed(self, address: Address) -> bool:
        """Whether this address may be connected to. Pure."""
        inner = _inside(address)
        if any(_covers(network, each) for network in self.named for each in (address, inner)):
            return True
        if any(_covers(network, each) for network in _METADATA for each in (address, inner)):
            return False
        if self.allows_private:
            return _is_of_somebody(inner)
        return _is_public(inner)

    def check(self, address: Address) -> None:
        """Raise AddressRefused with the way out unless the address is allowed."""
        if not self.is_allowed(address):
            raise AddressRefused(
                f"{self.host}: its address {address} is {_sort_of(address)}, and this configuration does not name it; "
                f"if it is meant, say `allow_addresses: [{address}]`"
            )


def check_as_written(origin: Origin, rules: AddressRules) -> None:
    """Check what the URL itself tells of the address, for a connection by way of a proxy, which resolves the name.

    Raises AddressRefused.
    """
    address = origin.address
    if origin.is_number:
        try:
            address = IPv4Address(socket.inet_aton(origin.host))
        except OSError:
            raise AddressRefused(f"{origin.host}: no name and no address; write it in the usual form") from None
    elif origin.host == "localhost" or origin.host.endswith(".localhost"):
        address = IPv4Address("127.0.0.1")
    if address is not None:
        rules.check(address)


def allowed(text: str) -> Network | str:
    """Read one entry of `allow_addresses`: an address, a network (`10.0.0.0/8`) or a host; ValueError otherwise."""
    try:
        return ip_network(text.strip("[]"))
    except ValueError as error:
        if "/" in text:
            raise ValueError(f"{text!r} is no network ({error}); for example 10.0.0.0/8") from None
    try:
        origin = Origin.of(f"http://{text}")
    except OriginInvalid:
        origin = None
    if origin is None or origin.is_number or ":" in text:
        raise ValueError(f"{text!r} is no address, network or host; for example 10.0.0.0/8 or hr.internal")
    return origin.host


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Ask the system (files, DNS); numbers such as `0x7f.1` become what its C library makes of them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


async def resolved(
    host: str, port: int, rules: AddressRules, resolver: Resolver = system_resolver
) -> tuple[Address, ...]:
    """Return every address of a host, each of them allowed, in the resolver's order.

    Raises AddressRefused when even one is not, and NetworkFailure (connect) when the name has none.
    """
    try:
        texts = [host] if _is_literal(host) else await resolver(host, port)
        addresses = tuple(dict.fromkeys(ip_address(text) for text in texts))
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise NetworkFailure(FailureKind.connect, f"{host}: the name cannot be resolved: {cause}") from None
    if not addresses:
        raise NetworkFailure(FailureKind.connect, f"{host}: the name has no address")
    for address in addresses:
        rules.check(address)
    return addresses


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _inside(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address carries, else the address itself."""
    if isinstance(address, IPv6Address):
        for network, shift in _CARRIERS:
            if address in network:
                return IPv4Address(int(address) >> shift & 0xFFFFFFFF)
    return address


def _covers(network: Network, address: Address) -> bool:
    return network.version == address.version and address in network


def _is_public(address: Address) -> bool:
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not (isinstance(address, IPv6Address) and address.is_site_local)
    )


def _is_of_somebody(address: Address) -> bool:
    """Whether a machine can have it: public, private, shared or loopback, not multicast, reserved or unspecified."""
    if _is_public(address) or address.is_loopback or _covers(_CGNAT, address):
        return True
    if address.is_unspecified or address.is_reserved or address.is_multicast or _covers(_THIS_NETWORK, address):
        return False
    return address.is_private


def _sort_of(address: Address) -> str:
    for each in (_inside(address), address):
        if any(_covers(network, each) for network in _METADATA):
            return "link-local or a cloud's metadata"
        for sort in ("loopback", "unspecified", "multicast", "reserved"):
            if getattr(each, f"is_{sort}"):
                return sort
        if _covers(_CGNAT, each):
            return "a carrier's shared one"
        if each.is_private:
            return "private"
    return "not public"
