"""What evaluations, tasks, transcripts, runs and figures show in a notebook, and how they are written elsewhere."""

from __future__ import annotations

import copy
import json
import pickle
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import debate
from debate import (
    Candidate,
    Evaluation,
    Evaluations,
    Failure,
    Scale,
    Task,
    Transcript,
    Turn,
    ValueEvaluator,
    VoteEvaluator,
)
from debate.notebook.cards import html_of
from tests.report.pages import HOSTILE, debated, evaluated

TURNS_OR_HIDES = "\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
SAFE = {"div", "style", "span", "b", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
TEXTS = st.text(st.characters(codec=None), max_size=60) | st.sampled_from(
    [HOSTILE, "a\u202eb\u200bc\x00d\x1b[31me", "\ud800", "</style><script>", "'\" onload=alert(1) x='", "{0} {} %s $x$"]
)


class Read(HTMLParser):
    """Elements, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.styles: list[str] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.styles += [value or "" for name, value in attrs if name == "style"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


def turn(agent: str, words: str, round: int = 0, score: float = 7.0) -> Turn:  # noqa: A002
    scores = np.array([[score], [3.0]])
    return Turn(round=round, agent=agent, labels={"A": 0, "B": 1}, scores=scores, overall=words, comments=(words, "no"))


def evaluation(words: str = "fine", **more: Any) -> Evaluation:
    turns = (turn(f"Ann {words}", words), turn(f"Ann {words}", words, round=1, score=9.0))
    given: dict[str, Any] = {
        "task_id": f"t {words}",
        "evaluator": "debate",
        "status": "partial",
        "error": words,
        "scores": np.array([8.0, 3.0]),
        "probabilities": np.array([0.99, 0.01]),
        "selected": 0,
        "tensor": np.array([[each.scores] for each in turns]),
        "components": (f"truth {words}",),
        "agents": (f"Ann {words}",),
        "cv": (0.4, 0.1),
        "rounds_run": 2,
        "stop_reason": "converged",
        "failures": (Failure("invalid_reply", words),),
        "transcript": Transcript(turns),
        "details": {"said": words},
    }
    return Evaluation(**given | more)


def is_inert(page: str) -> Read:
    read = Read(page)
    assert set(read.tags) <= SAFE
    assert read.attributes <= {"class", "title", "style"}
    assert read.tags.count("style") == 1
    assert not read.open
    for style in read.styles:
        assert re.fullmatch(r"background:rgba\(13,148,136,[\d.]+\)|width:[\d.]+em", style)
    seen = [each for each in page if each != "\n"]
    assert [each for each in seen if unicodedata.category(each) in ("Cc", "Cs") or each in TURNS_OR_HIDES] == []
    page.encode("utf-8")
    return read


@settings(deadline=None, max_examples=40)
@given(TEXTS)
def test_words_of_any_kind_are_inert_in_an_evaluation(words: str) -> None:
    is_inert(html_of(evaluation(words)))
    is_inert(html_of(Evaluations([evaluation(words)])))
    is_inert(html_of(evaluation(words).transcript))


@settings(deadline=None, max_examples=40)
@given(TEXTS.filter(lambda words: words.isprintable() or words.encode("utf-8", "ignore").decode() == words))
def test_words_of_any_kind_are_inert_in_a_task(words: str) -> None:
    task = Task(words, [Candidate(words, generator=words), "b"], context=[words], reference=words, id=f"i{words}")
    is_inert(html_of(task))
    assert repr(task).isprintable()


@settings(deadline=None, max_examples=40)
@given(TEXTS)
def test_plain_text_is_short_and_visible(words: str) -> None:
    said = evaluation(words * 50)
    for value in (said, said.transcript, said.transcript.turns[0]):
        assert repr(value).isprintable()
        assert len(repr(value)) < 3_000  # an escape has ten characters
    assert len(repr(Evaluations([said] * 1_000)).splitlines()) == 13


def test_an_evaluation_is_written_with_its_scores_and_what_came_of_them() -> None:
    assert repr(evaluation()) == (
        "Evaluation('t fine', 'debate', 'partial', scores=[8, 3], selected=0, rounds_run=2, stop_reason='converged', "
        "error='fine')"
    )
    assert repr(Evaluations()) == "Evaluations([])"
    assert repr(Task("x?", ["a", "b"], id="t", best="B")) == "Task(id='t', x='x?', candidates=['a', 'b'], best=[1])"
    assert repr(evaluation().transcript) == "Transcript(2 turns, 2 rounds, agents=['Ann fine'])"


def test_a_card_tells_scores_winner_last_round_and_what_changed() -> None:
    read = is_inert(html_of(evaluation()))
    told = ("t fine", "selected: candidate 1 of 2", "converged", "0.40, 0.10", "8.00", "Scores of round 2 of 2")
    assert [each for each in told if each not in read.text] == []
    assert "truth fine 7 → 9 ▲" in read.text
    assert read.tags.count("details") == 3  # the first round, the debate, details


def test_cells_have_the_colors_of_their_own_scale_whatever_the_scores_are_on() -> None:
    best: dict[str, Any] = {"tensor": np.array([[[[10.0], [0.0]]]]), "transcript": Transcript()}
    pages = [html_of(evaluation(scale=Scale(0, high), **best)) for high in (10, 30)]
    colors = [re.findall(r"<td[^>]*background:(rgba[^)]*\))", page) for page in pages]
    assert colors[0] == colors[1] == ["rgba(13,148,136,0.65)", "rgba(13,148,136,0.08)"]


def test_a_tie_is_no_decision_and_a_failure_no_score() -> None:
    tied = evaluation(scores=np.array([5.0, 5.0]), tied=(0, 1))
    assert "tied: candidates 1 and 2 of 2" in Read(html_of(tied)).text
    nothing = np.full(2, np.nan)
    failed = evaluation(status="failed", scores=nothing, selected=None, tensor=None, transcript=Transcript())
    assert "no candidate is selected" in Read(html_of(failed)).text


def test_thousands_of_turns_and_candidates_keep_a_card_small() -> None:
    turns = tuple(turn("Ann", "x" * 100_000, round=r) for r in range(2_000))
    big = evaluation(
        scores=np.arange(5_000.0) / 1_000, probabilities=np.full(5_000, 2e-4), transcript=Transcript(turns), tensor=None
    )
    page = html_of(big)
    assert len(page) < 800_000
    assert "4,950 more candidates: see .scores" in page
    assert "1,940 more turns before these: see .transcript" in page


def test_a_list_of_evaluations_stays_a_list() -> None:
    found = Evaluations([evaluation("a"), evaluation("b")])
    assert isinstance(found, list)
    assert found == [*found]
    assert isinstance(found[:1], Evaluations)
    assert found[1].task_id == "t b"
    for copied in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert isinstance(copied, Evaluations)
        assert [each.to_dict() for each in copied] == [each.to_dict() for each in found]
    assert "2 evaluations" in Read(html_of(found)).text


def test_a_long_list_shows_its_first_rows_and_counts_the_others() -> None:
    page = html_of(Evaluations([evaluation()] * 1_000))
    assert "980 more: .to_dataframe() has all" in page
    assert Read(page).tags.count("tr") == 21


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("runs") / "debates"
    debated(folder)
    return debate.load(folder)


def test_a_run_tells_how_many_and_how_well_and_lists_tasks_with_verdicts(run: Any) -> None:
    read = is_inert(run._repr_html_())
    assert "12 of 12 tasks evaluated" in read.text
    assert "12 labeled right" in read.text
    assert {"right", "wrong"} & set(read.words)


def test_a_run_with_labels_of_a_file_is_right_by_them_alone(run: Any, tmp_path: Path) -> None:
    chosen = next(task for task in run.judged.tasks if len(task.choice) == 1)
    label = {"task_id": chosen.task_id, "best": (chosen.choice[0] + 1) % 3}
    (tmp_path / "labels.jsonl").write_text(json.dumps(label))
    read = is_inert(html_of(debate.load(run.directory.path, labels=tmp_path / "labels.jsonl")))
    assert "0.0 %" in read.text
    assert "of 1 labeled right" in read.text
    assert ("wrong" in read.words, "right" in read.words) == (True, False)


def test_a_run_whose_store_is_gone_says_so_and_raises_nothing(tmp_path: Path) -> None:
    debated(tmp_path / "run")
    loaded: Any = debate.load(tmp_path / "run")
    (tmp_path / "run" / "run.sqlite").unlink()
    assert "run.sqlite" in is_inert(loaded._repr_html_()).text


def test_figures_show_what_their_commands_print(run: Any) -> None:
    agreement = is_inert(run.agreement()._repr_html_())
    assert "The judge against people" in agreement.text
    comparison = is_inert(run.compare(run)._repr_html_())
    assert "12 in both, each asked the same" in comparison.text
    assert {"By the labels", "With or without labels", "What it took"} <= set(comparison.words)


def test_figures_are_written_in_one_line(run: Any) -> None:
    folder = repr(str(run.directory.path))
    assert repr(run.compare(run)) == f"Comparison({folder}, {folder}, tasks=12, won=0, lost=0)"
    assert repr(run.agreement()).startswith(f"TrustFigures({folder}, tasks=12, right=0.")


@pytest.mark.parametrize("evaluator", [ValueEvaluator(), VoteEvaluator()], ids=["value", "vote"])
def test_other_evaluators_show_their_replies_without_words_of_a_debate(tmp_path: Path, evaluator: Any) -> None:
    evaluated(tmp_path / "run", evaluator)
    read = is_inert(html_of(debate.load(tmp_path / "run").evaluation("t0")))
    assert "The judge: " in read.text
    assert "round" not in read.text.lower()
    assert "debate" not in read.text.lower()
