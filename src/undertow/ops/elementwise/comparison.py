"""Comparison, logic, bits and choice: eq, where, logical_and, isnan …."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, overload

from ... import dtypes
from ...backends.base import Array, Forms
from ...backends.registry import backend_of
from ...core.dispatch import align, alike, apply, cast, compute_dtype, elementwise, operand
from ...core.fast import assignment, operation
from ...core.op import Op, elementwise_op
from ...core.other_kinds import NotDense
from ...core.reading import READERS, tell
from ...core.register import alias, attach, elementwise_function, function
from ...core.tensor import Tensor, wrap
from ...dtypes import Number
from ...errors import ArgumentError, DTypeError
from ...kernel.expr import Expr, call, trace

_BOOL = dtypes.bool.numpy


# Choice --------------------------------------------------------------------------------------
def _chosen(g: Any, condition: Any) -> Any:
    return where(condition, g, 0)


def _refused(g: Any, condition: Any) -> Any:
    return where(condition, 0, g)


_where: Op = Op(
    "where",
    lambda k, condition, x, y: k.map(
        _where.expr, (condition, x, y), (x if hasattr(x, "dtype") else y).dtype
    ),
    inputs="condition x y",
    vjp={"x": _chosen, "y": _refused},
)
_where.scalar = lambda condition, x, y: call("where", condition, x, y)


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
@function(method=False)
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """`input` where the condition holds, else `other`; of a condition alone, its `nonzero`.

    >>> import undertow as ut
    >>> x = ut.tensor([-1.0, 2.0])
    >>> ut.where(x > 0, x, 0)
    tensor([0., 2.])
    """
    if isinstance(condition, Expr) or isinstance(input, Expr) or isinstance(other, Expr):
        return elementwise(_where, condition, input, other)
    if (
        isinstance(condition, Tensor)
        and condition._array.dtype is _BOOL
        and alike((input, other))
        and _ends(input if isinstance(input, Tensor) else other, condition._array.shape)
    ):
        return apply(_where, (condition, input, other))
    try:
        alone = operand("where", condition) if input is None and other is None else None
        if isinstance(alone, Tensor):
            return alone.nonzero(as_tuple=True)
        condition = _condition(condition)
        x, y = operand("where", input), operand("where", other)
    except NotDense as met:
        return met.kind._answer("where", (condition, input, other), {})
    dtype = compute_dtype("where", (x, y), "promote")
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        x = wrap(backend_of(condition._array).full((), x, dtype.numpy))
    return apply(_where, align("where", [condition, x, y], dtype, skip=1))


def _ends(x: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether that is the shape of `x`, or of its last dimensions: the result has that of `x`."""
    whole = x._array.shape
    return whole == shape or (bool(shape) and whole[-len(shape) :] == shape)


def _condition(condition: Any) -> Tensor:
    condition = operand("where", condition)
    if not isinstance(condition, Tensor) or condition.dtype not in (dtypes.bool, dtypes.uint8):
        found = condition.dtype if isinstance(condition, Tensor) else type(condition).__name__
        raise DTypeError(
            f"[where] the condition must be a bool tensor, got {found}; compare first, as in x != 0"
        )
    return cast(condition, dtypes.bool)


@function(name="where", top=False)
def _where_method(input: Tensor, condition: Tensor, other: Tensor | Number) -> Tensor:
    """`ut.where(condition, input, other)`.

    >>> import undertow as ut
    >>> x = ut.tensor([-1.0, 2.0])
    >>> x.where(x > 0, 0)
    tensor([0., 2.])
    """
    return where(condition, input, other)


# Comparison ----------------------------------------------------------------------------------
def _comparison(
    head: str, sign: str, example: str, dunder: str = "", domain: str = "bifc"
) -> Callable[..., Tensor]:
    return elementwise_function(
        elementwise_op(
            head, lambda a, b: call(head, a, b), inputs="a b", kind="bool", domain=domain
        ),
        f"""`input {sign} other` for each element, as a bool tensor; numbers compare exactly.

    >>> import undertow as ut
    >>> ut.{head}(ut.tensor([1, 2, 3]), 2)
    tensor({example})
    """,
        inplace=True,
        dunder=dunder,
    )


