"""Scalar expressions: the one way an elementwise op says what it computes.

An expression is a small tree of primitives over numbered arguments and constants. It knows no
array, no device and no gradient; a backend interprets it (NumPy) or compiles it. All arguments of
an expression have one dtype, the compute dtype; constants are weak and take that dtype.
Comparisons and predicates give booleans, which only `where` and the logical primitives accept.

>>> expr = trace(lambda a, b: a * b + 1, 2)
>>> str(expr)
'add(mul(a0, a1), 1)'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

# Every primitive and its number of arguments. A backend answers exactly this list.
PRIMITIVES: dict[str, int] = {
    # arithmetic
    "add": 2,
    "sub": 2,
    "mul": 2,
    "div": 2,
    "floor_div": 2,
    "mod": 2,
    "fmod": 2,
    "pow": 2,
    "neg": 1,
    "abs": 1,
    "sign": 1,
    "floor": 1,
    "ceil": 1,
    "trunc": 1,
    "rint": 1,
    "maximum": 2,
    "minimum": 2,
    "fmax": 2,
    "fmin": 2,
    "copysign": 2,
    "ldexp": 2,
    # elementary functions
    "sqrt": 1,
    "exp": 1,
    "exp2": 1,
    "expm1": 1,
    "log": 1,
    "log2": 1,
    "log10": 1,
    "log1p": 1,
    "sin": 1,
    "cos": 1,
    "tan": 1,
    "asin": 1,
    "acos": 1,
    "atan": 1,
    "atan2": 2,
    "hypot": 2,
    "sinh": 1,
    "cosh": 1,
    "tanh": 1,
    "asinh": 1,
    "acosh": 1,
    "atanh": 1,
    "erf": 1,
    # comparison and predicates: boolean results
    "eq": 2,
    "ne": 2,
    "lt": 2,
    "le": 2,
    "gt": 2,
    "ge": 2,
    "isnan": 1,
    "isinf": 1,
    "isfinite": 1,
    "signbit": 1,
    "logical_and": 2,
    "logical_or": 2,
    "logical_xor": 2,
    "logical_not": 1,
    # bits
    "bit_and": 2,
    "bit_or": 2,
    "bit_xor": 2,
    "bit_not": 1,
    "shift_left": 2,
    "shift_right": 2,
    # choice and complex parts
    "where": 3,
    "real": 1,
    "imag": 1,
    "conj": 1,
    "angle": 1,
}


class Expr:
    """One node of a scalar expression: a primitive of other nodes, an argument, or a constant."""

    __slots__ = ("args", "head")

    def __init__(self, head: str, args: tuple[Any, ...]) -> None:
        self.head = head
        self.args = args

    def __str__(self) -> str:
        if self.head == "arg":
            return f"a{self.args[0]}"
        if self.head == "const":
            return repr(self.args[0])
        return f"{self.head}({', '.join(map(str, self.args))})"

    def __repr__(self) -> str:
        """Text that caches are keyed by: each part is written once, however often it is used."""
        return f"Expr[{_in_parts([self])}]"

    def __add__(self, other: Operand) -> Expr:
        return call("add", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return call("add", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return call("sub", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return call("sub", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return call("mul", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return call("mul", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return call("div", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return call("div", other, self)

    def __pow__(self, other: Operand) -> Expr:
        return call("pow", self, other)

    def __neg__(self) -> Expr:
        return call("neg", self)

    def __abs__(self) -> Expr:
        return call("abs", self)

    __hash__ = object.__hash__

    def __eq__(self, other: Operand) -> Expr:  # type: ignore[override]
        return call("eq", self, other)

    def __ne__(self, other: Operand) -> Expr:  # type: ignore[override]
        return call("ne", self, other)

    def __lt__(self, other: Operand) -> Expr:
        return call("lt", self, other)

    def __le__(self, other: Operand) -> Expr:
        return call("le", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return call("gt", self, other)

    def __ge__(self, other: Operand) -> Expr:
        return call("ge", self, other)

    def __and__(self, other: Operand) -> Expr:
        return call("logical_and", self, other)

    def __or__(self, other: Operand) -> Expr:
        return call("logical_or", self, other)

    def __invert__(self) -> Expr:
        return call("logical_not", self)

    def __bool__(self) -> bool:
        raise TypeError(
            f"the scalar expression {self} has no truth value: use where(condition, a, b), "
            "& for and, | for or, ~ for not"
        )


Operand = Expr | int | float | complex | bool


def arg(position: int) -> Expr:
    """The expression's argument number `position`."""
    return Expr("arg", (position,))


