"""The proxy that the environment names for a server; looked at only where a configuration asks for it (rule S7)."""

from urllib.request import getproxies_environment, proxy_bypass

from engines.network.origins import Origin


def environment_proxy(origin: Origin) -> str | None:
    """Return the URL of `http_proxy`, `https_proxy` or `all_proxy`; None when there is none or `no_proxy` covers it."""
    proxies = getproxies_environment()
    if proxy_bypass(f"{origin.host}:{origin.port}", proxies):
        return None
    return proxies.get(origin.scheme) or proxies.get("all")
