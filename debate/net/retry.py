"""What may go wrong with a server, and how long and how often a call is tried nevertheless.

Knows nothing of connections or of what is sent.
"""

from __future__ import annotations

import email.utils
import math
import random
import time
from dataclasses import dataclass, fields

from debate.errors import ConfigError


class TransportError(Exception):
    """What a server, or the way to it, did instead of answering. `retry_after` is in seconds, where it said so."""

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        is_retryable: bool,
        retry_after: float | None = None,
        is_fatal: bool = False,
        status: int | None = None,
        details: str = "",
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.is_retryable = is_retryable
        self.retry_after = retry_after
        self.is_fatal = is_fatal
        """Whether every other call would meet the same: a wrong key, a model that is not there."""
        self.status = status
        self.details = details
        """All that the server said, as far as it is for programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long and how often a call is tried. Seconds throughout."""

    attempts: int = 5
    timeout: float = 120.0
    """Of one attempt."""
    deadline: float = 600.0
    """Of a call, with all its attempts and waits."""
    first_wait: float = 0.5
    longest_wait: float = 60.0
    """Also caps what a server asks for in Retry-After."""
    breaker: int = 20
    """So many failed attempts in a row, over all calls, and the server is only probed any more; see `CircuitBreaker`."""

    def __post_init__(self) -> None:
        for spec in fields(self):
            value: object = getattr(self, spec.name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigError(f"must be a number, got {value!r}", field=spec.name)
        for name in ("attempts", "breaker"):
            if getattr(self, name) < 1:
                raise ConfigError(f"must be at least 1, got {getattr(self, name)}", field=name)
        for name in ("timeout", "deadline", "longest_wait"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"must be above 0 and finite, got {getattr(self, name)}", field=name)
        if not 0 <= self.first_wait < math.inf:
            raise ConfigError(f"must be at least 0 and finite, got {self.first_wait}", field="first_wait")

    def wait_before(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait before attempt number `attempt` (from 1), jittered so that callers do not come in step."""
        if retry_after is not None:
            return min(max(retry_after, 0.0), self.longest_wait) + random.uniform(0, self.first_wait)
        longest = min(self.first_wait * 2.0 ** min(attempt - 1, 60), self.longest_wait)
        return random.uniform(longest / 2, longest)


def retry_after(header: str | None, *, now: float | None = None) -> float | None:
    """Seconds to wait according to a Retry-After header: a number of seconds or an HTTP date; None when unreadable.

    `now` is in seconds since the epoch; None takes the clock.
    """
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = email.utils.parsedate_to_datetime(header)
            seconds = date.timestamp() - (time.time() if now is None else now)
        except (ValueError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def error_from_status(status: int, message: str, header: str | None, *, details: str = "") -> TransportError:
    """The fault that an HTTP status stands for; `header` is that of Retry-After."""
    text = f"HTTP {status}: {message}"
    if status in (408, 409, 429) or status >= 500:
        return TransportError(
            "server_error", text, is_retryable=True, retry_after=retry_after(header), status=status, details=details
        )
    if 300 <= status < 400:
        text = f"HTTP {status}: a redirect, which is not followed; give the final address as --base-url"
    # Whatever is asked, these come back: a wrong key, an empty account, a model or an address that is not there.
    is_fatal = 300 <= status < 400 or status in (401, 402, 403, 404)
    reason = {401: "unauthorized", 403: "unauthorized", 404: "not_found"}.get(status, "refused")
    return TransportError(reason, text, is_retryable=False, is_fatal=is_fatal, status=status, details=details)
