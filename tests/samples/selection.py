"""Samples for `undertow.ops.index.selection`; subscripts are in `tests/ops/test_indexing.py`."""

from __future__ import annotations

import numpy as np

from op_samples import Bad, S, arr, bools, ints, op

I = np.array  # noqa: E741


def np_index_put(x, indices, values, accumulate=False):
    out = x.copy()
    if accumulate:
        np.add.at(out, tuple(indices), values)
    else:
        out[tuple(indices)] = values
    return out


op(
    "index_put",
    np_index_put,
    [
        S(arr(3, 4), (I([0, 2]),), arr(2, 4, seed=1)),
        S(arr(3, 4), (I([0, 0, 2]),), arr(3, 4, seed=1), accumulate=True),  # duplicates add up
        S(arr(3, 4), (I([0, -1]), I([1, 1])), arr(2, seed=1)),
        S(arr(3, 4), (I([[0], [2]]), I([1, 3])), arr(2, 2, seed=1)),  # broadcast indices
        S(arr(3, 4), (I([0, 2]),), arr(seed=1)),  # a broadcast value
        S(arr(3, 4), (I([0, 2]),), arr(2, 1, seed=1), True),
        S(arr(3, 4), (I([True, False, True]),), arr(2, 4, seed=1)),
        S(arr(3, 4), (bools(3, 4),), arr(seed=1)),
        S(arr(4, 3).T, (I([0, 2]),), arr(2, 4, seed=1)),
        S(arr(3, 4), (np.zeros(0, np.int64),), arr(0, 4, seed=1)),
        S(ints(5), (I([1, 1]),), ints(2, seed=1), True),
    ],
    bad=[
        Bad(S(arr(3), (I([3]),), arr()), IndexError, r"\[index_put\] index 3 .* dimension 0 .*3"),
        Bad(S(arr(3), (I([0]),), ints(1)), TypeError, r"float64 and .*int64"),
        Bad(S(arr(3, 4), (I([0]),), arr(3)), ValueError, r"\(3,\) .* \(1, 4\)"),
        Bad(S(arr(3), (I([0]), I([0])), arr()), IndexError, r"too many indices"),
        Bad(S(arr(3), (I([True, False]),), arr()), IndexError, r"\(2,\).*\(3,\)"),
    ],
)
op(
    "take",
    lambda x, index: np.take(x, index),
    [
        S(arr(3, 4), I([0, 5, 5])),
        S(arr(3, 4), I([[0, -1], [3, 3]])),
        S(arr(3, 4), I(2)),
        S(arr(4, 3).T, I([1, 2])),
        S(arr(), I([0])),
        S(ints(4), I([1])),
        S(arr(3), np.zeros(0, int)),
        S(arr(3, 4), I([1, 2], np.int32)),
    ],
    bad=[
        Bad(S(arr(3, 4), I([12])), IndexError, r"\[take\] index 12 .* size 12"),
        Bad(S(arr(3), arr(2)), TypeError, r"\[take\] index must be int64 or int32, got .*float64"),
        Bad(S(arr(0), I([0])), IndexError, r"nothing to index"),
    ],
    torch=lambda x, index: __import__("torch").take(x, index.long()),
)


def np_put(x, index, source, accumulate=False):
    out = x.copy()
    flat = out.reshape(-1)
    if accumulate:
        np.add.at(flat, index.reshape(-1), source.reshape(-1))
    else:
        flat[index.reshape(-1)] = source.reshape(-1)
    return out


op(
    "put",
    np_put,
    [
        S(arr(3, 4), I([0, 5]), arr(2, seed=1)),
        S(arr(3, 4), I([[0, -1], [2, 3]]), arr(4, seed=1)),
        S(arr(3, 4), I([0, 0, 5]), arr(3, seed=1), accumulate=True),
        S(arr(), I([0]), arr(1, seed=1)),
        S(np.ascontiguousarray(arr(4, 3)).T.copy(order="C"), I([1, 2]), arr(2, seed=1)),
        S(ints(4), I([1]), ints(1)),
        S(arr(3), np.zeros(0, int), arr(0)),
    ],
    bad=[
        Bad(S(arr(3), I([0, 1]), arr(3)), IndexError, r"\[put\].*2 and 3"),
        Bad(S(arr(3), I([3]), arr(1)), IndexError, r"\[put\] index 3"),
        Bad(S(arr(3), I([0]), ints(1)), TypeError, r"\[put\].*float64 and .*int64"),
    ],
)

