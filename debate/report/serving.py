"""The view over HTTP, by the standard library: the page, and JSON for it, at addresses that begin with a secret.

GET /TOKEN/               the page
GET /TOKEN/api/WHAT?...   what `Viewer.answers` has, as JSON; {"error": SENTENCE} with 4xx or 5xx
"""

from __future__ import annotations

import json
import secrets
import socket
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from debate.errors import ConfigError, DebateError, InputError
from debate.files import json_text
from debate.report.view import Viewer, view_page
from debate.server.access import Access

_IDLE_SECONDS = 30
"""How long a client may take to send its request or to take the answer."""
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


class ViewServer(ThreadingHTTPServer):
    """Serves a store to a browser; `serve_forever` until `shutdown` or an exception, then `server_close`.

    Attributes:
        url: the page's address, with the token.

    Args:
        viewer: answers what the page asks.
        host: address to listen on; requests may name it, or a loopback address.
        port: 0 takes a free one.

    Raises:
        ConfigError: when the address cannot be listened on.
    """

    daemon_threads = True

    def __init__(self, viewer: Viewer, host: str = "127.0.0.1", port: int = 0) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}", field="--port") from None
        token = secrets.token_urlsafe(24)
        self.viewer = viewer
        self.access = Access(host, token)
        self.page, self.policy = view_page()
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.server_address[1]}/{token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that has left."""


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version, sys_version = "debate", ""
    timeout = _IDLE_SECONDS

    def do_GET(self) -> None:
        """Answer, or refuse."""
        asked = urlsplit(self.path)
        token, _, path = asked.path.removeprefix("/").partition("/")
        headers = {name.lower(): value for name, value in self.headers.items()}
        if refused := self.server.access.refusal(headers | {"authorization": f"Bearer {token}"}):
            self._send(refused[0], json_text(refused[1]))
        elif not path:
            self._send(200, self.server.page, "text/html")
        else:
            self._send(*self._answer(path, asked.query))

    def _answer(self, path: str, query: str) -> tuple[int, str]:
        answer = self.server.viewer.answers.get(path.removeprefix("api/")) if path.startswith("api/") else None
        if answer is None:
            return 404, json_text({"error": "There is nothing at this address."})
        given = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
        try:
            return 200, answer(given)
        except (ConfigError, InputError) as error:
            return 404, json_text({"error": str(error)})
        except DebateError as error:
            return 503, json_text({"error": str(error)})

    def _send(self, code: int, text: str, kind: str = "application/json") -> None:
        body = text.encode("utf-8")
        self.send_response(code)
        kinds = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}
        for name, value in {**kinds, **_HEADERS, "Content-Security-Policy": self.server.policy}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that cannot be read, or is of another method, with the headers of every answer."""
        self.close_connection = True
        self._send(code, json.dumps({"error": message or HTTPStatus(code).phrase}))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Write nothing: the address holds the token."""
