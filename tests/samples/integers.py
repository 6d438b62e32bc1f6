"""Samples for `undertow.ops.elementwise.integers`."""

from __future__ import annotations

import numpy as np

from op_samples import Bad, S, arr, ints, op

PAIRS = [
    S(ints(3, 4, low=-60, high=60), ints(3, 4, seed=1, low=-60, high=60)),
    S(ints(3, 1), ints(4, seed=1)),
    S(np.array([0, 0, 5]), np.array([0, 4, 0])),
    S(ints(0), ints(0)),
    S(ints(3).astype(np.int8), ints(3, seed=1)),
]
for name in ("gcd", "lcm"):
    bad = [Bad(S(arr(2), ints(2)), TypeError, rf"\[{name}\] is of integers, got .*float64")]
    op(name, getattr(np, name), PAIRS, bad=bad)
op(
    "unravel_index",
    np.unravel_index,
    [S(np.array([4, 7]), (3, 3)), S(np.array([[5, 0]]), (1, 2, 3)), S(np.array(2), 3)],
    bad=[Bad(S(arr(2), (3, 3)), TypeError, r"\[unravel_index\] is of integers")],
)


def np_nonzero_static(x, *, size, fill_value=-1):
    """NumPy's coordinates, cut off or filled up."""
    found = np.argwhere(x)[:size]
    filled = np.full((size, np.ndim(x)), fill_value)
    filled[: len(found)] = found
    return filled


op(
    "nonzero_static",
    np_nonzero_static,
    [
        S(np.array([0, 1, 2]), size=4),
        S(np.array([[0, 1], [2, 3]]), size=2),
        S(np.array([0, 3]), size=3, fill_value=7),
    ],
    bad=[Bad(S(ints(3), size=-1), ValueError, r"\[nonzero_static\] size must not")],
)


def np_hash_tensor(x, dim=None, keepdim=False):
    """NumPy's reduction by exclusive or."""
    bits = np.asarray(x, np.float64 if x.dtype.kind == "f" else np.int64).view(np.uint64)
    axis = tuple(dim) if isinstance(dim, list) else dim
    return np.bitwise_xor.reduce(bits, axis=axis, keepdims=keepdim)


op(
    "hash_tensor",
    np_hash_tensor,
    [
        S(arr(3, 4)),
        S(arr(3, 5), 1),
        S(arr(3, 4, 5), [0, -1], keepdim=True),
        S(ints(7, low=-60, high=60).astype(np.int8)),
        S(np.array([True, False, True])),
        S(arr(3, 0), 0),
        S(arr(3, 1), 1),
        S(arr(), keepdim=True),
        S(arr(4).astype(np.float32)),
    ],
    bad=[
        Bad(S(arr(2), mode=1), ValueError, r"\[hash_tensor\] has one mode, 0 .*got 1"),
        Bad(S(arr(0)), ValueError, r"needs a dim for a tensor without elements"),
        Bad(S(arr(3, 0), 1), IndexError, r"\[hash_tensor\] dimension 1 of .* has no elements"),
        Bad(S(arr(2) + 1j), TypeError, r"got undertow.complex128"),
    ],
    grad=False,
)
