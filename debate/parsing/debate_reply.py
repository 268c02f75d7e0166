"""The form of an agent's replies in a debate: their JSON schema, the words that state it, and what reads them.

named     {"overall": str, "candidates": {label: {"comment": str, "scores": {component: number}}}}
compact   {"overall": str, "candidates": {label: {"comment": str, "scores": [number, ...]}}}
no scores {"overall": str, "candidates": {label: {"comment": str}}}
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple, cast

from debate.hashing import canonical
from debate.parsing.json_extract import located_json
from debate.parsing.json_values import Number, shown, unreadable
from debate.parsing.places import value_spans
from debate.parsing.schema import bounded_text, list_of, number_in, object_of, or_null, whole_number_in
from debate.parsing.text import is_within
from debate.scoring.distributions import ABSTAIN

LOW, HIGH = 0, 10
"""Ends of the scale that every component is scored on; `CELL_SCALE` of the debate's settings is the same."""


_LABELS = tuple(map(str, range(LOW, HIGH + 1)))
Places = tuple[tuple[int, ...], ...]
"""Which of the `value_spans` of a reply each score is, (J, K)."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A reply that was read whole. `comments` (J) and `scores` (J x K) follow the labels and the components."""

    overall: str
    comments: tuple[str, ...]
    """Empty texts where the agent abstained for the whole turn."""
    scores: tuple[tuple[float, ...], ...]
    """NaN where the agent abstained, and everywhere in a form without scores."""
    is_silent: bool = False
    """Whether the agent abstained for the whole turn; `overall` says why."""
    places: Places = field(default=(), compare=False)
    """Empty but where the scores are labels, to be read out."""


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """What the replies of a debate look like. Schema, stated format, reader and continuations are made from it."""

    labels: tuple[str, ...]
    """The J candidates' labels, in the order shown."""
    components: tuple[str, ...]
    """Names of the K score components."""
    style: Literal["named", "compact"] = "named"
    """named: scores stand under the components' names. compact: in a list, in the components' order."""
    scores: Literal["number", "label", "none"] = "number"
    """number: any from 0 to 10. label: whole numbers, whose probabilities can be read out. none: comments alone."""
    abstain: bool = False
    """Whether a score, or `candidates` for the whole turn, may be null."""
    comment_chars: int = 400
    """Longest comment, in characters."""
    overall_chars: int = 600
    """Longest overall view, in characters."""

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of a reply: text before numbers, so that a score follows from its comment.

        Equal forms give the same object, which is not to be changed: hashes and requests encode it once.
        """
        return _schema(self)

    @property
    def stated(self) -> str:
        """The format as a prompt states it."""
        return "".join([text for text, _ in self.stated_parts])

    @property
    def stated_parts(self) -> tuple[tuple[str, bool], ...]:
        """The parts of `stated`, each with whether it is content, as components' names are, and not our own words."""
        return tuple(_stated(self))

    @property
    def score_labels(self) -> tuple[str, ...]:
        """Texts that a score may have where its probabilities are read out."""
        return (*_LABELS, ABSTAIN) if self.abstain else _LABELS

    def read(self, text: str, finish_reason: str = "stop") -> ParsedReply:
        """Read a reply in which every candidate and component must be, and no other.

        A byte order mark and one leading `<think>` block are dropped. With `finish_reason="length"` only a text that is
        JSON as a whole is read. Lengths of strings are not checked.

        Raises:
            ReplyError: with a `reason` (empty, too_long, cut_off, not_json, ambiguous, too_deep, duplicate_key,
                wrong_shape, missing_candidate, unknown_candidate, missing_component, unknown_component, not_a_number,
                not_whole, out_of_range, not_unicode) and a message of at most 300 characters that a model can mend its
                reply by.

        """
        said, start = located_json(text, finish_reason=finish_reason)
        reply = _members(said, ("overall", "candidates"), "the reply")
        if self.abstain and reply["candidates"] is None:
            unscored = ((math.nan,) * len(self.components),) * len(self.labels)
            return ParsedReply(_text(reply["overall"], "'overall'"), ("",) * len(self.labels), unscored, is_silent=True)
        candidates = _members(reply["candidates"], self.labels, "'candidates'", "candidate")
        read = {label: self._candidate(candidates[label], label) for label in self.labels}
        return ParsedReply(
            _text(reply["overall"], "'overall'"),
            tuple([each.comment for each in read.values()]),
            tuple([each.scores for each in read.values()]),
            places=self._places(text, start, {label: read[label].written for label in candidates}),
        )

    def continuations(self, reply: ParsedReply | None) -> Iterator[tuple[str, ...]]:
        """A reply's JSON up to where the score of each of the J x K cells comes next, in parts that cells share.

        It is in the named style without white space, and has the comments of the candidates up to the cell's, and no
        scores. Parts begin where comments do: tokenizers part texts there too, and what stands between a comment and
        its scores is tokenized as a whole, as in a reply.

        reply: None for one without a word.
        """
        overall, comments = ("", ("",) * len(self.labels)) if reply is None else (reply.overall, reply.comments)
        ends = [f'","scores":{{{canonical(component)}:' for component in self.components]
        before = (f'{{"overall":{canonical(overall)},"candidates":{{{canonical(self.labels[0])}:{{"comment":"',)
        for n, comment in enumerate(comments, start=1):
            said = canonical(comment)[1:-1]
            for end in ends:
                yield (*before, said + end)
            if n < len(self.labels):
                before = (*before, f'{said}"}},{canonical(self.labels[n])}:{{"comment":"')

    def _candidate(self, said: object, label: str) -> _Candidate:
        keys = ("comment",) if self.scores == "none" else ("comment", "scores")
        members = _members(said, keys, "candidate {}", label=label)
        comment = _text(members["comment"], "the comment of candidate {}", label)
        if self.scores == "none":
            return _Candidate(comment, (math.nan,) * len(self.components), {})
        if self.style == "compact":
            written = self._listed(members["scores"], label)
        else:
            written = _members(members["scores"], self.components, "the scores of candidate {}", "component", label)
        row = tuple([self._score(written[name], label, name) for name in self.components])
        return _Candidate(comment, row, written)

    def _listed(self, scores: object, label: str) -> dict[str, object]:
        """The scores of a list by component."""
        wanted = f"a list of one number a component ({', '.join(self.components)})"
        if not isinstance(scores, list):
            problem = f"The scores of candidate {shown(label)} must be {wanted}, not {shown(scores)}."
            raise unreadable("wrong_shape", problem)
        values = cast("list[object]", scores)
        if len(values) < len(self.components):
            missing = _cell(label, self.components[len(values)])
            problem = f"The score of {missing} is missing; the candidate's scores must be {wanted}."
            raise unreadable("missing_component", problem)
        if len(values) > len(self.components):
            problem = f"Candidate {shown(label)} has {len(values)} scores; they must be {wanted}."
            raise unreadable("unknown_component", problem)
        return dict(zip(self.components, values, strict=True))

    def _score(self, value: object, label: str, component: str) -> float:
        if isinstance(value, Number) and (LOW < (number := value.value) < HIGH or is_within(value.literal, LOW, HIGH)):
            if self.scores == "number" or value.literal in _LABELS:
                return number
            problem = f"must be a whole number such as 7, not {shown(value)}"
            raise unreadable("not_whole", f"The score of {_cell(label, component)} {problem}.")
        if value is None and self.abstain:
            return math.nan
        if not isinstance(value, Number):
            problem = f"must be a {_kind_of_score(self)}, not {shown(value)}"
            raise unreadable("not_a_number", f"The score of {_cell(label, component)} {problem}.")
        problem = f"is {shown(value)}, outside {LOW} to {HIGH}"
        raise unreadable("out_of_range", f"The score of {_cell(label, component)} {problem}.")

    def _places(self, text: str, start: int, written: Mapping[str, Mapping[str, object]]) -> Places:
        """Which value of the text each score is.

        start: where the reply's object begins.
        written: the scores of each candidate, in the order in which they stand in the text.
        """
        if self.scores != "label":
            return ()
        spans = value_spans(text)
        first = sum(begin < start for begin, _ in spans)
        literals = [shown(value) for scores in written.values() for value in scores.values()]
        found = [text[begin:end] for begin, end in spans[first : first + len(literals)]]
        if found != literals:  # odd quotation marks before the object, or inside
            problem = "The scores cannot be told from what stands around them; give one JSON object and nothing else."
            raise unreadable("not_json", problem)
        cells = [(label, name) for label, scores in written.items() for name in scores]
        places = {cell: first + n for n, cell in enumerate(cells)}
        return tuple(tuple(places[label, name] for name in self.components) for label in self.labels)


