"""A server that is sent JSON and answers with JSON: an embeddings endpoint, a Chroma server.

Time-outs, broken connections, 408, 409, 429 and 5xx are tried again with jittered backoff or as Retry-After says; 400,
401 and 404 are not. Redirects are not followed, and the key comes from the environment alone. Knows nothing of what is
asked.
"""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from debate.errors import BackendError, BackendUnavailableError, CallError, ConfigError

if TYPE_CHECKING:
    import httpx2

_AGAIN = {408, 409, 425, 429}
_MOST_CHARACTERS = 300
"""Of a server's own words in a message."""


class JsonClient:
    """One server, asked from any thread. Nothing is sent until it is asked.

    Args:
        base_url: what every path is appended to.
        api_key_env: environment variable whose value is sent as the bearer token, where it is set.
        timeout: seconds for one attempt.
        attempts: of one request, the first included.
        first_wait: seconds before the second attempt; doubled for each further one.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key_env: str | None = None,
        timeout: float = 60.0,
        attempts: int = 5,
        first_wait: float = 0.5,
    ) -> None:
        self.base_url = _checked(base_url)
        self._api_key_env = api_key_env
        self._timeout = timeout
        self._attempts = attempts
        self._first_wait = first_wait
        self._client: httpx2.Client | None = None

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer's JSON; None where it is empty.

        Raises:
            CallError: when this request failed for good; `reason` is `http_STATUS` where the server gave one.
            BackendUnavailableError: when every other would fail too: no connection, a wrong key.
        """
        import httpx2

        for attempt in range(1, self._attempts + 1):
            is_last = attempt == self._attempts
            try:
                response = self._opened().request(method, self.base_url + path, json=body, headers=self._headers())
            except httpx2.HTTPError as error:
                if is_last:
                    raise BackendUnavailableError(f"{self.base_url}: no answer: {self._shown(str(error))}") from None
                self._wait(attempt, None)
                continue
            if response.status_code in _AGAIN or response.status_code >= 500:
                if is_last:
                    raise self._fault(response)
                self._wait(attempt, response.headers.get("retry-after"))
                continue
            return self._answer(response)
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the connections. Safe to call twice; asking again opens them."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _opened(self) -> httpx2.Client:
        if self._client is None:
            import httpx2

            self._client = httpx2.Client(timeout=self._timeout, follow_redirects=False)
        return self._client

    def _answer(self, response: httpx2.Response) -> Any:
        if response.status_code >= 300:
            raise self._fault(response)
        try:
            return response.json() if response.content else None
        except ValueError:
            raise CallError("bad_answer", f"{self.base_url}: an answer that is not JSON") from None

    def _fault(self, response: httpx2.Response) -> BackendError:
        status = response.status_code
        text = f"{self.base_url}: HTTP {status}: {self._shown(_message(response))}"
        if status in (401, 402, 403):
            where = f"the key is read from {self._api_key_env}" if self._api_key_env else None
            return BackendUnavailableError(text, hint=where)
        if 300 <= status < 400:
            return BackendUnavailableError(text, hint="a redirect is not followed; give the final address")
        return CallError(f"http_{status}", text)

    def _wait(self, attempt: int, retry_after: str | None) -> None:
        longest = min(self._first_wait * 2.0 ** (attempt - 1), 30.0)
        try:
            asked = min(max(float(retry_after or 0), 0.0), 60.0)
        except ValueError:
            asked = 0.0
        time.sleep(asked + random.uniform(longest / 2, longest))

    def _headers(self) -> dict[str, str]:
        key = self._key()
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _key(self) -> str:
        key = os.environ.get(self._api_key_env, "").strip() if self._api_key_env else ""
        if not (key.isascii() and (key.isprintable() or not key)):
            raise ConfigError(f"{self._api_key_env} holds characters that no key has", field="api_key_env")
        return key

    def _shown(self, text: str) -> str:
        """A server's words without the key that it may have repeated."""
        key = self._key()
        return (text.replace(key, "***") if key else text)[:_MOST_CHARACTERS]


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"cannot be read: {error}", field="base_url") from None
    if parts.username is not None or parts.password is not None:  # not shown: it may be a password
        raise ConfigError("must hold no user name and password", field="base_url", hint="put it in the environment")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ConfigError(f"must be http://HOST or https://HOST, got {url!r}", field="base_url")
    return url.rstrip("/")


def _message(response: httpx2.Response) -> str:
    """What the server said, from the places where servers put it."""
    try:
        said: object = response.json()
    except ValueError:
        return response.text
    while isinstance(said, dict):
        fields = cast("dict[str, object]", said)
        said = next((fields[key] for key in ("error", "message", "detail") if key in fields), str(fields))
    return str(said)
