"""The sandbox that templates run in: jinja2's, without what draws at random, and with a bound on what it may work.

Each rendering has a number of steps: the characters and elements that its expressions go through, and the turns of its
loops. So a few characters of a template can neither build a gigabyte nor work for hours. This is a second line of
defense: a folder of templates is code, and bounds on time and memory are no promise. Knows nothing of prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import wraps
from itertools import chain
from typing import Any, ClassVar, TypeVar, cast

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.nativetypes import NativeCodeGenerator
from jinja2.sandbox import MAX_RANGE, ImmutableSandboxedEnvironment
from jinja2.utils import pass_context
from jinja2.visitor import NodeTransformer

T = TypeVar("T")
MAX_STEPS = 20_000_000
_TURN, _CALL = 20, 100
"""Steps of one turn of a loop and of one element, and of a call besides what it is given. One character is one."""
_PLAIN = (str, int, float, bool, type(None), list, tuple, dict)
"""What can be printed."""
_OF_LOOPS = frozenset({"first", "index", "index0", "last", "length", "revindex"})
_left: ContextVar[list[int]] = ContextVar("steps that are left")


def bounded(action: Callable[[], T]) -> T:
    """What an action returns that may take `MAX_STEPS`. Raises `SecurityError` when it takes more."""
    token = _left.set([MAX_STEPS])
    try:
        return action()
    finally:
        _left.reset(token)


def spend(steps: int) -> None:
    """Take steps from those that are left."""
    left = _left.get()
    left[0] -= steps
    if left[0] < 0:
        raise SecurityError(f"takes more than {MAX_STEPS:,} steps")


def size(value: Any) -> int:
    """The steps of going through a value: its characters and elements, those of nested values too."""
    n, left = 0, [value]
    while left:
        each: Any = left.pop()
        n += len(each) if isinstance(each, str | bytes) else _TURN
        if isinstance(each, dict):
            left += chain.from_iterable(cast("dict[Any, Any]", each).items())
        elif isinstance(each, list | tuple):
            left += cast("list[Any]", each)
        if n > MAX_STEPS:
            break
    return n


def check_plain(value: Any) -> None:
    """Refuse to print what is no plain data: its text would be an address in memory, another one in every run."""
    if isinstance(value, str | jinja2.Undefined):
        return
    if not isinstance(value, _PLAIN):
        raise SecurityError(f"a {type(value).__name__} cannot be printed; add | list, or call it")
    spend(size(value))


class Undefined(jinja2.StrictUndefined):
    """Something that is not there: an error wherever it is used, in a list too, that says what is there instead."""

    __slots__ = ()
    __repr__ = jinja2.StrictUndefined._fail_with_undefined_error  # pyright: ignore[reportPrivateUsage]

    @property
    def _undefined_message(self) -> str:
        message, around = super()._undefined_message, cast("object", self._undefined_obj)
        if self._undefined_hint or not isinstance(around, dict | list | tuple):
            return message
        if isinstance(around, dict):
            return f"{message}; it has: {', '.join(sorted(map(str, cast('dict[Any, Any]', around))))}"
        return f"{message}; go through it with a for loop"


_REMOVED = ("center", "format", "random")
"""Filters that build what a number says, or say something else in every run."""
_BUILDING = frozenset(
    ["center", "expandtabs", "format", "format_map", "ljust", "maketrans", "rjust", "to_bytes", "translate", "zfill"]
)  # fmt: skip
"""Methods that build what a number or a table says."""
_MULTIPLYING = frozenset(["batch", "indent", "join", "replace", "slice", "tojson", "urlize", "wordwrap", "xmlattr"])
"""Filters and methods whose result may be as large as the product of what they are given."""


def _cost(name: str, given: Iterable[Any]) -> int:
    """Steps of a filter or method: the size of what it is given, or an upper bound of what it makes."""
    first, *others = given
    if name not in _MULTIPLYING:
        return size(first) + sum(map(size, others))
    factors = (abs(each) if isinstance(each, int) else size(each) for each in others)
    return (1 + size(first)) * (1 + max(factors, default=0))


def _metered(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that pays for what it does."""
    is_given_more = hasattr(function, "jinja_pass_arg")  # the context, before everything else

    @wraps(function)
    def filter_(*args: Any, **kwargs: Any) -> Any:
        given = [*args[is_given_more:], *kwargs.values()]
        if name == "sum" and any(isinstance(each, list | tuple) for each in given[1:]):
            raise SecurityError("sums are of numbers only")
        spend(_cost(name, given))
        return function(*args, **kwargs)

    return filter_


@pass_context  # is never worked out before rendering
def _turned(_: object, iterable: Any) -> Any:
    """What a loop goes through, paid for."""
    if not isinstance(iterable, list) and isinstance(iterable, Iterator):  # the second is a slow question
        return _paid(cast("Iterator[Any]", iterable))
    spend(_TURN * len(cast("list[Any]", iterable)))
    return cast("Any", iterable)


