"""In which form a server takes a reply's JSON schema: the strongest is tried first, and the first calls find out.

A form is given up only for a weaker one that the server has answered..
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar, cast

from debate.errors import ConfigError
from debate.hashing import ById
from debate.net.retry import TransportError

T = TypeVar("T")
log = logging.getLogger("debate")

FORMS = ("json_schema", "json_schema_plain", "json_object", "none")
"""How a schema is sent, strongest first: whole, without bounds on strings and numbers, as a bare wish for JSON, or
not at all; then the prompt alone asks for it, and the reply's parser is what stands between."""
_BOUNDS = ("pattern", "minLength", "maxLength", "minimum", "maximum")
_ABOUT_THE_FORM = re.compile(r"response.?format|schema|grammar|json|structured|guided", re.IGNORECASE)
_MOST_SEARCHES = 3


class ResponseFormat:
    """The form in use with one server, for one event loop. `given` fixes it; None finds out.

    Raises:
        ConfigError: when `given` is none of `FORMS`.
    """

    def __init__(self, given: str | None, server: str) -> None:
        if given is not None and given not in FORMS:
            raise ConfigError(f"must be one of {', '.join(FORMS)}, got {given!r}", field="structured")
        self.current = given or FORMS[0]
        self._is_known = given is not None
        self._server = server
        self._searches = 0
        self._searching = asyncio.Lock()

    async def answer(self, ask: Callable[[str], Awaitable[T]]) -> T:
        """What `ask(form)` answers, with a weaker form where the server does not take this one.

        Raises:
            TransportError: of the strongest form, when no weaker one helped.
        """
        form = self.current
        try:
            answer = await ask(form)
        except TransportError as fault:
            if not is_about_the_form(fault):
                raise
            return await self._weaker(ask, form, fault)
        self._is_known = self._is_known or form == self.current
        return answer

    async def _weaker(self, ask: Callable[[str], Awaitable[T]], form: str, fault: TransportError) -> T:
        async with self._searching:
            if not self._is_known:
                return await self._search(ask, form, fault)
        if self.current == form:
            raise fault
        return await ask(self.current)

    async def _search(self, ask: Callable[[str], Awaitable[T]], form: str, fault: TransportError) -> T:
        for weaker in FORMS[FORMS.index(form) + 1 :]:
            try:
                answer = await ask(weaker)
            except TransportError as again:
                if not is_about_the_form(again):
                    raise
                continue
            self.current, self._is_known = weaker, True
            log.warning("%s does not take %s (%s); it is sent %s", self._server, form, fault.message, weaker)
            return answer
        # Whatever the server minds, it is not the form; a few such calls, and it is no longer searched for.
        self._searches += 1
        self._is_known = self._searches >= _MOST_SEARCHES
        raise fault


def is_about_the_form(fault: TransportError) -> bool:
    """Whether a server refused a request for the form of its schema."""
    said = f"{fault.message} {fault.details}"
    return fault.status in (400, 422, 500, 501) and _ABOUT_THE_FORM.search(said) is not None


@lru_cache(maxsize=128)
def response_format(schema: ById, form: str) -> dict[str, Any]:
    """The request's fields that carry a schema in a form of `FORMS`, made once per schema."""
    if form == "none":
        return {}
    if form == "json_object":
        return {"response_format": {"type": "json_object"}}
    sent = schema.value if form == "json_schema" else without_bounds(schema.value)
    named = {"name": "reply", "schema": sent, "strict": True}
    return {"response_format": ById({"type": "json_schema", "json_schema": named})}


def without_bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with its shape alone: what stricter servers take."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            pairs = cast("Mapping[str, Any]", value).items()
            return {key: plain(item) for key, item in pairs if key not in _BOUNDS or isinstance(item, Mapping)}
        return value

    return plain(schema)
