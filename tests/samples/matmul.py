"""Samples for `undertow.ops.linalg.matmul`."""

from __future__ import annotations

import functools
import math

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, bools, ints, op, singular

SHAPE = ut.errors.ShapeError
DTYPE = ut.errors.DTypeError


def pairs(*shapes):
    """Samples of two arrays of the given shapes."""
    return [S(arr(*a), arr(*b, seed=1)) for a, b in shapes]


op(
    "matmul",
    np.matmul,
    [
        *pairs(
            ((3, 4), (4, 5)),
            ((4,), (4,)),
            ((3, 4), (4,)),
            ((4,), (4, 2)),
            ((2, 3, 4), (4,)),
            ((4,), (2, 4, 3)),
            ((2, 3, 4), (4, 5)),
            ((3, 4), (2, 4, 5)),
            ((2, 1, 3, 4), (5, 4, 2)),
            ((2, 3, 4), (2, 4, 2)),
            ((1, 1), (1, 1)),
            ((0, 3), (3, 2)),
            ((2, 0), (0, 3)),
            ((0, 2, 3), (3, 4)),
            ((0, 2, 3), (3,)),
            ((2, 0, 3), (2, 3, 4)),
            ((0,), (0,)),
            ((2, 2, 0), (0,)),
            ((2, 1, 3, 2), (1, 2, 2, 3)),
        ),
        S(arr(4, 3).T, arr(5, 4, seed=1).T),
        S(arr(3, 8)[:, ::2], arr(4, 2, seed=1)),
        S(arr(2, 4, 3).transpose(0, 2, 1), arr(2, 4, 2, seed=1)),
        S(ints(3, 4), ints(4, 2)),
        S(ints(2, 3, 4), ints(4, 2)),
        S(ints(4), ints(4, seed=1)),
    ],
    bad=[
        Bad(
            S(arr(3, 4), arr(5, 6)),
            SHAPE,
            r"\[matmul\] \(3, 4\) @ \(5, 6\): the inner sizes 4 and 5 differ",
        ),
        Bad(S(arr(4), arr(3)), SHAPE, r"inner sizes 4 and 3"),
        Bad(S(arr(2, 3, 4), arr(3, 4, 5)), SHAPE, r"\[matmul\] shapes \(2,\) and \(3,\)"),
        Bad(S(arr(), arr(3)), SHAPE, r"at least one dimension"),
        Bad(S(arr(3, 4), 2.0), DTYPE, r"expects tensors, got float"),
        Bad(S(bools(2, 2), bools(2, 2)), DTYPE, r"bool"),
        Bad(S(arr(2, 2), ints(2, 2)), DTYPE, r"float64 and .*int64"),
    ],
)

INNER = r"the inner sizes 4 and 3 differ"
op(
    "mm",
    np.matmul,
    [
        *pairs(((3, 4), (4, 5)), ((0, 4), (4, 2)), ((2, 0), (0, 2))),
        S(arr(4, 3).T, arr(4, 2, seed=1)),
        S(ints(2, 3), ints(3, 2)),
    ],
    bad=[
        Bad(S(arr(3, 4), arr(3, 4)), SHAPE, r"\[mm\].*" + INNER),
        Bad(S(arr(3, 4), arr(4)), SHAPE, r"\[mm\] mat2 must be a matrix, got shape \(4,\)"),
        Bad(S(bools(2, 2), bools(2, 2)), DTYPE, r"\[mm\].*bool"),
    ],
)
op(
    "bmm",
    np.matmul,
    [
        *pairs(((2, 3, 4), (2, 4, 5)), ((0, 3, 4), (0, 4, 5)), ((2, 3, 0), (2, 0, 5))),
        S(arr(2, 4, 3).transpose(0, 2, 1), arr(2, 4, 3, seed=1)),
    ],
    bad=[
        Bad(S(arr(2, 3, 4), arr(3, 4, 5)), SHAPE, r"\[bmm\].*batch sizes 2 and 3"),
        Bad(S(arr(2, 3, 4), arr(2, 3, 4)), SHAPE, INNER),
        Bad(S(arr(3, 4), arr(4, 5)), SHAPE, r"input must be a batch"),
    ],
)
op(
    "mv",
    np.matmul,
    [*pairs(((3, 4), (4,)), ((0, 4), (4,)), ((3, 0), (0,))), S(arr(4, 3).T, arr(8, seed=1)[::2])],
    bad=[
        Bad(S(arr(3, 4), arr(3)), SHAPE, r"\[mv\].*" + INNER),
        Bad(S(arr(3, 4), arr(4, 1)), SHAPE, r"vec must be a vector"),
    ],
)
for name in ("dot", "vdot"):
    op(
        name,
        getattr(np, name),
        [
            *pairs(((4,), (4,)), ((0,), (0,)), ((1,), (1,))),
            S(arr(8)[::2], arr(4, seed=1)),
            S(ints(3), ints(3)),
        ],
        bad=[
            Bad(S(arr(3), arr(4)), SHAPE, rf"\[{name}\].*3 and 4"),
            Bad(S(arr(3, 1), arr(3)), SHAPE, r"must be a vector"),
            Bad(S(arr(3), ints(3)), DTYPE, r"float64 and .*int64"),
        ],
    )
