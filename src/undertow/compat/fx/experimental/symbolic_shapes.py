"""Questions about symbolic sizes, answered for sizes that are numbers: none is symbolic here."""

from __future__ import annotations

from typing import Any

from ....errors import UnsupportedError

__all__ = [
    "ConstraintViolationError",
    "DimDynamic",
    "GuardOnDataDependentSymNode",
    "ShapeEnv",
    "StatelessSymbolicContext",
    "SymIntEqByExpr",
    "canonicalize_bool_expr",
    "constrain_range",
    "constrain_unify",
    "definitely_false",
    "definitely_true",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_bool",
    "guard_float",
    "guard_int",
    "guard_or_false",
    "guard_or_true",
    "guard_scalar",
    "guard_size_oblivious",
    "has_free_symbols",
    "has_free_unbacked_symbols",
    "has_hint",
    "has_static_value",
    "hint_int",
    "is_concrete_bool",
    "is_concrete_float",
    "is_concrete_int",
    "is_symbolic",
    "optimization_hint",
    "size_hint",
    "statically_known_false",
    "statically_known_true",
    "sym_and",
    "sym_eq",
    "sym_or",
]


class GuardOnDataDependentSymNode(RuntimeError):
    """What torch raises when it cannot tell a size; nothing here does."""


class ConstraintViolationError(RuntimeError):
    """What torch raises when a size breaks a promise; nothing here does."""


def guard_or_false(a: Any) -> bool:
    """The truth value of a comparison of sizes.

    >>> from undertow.fx.experimental.symbolic_shapes import guard_or_false
    >>> guard_or_false(3 > 2)
    True
    """
    return bool(a)


guard_or_true = guard_bool = guard_size_oblivious = guard_or_false
statically_known_true = definitely_true = guard_or_false


def statically_known_false(a: Any) -> bool:
    """Whether a comparison of sizes is false."""
    return not a


definitely_false = statically_known_false


def guard_int(a: Any, *args: Any, **kwargs: Any) -> int:
    """A size as the number that it is."""
    return int(a)


hint_int = size_hint = optimization_hint = guard_int


def guard_float(a: Any) -> float:
    """A number as the float that it is."""
    return float(a)


def guard_scalar(a: Any) -> Any:
    """The number itself."""
    return a


def is_symbolic(val: Any) -> bool:
    """Whether a size is a symbol: none is."""
    return False


has_free_symbols = has_free_unbacked_symbols = is_symbolic


def has_hint(a: Any) -> bool:
    """Whether the value of a size is known: always."""
    return True


has_static_value = has_hint


def is_concrete_int(a: Any) -> bool:
    """Whether it is an integer."""
    return isinstance(a, int) and not isinstance(a, bool)


def is_concrete_bool(a: Any) -> bool:
    """Whether it is a truth value."""
    return isinstance(a, bool)


def is_concrete_float(a: Any) -> bool:
    """Whether it is a float."""
    return isinstance(a, float)


def free_symbols(val: Any) -> set[Any]:
    """The symbols in a value: none."""
    return set()


free_unbacked_symbols = free_symbols


def sym_and(x: Any, *others: Any) -> Any:
    """All of some truth values."""
    for other in others:
        x = x and other
    return x


def sym_or(x: Any, *others: Any) -> Any:
    """Any of some truth values."""
    for other in others:
        x = x or other
    return x


def sym_eq(x: Any, y: Any) -> bool:
    """Whether two sizes, or tuples of sizes, are equal."""
    return bool(x == y)


def constrain_range(a: Any, *, min: Any = None, max: Any = None) -> None:
    """Check a promise about a size."""
    if (min is not None and a < min) or (max is not None and a > max):
        raise ValueError(f"Invalid value {a} for range [{min}:{max}]")


def constrain_unify(a: Any, b: Any) -> None:
    """Check that two sizes are equal."""
    if a != b:
        raise ValueError(f"expected equal sizes, got {a} and {b}")


def canonicalize_bool_expr(expr: Any) -> Any:
    """The expression itself."""
    return expr


class _Refused:
    """A class of torch's machinery for symbols, here to be named."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError(
            f"[fx.experimental.symbolic_shapes.{type(self).__name__}] there are no symbolic sizes "
            "here: trace with the sizes that you have"
        )


class ShapeEnv(_Refused):
    """Refused: see the message."""


class StatelessSymbolicContext(_Refused):
    """Refused: see the message."""


class SymIntEqByExpr(_Refused):
    """Refused: see the message."""


class DimDynamic:
    """How torch treats a size that may vary."""

    DYNAMIC, DUCK, STATIC, SIZE_LIKE_UNBACKED, INFER_STRIDE = range(5)