eq = _comparison("eq", "==", "[False,  True, False]")
ne = _comparison("ne", "!=", "[ True, False,  True]")
lt = _comparison("lt", "<", "[ True, False, False]", "__lt__", "bif")
le = _comparison("le", "<=", "[ True,  True, False]", "__le__", "bif")
gt = _comparison("gt", ">", "[False, False,  True]", "__gt__", "bif")
ge = _comparison("ge", ">=", "[False,  True,  True]", "__ge__", "bif")

alias("ne", "not_equal")
alias("lt", "less")
alias("le", "less_equal")
alias("gt", "greater")
alias("ge", "greater_equal")


# Python answers itself for what is no number: `x == None` is False.
attach("__eq__", operation(eq))
attach("__ne__", operation(ne))


# Logic ---------------------------------------------------------------------------------------
def _logical(head: str, doc: str) -> Callable[..., Tensor]:
    op = elementwise_op(head, lambda a, b: call(head, a, b), inputs="a b", kind="bool")
    return elementwise_function(op, doc, inplace=True)


logical_and = _logical(
    "logical_and",
    """Whether both elements are true, that is not zero.

    >>> import undertow as ut
    >>> ut.logical_and(ut.tensor([0, 1, 2]), ut.tensor([True, True, False]))
    tensor([False,  True, False])
    """,
)
logical_or = _logical(
    "logical_or",
    """Whether at least one of the elements is true, that is not zero.

    >>> import undertow as ut
    >>> ut.logical_or(ut.tensor([0, 0, 2]), ut.tensor([False, True, False]))
    tensor([False,  True,  True])
    """,
)
logical_xor = _logical(
    "logical_xor",
    """Whether exactly one of the elements is true, that is not zero.

    >>> import undertow as ut
    >>> ut.logical_xor(ut.tensor([0, 1, 2]), ut.tensor([True, True, False]))
    tensor([ True, False,  True])
    """,
)
logical_not = elementwise_function(
    elementwise_op("logical_not", lambda x: call("logical_not", x), inputs="x", kind="bool"),
    """Whether the element is false, that is zero.

    >>> import undertow as ut
    >>> ut.logical_not(ut.tensor([0.0, 1.5]))
    tensor([ True, False])
    """,
    inplace=True,
)


