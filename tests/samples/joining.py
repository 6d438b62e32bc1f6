"""Samples for `undertow.ops.shape.joining`."""

from __future__ import annotations

import itertools

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, bools, ints, op

ArgumentError, DimError, DTypeError, ShapeError = (
    ut.errors.ArgumentError,
    ut.errors.DimError,
    ut.errors.DTypeError,
    ut.errors.ShapeError,
)


def np_cat(tensors, dim=0):
    """NumPy's concatenate; a vector of no elements joins with anything."""
    full = [t for t in tensors if t.shape != (0,)] or list(tensors)
    return np.concatenate(full, dim)


for _name in ("cat", "concat", "concatenate"):
    op(
        _name,
        np_cat,
        [
            S([arr(2, 3), arr(1, 3, seed=1)]),
            S([arr(2, 3), arr(2, 1, seed=1)], 1),
            S((arr(3),)),
            S([arr(2, 3), arr(2, 2, seed=1)], dim=-1),
            S([arr(0), arr(2, 3)], 1),
            S([arr(0), arr(0)]),
            S([arr(0, 3), arr(2, 3)]),
            S([ints(2), arr(2)]),
            S([bools(2), ints(2)]),
            S([arr(3, 2).T, arr(2, 3)]),
            S([arr(2)] * 3),
        ],
        bad=[
            Bad(S([arr(2, 3), arr(2, 2)]), ShapeError, rf"\[{_name}\].*\(2, 3\) and \(2, 2\)"),
            Bad(S([arr(2, 3), arr(2)]), ShapeError, rf"\[{_name}\].*\(2, 3\) and \(2,\)"),
            Bad(S([]), ArgumentError, rf"\[{_name}\].*empty list"),
            Bad(S([arr()]), DimError, rf"\[{_name}\].*at least 1 dimension"),
            Bad(S(arr(2)), DTypeError, rf"\[{_name}\].*one Tensor"),
            Bad(S([arr(2), 3.0]), DTypeError, rf"\[{_name}\].*float"),
            Bad(S([arr(2)], 1), DimError, rf"\[{_name}\] dim 1"),
        ],
    )
op(
    "stack",
    lambda tensors, dim=0: np.stack(tensors, dim),
    [
        S([arr(2, 3), arr(2, 3, seed=1)]),
        S([arr(2, 3), arr(2, 3, seed=1)], 1),
        S([arr()] * 2),
        S([arr(2, 3), arr(2, 3, seed=1)], dim=-1),
        S([arr(0)] * 2),
        S([ints(2), arr(2)]),
        S([arr(3, 2).T, arr(2, 3)], 2),
    ],
    bad=[
        Bad(S([arr(2), arr(3)]), ShapeError, r"\[stack\].*\(2,\) and \(3,\)"),
        Bad(S([arr(2)], 2), DimError, r"\[stack\] dim 2"),
        Bad(S([]), ArgumentError, r"\[stack\].*empty"),
    ],
)

STACKS = [
    S([arr(2), arr(2, seed=1)]),
    S([arr(2, 2), arr(2, 2, seed=1)]),
    S([arr(), arr(seed=1)]),
    S([arr(2, 2, 2), arr(2, 2, 2, seed=1)]),
    S([ints(2), arr(2)]),
]
op(
    "hstack",
    np.hstack,
    [*STACKS, S([arr(), arr(2)]), S([arr(2, 1), arr(2, 3)])],
    bad=[Bad(S([arr(2, 2), arr(3, 2)]), ShapeError, r"\[hstack\]")],
)
op(
    "vstack",
    np.vstack,
    [*STACKS, S([arr(2), arr(3, 2)])],
    bad=[Bad(S([arr(2), arr(3)]), ShapeError, r"\[vstack\]")],
)
op("row_stack", np.vstack, STACKS, bad=[Bad(S([arr(2), arr(3)]), ShapeError, r"\[row_stack\]")])
op("dstack", np.dstack, STACKS, bad=[Bad(S([arr(2), arr(3)]), ShapeError, r"\[dstack\]")])
op(
    "column_stack",
    np.column_stack,
    [*STACKS[:3], S([arr(2), arr(2, 3)])],
    bad=[Bad(S([arr(2), arr(3)]), ShapeError, r"\[column_stack\]")],
)


def np_block_diag(*blocks):
    """Written block by block."""
    if not blocks:
        return np.zeros((1, 0))
    blocks = [np.atleast_2d(b) for b in blocks]
    out = np.zeros(np.sum([b.shape for b in blocks], 0), np.result_type(*blocks))
    r = c = 0
    for b in blocks:
        out[r : r + b.shape[0], c : c + b.shape[1]] = b
        r, c = r + b.shape[0], c + b.shape[1]
    return out


