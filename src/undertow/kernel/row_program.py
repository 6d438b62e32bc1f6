"""Row programs: reductions along each row of an array, and maps of what they found.

A row program says what happens to one row: its stages reduce an expression over the row's elements
or compute with what was found; its outputs are values for each element, each row or each column.

>>> from .expr import call
>>> def softmax(p: Tracer, x: Expr) -> None:
...     peak = p.peak(x)
...     e = p.keep(call("exp", x - peak))
...     p.out(e / p.sum(e))
>>> print(rows(softmax, 1))
a2 = peak(a0)
a3 = keep(exp(sub(a0, a2)))
a4 = sum(a3)
element div(a3, a4)

Note [loops over a row]
A stage can be computed once everything that it uses is known, so the stages fall into loops: those
that use only operands are in the first loop over the row, those that use what the first loop found
in the second, and so on; an output is written in the first loop that can.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .expr import Expr, arg, substitute

# The reductions, and what they give of nothing.
NEUTRAL = {"sum": 0.0, "max": -math.inf, "min": math.inf, "peak": -math.inf}


class Stage(NamedTuple):
    """One step: its kind, the expression, the positions that it uses, and where it is computed.

    kind: sum, max, peak, min (over the row), row (of what is known of it), keep (of each element),
    first (the first element of the operand that the expression is) or pick (of the operand numbered
    `operand`, the element at the column that the expression gives). `compact` is the
    expression with the used positions renumbered 0, 1, 2 …; `level` is the number of the loop after
    which the value is known, 0 before any; see Note [loops over a row].
    """

    kind: str
    expr: Expr
    used: tuple[int, ...]
    compact: Expr
    level: int
    operand: int = 0


class Output(NamedTuple):
    """A result: of each element, of each row, or the sum over all rows for each column."""

    kind: str
    expr: Expr
    used: tuple[int, ...]
    compact: Expr
    loop: int  # that writes it


class Program:
    """What happens to a row.

    Positions count operands (those of elements, then those of rows, then numbers), then the column,
    then the stages.
    """

    def __init__(self, elements: int, per_row: int, numbers: int) -> None:
        self.elements = elements
        self.per_row = per_row
        self.numbers = numbers
        self.column = elements + per_row + numbers
        self.stages: list[Stage] = []
        self.outputs: list[Output] = []
        self.uses_column = False  # the order of the elements matters

    def __repr__(self) -> str:
        """Everything about it."""
        return f"{self.elements} {self.per_row} {self.numbers}\n{self}"

    def __str__(self) -> str:
        first = self.column + 1
        lines = [
            f"a{first + i} = {s.kind}({f'a{s.operand}, ' if s.kind == 'pick' else ''}{s.expr})"
            for i, s in enumerate(self.stages)
        ]
        return "\n".join([*lines, *(f"{o.kind} {o.expr}" for o in self.outputs)])

    def users(self, position: int) -> list[int]:
        """The loops that use a position's value."""
        found = [s.level for s in self.stages if position in s.used]
        return found + [o.loop for o in self.outputs if position in o.used]

    def level(self, position: int) -> int:
        """The loop after which a position's value is known."""
        stage = position - self.column - 1
        return self.stages[stage].level if stage >= 0 else 0


class Tracer:
    """What a function that describes a program is given; see `rows`."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.column = arg(program.column)

    def sum(self, expr: Expr) -> Expr:
        """The sum over the row."""
        return self._stage("sum", expr)

    def max(self, expr: Expr) -> Expr:
        """The largest over the row; NaN if there is one."""
        return self._stage("max", expr)

    def peak(self, expr: Expr) -> Expr:
        """The largest over the row, or anything if there is a NaN: quicker than `max`."""
        return self._stage("peak", expr)

    def min(self, expr: Expr) -> Expr:
        """The smallest over the row; NaN if there is one."""
        return self._stage("min", expr)

    def row(self, expr: Expr) -> Expr:
        """Something computed once for the row, from what is known of it."""
        return self._stage("row", expr)

    def keep(self, expr: Expr) -> Expr:
        """Something computed once for each element though several stages use it."""
        return self._stage("keep", expr)

    def first(self, operand: Expr) -> Expr:
        """An operand's first element of the row."""
        return self._stage("first", operand)

    def pick(self, operand: Expr, column: Expr) -> Expr:
        """An operand's element in the given column, an integer within the row."""
        self._program.uses_column = True
        return self._stage("pick", column, operand.args[0])

    def out(self, expr: Expr) -> None:
        """A result for each element."""
        self._output("element", expr)

    def out_row(self, expr: Expr) -> None:
        """A result for each row."""
        self._output("row", expr)

    def out_column(self, expr: Expr) -> None:
        """The sum over all rows, for each column."""
        self._output("column", expr)

    def _stage(self, kind: str, expr: Expr, operand: int = 0) -> Expr:
        p = self._program
        used, compact = self._used(expr)
        level = max([p.level(i) for i in used], default=0) + (kind in NEUTRAL)
        p.stages.append(Stage(kind, expr, used, compact, level, operand))
        return arg(p.column + len(p.stages))

    def _output(self, kind: str, expr: Expr) -> None:
        p = self._program
        used, compact = self._used(expr)
        loop = max([p.level(i) for i in used], default=0) + 1
        p.outputs.append(Output(kind, expr, used, compact, loop))

    def _used(self, expr: Expr) -> tuple[tuple[int, ...], Expr]:
        used = tuple(sorted(_arguments(expr, set(), set())))
        if self._program.column in used:
            self._program.uses_column = True
        place = {position: arg(i) for i, position in enumerate(used)}
        listed = [place.get(i, arg(0)) for i in range(used[-1] + 1 if used else 0)]
        return used, substitute(expr, listed)


def rows(
    function: Callable[..., None], elements: int, per_row: int = 0, numbers: int = 0
) -> Program:
    """The program that `function(tracer, *operands)` describes.

    The operands are first those that have a value for each element (which may be the same in all
    rows, as a weight is), then those that have one for each row, then numbers.
    """
    program = Program(elements, per_row, numbers)
    function(Tracer(program), *[arg(i) for i in range(program.column)])
    return program


def _arguments(node: Expr, found: set[int], seen: set[int]) -> set[int]:
    if node.head == "arg":
        found.add(node.args[0])
    elif node.head != "const" and id(node) not in seen:
        seen.add(id(node))
        for a in node.args:
            _arguments(a, found, seen)
    return found
