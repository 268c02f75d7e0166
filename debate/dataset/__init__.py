"""Eval sets: files of tasks, in our own format and in those of other tools, one module per family of formats."""

from debate.dataset.build import Format, LocatedTask, located_task
from debate.dataset.evalset import EvalSet
from debate.dataset.readers import RecordFile
from debate.dataset.records import Record
from debate.dataset.several import EvalSets

__all__ = ["EvalSet", "EvalSets", "Format", "LocatedTask", "Record", "RecordFile", "located_task"]
