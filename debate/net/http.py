"""JSON over HTTP: addresses, keys, connections, and one error for whatever a server does instead of answering.

Redirects are not followed. A key is read from an environment variable alone, sent in a header alone, and replaced in
every text that may be shown.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from debate.errors import BackendError, ConfigError
from debate.hashing import ById
from debate.net.retry import RetryPolicy, TransportError, error_from_status

if TYPE_CHECKING:
    import httpx2

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_SHOWN_CHARACTERS = 500
"""Of a server's own words in a message."""


class Endpoint:
    """The address of a server and its key. Reads answers.

    Args:
        base_url: what every path is appended to.
        api_key_env: environment variable with the bearer token; None, or an unset variable, sends none.

    Raises:
        ConfigError: for an address that cannot be used.
    """

    def __init__(self, base_url: str, api_key_env: str | None = None) -> None:
        self.base_url = check_base_url(base_url)
        self.api_key_env = api_key_env

    def key(self) -> str:
        """The key; empty where there is none.

        Raises:
            ConfigError: when the variable holds what cannot be a key.
        """
        key = os.environ.get(self.api_key_env, "").strip() if self.api_key_env else ""
        if not (key.isascii() and (key.isprintable() or not key)):
            raise ConfigError(f"{self.api_key_env} holds characters that no key has", field="api_key_env")
        return key

    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        key = self.key()
        return {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})

    def redacted(self, text: str, most: int = _SHOWN_CHARACTERS) -> str:
        """The first `most` characters of a server's words, without the key that it may have repeated."""
        key = self.key()
        return (text.replace(key, "***") if key else text)[:most]

    def read(self, response: httpx2.Response) -> Any:
        """The JSON of an answer; None where it is empty.

        Raises:
            TransportError: for any status but 2xx, and for what is not JSON.
        """
        if not response.is_success:
            raise self._error(response)
        try:
            return json.loads(response.content) if response.content else None
        except (ValueError, RecursionError):
            raise TransportError("bad_answer", "an answer that is not JSON", is_retryable=True) from None

    def failed(self, error: httpx2.HTTPError) -> TransportError:
        """What it comes to when there was no answer at all."""
        import httpx2

        if isinstance(error, httpx2.TimeoutException):
            return TransportError("timeout", "the server did not answer in time", is_retryable=True)
        message = self.redacted(f"no connection: {error or type(error).__name__}")
        return TransportError("no_connection", message, is_retryable=True)

    def _error(self, response: httpx2.Response) -> TransportError:
        status = response.status_code
        message = self.redacted(_message(response))
        if status in (401, 403) and self.api_key_env:
            message += f" (the key is read from {self.api_key_env})"
        details = self.redacted(response.text, 20 * _SHOWN_CHARACTERS)
        return error_from_status(status, message, response.headers.get("retry-after"), details=details)