def call(head: str, *args: Operand) -> Expr:
    """Apply the primitive `head`; numbers become constants.

    >>> call("exp", arg(0))
    Expr[exp(a0)]
    """
    if PRIMITIVES.get(head) != len(args):
        raise ValueError(f"no primitive {head!r} of {len(args)} arguments in a scalar expression")
    return Expr(head, tuple(a if isinstance(a, Expr) else Expr("const", (a,)) for a in args))


def trace(function: Callable[..., Operand], arity: int) -> Expr:
    """The expression that `function` builds from `arity` arguments."""
    result = function(*[arg(i) for i in range(arity)])
    return result if isinstance(result, Expr) else Expr("const", (result,))


def operations(expr: Expr) -> int:
    """How many primitives an expression computes, each distinct part once.

    >>> operations(trace(lambda a, b: a * b + a, 2))
    2
    """
    seen: set[int] = set()
    left = [expr]
    while left:
        node = left.pop()
        if node.head not in ("arg", "const") and id(node) not in seen:
            seen.add(id(node))
            left += node.args
    return len(seen)


def substitute(expr: Expr, args: Sequence[Operand]) -> Expr:
    """`expr` with its arguments replaced.

    >>> str(substitute(trace(lambda a: a * a, 1), [call("exp", arg(0))]))
    'mul(exp(a0), exp(a0))'
    """
    done: dict[int, Expr] = {}
    given = [a if isinstance(a, Expr) else Expr("const", (a,)) for a in args]

    def visit(node: Expr) -> Expr:
        if node.head == "arg":
            return given[node.args[0]]
        if node.head == "const":
            return node
        if id(node) not in done:
            done[id(node)] = Expr(node.head, tuple(visit(a) for a in node.args))
        return done[id(node)]

    return visit(expr)


def where(condition: Operand, a: Operand, b: Operand) -> Expr:
    """`a` where the condition holds, else `b`."""
    return call("where", condition, a, b)


def polynomial(x: Operand, coefficients: tuple[float, ...]) -> Operand:
    """Horner's rule; coefficients from the highest power down.

    >>> str(polynomial(arg(0), (3.0, 2.0, 1.0)))
    'add(mul(add(mul(3.0, a0), 2.0), a0), 1.0)'
    """
    result: Operand = coefficients[0]
    for c in coefficients[1:]:
        result = result * x + c
    return result


RELU = trace(lambda a: where(a < 0, 0, a), 1)  # NaN stays


class Shared(tuple[Expr, ...]):
    """Expressions that share parts: as text, each part is written once.

    >>> square = arg(0) * arg(0)
    >>> Shared([square + 1, square - 1])
    Shared[t0=mul(a0, a0); add(t0, 1), sub(t0, 1)]
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Shared[{_in_parts(self)}]"


def _in_parts(exprs: Sequence[Expr]) -> str:
    """Expressions as text, in which what is used several times is written once, with a name."""
    uses: dict[int, int] = {}
    stack = [*exprs]
    while stack:
        node = stack.pop()
        uses[id(node)] = uses.get(id(node), 0) + 1
        if uses[id(node)] == 1 and node.head not in ("arg", "const"):
            stack += node.args
    names: dict[int, str] = {}
    lines: list[str] = []

    def written(node: Expr) -> str:
        if node.head in ("arg", "const"):
            return str(node)
        if id(node) in names:
            return names[id(node)]
        text = f"{node.head}({', '.join([written(a) for a in node.args])})"
        if uses[id(node)] == 1:
            return text
        names[id(node)] = f"t{len(lines)}"
        lines.append(f"{names[id(node)]}={text}")
        return names[id(node)]

    results = ", ".join([written(e) for e in exprs])
    return "; ".join([*lines, results])