def torch_block_diag(*blocks):
    """torch's; its gradient of what comes after an empty block belongs to other rows, so pad."""
    import torch

    if all(b.numel() for b in blocks):
        return torch.block_diag(*blocks)
    blocks = [torch.atleast_2d(b) for b in blocks]
    width = sum(b.shape[1] for b in blocks)
    starts = np.cumsum([0, *(b.shape[1] for b in blocks)])
    pad = torch.nn.functional.pad
    return torch.cat(
        [
            pad(b, (int(s), width - int(s) - b.shape[1]))
            for b, s in zip(blocks, starts, strict=False)
        ]
    )


op(
    "block_diag",
    np_block_diag,
    [
        S(arr(2, 3), arr(1, 2, seed=1)),
        S(arr(), arr(2), arr(2, 1)),
        S(arr(0), arr(2)),
        S(arr(2, 2)),
        S(ints(2), arr(1)),
        S(),
    ],
    torch=torch_block_diag,
    bad=[Bad(S(arr(1, 1, 1)), DimError, r"\[block_diag\].*got 3")],
)
op(
    "meshgrid",
    lambda *t, indexing="ij": np.meshgrid(
        *(t[0] if isinstance(t[0], list) else t), indexing=indexing
    ),
    [
        S(arr(2), arr(3), indexing="ij"),
        S(arr(2), arr(3), arr(4), indexing="xy"),
        S([arr(2), arr(3)]),
        S(arr(), arr(2), indexing="ij"),
        S(arr(2), indexing="xy"),
        S(arr(0), arr(2), indexing="xy"),
    ],
    torch=lambda *t, indexing="ij": __import__("torch").meshgrid(*t, indexing=indexing),
    bad=[
        Bad(S(arr(2, 2)), ArgumentError, r"\[meshgrid\].*\(2, 2\)"),
        Bad(S(arr(2), ints(2)), ArgumentError, r"\[meshgrid\].*int64"),
        Bad(S(arr(2), indexing="zz"), ArgumentError, r"\[meshgrid\].*'zz'"),
        Bad(S(), ArgumentError, r"\[meshgrid\].*at least one"),
    ],
)
op(
    "cartesian_prod",
    lambda *t: np.array(list(itertools.product(*t))) if len(t) > 1 else t[0],
    [S(arr(2), arr(3)), S(arr(2), arr(2, seed=1), arr(3)), S(arr(2))],
    bad=[Bad(S(arr(2, 2)), ShapeError, r"\[cartesian_prod\].*\(2, 2\)")],
)


def np_combinations(x, r=2, with_replacement=False):
    """By itertools."""
    if r == 0:
        return np.zeros(0, x.dtype)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(choose(x, r)), x.dtype).reshape(-1, r)


op(
    "combinations",
    np_combinations,
    [
        S(arr(4)),
        S(arr(4), 3),
        S(arr(2), 3),
        S(arr(3), 0),
        S(arr(3), 2, True),
        S(ints(3), r=1),
        S(arr(2), 3, True),
        S(arr(0)),
    ],
    bad=[
        Bad(S(arr(2, 2)), ArgumentError, r"\[combinations\].*\(2, 2\)"),
        Bad(S(arr(2), -1), ArgumentError, r"\[combinations\].*r -1"),
    ],
)


def np_at_least(function):
    """NumPy's function on arrays given as `a, b` or as `[a, b]`."""
    return lambda *t: function(*(t[0] if isinstance(t[0], list) else t))


LEAST = [S(arr()), S(arr(2)), S(arr(2, 3)), S(arr(2, 3, 4)), S(arr(), arr(2)), S([arr(), arr(2)])]
for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    op(
        _name,
        np_at_least(getattr(np, _name)),
        LEAST,
        bad=[Bad(S(3.0), DTypeError, rf"\[{_name}\].*float")],
    )
op(
    "broadcast_tensors",
    lambda *t: np.broadcast_arrays(*t),
    [S(arr(2, 1), arr(3)), S(arr(), arr(2)), S(arr(2), arr(2, seed=1)), S(arr(0, 1), arr(3))],
    bad=[Bad(S(arr(2), arr(3)), ShapeError, r"\[broadcast_tensors\].*\(2,\) and \(3,\)")],
)
op(
    "broadcast_shapes",
    lambda *s: list(np.broadcast_shapes(*s)),
    [S((2, 1), (3,)), S((3,), (1,)), S(()), S((0, 1), (1, 4))],
    grad=False,
    torch=lambda *s: list(__import__("torch").broadcast_shapes(*s)),
    bad=[Bad(S((2,), (3,)), ShapeError, r"\[broadcast_shapes\].*\(2,\) and \(3,\)")],
)


