"""Products of matrices and vectors: matmul and its kin.

Note [one product]
Every product here is one primitive, `a' @ b'`, where the prime is an optional transposition of the
last two dimensions. Its two derivatives are the same primitive again, so that no transposed view
is ever made: the flags go down to BLAS.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes
from ...backends.base import Array, Forms
from ...backends.registry import backend_of
from ...core.autocast import EVER, POLICIES, autocast_on, autocasting
from ...core.dispatch import apply, expand
from ...core.fast import operation, pair_function
from ...core.foreign import host_number, is_foreign
from ...core.op import Op
from ...core.other_kinds import NotDense, OtherKind, Overrider
from ...core.register import alias, attach, function
from ...core.tensor import Tensor, differentiated, wrap
from ...dtypes import Number
from ...errors import ArgumentError, DTypeError, ShapeError
from ...shapes import broadcast_shapes, wrap_dim
from ..elementwise.comparison import where
from ..reduce.reduction import sum
from ..shape.movement import reshaped


def _product_op(ta: bool, tb: bool) -> Op:
    def forward(k: Forms, a: Array, b: Array) -> Any:
        return k.matmul(k.transposed(a) if ta else a, k.transposed(b) if tb else b)

    def by_a(g: Tensor, b: Tensor) -> Tensor:
        return product(b, g, tb, True) if ta else product(g, b, False, not tb)

    def by_b(g: Tensor, a: Tensor) -> Tensor:
        return product(g, a, True, ta) if tb else product(a, g, not ta, False)

    suffix = ("_t" if ta else "_n") + ("t" if tb else "n") if ta or tb else ""
    of_a, of_b = _FACTORS_A[ta, tb], _FACTORS_B[ta, tb]
    op = Op(
        f"matmul{suffix}",
        forward,
        inputs="a b",
        vjp={"a": by_a, "b": by_b},
        bare={
            "a": lambda k, g, b: k.matmul(*of_a(k, g, b)),
            "b": lambda k, g, a: k.matmul(*of_b(k, g, a)),
        },
    )
    op.factors = (of_a, of_b)
    return op


# The same derivatives for bare matrices, by the flags; see Note [added products].
_FACTORS_A: dict[tuple[bool, bool], Callable[[Any, Any, Any], tuple[Any, Any]]] = {
    (False, False): lambda k, g, b: (g, k.transposed(b)),
    (False, True): lambda k, g, b: (g, b),
    (True, False): lambda k, g, b: (b, k.transposed(g)),
    (True, True): lambda k, g, b: (k.transposed(b), k.transposed(g)),
}
_FACTORS_B: dict[tuple[bool, bool], Callable[[Any, Any, Any], tuple[Any, Any]]] = {
    (False, False): lambda k, g, a: (k.transposed(a), g),
    (True, False): lambda k, g, a: (a, g),
    (False, True): lambda k, g, a: (k.transposed(g), a),
    (True, True): lambda k, g, a: (k.transposed(g), k.transposed(a)),
}


_PRODUCTS = {(ta, tb): _product_op(ta, tb) for ta in (False, True) for tb in (False, True)}
_FUNCTIONS = {flags: pair_function(op) for flags, op in _PRODUCTS.items()}
_product = _FUNCTIONS[False, False]


def product(a: Tensor, b: Tensor, ta: bool = False, tb: bool = False) -> Tensor:
    """`a' @ b'` of tensors of one dtype with the same batch dimensions; see Note [one product]."""
    return _FUNCTIONS[ta, tb](a, b)


@function(dunder="__matmul__", guard=False)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product; vectors and batches as in NumPy's `@`, batch dimensions broadcast.

    >>> import undertow as ut
    >>> ut.matmul(ut.tensor([[1.0, 2.0], [3.0, 4.0]]), ut.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    if EVER and autocast_on():
        return autocasting(POLICIES["matmul"], matmul, (input, other), {})
    try:  # matrices, or as many on both sides: almost every product of a training step
        x, y = input._array, other._array
        (*lead, _, inner), (*others, rows, _) = x.shape, y.shape
        plain = inner == rows and lead == others and x.dtype is y.dtype and x.dtype.kind == "f"
    except (AttributeError, ValueError):
        plain = False
    if plain:
        return _product(input, other)
    found = of_other_kind(input, other)
    if found is not None:
        return found
    try:
        a, b = operands("matmul", input, other)
    except NotDense as met:
        answered: Tensor = met.kind._answer("matmul", (input, other), {})
        return answered
    if not a.ndim or not b.ndim:
        raise ShapeError(
            f"[matmul] {a.shape} @ {b.shape}: both need at least one dimension; "
            "use * to multiply by a number"
        )
    inner = _check_inner("matmul", a, b)
    if b.ndim == 1:
        if a.ndim == 1:
            return apply(_dot, (a, b))
        rows = a if a.ndim == 2 else reshaped(a, (math.prod(a.shape[:-1]), inner))
        return reshaped(product(rows, reshaped(b, (inner, 1))), a.shape[:-1])
    if a.ndim == 1:
        lead = (1,) * (b.ndim - 2)
        full = _batched("matmul", reshaped(a, (*lead, 1, inner)), b)
        return reshaped(full, (*b.shape[:-2], b.shape[-1]))
    if b.ndim == 2 and a.ndim > 2:  # one matrix for the whole batch: a single large product
        rows = reshaped(a, (math.prod(a.shape[:-1]), inner))
        return reshaped(product(rows, b), (*a.shape[:-1], b.shape[1]))
    return _batched("matmul", a, b)


def of_other_kind(a: Any, b: Any) -> Any:
    """The product if an operand is sparse or nested, as it answers; else None."""
    for x in (a, b):
        if isinstance(x, OtherKind):
            return x._answer("matmul", (a, b), {})
    return None


attach("__rmatmul__", operation(lambda self, other: matmul(other, self)))


def _check_inner(op: str, a: Tensor, b: Tensor) -> int:
    inner, rows = a.shape[-1], b.shape[-2 if b.ndim > 1 else 0]
    if inner != rows:
        raise ShapeError(f"[{op}] {a.shape} @ {b.shape}: the inner sizes {inner} and {rows} differ")
    return inner


def _batched(op: str, a: Tensor, b: Tensor) -> Tensor:
    lead_a, lead_b = a.shape[:-2], b.shape[:-2]
    if lead_a != lead_b:
        lead = broadcast_shapes(op, lead_a, lead_b)
        a, b = expand(a, lead + a.shape[-2:]), expand(b, lead + b.shape[-2:])
    return product(a, b)


def operands(op: str, *values: Any) -> list[Tensor]:
    """The operands as tensors of one dtype; products do not promote, as in torch."""
    tensors = [_tensor(op, v) for v in values]
    first = tensors[0].dtype
    for t in tensors:
        if t.dtype is not first:
            raise DTypeError(
                f"[{op}] expects tensors of one dtype, got {first} and {t.dtype}; "
                f"convert one with .to({first})"
            )
    if first is dtypes.bool:
        raise DTypeError(f"[{op}] is not defined for bool tensors; convert them with .to(ut.int64)")
    return tensors


def _tensor(op: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    found = host_number(value) if is_foreign(value) else value
    if is_foreign(found):
        return wrap(found)
    if Overrider.met(value):
        raise NotDense(Overrider())
    raise DTypeError(f"[{op}] expects tensors, got {type(value).__name__}")


def _of_rank(op: str, **given: tuple[Any, int]) -> list[Tensor]:
    """Tensors of one dtype and of given ranks: `_of_rank("mv", mat=(x, 2), vec=(y, 1))`."""
    tensors = operands(op, *(value for value, _ in given.values()))
    for t, (name, (_, ndim)) in zip(tensors, given.items(), strict=True):
        if t.ndim != ndim:
            kind = {1: "a vector", 2: "a matrix", 3: "a batch of matrices"}[ndim]
            raise ShapeError(f"[{op}] {name} must be {kind}, got shape {t.shape}")
    return tensors


# Products of given rank ----------------------------------------------------------------------
@function()
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices.

    >>> import undertow as ut
    >>> ut.mm(ut.ones(2, 3), ut.ones(3, 1))
    tensor([[3.],
            [3.]])
    """
    found = of_other_kind(input, mat2)
    if found is not None:
        return found
    a, b = _of_rank("mm", input=(input, 2), mat2=(mat2, 2))
    _check_inner("mm", a, b)
    return product(a, b)


