"""Who may ask a server of this package: a check of a request by its headers."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Answer = tuple[int, dict[str, Any]]
"""HTTP status and JSON body."""
_EVERY_ADDRESS = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask: checks requests by their headers.

    A page in a browser can send requests to this machine, and read the answers under a host name of its own that it has
    pointed here (DNS rebinding). Such requests name a foreign origin or a foreign host.

    Args:
        host: the name or address the server was told to listen on; requests may name it, or a loopback address.
        token: must come as `Authorization: Bearer TOKEN`; None asks for none. With one, a server that listens on every
            address takes every host name.
    """

    host: str
    token: str | None = None

    def refusal(self, headers: Mapping[str, str], *, asks_token: bool = True) -> Answer | None:
        """The answer to a request that is refused, or None; names of headers are in lower case.

        asks_token: whether what is asked for is behind the token, where there is one.
        """
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_own(host):
            return 403, {"error": "Forbidden: this server is not the Host that the request names."}
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            return 403, {"error": "Forbidden: the request comes from a page of another Origin."}
        given = headers.get("authorization", "")
        if (
            asks_token
            and self.token is not None
            and not secrets.compare_digest(given.encode("latin-1", "replace"), f"Bearer {self.token}".encode())
        ):
            return 401, {"error": "Unauthorized"}
        return None

    def _is_own(self, authority: str) -> bool:
        if self.token is not None and self.host in _EVERY_ADDRESS:
            return True
        try:
            name = urlsplit(f"//{authority}").hostname or ""
        except ValueError:  # half an IPv6 address
            return False
        return is_loopback(name) or name == self.host.lower()


def is_loopback(host: str) -> bool:
    """Whether a name or an address can be reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
