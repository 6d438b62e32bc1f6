"""Samples for `undertow.ops.shape.copies`."""

from __future__ import annotations

import numpy as np

from op_samples import Const, S, arr, op

X = arr(3, 4)
for name, reference, samples in [
    ("alias_copy", lambda x: x, [S(X), S(arr())]),
    (
        "as_strided_copy",
        lambda x, size, stride: np.lib.stride_tricks.as_strided(x, size, [8 * s for s in stride]),
        [S(X, (2, 2), (1, 2))],
    ),
    ("detach_copy", lambda x: x, [S(Const(X))]),
    ("diagonal_copy", lambda x, offset=0: np.diagonal(x, offset), [S(X), S(X, 1)]),
    ("expand_copy", lambda x, size: np.broadcast_to(x, size), [S(arr(3, 1), (3, 4))]),
    ("narrow_copy", lambda x, d, a, n: x[:, a : a + n], [S(X, 1, 1, 2)]),
    ("permute_copy", np.transpose, [S(X, (1, 0))]),
    ("select_copy", lambda x, d, i: x[i], [S(X, 0, 1)]),
    ("slice_copy", lambda x, d=0, a=0, b=None, s=1: x[a:b:s], [S(X, 0, 1), S(X, 0, 0, 3, 2)]),
    ("split_copy", lambda x, n: (x[:2], x[2:]), [S(X, 2)]),
    ("split_with_sizes_copy", lambda x, n: (x[:1], x[1:]), [S(X, (1, 2))]),
    ("unsafe_chunk", lambda x, n: (x[:2], x[2:]), [S(X, 2)]),
    ("unsafe_split", lambda x, n: (x[:2], x[2:]), [S(X, 2)]),
    ("unsafe_split_with_sizes", lambda x, n: (x[:1], x[1:]), [S(X, (1, 2))]),
    ("squeeze_copy", np.squeeze, [S(arr(1, 3))]),
    ("t_copy", np.transpose, [S(X)]),
    ("transpose_copy", np.swapaxes, [S(X, 0, 1)]),
    ("unbind_copy", lambda x: tuple(x), [S(X)]),
    (
        "unfold_copy",
        lambda x, d, n, s: np.lib.stride_tricks.sliding_window_view(x, n)[::s],
        [S(arr(5), 0, 2, 1), S(arr(6), 0, 3, 2)],
    ),
    ("unsqueeze_copy", np.expand_dims, [S(X, 1)]),
    ("view_as_complex_copy", lambda x: x[..., 0] + 1j * x[..., 1], [S(Const(arr(3, 2)))]),
    (
        "view_as_real_copy",
        lambda x: np.stack([x.real, x.imag], -1),
        [S(np.array([1 + 2j, 3 - 1j]))],
    ),
    ("view_copy", lambda x, size: x.reshape(size), [S(X, (2, 6))]),
    ("fill", lambda x, v: np.full_like(x, v), [S(X, 2.5), S(X, arr())]),
]:
    op(name, reference, samples)