# Splitting -------------------------------------------------------------------------------------
def np_split(x, where, dim=0):
    """Parts of one size, or of the sizes listed."""
    n = x.shape[dim]
    if isinstance(where, int):
        edges = list(range(where, n, where)) if where else []
    else:
        edges = list(np.cumsum(where)[:-1])
    return np.split(x, edges, dim)


op(
    "split",
    np_split,
    [
        S(arr(5), 2),
        S(arr(5), 5),
        S(arr(5), 9),
        S(arr(2, 4), 2, 1),
        S(arr(2, 4), [1, 3], -1),
        S(arr(0, 3), 2),
        S(arr(0, 3), 0),
        S(arr(4, 2).T, 1),
        S(arr(5), (0, 5)),
    ],
    bad=[
        Bad(S(arr(5), 0), ArgumentError, r"\[split\].*got 0"),
        Bad(S(arr(5), -1), ArgumentError, r"\[split\].*got -1"),
        Bad(S(arr(5), [2, 2]), ArgumentError, r"\[split\].*\[2, 2\].*5"),
        Bad(S(arr(), 1), DimError, r"\[split\]"),
        Bad(S(arr(5), 2, 1), DimError, r"\[split\] dim 1"),
    ],
)
op(
    "split_with_sizes",
    np_split,
    [S(arr(5), [2, 3]), S(arr(2, 4), [1, 0, 3], 1)],
    bad=[Bad(S(arr(5), [-1, 6]), ArgumentError, r"\[split_with_sizes\].*\[-1, 6\]")],
)
op(
    "chunk",
    lambda x, chunks, dim=0: (
        np_split(x, -(-x.shape[dim] // chunks), dim) if x.shape[dim] else [x] * chunks
    ),
    [S(arr(5), 2), S(arr(5), 4), S(arr(5), 9), S(arr(2, 4), 2, -1), S(arr(0, 3), 3), S(arr(5), 1)],
    bad=[
        Bad(S(arr(5), 0), ArgumentError, r"\[chunk\].*got 0"),
        Bad(S(arr(), 1), DimError, r"\[chunk\]"),
    ],
)
op(
    "unbind",
    lambda x, dim=0: list(np.moveaxis(x, dim, 0)),
    [S(arr(3)), S(arr(2, 3)), S(arr(2, 3), 1), S(arr(3, 2).T, -1), S(arr(0, 2))],
    bad=[Bad(S(arr()), DimError, r"\[unbind\]"), Bad(S(arr(2), 1), DimError, r"\[unbind\] dim 1")],
)


def np_tensor_split(x, where, dim=0):
    """NumPy's array_split; indices may be an array."""
    if isinstance(where, np.ndarray):
        where = where.tolist()
    return np.array_split(x, where, dim)


op(
    "tensor_split",
    np_tensor_split,
    [
        S(arr(7), 3),
        S(arr(7), (1, 3)),
        S(arr(7), (5, 2, -1)),
        S(arr(2, 5), 2, 1),
        S(arr(2), 3),
        S(arr(7), np.array([1, 3])),
        S(arr(7), np.array(3)),
        S(arr(7), ()),
    ],
    bad=[
        Bad(S(arr(7), 0), ArgumentError, r"\[tensor_split\].*got 0"),
        Bad(S(arr(), 1), DimError, r"\[tensor_split\]"),
        Bad(S(arr(3), 1, 1), DimError, r"\[tensor_split\] dim 1"),
    ],
)
op(
    "hsplit",
    lambda x, where: np.split(x, where, 0 if x.ndim == 1 else 1),
    [S(arr(6), 3), S(arr(2, 6), 3), S(arr(2, 6), (1, 3))],
    bad=[
        Bad(S(arr(2, 6), 4), ArgumentError, r"\[hsplit\].*size 6.*4 equal"),
        Bad(S(arr(), 1), DimError, r"\[hsplit\].*got 0"),
    ],
)
op(
    "vsplit",
    lambda x, where: np.split(x, where, 0),
    [S(arr(6, 2), 3), S(arr(6, 2), (1, 3))],
    bad=[
        Bad(S(arr(6), 2), DimError, r"\[vsplit\].*at least 2.*got 1"),
        Bad(S(arr(3, 2), 2), ArgumentError, r"\[vsplit\].*size 3.*2 equal"),
    ],
)
op(
    "dsplit",
    lambda x, where: np.split(x, where, 2),
    [S(arr(1, 2, 4), 2), S(arr(1, 2, 4), (1,))],
    bad=[
        Bad(S(arr(6, 2), 2), DimError, r"\[dsplit\].*at least 3.*got 2"),
        Bad(S(arr(1, 1, 3), 2), ArgumentError, r"\[dsplit\]"),
    ],
)
