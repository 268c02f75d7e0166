"""Delimiters: what marks in a prompt where texts begin and end, and why no text can forge it.

The built-in templates put a text between `[candidate A 5e116c30]` and `[/candidate A 5e116c30]`, or after
`<|candidate|>`, under headings such as `# Candidates`. Candidates, memories and replies are untrusted, and may hold the
like. It is broken where they are rendered, so that a reader sees it: a middle dot follows the first character, as in
`[·/candidate A]`. What is stored stays as it was.

What counts as a delimiter is read from the templates' own words, so a user's templates have theirs kept, too. No
secret is needed: the same texts make the same prompt, and with it the same seed and the same key of a cache, in every
store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from debate.flow import Block, Segment
from debate.hashing import digest
from debate.tasks.lookalikes import DOT, FOLD, places_of
from debate.types import Task

PRINTED = "\ufffc"
"""Stands for what an expression prints in the words of a template."""


def task_delimiter(task: Task) -> str:
    """The word that marks where the texts of a task's prompts begin and end."""
    return delimiter_of(task.x, *task.background, *(candidate.text for candidate in task.candidates))


def delimiter_of(*texts: str) -> str:
    """A delimiter's word for some texts, in none of which it occurs. Equal texts have equal words."""
    word = digest("fence", *texts)[:8]
    while any(word in text for text in texts):
        word = digest("fence", word)[:8]
    return word


# ---- What the templates' words say

_NAME = r"[a-z]\w*(?:[ -]\w+)*"
_LABEL, _WORD = r"(?:[a-z]{1,2}|\d{1,6})", r"[0-9a-f]{6,16}"


_INDEXED = re.compile(r"[\w\])]")
"""What stands before the index of a list. It is looked for in the text as it is, where nothing unseen was left out."""


@dataclass(frozen=True)
class _Form:
    """One form of delimiter: how it stands in a template, and what it looks like with one of these names in a text."""

    opening: str
    """What every delimiter of this form begins with."""
    in_template: re.Pattern[str]
    in_text: Callable[[str], str]


_FORMS = (
    _Form(  # [candidate A 5e116c30], [/input 5e116c30]; not a list's index, as in steps[step]
        "[",
        re.compile(rf"^ *\[ */? *({_NAME}) *(?=[\]{PRINTED}])", re.MULTILINE),
        lambda names: (
            rf"\[(?: */ *(?:{names})(?!\w)| *(?:{names})(?: +{_LABEL})? +{_WORD} *\]"
            rf"| +(?:{names})(?: +{_LABEL})? *\]|(?P<index>(?:{names})(?: +{_LABEL})? *\]))"
        ),
    ),
    _Form(  # <|candidate|>
        "<",
        re.compile(r"<\| *(\w+) *\|>"),
        lambda names: rf"<\| *(?:{names}) *\|>",
    ),
    _Form(  # <candidate label="A">, </candidate>
        "<",
        re.compile(rf"^ *</? *([a-z][\w-]*)(?: [^<>\n]*)?> *(?={PRINTED}|$)", re.MULTILINE),
        lambda names: rf"<(?: */)? *(?:{names})(?: [^<>\n]*)?/?>",
    ),
    _Form(  # # Candidates
        "#",
        re.compile(r"^ *(#+ +\S[^\n]*?) *$", re.MULTILINE),
        lambda names: rf"^ *(?:{names}) *:?[ #]*$",
    ),
    _Form(  # **Task**:
        "**",
        re.compile(rf"^ *\*\*({_NAME})(?::\*\*|\*\*:)", re.MULTILINE),
        lambda names: rf"^ *\*\* *(?:{names}) *(?:: *\*\*|\*\* *:)",
    ),
)


@dataclass(frozen=True)
class Delimiters:
    """The delimiters of some templates, as they would look in a text."""

    patterns: tuple[tuple[str, re.Pattern[str]], ...]
    """What a form begins with, and what it looks like in folded text."""

    @classmethod
    def of(cls, sources: Iterable[str]) -> Delimiters:
        """The delimiters in the words of templates, in which `PRINTED` stands for what they print."""
        words = [source.translate(FOLD) for source in sources]
        patterns: list[tuple[str, re.Pattern[str]]] = []
        for form in _FORMS:
            names = sorted({name for each in words for name in form.in_template.findall(each)})
            if names:
                pattern = re.compile(form.in_text("|".join(map(_as_pattern, names))), re.MULTILINE)
                patterns.append((form.opening, pattern))
        return cls(tuple(patterns))

    def broken(self, block: Block, word: str = "") -> Block:
        """The block with whatever its content has of a delimiter, or of a delimiter's `word`, broken.

        Neighboring pieces of content are read as one text.
        """
        said = "".join([segment.text for segment in block if segment.is_content]).translate(FOLD)
        if not (word and word in said) and not any(opening in said for opening, _ in self.patterns):
            return block
        runs = [(is_content, list(run)) for is_content, run in groupby(block, lambda segment: segment.is_content)]
        return Block(each for is_content, run in runs for each in (self._broken(run, word) if is_content else run))

    def _broken(self, run: Sequence[Segment], word: str) -> Iterator[Segment]:
        text = "".join(segment.text for segment in run)
        starts = set(self._starts(text.translate(FOLD), word))
        places = places_of(text) if starts else []
        found = {(places[start], may_be_index) for start, may_be_index in starts}
        dotted = sorted(
            {at + 1 for at, may_be_index in found if not (may_be_index and _INDEXED.match(text[at - 1 : at]))}
        )
        begin = 0
        for segment in run:
            ends = [place - begin for place in dotted if 0 < place - begin <= len(segment.text)]
            pieces = [segment.text[a:b] for a, b in zip([0, *ends], [*ends, None], strict=True)]
            yield Segment(DOT.join(pieces), is_content=True)
            begin += len(segment.text)

    def _starts(self, folded: str, word: str) -> Iterator[tuple[int, bool]]:
        """Where delimiters begin in folded text, and whether each may be a list's index."""
        patterns = [pattern for opening, pattern in self.patterns if opening in folded]
        for pattern in [*patterns, re.compile(re.escape(word))] if word else patterns:
            for found in pattern.finditer(folded):
                yield found.end() - len(found[0].lstrip(" ")), found.lastgroup == "index"


def _as_pattern(name: str) -> str:
    """A pattern for a delimiter's name: any number of spaces between its words, any word for what is printed."""
    return " +".join(re.escape(part) for part in name.split()).replace(PRINTED, r"\S{1,40}")
