"""Elementwise ops as ONNX nodes: their scalar expressions, translated primitive by primitive."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .. import dtypes
from ..dtypes import DType
from ..errors import UnsupportedError
from ..kernel.expr import Expr
from .graph import Graph

# Primitives that ONNX has.
_SAME = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "pow": "Pow",
    "neg": "Neg",
    "abs": "Abs",
    "sign": "Sign",
    "floor": "Floor",
    "ceil": "Ceil",
    "rint": "Round",
    "maximum": "Max",
    "minimum": "Min",
    "sqrt": "Sqrt",
    "exp": "Exp",
    "log": "Log",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "tanh": "Tanh",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
    "erf": "Erf",
    "eq": "Equal",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
    "isnan": "IsNaN",
    "isinf": "IsInf",
    "logical_and": "And",
    "logical_or": "Or",
    "logical_xor": "Xor",
    "logical_not": "Not",
    "bit_and": "BitwiseAnd",
    "bit_or": "BitwiseOr",
    "bit_xor": "BitwiseXor",
    "bit_not": "BitwiseNot",
    "where": "Where",
    "real": "Identity",
    "conj": "Identity",
}
_LOGICAL = {"bit_and": "And", "bit_or": "Or", "bit_xor": "Xor", "bit_not": "Not"}
# Whole ops that are one node, though their expressions are several.
WHOLE = {"relu": "Relu", "sigmoid": "Sigmoid", "softsign": "Softsign", "reciprocal": "Reciprocal"}


class Scalar:
    """Translates one expression; equal parts become one node."""

    def __init__(self, graph: Graph, args: Sequence[str], dtype: DType) -> None:
        self._graph = graph
        self._args = args
        self._dtype = dtype  # the one in which it is computed
        self._done: dict[int, str] = {}

    def write(self, expr: Expr) -> str:
        """The name of the result."""
        found = self._done.get(id(expr))
        if found is None:
            found = self._done[id(expr)] = self._write(expr)
        return found

    def _number(self, value: float) -> str:
        return self._graph.number(value, self._dtype)

    def _write(self, expr: Expr) -> str:
        if expr.head == "arg":
            return self._args[expr.args[0]]
        if expr.head == "const":
            value = expr.args[0]
            dtype = dtypes.bool if isinstance(value, bool) else self._dtype
            return self._graph.number(value, dtype)
        args = [self.write(a) for a in expr.args]
        if self._dtype is dtypes.bool and expr.head in _LOGICAL:
            return self._graph.node(_LOGICAL[expr.head], *args)
        if expr.head in _SAME:
            return self._graph.node(_SAME[expr.head], *args)
        if expr.head in _COMPOSED:
            return _COMPOSED[expr.head](self, *args)
        raise UnsupportedError(f"the primitive {expr.head} has no counterpart in ONNX")

    def call(self, op: str, *args: str | float, **attributes: int) -> str:
        """A node; numbers are constants."""
        names = [a if isinstance(a, str) else self._number(a) for a in args]
        return self._graph.node(op, *names, **attributes)

    # Primitives made of others ----------------------------------------------------------------
    def _mod(self, a: str, b: str) -> str:
        if self._dtype.category < 2:
            return self.call("Mod", a, b)
        return self.call("Sub", a, self.call("Mul", self._floor_div(a, b), b))

    def _floor_div(self, a: str, b: str) -> str:
        if self._dtype.category < 2:  # where Div cuts off
            return self.call("Div", self.call("Sub", a, self.call("Mod", a, b)), b)
        return self.call("Floor", self.call("Div", a, b))

    def _trunc(self, a: str) -> str:
        return self.call("Mul", self.call("Sign", a), self.call("Floor", self.call("Abs", a)))

    def _hypot(self, a: str, b: str) -> str:
        squares = self.call("Add", self.call("Mul", a, a), self.call("Mul", b, b))
        return self.call("Sqrt", squares)

    def _finite(self, a: str) -> str:
        return self.call("Not", self.call("Or", self.call("IsNaN", a), self.call("IsInf", a)))

    def _copysign(self, a: str, b: str) -> str:
        size = self.call("Abs", a)
        return self.call("Where", self.call("Less", b, 0), self.call("Neg", size), size)

    def _without_nan(self, op: str, a: str, b: str) -> str:
        both = self.call("Where", self.call("IsNaN", b), a, self.call(op, a, b))
        return self.call("Where", self.call("IsNaN", a), b, both)


_COMPOSED: dict[str, Callable[..., str]] = {
    "mod": Scalar._mod,
    "floor_div": Scalar._floor_div,
    "fmod": lambda s, a, b: s.call("Mod", a, b, fmod=1),
    "trunc": Scalar._trunc,
    "fmax": lambda s, a, b: s._without_nan("Max", a, b),
    "fmin": lambda s, a, b: s._without_nan("Min", a, b),
    "copysign": Scalar._copysign,
    "exp2": lambda s, a: s.call("Pow", 2, a),
    "expm1": lambda s, a: s.call("Sub", s.call("Exp", a), 1),
    "log1p": lambda s, a: s.call("Log", s.call("Add", a, 1)),
    "log2": lambda s, a: s.call("Div", s.call("Log", a), math.log(2)),
    "log10": lambda s, a: s.call("Div", s.call("Log", a), math.log(10)),
    "hypot": Scalar._hypot,
    "ne": lambda s, a, b: s.call("Not", s.call("Equal", a, b)),
    "isfinite": Scalar._finite,
    "signbit": lambda s, a: s.call("Less", a, 0),
}
