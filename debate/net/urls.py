"""Which addresses a server may have: no link-local ones, where clouds keep credentials, and no hidden password."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from debate.errors import ConfigError


def check_base_url(url: str) -> str:
    """The URL without a slash at its end.

    Raises:
        ConfigError: for another scheme, no host, a user name, password, query or fragment in it, or a host that is, or
            resolves to, a link-local address.
    """
    # What is refused is not shown: it may hold a password.
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"cannot be read: {error}", field="base_url") from None
    if parts.username is not None or parts.password is not None:
        hint = "put the key in the environment"
        raise ConfigError("must hold no user name and password", field="base_url", hint=hint)
    if parts.query or parts.fragment:
        raise ConfigError("must hold no ? and no #", field="base_url")
    if parts.scheme not in ("http", "https"):
        raise ConfigError("must begin with http:// or https://", field="base_url")
    if not host:
        raise ConfigError("names no host", field="base_url")
    if not url.isprintable() or " " in url:
        raise ConfigError("must hold no blanks and control characters", field="base_url")
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