op(
    "inner",
    np.inner,
    [
        *pairs(
            ((4,), (4,)),
            ((2, 4), (3, 4)),
            ((2, 3, 4), (4,)),
            ((), (2, 3)),
            ((3,), ()),
            ((2, 0), (3, 0)),
            ((4,), (2, 3, 4)),
        )
    ],
    bad=[Bad(S(arr(2, 3), arr(2, 4)), SHAPE, r"\[inner\].*3 and 4")],
)
for name in ("outer", "ger"):
    op(
        name,
        np.outer,
        [
            *pairs(((3,), (4,)), ((0,), (3,)), ((1,), (1,))),
            S(ints(3), arr(2)),
            S(arr(6)[::2], arr(4)),
            S(ints(3), ints(2)),
        ],
        bad=[Bad(S(arr(2, 2), arr(2)), SHAPE, r"\[outer\] input must be a vector")],
    )


def added(multiply):
    """The reference of a sum with a product."""

    def run(x, a, b, beta=1, alpha=1):
        return (beta * x if beta else 0) + alpha * multiply(a, b)

    return run


def triples(shape, others, a, b):
    """Samples of a sum with a product: the full shape, broadcasts, beta and alpha."""
    x, y = arr(*a, seed=1), arr(*b, seed=2)
    return [
        S(arr(*shape), x, y),
        S(arr(*shape), x, y, beta=0.5, alpha=-2),
        S(arr(*shape), x, y, beta=0),
        *(S(arr(*other), x, y, beta=2) for other in others),
        S(arr(*shape), x, y, alpha=0),
        S(Const(np.full(shape, np.nan)), x, y, beta=0),
        S(ints(*shape), ints(*a), ints(*b), beta=2, alpha=3),
    ]


def triple_bad(shape, wrong, a, b):
    return [
        Bad(S(arr(*wrong), arr(*a), arr(*b)), SHAPE, r"broadcast"),
        Bad(S(ints(*shape), ints(*a), ints(*b), alpha=0.5), DTYPE, r"alpha must be an integer"),
    ]


op(
    "addmm",
    added(np.matmul),
    [
        *triples((3, 5), [(5,), (3, 1), ()], (3, 4), (4, 5)),
        *(S(arr(5), arr(*a), arr(*b)) for a, b in (((3, 4), (4, 5)), ((1, 4), (4, 5)))),
        *(S(arr(5), arr(*a), arr(*b)) for a, b in (((3, 0), (0, 5)), ((0, 4), (4, 5)))),
        S(arr(0), arr(3, 4), arr(4, 0)),
    ],
    bad=[
        *triple_bad((3, 5), (4, 5), (3, 4), (4, 5)),
        Bad(S(arr(3, 3), arr(3, 4), arr(3, 4)), SHAPE, r"\[addmm\].*" + INNER),
        Bad(S(ints(3, 3), arr(3, 4), arr(4, 3)), DTYPE, r"int64 and .*float64"),
    ],
)
op(
    "addmv",
    added(np.matmul),
    triples((3,), [(1,), ()], (3, 4), (4,)),
    bad=[
        *triple_bad((3,), (2,), (3, 4), (4,)),
        Bad(S(arr(3), arr(3, 4), arr(3)), SHAPE, r"\[addmv\].*" + INNER),
    ],
)
op(
    "baddbmm",
    added(np.matmul),
    triples((2, 3, 5), [(5,), (2, 1, 1), ()], (2, 3, 4), (2, 4, 5)),
    bad=triple_bad((2, 3, 5), (3, 3, 5), (2, 3, 4), (2, 4, 5)),
)
op(
    "addbmm",
    added(lambda a, b: np.matmul(a, b).sum(0)),
    triples((3, 5), [(5,), (3, 1)], (2, 3, 4), (2, 4, 5)),
    bad=triple_bad((3, 5), (4, 5), (2, 3, 4), (2, 4, 5)),
)
op(
    "addr",
    added(np.outer),
    [*triples((3, 4), [(4,), (3, 1), ()], (3,), (4,)), S(ints(3, 4), ints(3), Const(arr(4)))],
    bad=triple_bad((3, 4), (4, 4), (3,), (4,)),
)
op(
    "chain_matmul",
    lambda *m: functools.reduce(np.matmul, m),
    [
        S(arr(2, 3)),
        S(arr(2, 3), arr(3, 4, seed=1)),
        S(arr(2, 3), arr(3, 4, seed=1), arr(4, 1, seed=2), arr(1, 5, seed=3)),
    ],
    bad=[
        Bad(S(arr(2, 4), arr(3, 4)), SHAPE, r"\[chain_matmul\].*" + INNER),
        Bad(S(), ut.errors.ArgumentError, r"at least one"),
        Bad(S(arr(3)), SHAPE, r"matrix 0 must be a matrix"),
    ],
)
op(
    "trace",
    np.trace,
    [S(arr(3, 3)), S(arr(2, 4)), S(arr(4, 2).T), S(arr(0, 3)), S(ints(3, 3))],
    bad=[Bad(S(arr(3)), SHAPE, r"\[trace\].*\(3,\)")],
)
op(
    "kron",
    np.kron,
    [
        *pairs(
            ((2,), (3,)),
            ((2, 3), (2, 2)),
            ((2,), (2, 3)),
            ((2, 3), (2,)),
            ((), (3,)),
            ((0, 2), (2, 2)),
        ),
        S(ints(2), arr(3)),
        S(arr(3, 2).T, arr(2, 2)),
    ],
    torch=lambda a, b: __import__("torch").kron(a.contiguous(), b),
)