# Bits ----------------------------------------------------------------------------------------
def _reflected(door: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return operation(lambda self, other: door(other, self))


def _bitwise(name: str, head: str, dunder: str, domain: str, doc: str) -> Callable[..., Tensor]:
    op = elementwise_op(name, lambda a, b: call(head, a, b), inputs="a b", domain=domain)
    door = elementwise_function(op, doc, inplace=True, dunder=f"__{dunder}__")
    attach(f"__r{dunder}__", _reflected(door))
    attach(f"__i{dunder}__", assignment(Tensor.__dict__[f"{name}_"]))
    return door


bitwise_and = _bitwise(
    "bitwise_and",
    "bit_and",
    "and",
    "bi",
    """The bits set in both integers; of booleans, whether both are true.

    >>> import undertow as ut
    >>> ut.tensor([5, 6]) & 3
    tensor([1, 2])
    """,
)
bitwise_or = _bitwise(
    "bitwise_or",
    "bit_or",
    "or",
    "bi",
    """The bits set in at least one integer; of booleans, whether at least one is true.

    >>> import undertow as ut
    >>> ut.tensor([5, 6]) | 3
    tensor([7, 7])
    """,
)
bitwise_xor = _bitwise(
    "bitwise_xor",
    "bit_xor",
    "xor",
    "bi",
    """The bits set in exactly one integer; of booleans, whether exactly one is true.

    >>> import undertow as ut
    >>> ut.tensor([5, 6]) ^ 3
    tensor([6, 5])
    """,
)
bitwise_left_shift = _bitwise(
    "bitwise_left_shift",
    "shift_left",
    "lshift",
    "i",
    """The bits of `input` moved left by `other` places.

    >>> import undertow as ut
    >>> ut.tensor([1, 5]) << 2
    tensor([ 4, 20])
    """,
)
bitwise_right_shift = _bitwise(
    "bitwise_right_shift",
    "shift_right",
    "rshift",
    "i",
    """The bits of `input` moved right by `other` places; the sign stays.

    >>> import undertow as ut
    >>> ut.tensor([20, -8]) >> 2
    tensor([ 5, -2])
    """,
)
bitwise_not = elementwise_function(
    elementwise_op("bitwise_not", lambda x: call("bit_not", x), inputs="x", domain="bi"),
    """All bits inverted; of booleans, the logical not.

    >>> import undertow as ut
    >>> ~ut.tensor([0, 5])
    tensor([-1, -6])
    """,
    inplace=True,
    dunder="__invert__",
)


# Predicates ----------------------------------------------------------------------------------
def _predicate(
    name: str, expr: Callable[[Expr], Expr], doc: str, domain: str = "bifc"
) -> Callable[..., Tensor]:
    op = elementwise_op(name, expr, inputs="x", kind="bool", domain=domain)
    return elementwise_function(op, doc)


isnan = _predicate(
    "isnan",
    lambda x: call("isnan", x),
    """Which elements are NaN.

    >>> import undertow as ut
    >>> ut.isnan(ut.tensor([1.0, float("nan")]))
    tensor([False,  True])
    """,
)
isinf = _predicate(
    "isinf",
    lambda x: call("isinf", x),
    """Which elements are infinite, of either sign.

    >>> import undertow as ut
    >>> ut.isinf(ut.tensor([1.0, -float("inf")]))
    tensor([False,  True])
    """,
)
isfinite = _predicate(
    "isfinite",
    lambda x: call("isfinite", x),
    """Which elements are neither infinite nor NaN.

    >>> import undertow as ut
    >>> ut.isfinite(ut.tensor([1.0, float("inf"), float("nan")]))
    tensor([ True, False, False])
    """,
)
isposinf = _predicate(
    "isposinf",
    lambda x: call("eq", x, inf),
    """Which elements are positive infinity.

    >>> import undertow as ut
    >>> ut.isposinf(ut.tensor([float("inf"), -float("inf")]))
    tensor([ True, False])
    """,
    domain="bif",
)
isneginf = _predicate(
    "isneginf",
    lambda x: call("eq", x, -inf),
    """Which elements are negative infinity.

    >>> import undertow as ut
    >>> ut.isneginf(ut.tensor([float("inf"), -float("inf")]))
    tensor([False,  True])
    """,
    domain="bif",
)
isreal = _predicate(
    "isreal",
    lambda x: call("eq", call("imag", x), 0),
    """Which elements have no imaginary part; of real tensors, all.

    >>> import undertow as ut
    >>> ut.isreal(ut.tensor([1.0 + 0.0j, 1.0j]))
    tensor([ True, False])
    """,
)
signbit = _predicate(
    "signbit",
    lambda x: call("signbit", x),
    """Which elements have their sign bit set: negative numbers and -0.0.

    >>> import undertow as ut
    >>> ut.signbit(ut.tensor([-1.0, -0.0, 0.0]))
    tensor([ True,  True, False])
    """,
    domain="bif",
)


# Closeness and membership --------------------------------------------------------------------
@function()
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Which elements differ by at most `atol + rtol * abs(other)`.

    >>> import undertow as ut
    >>> ut.isclose(ut.tensor([1.0, 2.0]), ut.tensor([1.000001, 2.1]))
    tensor([ True, False])
    """
    if rtol < 0 or atol < 0:
        raise ArgumentError(f"[isclose] rtol and atol must not be negative, got {rtol} and {atol}")
    if input.dtype is not other.dtype:
        raise DTypeError(
            f"[isclose] expects two tensors of one dtype, got {input.dtype} and {other.dtype}; "
            "convert one of them"
        )
    a, b = input.detach(), other.detach()
    close = eq(a, b)
    if equal_nan:
        close = close | (isnan(a) & isnan(b))
    if a.dtype is dtypes.bool or (rtol == 0 and atol == 0):
        return close
    allowed = atol + abs(rtol * b)
    if a.dtype.is_floating_point or a.dtype.is_complex:
        error = abs(a - b)
        return close | (isfinite(error) & (error <= allowed))
    if a.dtype.itemsize < 4:
        a, b = a.to(dtypes.int32), b.to(dtypes.int32)
    error = where(a > b, a - b, b - a)  # bytes have no negative differences
    return close | ((error >= 0) & (error <= allowed))  # below zero: too large for the dtype


@function()
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether all elements differ by at most `atol + rtol * abs(other)`.

    >>> import undertow as ut
    >>> ut.allclose(ut.tensor([1.0, 2.0]), ut.tensor([1.000001, 2.0]))
    True
    """
    return _all(isclose(input, other, rtol, atol, equal_nan))


@function()
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same elements.

    >>> import undertow as ut
    >>> ut.equal(ut.tensor([1, 2]), ut.tensor([1, 2]))
    True
    """
    return input.shape == other.shape and _all(eq(input, other))


def _all(t: Tensor) -> bool:
    if READERS:
        tell(t)
    k = backend_of(t._array)
    return bool(k.to_host(k.reduce("all", t._array, tuple(range(t.ndim)), False)))


def holds(t: Tensor) -> bool:
    """Whether a condition is true everywhere, in every element of a batch: for a check."""
    if READERS:
        tell(t)
    whole = backend_of(t._array).whole(t._array)
    k = backend_of(whole)
    return bool(k.to_host(k.reduce("all", whole, tuple(range(len(whole.shape))), False)))


_lesser = trace(lambda a, b: call("minimum", a, b), 2)
_same = trace(lambda a, b: call("eq", a, b), 2)


def _isin_forward(k: Forms, x: Array, test: Any) -> Any:
    if test.size == 1:  # the token that ends a text
        return k.map(_same, (x, k.reshape(test, (1,) * len(x.shape))), dtypes.bool.numpy)
    values, _ = k.sort(k.reshape(k.copy(test), (test.size,)), 0, False)
    flat = k.reshape(k.copy(x), (x.size,))
    places = k.searchsorted(values, flat, False)
    found = k.gather(values, 0, k.map(_lesser, (places, test.size - 1), places.dtype))
    hits = k.map(_same, (found, flat), dtypes.bool.numpy)
    return k.reshape(hits, x.shape)


def _same_integers(x: Any, y: Any) -> bool:
    """Whether both are tensors of one integer dtype, the second with elements."""
    if not (isinstance(x, Tensor) and isinstance(y, Tensor)):
        return False
    array, other = x._array, y._array
    return array.dtype is other.dtype and array.dtype.kind in "iu" and other.size > 0


_isin = Op("isin", _isin_forward, inputs="x test")


@function(method=False)
def isin(
    elements: Tensor | Number,
    test_elements: Tensor | Number,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Which elements occur among the test elements; `assume_unique` is accepted and not needed.

    >>> import undertow as ut
    >>> ut.isin(ut.tensor([1, 2, 3]), ut.tensor([2, 3]))
    tensor([False,  True,  True])
    """
    if _same_integers(elements, test_elements):
        found = apply(_isin, (elements, test_elements))
        return logical_not(found) if invert else found
    operands = [operand("isin", elements), operand("isin", test_elements)]
    if not any(isinstance(o, Tensor) for o in operands):
        raise DTypeError(
            f"[isin] expects at least one tensor, got {elements!r} and {test_elements!r}"
        )
    dtype = compute_dtype("isin", operands, "promote")
    device = next(backend_of(o._array) for o in operands if isinstance(o, Tensor))
    x, test = (
        cast(o.detach(), dtype) if isinstance(o, Tensor) else wrap(device.full((), o, dtype.numpy))
        for o in operands
    )
    if test.numel() == 0:
        found = wrap(device.full(x.shape, False, dtypes.bool.numpy))
    else:
        found = apply(_isin, (x, test))
    return logical_not(found) if invert else found