class AsyncJsonClient(Endpoint):
    """A server that is sent JSON by one event loop, one attempt per request.

    Each connection has a transport of its own, used again last in, first out: a pool looks at all its connections twice
    per request, which costs more than our share of the rest. A client around it would look for redirects, cookies and
    authentication, which have no meaning here.
    """

    _idle: list[httpx2.AsyncBaseTransport] | None = None

    def open(self, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        """Make ready; nothing is sent. `transport` replaces the network, for tests and proxies."""
        import httpx2

        self._transport = transport
        # Loading the certificate authorities takes as long as tens of requests: once, and only where TLS is used.
        is_plain = httpx2.URL(self.base_url).scheme == "http"
        self._options: dict[str, Any] = {
            "limits": httpx2.Limits(max_connections=1),
            "verify": not is_plain and httpx2.create_ssl_context(),
            "proxy": _proxy_of(self.base_url),
        }
        self._headers = self.headers()
        self._urls: dict[str, httpx2.URL] = {}
        self._idle = []

    async def post(
        self, path: str, body: bytes, session: str = "", trace_headers: Mapping[str, str] | None = None
    ) -> Any:
        """The answer's JSON. `session` is sent as `X-Session-ID`, by which routers keep a conversation on one replica.

        `trace_headers` put the server's spans under the caller's.

        Raises:
            TransportError: when there is none.
        """
        import httpx2

        assert self._idle is not None, "start the backend first"
        url = self._urls.get(path) or self._urls.setdefault(path, httpx2.URL(self.base_url + path))
        headers = {**self._headers, "X-Session-ID": session} if session else self._headers
        headers = {**headers, **trace_headers} if trace_headers else headers
        request = httpx2.Request("POST", url, headers=headers, content=body)
        connection = self._idle.pop() if self._idle else self._transport or httpx2.AsyncHTTPTransport(**self._options)
        try:
            # The caller's own time limit, over the whole attempt, is the only one: four timers per request cost more.
            response = await connection.handle_async_request(request)
            await response.aread()
            return self.read(response)
        except httpx2.HTTPError as error:
            raise self.failed(error) from None
        finally:
            if self.is_open:
                self._idle.append(connection)
            else:
                await connection.aclose()

    @property
    def is_open(self) -> bool:
        """Whether requests can be made."""
        return self._idle is not None

    async def aclose(self) -> None:
        """Close the connections; those in use close when their request ends. Safe to call twice."""
        idle, self._idle = self._idle, None
        for connection in idle or ():
            await connection.aclose()


class JsonClient(Endpoint):
    """A server that is asked from any thread, again where that may help. Connections are opened when first used.

    Args:
        base_url, api_key_env: see `Endpoint`.
        retry_policy: time-outs, attempts and waits; its `breaker` has no meaning here.
    """

    _client: httpx2.Client | None = None

    def __init__(self, base_url: str, api_key_env: str | None = None, retry_policy: RetryPolicy | None = None) -> None:
        super().__init__(base_url, api_key_env)
        self._policy = retry_policy or RetryPolicy(timeout=60.0)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer's JSON; None where it is empty.

        Raises:
            CallError: when this request failed for good.
            BackendUnavailableError: when every other would fail too: no connection, a wrong key, a redirect.
        """
        gives_up_at, attempt = time.monotonic() + self._policy.deadline, 0
        while True:
            attempt += 1
            try:
                return self._attempt(method, path, b"" if body is None else encoded(body))
            except TransportError as error:
                wait = self._policy.wait_after(error, attempt, gives_up_at)
                if wait is None:
                    raise self._given_up(error) from None
            time.sleep(wait)

    def close(self) -> None:
        """Close the connections. Safe to call twice; asking again opens them."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _attempt(self, method: str, path: str, body: bytes) -> Any:
        import httpx2

        if self._client is None:
            self._client = httpx2.Client(timeout=self._policy.timeout, follow_redirects=False)
        try:
            return self.read(self._client.request(method, self.base_url + path, content=body, headers=self.headers()))
        except httpx2.HTTPError as error:
            raise self.failed(error) from None

    def _given_up(self, error: TransportError) -> BackendError:
        everywhere = error.reason == "no_connection" or (error.is_fatal and error.status != 404)
        return error.as_unavailable(self.base_url) if everywhere else error.as_call_error(self.base_url)


def check_base_url(url: str) -> str:
    """The URL of a server without a slash at its end.

    Link-local addresses are refused: clouds keep credentials there.

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
        raise ConfigError("must hold no query (?) and no fragment (#)", field="base_url")
    if parts.scheme not in ("http", "https"):
        raise ConfigError("must begin with http:// or https://", field="base_url")
    if not host:
        raise ConfigError("names no host", field="base_url")
    if not url.isprintable() or " " in url:
        raise ConfigError("must hold no spaces and control characters", field="base_url")
    for address in _addresses(host, port or (443 if parts.scheme == "https" else 80)):
        if address.is_link_local:
            raise ConfigError(f"{host} is a link-local address ({address}), which is refused", field="base_url")
    return url.rstrip("/")


def _proxy_of(url: str) -> str | None:
    """The proxy that the environment names for a URL: HTTP_PROXY, HTTPS_PROXY or ALL_PROXY, less NO_PROXY."""
    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _addresses(host: str, port: int) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)]
    except (OSError, UnicodeError):
        return []  # a name that does not resolve is reported when it is called
    plain = [ipaddress.ip_address(address.partition("%")[0]) for address in found]
    return [getattr(address, "ipv4_mapped", None) or address for address in plain]


def encoded(body: Mapping[str, Any]) -> bytes:
    """A body as compact JSON; what is wrapped in `ById`, such as a reply's schema, is encoded once and kept."""
    plain = _ENCODER.encode({name: value for name, value in body.items() if not isinstance(value, ById)})
    members = [f'"{name}":{_encoded_once(value)}' for name, value in body.items() if isinstance(value, ById)]
    return f"{{{','.join([*([plain[1:-1]] if len(plain) > 2 else []), *members])}}}".encode()


@lru_cache(maxsize=128)
def _encoded_once(key: ById) -> str:
    return _ENCODER.encode(key.value)


def _message(response: httpx2.Response) -> str:
    """What the server said, from the places where servers put it."""
    try:
        said: object = response.json()
    except (ValueError, RecursionError):
        return response.text or response.reason_phrase
    while isinstance(said, dict):
        fields = cast("dict[str, object]", said)
        said = next((fields[key] for key in ("error", "message", "detail") if key in fields), str(fields))
    return str(said)