def np_cross(a, b, dim=None):
    if dim is None:
        dim = a.shape.index(3)
    return np.cross(a, b, axis=dim)


op(
    "cross",
    np_cross,
    [
        *pairs(((3,), (3,)), ((2, 3), (2, 3)), ((3, 2), (3, 2)), ((2, 3, 3), (2, 3, 3))),
        S(arr(2, 3), arr(1, 3), dim=-1),
        S(arr(3, 4), arr(3, 4, seed=1), dim=0),
        S(ints(3), ints(3)),
        S(arr(0, 3), arr(0, 3), dim=1),
        S(arr(3, 3), arr(3, 3, seed=1), 1),
    ],
    bad=[
        Bad(S(arr(2, 4), arr(2, 4)), SHAPE, r"no dimension of \(2, 4\) has size 3"),
        Bad(S(arr(2, 3), arr(2, 3), dim=0), SHAPE, r"dimension 0 must have size 3"),
        Bad(S(arr(2, 3), arr(3)), SHAPE, r"\(2, 3\) and \(3,\)"),
        Bad(S(arr(2, 3), arr(4, 3), dim=1), SHAPE, r"broadcast"),
    ],
)


def np_cdist(a, b, p=2.0, compute_mode=None):
    d = np.abs(a[..., :, None, :] - b[..., None, :, :])
    if p == 0:
        return (d != 0).sum(-1).astype(float)
    if math.isinf(p):
        return d.max(-1) if d.shape[-1] else d.sum(-1)
    return (d**p).sum(-1) ** (1 / p)


op(
    "cdist",
    np_cdist,
    [
        *pairs(
            ((3, 2), (4, 2)),
            ((2, 3, 2), (2, 4, 2)),
            ((2, 1, 3, 2), (5, 4, 2)),
            ((0, 2), (3, 2)),
            ((3, 1), (2, 1)),
            ((3, 2), (2, 4, 2)),
        ),
        *(S(arr(3, 2), arr(4, 2, seed=1), p=p) for p in (0.5, 1.0, 1.5, 2.0, 3.0, math.inf)),
        S(arr(30, 2), arr(3, 2, seed=1)),  # by a matrix product
        S(arr(3, 2), arr(4, 2, seed=1), compute_mode="use_mm_for_euclid_dist"),
        S(arr(30, 2), arr(3, 2, seed=1), compute_mode="donot_use_mm_for_euclid_dist"),
    ],
    torch_gradgrad=False,
    rtol=1e-6,
    bad=[
        Bad(S(arr(3, 2), arr(4, 3)), SHAPE, r"\[cdist\].*2 and 3"),
        Bad(S(arr(3), arr(4, 3)), SHAPE, r"matrices.*\(3,\)"),
        Bad(S(arr(3, 2), arr(4, 2), p=-1), ut.errors.ArgumentError, r"negative, got -1"),
        Bad(S(arr(3, 2), arr(4, 2), compute_mode="fast"), ut.errors.ArgumentError, r"'fast'"),
        Bad(S(ints(3, 2), ints(4, 2)), DTYPE, r"floating"),
    ],
)

# Points that are one ---------------------------------------------------------------------------
for _p in (1.0, 2.0, 3.0):
    singular("cdist", S(np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[1.0, 2.0]]), p=_p))
