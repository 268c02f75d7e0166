"""Which addresses a server may have: any http(s) one, but those of cloud metadata services and no hidden password."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from debate.errors import ConfigError


def check_base_url(url: str) -> str:
    """The URL without a slash at its end.

    Raises:
        ConfigError: for another scheme, no host, a user name or password in it, or a host that is, or resolves to, a
            link-local address.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ConfigError(f"must begin with http:// or https://, got {url!r}", field="base_url")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            "must hold no user name and password", field="base_url", hint="put the key in the environment"
        )
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"{error}: {url!r}", field="base_url") from None
    if not host:
        raise ConfigError(f"names no host: {url!r}", field="base_url")
    for address in _addresses(host, port or (443 if parts.scheme == "https" else 80)):
        if address.is_link_local:
            raise ConfigError(f"{host} is a link-local address ({address}), which is refused", field="base_url")
    return url.rstrip("/")


def _addresses(host: str, port: int) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)]
    except (OSError, UnicodeError):
        return []  # a name that does not resolve is told of when it is called
    plain = [ipaddress.ip_address(address.partition("%")[0]) for address in found]
    return [getattr(address, "ipv4_mapped", None) or address for address in plain]