@function()
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two batches of matrices of one size.

    >>> import undertow as ut
    >>> ut.bmm(ut.ones(5, 2, 3), ut.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    a, b = _of_rank("bmm", input=(input, 3), mat2=(mat2, 3))
    _check_inner("bmm", a, b)
    if a.shape[0] != b.shape[0]:
        raise ShapeError(
            f"[bmm] {a.shape} @ {b.shape}: the batch sizes {a.shape[0]} and {b.shape[0]} differ; "
            "matmul broadcasts"
        )
    return product(a, b)


@function()
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector.

    >>> import undertow as ut
    >>> ut.mv(ut.tensor([[1.0, 2.0], [3.0, 4.0]]), ut.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    found = of_other_kind(input, vec)
    if found is not None:
        return found
    a, b = _of_rank("mv", input=(input, 2), vec=(vec, 1))
    _check_inner("mv", a, b)
    return reshaped(product(a, reshaped(b, (b.shape[0], 1))), a.shape[:1])


_dot = Op(
    "dot",
    lambda k, a, b: k.reshape(k.matmul(k.reshape(a, (1, a.size)), k.reshape(b, (b.size, 1))), ()),
    inputs="a b",
    vjp={"a": lambda g, b: g * b, "b": lambda g, a: g * a},
)


def _vectors(op: str, a: Any, b: Any, second: str) -> list[Tensor]:
    pair = _of_rank(op, input=(a, 1), **{second: (b, 1)})
    if pair[0].shape != pair[1].shape:
        raise ShapeError(f"[{op}] vectors of sizes {len(a)} and {len(b)} differ")
    return pair


@function()
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The sum of the products of two vectors' elements.

    >>> import undertow as ut
    >>> ut.dot(ut.tensor([1, 2]), ut.tensor([3, 4]))
    tensor(11)
    """
    return apply(_dot, _vectors("dot", input, tensor, "tensor"))


@function()
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """`dot`, with the first vector conjugated if it is complex.

    >>> import undertow as ut
    >>> ut.vdot(ut.tensor([1.0, 2.0]), ut.tensor([3.0, 4.0]))
    tensor(11.)
    """
    a, b = _vectors("vdot", input, other, "other")
    return apply(_dot, (a.conj() if a.is_complex() else a, b))


@function()
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sum of products over the last dimension of both; with a zero-d tensor, the product.

    >>> import undertow as ut
    >>> ut.inner(ut.ones(2, 3), ut.ones(4, 3)).shape
    (2, 4)
    """
    if not input.ndim or not other.ndim:
        return input * other
    a, b = operands("inner", input, other)
    size = a.shape[-1]
    if size != b.shape[-1]:
        raise ShapeError(
            f"[inner] the last sizes of {a.shape} and {b.shape} differ: {size} and {b.shape[-1]}"
        )
    rows, columns = a.shape[:-1], b.shape[:-1]
    if not rows and not columns:
        return apply(_dot, (a, b))
    a, b = reshaped(a, (math.prod(rows), size)), reshaped(b, (math.prod(columns), size))
    return reshaped(product(a, b, False, True), rows + columns)


@function()
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """All products of an element of one vector with an element of the other.

    >>> import undertow as ut
    >>> ut.outer(ut.tensor([1, 2]), ut.tensor([10, 20, 30]))
    tensor([[10, 20, 30],
            [20, 40, 60]])
    """
    return _outer("outer", input, vec2)


alias("outer", "ger")


def _outer(op: str, a: Tensor, b: Tensor) -> Tensor:
    for name, t in (("input", a), ("vec2", b)):
        if t.ndim != 1:
            raise ShapeError(f"[{op}] {name} must be a vector, got shape {t.shape}")
    column, row = reshaped(a, (a.numel(), 1)), reshaped(b, (1, b.numel()))
    if a._array.dtype.kind == "f" and a._array.dtype == b._array.dtype:
        return product(column, row)
    return column * row


# Sums of products ----------------------------------------------------------------------------
def _added(op: str, input: Tensor, result: Tensor, beta: Any, alpha: Any) -> Tensor:
    """`beta * input + alpha * result`, where a beta of 0 ignores even NaN in `input`."""
    if result.dtype.category < 2:
        for name, factor in (("beta", beta), ("alpha", alpha)):
            if not isinstance(factor, int):
                raise DTypeError(
                    f"[{op}] {name} must be an integer for {result.dtype} tensors, got {factor!r}"
                )
    shape = result.shape
    if input.shape != shape and broadcast_shapes(op, input.shape, shape) != shape:
        raise ShapeError(
            f"[{op}] input of shape {input.shape} does not broadcast to the product's {shape}"
        )
    if result.dtype is dtypes.bool:  # and, or
        beta, alpha = bool(beta), bool(alpha)
    if alpha != 1:
        result = result * alpha
    if beta == 0:
        if not differentiated(input):
            return result
        never = wrap(backend_of(input._array).full((), False, dtypes.bool.numpy))
        return result + where(never, input, 0)
    return result + (input if beta == 1 else input * beta)


# A product and a bias, one number per column: one launch where `addmm` would take two.
_biased_product = Op(
    "addmm",
    lambda k, a, b, c: k.matmul(a, b, c),
    inputs="a b c",
    vjp={
        "a": lambda g, b: product(g, b, False, True),
        "b": lambda g, a: product(a, g, True, False),
        "c": lambda g: sum(g, (0,)),
    },
    bare={
        "a": lambda k, g, b: k.matmul(g, k.transposed(b)),
        "b": lambda k, g, a: k.matmul(k.transposed(a), g),
        "c": lambda k, g: k.reduce("sum", g, (0,), False),
    },
)
_biased_product.factors = (_FACTORS_A[False, False], _FACTORS_B[False, False], None)


def _is_layer(a: Any, b: Any, bias: Any) -> bool:
    """Whether these are matrices that fit, and a number for each column, of one floating dtype."""
    try:
        x, y, z = a._array, b._array, bias._array
        (_, inner), (rows, columns) = x.shape, y.shape
    except (AttributeError, ValueError):
        return False
    same = x.dtype == y.dtype == z.dtype and x.dtype.kind in "fV" and x.dtype.itemsize > 1
    return same and inner == rows and z.shape == (columns,)


@function(inplace=True)
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)` for matrices.

    >>> import undertow as ut
    >>> ut.addmm(ut.ones(2), ut.ones(2, 3), ut.ones(3, 2), alpha=10)
    tensor([[31., 31.],
            [31., 31.]])
    """
    if beta == 1 == alpha and _is_layer(mat1, mat2, input):
        return apply(_biased_product, (mat1, mat2, input))
    found = of_other_kind(mat1, mat2)
    if found is not None:
        return _added("addmm", input, found, beta, alpha)
    operands("addmm", input, mat1)
    a, b = _of_rank("addmm", mat1=(mat1, 2), mat2=(mat2, 2))
    _check_inner("addmm", a, b)
    return _added("addmm", input, product(a, b), beta, alpha)


@function(inplace=True)
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """`beta * input + alpha * (mat @ vec)` for a matrix and a vector.

    >>> import undertow as ut
    >>> ut.addmv(ut.ones(2), ut.ones(2, 3), ut.ones(3))
    tensor([4., 4.])
    """
    operands("addmv", input, mat)
    a, b = _of_rank("addmv", mat=(mat, 2), vec=(vec, 1))
    _check_inner("addmv", a, b)
    return _added("addmv", input, mv(a, b), beta, alpha)


@function(inplace=True)
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """`beta * input + alpha * (batch1 @ batch2)` for batches of matrices.

    >>> import undertow as ut
    >>> ut.baddbmm(ut.ones(1), ut.ones(2, 1, 3), ut.ones(2, 3, 1))
    tensor([[[4.]],
    <BLANKLINE>
            [[4.]]])
    """
    operands("baddbmm", input, batch1)
    a, b = _of_rank("baddbmm", batch1=(batch1, 3), batch2=(batch2, 3))
    return _added("baddbmm", input, bmm(a, b), beta, alpha)


@function(inplace=True)
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """`beta * input + alpha * (batch1 @ batch2).sum(0)` for batches of matrices.

    >>> import undertow as ut
    >>> ut.addbmm(ut.ones(1), ut.ones(2, 1, 3), ut.ones(2, 3, 1))
    tensor([[7.]])
    """
    operands("addbmm", input, batch1)
    a, b = _of_rank("addbmm", batch1=(batch1, 3), batch2=(batch2, 3))
    total = bmm(a, b).sum(0, dtype=a.dtype)
    return _added("addbmm", input, total, beta, alpha)


@function(inplace=True)
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """`beta * input + alpha * outer(vec1, vec2)`.

    >>> import undertow as ut
    >>> ut.addr(ut.zeros(2, 2), ut.tensor([1.0, 2.0]), ut.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    return _added("addr", input, _outer("addr", vec1, vec2), beta, alpha)


@function(method=False)
def chain_matmul(*matrices: Tensor | Sequence[Tensor]) -> Tensor:
    """The product of several matrices, in the order that needs the fewest multiplications.

    >>> import undertow as ut
    >>> ut.chain_matmul(ut.ones(2, 3), ut.ones(3, 4), ut.ones(4, 1))
    tensor([[12.],
            [12.]])
    """
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    if not matrices:
        raise ArgumentError("[chain_matmul] needs at least one matrix")
    given = _of_rank("chain_matmul", **{f"matrix {i}": (m, 2) for i, m in enumerate(matrices)})
    for a, b in itertools.pairwise(given):
        _check_inner("chain_matmul", a, b)
    sizes = [given[0].shape[0], *(m.shape[1] for m in given)]
    n = len(given)
    cost = {(i, i): (0, i) for i in range(n)}  # of the product of i…j, and after which to split it
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j] = min(
                (cost[i, s][0] + cost[s + 1, j][0] + sizes[i] * sizes[s + 1] * sizes[j + 1], s)
                for s in range(i, j)
            )

    def multiply(i: int, j: int) -> Tensor:
        if i == j:
            return given[i]
        split = cost[i, j][1]
        return product(multiply(i, split), multiply(split + 1, j))

    return given[0].clone() if n == 1 else multiply(0, n - 1)


# Other products ------------------------------------------------------------------------------
@function()
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix.

    >>> import undertow as ut
    >>> ut.trace(ut.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    if input.ndim != 2:
        raise ShapeError(f"[trace] input must be a matrix, got shape {input.shape}")
    return input.diagonal().sum()


@function()
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: every element of `input` times all of `other`, as blocks.

    >>> import undertow as ut
    >>> ut.kron(ut.tensor([1, 10]), ut.tensor([[1, 2], [3, 4]]))
    tensor([[ 1,  2, 10, 20],
            [ 3,  4, 30, 40]])
    """
    ndim = max(input.ndim, other.ndim)
    rows = (1,) * (ndim - input.ndim) + input.shape
    columns = (1,) * (ndim - other.ndim) + other.shape
    a = reshaped(input, tuple(size for r in rows for size in (r, 1)))
    b = reshaped(other, tuple(size for c in columns for size in (1, c)))
    return reshaped(a * b, tuple(r * c for r, c in zip(rows, columns, strict=True)))


@function()
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product along a dimension of size 3, by default the first such one.

    >>> import undertow as ut
    >>> ut.cross(ut.tensor([1.0, 0.0, 0.0]), ut.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    if input.ndim != other.ndim:
        raise ShapeError(
            f"[cross] input and other must have as many dimensions, got shapes {input.shape} and "
            f"{other.shape}"
        )
    if dim is None:
        if 3 not in input.shape:
            raise ShapeError(f"[cross] no dimension of {input.shape} has size 3")
        dim = input.shape.index(3)
    dim = wrap_dim("cross", dim, input.ndim)
    if not input.ndim or input.shape[dim] != 3 or other.shape[dim] != 3:
        raise ShapeError(
            f"[cross] dimension {dim} must have size 3, got shapes {input.shape} and {other.shape}"
        )
    broadcast_shapes("cross", input.shape, other.shape)
    a, a2 = input.roll(-1, dim), input.roll(-2, dim)
    b, b2 = other.roll(-1, dim), other.roll(-2, dim)
    return a * b2 - a2 * b


_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


@function(method=False)
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | int | None = _MODES[0]
) -> Tensor:
    """The p-distances between the rows of `x1` and the rows of `x2`, batches broadcast.

    As in torch, Euclidean distances between more than 25 rows go through a matrix product, which
    is fast but loses digits for rows much closer to each other than to zero; `compute_mode` can
    forbid it. The gradient of a zero distance is zero.

    >>> import undertow as ut
    >>> ut.cdist(ut.tensor([[0.0, 0.0]]), ut.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[5., 0.]])
    """
    a, b = operands("cdist", x1, x2)
    if a.ndim < 2 or b.ndim < 2:
        raise ShapeError(f"[cdist] expects rows in matrices, got shapes {a.shape} and {b.shape}")
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            f"[cdist] the rows of {a.shape} and {b.shape} differ in size: {a.shape[-1]} and "
            f"{b.shape[-1]}"
        )
    if not a.is_floating_point():
        raise DTypeError(f"[cdist] is defined for floating tensors, got {a.dtype}")
    if p < 0:
        raise ArgumentError(f"[cdist] p cannot be negative, got {p}")
    mode = _MODES[compute_mode] if isinstance(compute_mode, int) else compute_mode or _MODES[0]
    if mode not in _MODES:
        raise ArgumentError(f"[cdist] compute_mode must be one of {_MODES}, got {compute_mode!r}")
    rows = max(a.shape[-2], b.shape[-2])
    if p == 2 and (mode == _MODES[1] or (mode == _MODES[0] and rows > 25)):
        squares = (a * a).sum(-1, True) + (b * b).sum(-1, True).transpose(-1, -2)
        lead = broadcast_shapes("cdist", a.shape[:-2], b.shape[:-2])
        a, b = expand(a, lead + a.shape[-2:]), expand(b, lead + b.shape[-2:])
        squares = squares - 2 * product(a, b, False, True)
        apart = squares > 0
        return where(apart, where(apart, squares, 1).sqrt(), 0)
    return size_of(a.unsqueeze(-2) - b.unsqueeze(-3), p)


def size_of(difference: Tensor, p: float) -> Tensor:
    """The p-norms along the last dimension, where for p = 0 too NaN makes NaN, unlike in `norm`."""
    size: Tensor = difference.norm(p, dim=-1)
    return where(difference.isnan().any(-1), math.nan, size) if p == 0 else size