def _paid(turns: Iterator[T]) -> Iterator[T]:
    for each in turns:
        spend(_TURN)
        yield each


@pass_context
def _read(_: object, value: Any) -> Any:
    """What is cut or compared, paid for."""
    spend(size(value))
    return value


@pass_context
def _joined(_: object, parts: list[Any]) -> str:
    """What the operator ~ makes."""
    spend(size(parts))
    return "".join(map(str, parts))


def _range(*ends: int) -> range:
    found = range(*ends)
    if len(found) > MAX_RANGE:
        raise OverflowError(f"a range holds {MAX_RANGE:,} numbers at most")
    spend(len(found))
    return found


_OURS = {"steps of a loop": _turned, "steps of reading": _read, "steps of joining": _joined}
"""Filters that no template can name."""


class _Metering(NodeTransformer):
    """Puts filters that pay into a template, where jinja2 asks its environment for nothing."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        return self._changed(node, iter=_filtered("steps of a loop", node.iter))

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        for operand in node.ops:
            operand.expr = _filtered("steps of reading", operand.expr)
        return self._changed(node, expr=_filtered("steps of reading", node.expr))

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        if not isinstance(node.arg, nodes.Slice):
            return self._changed(node)
        return self._changed(node, node=_filtered("steps of reading", node.node))

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        changed = self._changed(node)
        return _filtered("steps of joining", nodes.List(changed.nodes, lineno=node.lineno))

    def _changed(self, node: Any, /, **fields: nodes.Node) -> Any:
        for name, value in fields.items():
            setattr(node, name, value)
        return cast("Any", self.generic_visit(node))


def _filtered(name: str, node: Any) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class _Code(NativeCodeGenerator):
    """Passes on what `finalize` returns as it is, and reads what templates mostly read without a call."""

    def _output_child_to_const(self, node: nodes.Expr, frame: Any, finalize: Any) -> Any:
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible  # is finalized when it is rendered
        return super()._output_child_to_const(node, frame, finalize)

    def visit_Getattr(self, node: nodes.Getattr, frame: Any) -> None:
        name = repr(node.attr)
        value, kind = f"of[{name}]", f"dict and {name} in of"
        if node.attr in _OF_LOOPS:
            value, kind = f"of.{node.attr}", "LoopContext"
        self.write(f"({value} if type(of := ")
        self.visit(node.node, frame)
        self.write(f") is {kind} else environment.getattr(of, {name}))")


class Sandbox(ImmutableSandboxedEnvironment):
    """The immutable sandbox with bounds. It renders inside `bounded`."""

    code_generator_class = _Code

    intercepted_binops = frozenset(["*", "**", "%", "+"])
    _limits: ClassVar[dict[str, float]] = {"*": 1e12, "**": 64, "%": 1e12, "+": 1e300}

    def __init__(self, **options: Any) -> None:
        super().__init__(undefined=Undefined, **options)
        filters = {name: _metered(name, each) for name, each in self.filters.items() if name not in _REMOVED}
        self.filters = {**filters, **_OURS}
        self.globals["range"] = cast("Any", _range)
        del self.globals["lipsum"]

    def _generate(self, source: nodes.Template, *args: Any, **options: Any) -> str:
        metered: Any = _Metering().visit(source)
        return super()._generate(metered.set_environment(self), *args, **options)

    def rendered(self, name: str, context: Mapping[str, Any], put_together: Callable[[Iterable[Any]], T]) -> T:
        """What a template's pieces come to, put together as they are rendered."""
        template = self.get_template(name)
        try:
            return put_together(template.root_render_func(template.new_context(dict(context))))
        except Exception:
            self.handle_exception()

    def make_globals(self, d: Mapping[str, Any] | None) -> dict[str, Any]:
        """The names that every template knows; jinja2's own are slow to copy."""
        return {**self.globals, **(d or {})}

    def wrap_str_format(self, value: Any) -> None:
        """Nothing: `format` is no safe attribute."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may use an attribute."""
        return attr not in _BUILDING and super().is_safe_attribute(obj, attr, value)

    def call(self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call something that pays for what it does."""
        given = [getattr(__obj, "__self__", None), *args, *kwargs.values()]
        spend(_CALL + _cost(getattr(__obj, "__name__", ""), given))
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Work out an operator: on small numbers, and + on texts and lists too."""
        if not (isinstance(left, int | float) and isinstance(right, int | float)):
            if operator != "+":
                raise SecurityError(f"the operator {operator} takes small numbers only")
            spend(size(left) + size(right))
        elif abs(left) > 1e12 or abs(right) > self._limits[operator]:
            raise SecurityError(f"the operator {operator} takes small numbers only")
        return super().call_binop(context, operator, left, right)
