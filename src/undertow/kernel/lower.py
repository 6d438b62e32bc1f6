"""Scalar expressions as values of the loop IR, with NumPy's semantics of every primitive."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from . import elementary
from .expr import Expr
from .ir import COMPARISONS, FLOATS, INTEGERS, UNSIGNED, Function, Value

_SAME = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "neg": "neg",
    "abs": "abs",
    "maximum": "maximum",
    "minimum": "minimum",
    "bit_and": "and",
    "bit_or": "or",
    "bit_xor": "xor",
    "bit_not": "not",
}
_OF_FLOATS = {"div", "floor", "ceil", "trunc", "rint", "copysign", "sqrt"}
_WHOLE = {"floor", "ceil", "trunc", "rint"}  # of an integer, the same
_LOGICAL = {"logical_and": "and", "logical_or": "or", "logical_xor": "ne"}


class NotCompiled(Exception):
    """The expression has no kernel for these types; the reference backend computes it."""


def lower(f: Function, expr: Expr, args: Sequence[Value], dtype: str) -> Value:
    """The value of `expr` over `args`; numbers beside no value are of the type `dtype`."""
    return Lowering(f, args, dtype).value(expr)


class Lowering:
    """Expressions over the same arguments, each distinct part of them computed once."""

    def __init__(self, f: Function, args: Sequence[Value], dtype: str) -> None:
        self.f = f
        self.args = args
        self.dtype = dtype
        self.done: dict[int, Any] = {}
        self.known: dict[Any, Any] = {}
        self.kept: list[Expr] = []  # `done` goes by identity

    def value(self, expr: Expr) -> Value:
        """The expression's value, a constant too."""
        found = self._visit(expr)
        return found if isinstance(found, Value) else self._constant(found, self.dtype)

    def _visit(self, node: Expr) -> Any:
        """A value, or the number of a constant, which takes its type from what is beside it."""
        if node.head == "arg":
            return self.args[node.args[0]]
        if node.head == "const":
            return node.args[0]
        if id(node) not in self.done:
            head, args = node.head, node.args
            if head == "add" and _is_one(args[0]) and args[1].head == "erf":
                head, args = "one_plus_erf", args[1].args
            given = [self._visit(a) for a in args]
            key = (head, *map(self._identity, given))
            if key not in self.known:
                self.known[key] = self._call(head, given)
            self.done[id(node)] = self.known[key]
            self.kept.append(node)
        return self.done[id(node)]

    def _identity(self, given: Any) -> Any:
        """What tells one operand of a primitive from another."""
        return id(given) if isinstance(given, Value) else (type(given), repr(given))

    def _constant(self, number: Any, dtype: str) -> Value:
        if (
            isinstance(number, complex)
            or (dtype == "bool" and not isinstance(number, bool))
            or (dtype in INTEGERS and (isinstance(number, float) or not _fits(number, dtype)))
        ):
            raise NotCompiled(f"the constant {number!r} beside {dtype}")
        return self.f.const(number, dtype)

    def _call(self, head: str, given: list[Any]) -> Value:
        f = self.f
        if head == "where":
            condition = self._truth(given[0])
            kind = next((g.dtype for g in given[1:] if isinstance(g, Value)), self.dtype)
            if kind == "bool":
                given = _as_bools(given)
            yes, no = (g if isinstance(g, Value) else self._constant(g, kind) for g in given[1:])
            return f.select(condition, yes, no)
        if head in _LOGICAL or head == "logical_not":
            truths = [self._truth(g) for g in given]
            return ~truths[0] if head == "logical_not" else f.call(_LOGICAL[head], *truths)
        kind = next((g.dtype for g in given if isinstance(g, Value)), self.dtype)
        if head in COMPARISONS and kind not in FLOATS:
            if kind == "bool":
                given = _as_bools(given)
            if any(isinstance(g, float) and not math.isfinite(g) for g in given):
                # Every integer compares with an infinity, or NaN, as zero does.
                compare = getattr(operator, head)
                zeros = [0 if isinstance(g, Value) else g for g in given]
                return f.const(compare(*zeros), "bool")
        values = [g if isinstance(g, Value) else self._constant(g, kind) for g in given]
        if any(v.dtype != kind for v in values):
            raise NotCompiled(f"{head} of {', '.join(v.dtype for v in values)}")
        if head in COMPARISONS:
            return f.call(head, *values)
        if head in ("real", "conj"):
            return values[0]
        if head == "imag":
            return f.const(0, kind)
        if kind == "bool":
            return self._of_bools(head, values)
        if head in _SAME:
            if kind in FLOATS and head.startswith("bit"):
                raise NotCompiled(f"{head} of {kind}")
            if kind in UNSIGNED and head in ("neg", "abs"):
                return values[0] if head == "abs" else 0 - values[0]
            return f.call(_SAME[head], *values)
        if kind in FLOATS:
            if head in _OF_FLOATS:
                return f.call(head, *values)
            if head in elementary.FUNCTIONS:
                return elementary.FUNCTIONS[head](f, *values)
            if head == "one_plus_erf":  # of which gelu is made
                return elementary.one_plus_erf(f, *values)
        elif head in _WHOLE:
            return values[0]
        elif head in ("fmax", "fmin"):
            return f.call("maximum" if head == "fmax" else "minimum", *values)
        elif head in elementary.INTEGER_FUNCTIONS:
            if head == "pow" and not _is_natural(values[1]):
                raise NotCompiled(f"pow of {kind}, which refuses negative exponents")
            return elementary.INTEGER_FUNCTIONS[head](f, *values)
        raise NotCompiled(f"{head} of {kind}")

    def _of_bools(self, head: str, values: list[Value]) -> Value:
        same = {
            "add": "or",
            "mul": "and",
            "maximum": "or",
            "minimum": "and",
            "fmax": "or",
            "fmin": "and",
            "bit_and": "and",
            "bit_or": "or",
            "bit_xor": "xor",
            "bit_not": "not",
        }
        if head in ("isnan", "isinf", "signbit"):
            return self.f.const(False, "bool")
        if head == "isfinite":
            return self.f.const(True, "bool")
        if head not in same:
            raise NotCompiled(f"{head} of bool")
        return self.f.call(same[head], *values)

    def _truth(self, given: Any) -> Value:
        if not isinstance(given, Value):
            return self.f.const(bool(given), "bool")
        return self.f.cast(given, "bool")


def _as_bools(given: list[Any]) -> list[Any]:
    """0 and 1 beside booleans, where they mean False and True."""
    return [bool(g) if not isinstance(g, Value) and g in (0, 1) else g for g in given]


def _is_natural(exponent: Value) -> bool:
    """Whether an exponent cannot be negative: unsigned, a number, or the maximum of one."""
    if exponent.op == "maximum":
        return any(_is_natural(a) for a in exponent.args)
    return exponent.dtype[0] == "u" or (exponent.op == "const" and exponent.args[0] >= 0)


def _is_one(node: Expr) -> bool:
    return node.head == "const" and node.args[0] == 1


def _fits(number: int, dtype: str) -> bool:
    bits = int(dtype[1:])
    low = 0 if dtype[0] == "u" else -(1 << (bits - 1))
    return low <= number < low + (1 << bits)