class _Candidate(NamedTuple):
    """What a reply says of one candidate."""

    comment: str
    scores: tuple[float, ...]
    """(K,)"""
    written: Mapping[str, object]
    """The values of the scores by component, in the order in which they stand in the reply."""


@lru_cache(maxsize=64)
def _schema(form: ReplyForm) -> dict[str, Any]:
    members = {"comment": bounded_text(form.comment_chars)}
    if form.scores != "none":
        members["scores"] = _scores_schema(form)
    candidates = object_of(dict.fromkeys(form.labels, object_of(members)))
    candidates = or_null(candidates) if form.abstain else candidates
    return object_of({"overall": bounded_text(form.overall_chars), "candidates": candidates})


def _scores_schema(form: ReplyForm) -> dict[str, Any]:
    score = whole_number_in(LOW, HIGH) if form.scores == "label" else number_in(LOW, HIGH)
    score = or_null(score) if form.abstain else score
    if form.style == "named":
        return object_of(dict.fromkeys(form.components, score))
    return list_of(score, len(form.components))


_BEGINNING = (
    '{"overall": "<your view of all candidates together>", '
    '"candidates": {"<label>": {"comment": "<what you say of this candidate>"'
)
_SCORES_FOLLOW = f"\nYour scores are asked for after the comments: whole numbers from {LOW} to {HIGH}."
_ABSTAIN_LATER = " Where you cannot judge a component of a candidate, say why in its comment; its score is null then."
_ABSTAIN = "\nWhere you cannot judge a component of a candidate, write null as its score and say why in its comment."
_BE_SILENT = ' Where you cannot judge at all, write null for "candidates" and say why in "overall".'