MASK = I([[True, False, True, False], [False, False, True, True], [True, True, False, False]])
op(
    "masked_fill",
    lambda x, mask, value: np.where(mask, value, x).astype(x.dtype),
    [
        S(arr(3, 4), MASK, 2.5),
        S(arr(3, 4), MASK[0], arr()),
        S(arr(4), MASK, 1),
        S(arr(), I(True), 3),
        S(arr(0, 4), MASK[0], 1.0),
        S(arr(4, 3).T, MASK, -1),
        S(ints(3, 4), MASK, 7),
        S(bools(3, 4), MASK, True),
    ],
    bad=[
        Bad(S(arr(3), ints(3), 1), TypeError, r"\[masked_fill\] mask must be a bool .*int64"),
        Bad(S(arr(3), I([True, False]), 1), ValueError, r"\(3,\) and \(2,\)"),
        Bad(S(arr(2), I([True, False]), arr(2)), ValueError, r"zero-dimensional.*\(2,\)"),
        Bad(S(ints(2), I([True, False]), float("nan")), ValueError, r"nan .*int64"),
        Bad(S(arr(2), I([True, False]), 1j), TypeError, r"complex"),
    ],
)
op(
    "masked_select",
    lambda x, mask: np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape))[
        np.broadcast_to(mask, np.broadcast_shapes(x.shape, mask.shape))
    ].reshape(-1),
    [
        S(arr(3, 4), MASK),
        S(arr(3, 4), MASK[1]),
        S(arr(4), MASK),
        S(arr(), I(True)),
        S(arr(), I(False)),
        S(arr(4, 3).T, MASK),
        S(arr(0, 4), MASK[0]),
        S(ints(3, 4), MASK),
    ],
    bad=[
        Bad(S(arr(3), ints(3)), TypeError, r"mask must be a bool"),
        Bad(S(arr(3), I([True, False])), ValueError, r"\(3,\) and \(2,\)"),
    ],
)


def np_masked_scatter(x, mask, source):
    shape = np.broadcast_shapes(x.shape, mask.shape)
    out = np.array(np.broadcast_to(x, shape))
    mask = np.broadcast_to(mask, shape)
    out[mask] = source.reshape(-1)[: mask.sum()]
    return out


op(
    "masked_scatter",
    np_masked_scatter,
    [
        S(arr(3, 4), MASK, arr(6, seed=1)),
        S(arr(3, 4), MASK, arr(2, 5, seed=1)),
        S(arr(3, 4), MASK[0], arr(7, seed=1)),
        S(arr(4), MASK, arr(6, seed=1)),
        S(arr(), I(True), arr(1, seed=1)),
        S(arr(4, 3).T, MASK, arr(3, 2, seed=1).T),
    ],
    bad=[
        Bad(S(arr(3, 4), MASK, arr(5)), ValueError, r"5 elements for 6"),
        Bad(S(arr(3, 4), MASK, ints(9)), TypeError, r"float64 and .*int64"),
    ],
)
op(
    "nonzero",
    lambda x, as_tuple=False: np.argwhere(x) if not as_tuple else list(np.nonzero(x)),
    [
        S(MASK),
        S(ints(3, 4, low=-1, high=2)),
        S(arr(3)),
        S(arr(0, 3)),
        S(MASK, as_tuple=True),
        S(arr(3), as_tuple=True),
    ],
    grad=False,
)
op(
    "argwhere",
    np.argwhere,
    [S(MASK), S(ints(3, 4, low=-1, high=2)), S(arr()), S(arr(0, 3))],
    grad=False,
)


def np_repeat(x, repeats=None, dim=None, output_size=None):
    if repeats is None:
        return np.repeat(np.arange(len(x)), x)
    return np.repeat(x, repeats, axis=dim)


op(
    "repeat_interleave",
    np_repeat,
    [
        S(arr(3, 4), 2),
        S(arr(3, 4), 2, dim=1),
        S(arr(3, 4), 3, -2),
        S(arr(3), 0),
        S(arr(3, 4), I([1, 0, 2]), dim=0),
        S(arr(3, 4), I([2]), dim=1),
        S(arr(), 3),
        S(arr(3), I([1, 0, 2]), output_size=3),
        S(I([1, 0, 2])),
        S(arr(4, 3).T, 2, dim=0),
        S(arr(0, 2), 2, dim=0),
        S(arr(3, 2), 2, dim=0, output_size=6),
        S(arr(1, 3), 3, dim=0),
        S(arr(3, 4), 1, dim=1),
    ],
    bad=[
        Bad(S(arr(3), -1), ValueError, r"negative, got -1"),
        Bad(S(arr(3), I([1, -2, 0])), ValueError, r"negative, got -2"),
        Bad(S(arr(3), I([1, 2])), ValueError, r"3 elements.*\(2,\)"),
        Bad(S(arr(3), 2, output_size=5), ValueError, r"output_size is 5.* 6"),
        Bad(S(arr(3), 1.5), TypeError, r"integer, got float"),
    ],
)
