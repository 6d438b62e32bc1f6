"""Samples for `undertow.ops.linalg.einsum`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, ints, op

SHAPE = ut.errors.ShapeError
ARGUMENT = ut.errors.ArgumentError


def np_einsum(*args):
    """NumPy's einsum, with torch's broadcasting of size 1 and operands in a list."""
    if isinstance(args[0], str) and len(args) == 2 and isinstance(args[1], (list, tuple)):
        args = (args[0], *args[1])
    if isinstance(args[0], str) and args[0] == "i...->":  # NumPy does not sum an ellipsis
        return args[1].sum()
    return np.einsum(*args)


def np_broadcast(equation, *operands):
    """For NumPy: dimensions of size 1 written out."""
    terms = equation.split("->")[0].split(",")
    sizes = {}
    for term, x in zip(terms, operands, strict=True):
        for c, n in zip(term, x.shape, strict=True):
            sizes[c] = n if sizes.get(c, 1) == 1 else sizes[c]
    pairs = zip(terms, operands, strict=True)
    return np.einsum(equation, *(np.broadcast_to(x, [sizes[c] for c in t]) for t, x in pairs))


def reference(*args):
    plain = isinstance(args[0], str) and not set(args[0]) & {".", " "}
    if plain and all(isinstance(x, np.ndarray) for x in args[1:]):
        return np_broadcast(*args)
    return np_einsum(*args)


a, b, c = arr(3, 4), arr(4, 5, seed=1), arr(5, 2, seed=2)
op(
    "einsum",
    reference,
    [
        S("ij,jk->ik", a, b),
        S("ij,jk", a, b),
        S("ij,jk->ki", a, b),
        S("i j , j k -> i k", a, b),
        S("ij->ji", a),
        S("ba", a),
        S("ij->", a),
        S("ij->j", a),
        S("ii", arr(3, 3)),
        S("ii->i", arr(3, 3)),
        S("iij->ij", arr(3, 3, 2)),
        S("iji->j", arr(3, 2, 3)),
        S("iii->i", arr(2, 2, 2)),
        S("i,i", arr(3), arr(3, seed=1)),
        S("i,j->ij", arr(3), arr(2, seed=1)),
        S("i,j->ji", arr(3), arr(2, seed=1)),
        S("ij,ij->ij", a, arr(3, 4, seed=1)),
        S("bij,bjk->bik", arr(2, 3, 4), arr(2, 4, 2, seed=1)),
        S("bij,bij->b", arr(2, 3, 4), arr(2, 3, 4, seed=1)),
        S("bhqd,bhkd->bhqk", arr(2, 2, 3, 4), arr(2, 2, 2, 4, seed=1)),
        S("bqhd,bkhd->bhqk", arr(2, 3, 2, 4), arr(2, 2, 2, 4, seed=1)),
        S("ij,jk,kl->il", a, b, c),
        S("ij,jk,kl", a, b, c),
        S("i,ij,j", arr(3), a, arr(4, seed=3)),
        S("a,b,c,d->abcd", arr(2), arr(2, seed=1), arr(2, seed=2), arr(2, seed=3)),
        S("ij,ij", a, arr(1, 4, seed=1)),
        S("ij,jk->ik", arr(3, 1), b),
        S("ij,ij->ij", arr(3, 1), a),
        S("ij,ij->i", arr(1, 4), arr(3, 1, seed=1)),
        S("...ij->...ji", arr(2, 3, 4)),
        S("...ij,...jk->...ik", arr(2, 1, 3, 4), arr(5, 4, 2, seed=1)),
        S("i...,j...", a, arr(2, 4, seed=1)),
        S("...i,...i->...", a, arr(3, 4, seed=1)),
        S("...", a),
        S("i...->", a),
        S("i...->...", arr(2, 3, 4)),
        S("i...i->...", arr(3, 2, 3)),
        S("b...,b...->b...", arr(2, 3), arr(2, 3, seed=1)),
        S("...i,i", arr(2, 3), arr(3, seed=1)),
        S(a, [0, 1], b, [1, 2]),
        S(a, [0, 1], b, [1, 2], [2, 0]),
        S(a, [0, 1], [1, 0]),
        S(a, [..., 1], [...]),
        S(a, [30, 2]),
        S("ij,jk->ik", [a, b]),
        S("Ab,bC", a, b),
        S("aB", a),
        S("", arr()),
        S(",", arr(), arr(seed=1)),
        S("i,->i", arr(3), arr(seed=1)),
        S("ij,jk->ik", arr(0, 4), b),
        S("ij,jk->ik", arr(3, 0), arr(0, 5)),
        S("ij,jk->ik", arr(4, 3).T, arr(5, 4, seed=1).T),
        S("ij->j", ints(3, 4)),
        S("ij,jk->ik", ints(3, 4), ints(4, 2)),
    ],
    bad=[
        Bad(S("ij,jk", a), ARGUMENT, r"2 operands, got 1"),
        Bad(S("ijk", a), SHAPE, r"operand 0 of shape \(3, 4\) .* 3 subscripts"),
        Bad(S("...ijk", a), SHAPE, r"3 subscripts beside the ellipsis"),
        Bad(S("ii", a), SHAPE, r"'i' is repeated in operand 0 with sizes 3 and 4"),
        Bad(S("ij,jk", a, arr(5, 2)), SHAPE, r"'j' has size 5 in operand 1 .*but 4"),
        Bad(S(". ..", a), ARGUMENT, r"'\.' in '\. \.\.' is no subscript"),
        Bad(S("ij->ijk", a), ARGUMENT, r"output subscript 'k'"),
        Bad(S("ij->ii", a), ARGUMENT, r"'i' twice"),
        Bad(S("i1", a), ARGUMENT, r"'1' in 'i1'"),
        Bad(S("i.j", a), ARGUMENT, r"'\.' in 'i\.j'"),
        Bad(S("...,...", a, arr(2, 4)), SHAPE, r"the ellipsis has size 2"),
        Bad(S("i,i", arr(3), ints(3)), TypeError, r"float64 and .*int64"),
        Bad(S(a, [0, 60]), ARGUMENT, r"0 to 51, got 60"),
        Bad(S(a, 3), ARGUMENT, r"list of numbers, got 3"),
        Bad(S("i", 3), TypeError, r"tensors, got int"),
    ],
)


def np_tensordot(x, y, dims=2):
    return np.tensordot(x, y, dims)


op(
    "tensordot",
    np_tensordot,
    [
        S(arr(2, 3, 4), arr(3, 4, 5, seed=1)),
        S(arr(2, 3), arr(3, 4, seed=1), dims=1),
        S(arr(2, 3), arr(2, seed=1), dims=0),
        S(arr(2, 3, 4), arr(4, 3, seed=1), dims=([1, 2], [1, 0])),
        S(arr(2, 3), arr(3, 2, seed=1), dims=([-1], [0])),
        S(arr(3), arr(3, seed=1), 1),
        S(arr(2, 0), arr(0, 3), 1),
        S(ints(2, 3), ints(3, 2), 1),
    ],
    bad=[
        Bad(S(arr(2, 3), arr(4, 3), 1), SHAPE, r"dimension 1 of \(2, 3\).*3 and 4"),
        Bad(S(arr(2), arr(2), 2), ARGUMENT, r"from 0 to 1.* got 2"),
        Bad(S(arr(2, 3), arr(3, 2), ([0, 1], [1])), ARGUMENT, r"\[0, 1\] and \[1\]"),
        Bad(S(arr(2, 3), arr(3, 2), ([0, 0], [1, 1])), ARGUMENT, r"not pairs"),
    ],
)