def _stated(form: ReplyForm) -> Iterator[tuple[str, bool]]:
    yield _BEGINNING, False
    if form.scores != "none":
        yield from _stated_scores(form)
    yield "}, ...}}", False
    if form.scores == "none":
        yield _SCORES_FOLLOW, False
    if form.abstain:
        yield (_ABSTAIN_LATER if form.scores == "none" else _ABSTAIN) + _BE_SILENT, False


def _stated_scores(form: ReplyForm) -> Iterator[tuple[str, bool]]:
    number = _kind_of_score(form)
    opening, before, after, closing = (
        ("{", '"', f'": <{number}>', "}") if form.style == "named" else ("[", f"<{number}: ", ">", "]")
    )
    yield f', "scores": {opening}', False
    for k, name in enumerate(form.components):
        if k:
            yield ", ", True  # not ours, as where an expression printed it: a backend tokenizes each part for itself
        yield before, False
        yield name, True
        yield after, False
    yield closing, False


def _kind_of_score(form: ReplyForm) -> str:
    return ("whole number" if form.scores == "label" else "number") + " or null" * form.abstain


def _cell(label: str, component: str) -> str:
    return f"candidate {shown(label)}, {shown(component)}"


def _members(value: object, names: Sequence[str], place: str, kind: str = "key", label: str = "") -> dict[str, object]:
    """The members of an object that has exactly these keys, each standing for a `kind`.

    place: where the object stands, with `{}` for the candidate's label.
    """
    if isinstance(value, dict) and value.keys() == set(names):
        return cast("dict[str, object]", value)
    place = place.format(shown(label))
    if not isinstance(value, dict):
        raise unreadable("wrong_shape", f"Instead of an object with one member a {kind}, {place} is {shown(value)}.")
    members = cast("dict[str, object]", value)
    missing, unknown = ("wrong_shape",) * 2 if kind == "key" else (f"missing_{kind}", f"unknown_{kind}")
    for name in (*names, *members):
        if name not in members:
            raise unreadable(missing, f"The {kind} {shown(name)} is missing in {place}.")
        if name not in names:
            raise unreadable(unknown, f"The {kind} {shown(name)} was not asked for; it stands in {place}.")
    return members


def _text(value: object, place: str, label: str = "") -> str:
    if not isinstance(value, str):
        raise unreadable("wrong_shape", f"Instead of a string, {place.format(shown(label))} is {shown(value)}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        problem = f"Half a surrogate pair stands in {place.format(shown(label))}; it is no character."
        raise unreadable("not_unicode", problem) from None
    return value
