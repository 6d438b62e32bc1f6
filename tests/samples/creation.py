"""Samples for `undertow.ops.create.creation`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, arr, bools, ints, op
from undertow import errors


def kind(dtype, default=np.float32):
    """The NumPy dtype of a sample's dtype argument."""
    return default if dtype is None else dtype.numpy


def shape_of(sizes, size=None):
    """A shape given as sizes or as one tuple."""
    if size is not None:
        return size
    return sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes


def plain(fill):
    """A creation function of sizes in NumPy."""
    return lambda *sizes, size=None, dtype=None: fill(shape_of(sizes, size), kind(dtype))


SIZES = [
    S(2, 3),
    S((2, 3)),
    S([2, 3]),
    S(()),
    S(0),
    S(3, 0),
    S(size=(2, 2)),
    S(np.int64(2).item()),
    S(2, dtype=ut.int64),
    S(2, dtype=ut.bool),
    S(2, dtype=ut.complex64),
    S(2, dtype=ut.float16),
]


def bad_sizes(name):
    return [
        Bad(S(), errors.DTypeError, rf"\[{name}\] needs a size"),
        Bad(S(2, -1), errors.ShapeError, rf"\[{name}\].*negative.*\(2, -1\)"),
        Bad(S(2.5), errors.DTypeError, rf"\[{name}\] size must be an integer.*2.5"),
        Bad(S(2, dtype=ut.int64, requires_grad=True), errors.GradientError, "int64"),
        Bad(S(2, device="toaster"), errors.DeviceError, "toaster"),
        Bad(S(2, dtype="float31"), errors.DTypeError, "float31"),
    ]


op("zeros", plain(np.zeros), SIZES, bad=bad_sizes("zeros"))
op("ones", plain(np.ones), SIZES, bad=bad_sizes("ones"))
op(
    "empty",
    plain(np.empty),
    [S(0), S(2, 0), S((0,), dtype=ut.int64), S(size=(0, 1))],
    bad=bad_sizes("empty"),
)


def torch_full(size, value, **kwargs):
    """torch takes no fill value that requires gradients; expanding it means the same."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.expand(size).clone()
    return torch.full(size, value, **kwargs)


op(
    "full",
    lambda size, value, dtype=None: np.full(size, value, dtype and dtype.numpy),
    [
        S((2, 3), 7),
        S((2,), 0.5),
        S((), True),
        S((0, 2), 1.0),
        S((2,), 1 + 2j),
        S([2], 3.7),
        S((2,), 2.7, dtype=ut.int64),
        S((2,), -0.0),
        S((2,), 1, dtype=ut.float64),
        S((2,), np.inf),
        S((2,), True, dtype=ut.int32),
        S((2, 3), arr(), dtype=ut.float64),
    ],
    torch=torch_full,
    bad=[
        Bad(S((2,), 300, dtype=ut.uint8), errors.ArgumentError, r"\[full\] 300.*uint8.*255"),
        Bad(S((2,), np.nan, dtype=ut.int64), errors.ArgumentError, r"\[full\] nan"),
        Bad(S((2,), 1j, dtype=ut.float32), errors.DTypeError, r"\[full\].*1j"),
        Bad(S((2,), 1e40, dtype=ut.float32), errors.ArgumentError, r"\[full\] 1e\+40"),
        Bad(S((-2,), 1), errors.ShapeError, r"\[full\].*-2"),
        Bad(S((2,), "a"), errors.DTypeError, r"\[full\].*str"),
        Bad(S((2,), None), errors.DTypeError, r"\[full\].*None"),
    ],
)

LIKE = [
    S(arr(3, 2)),
    S(arr()),
    S(arr(0, 2)),
    S(arr(4, 3).T),
    S(ints(3)),
    S(bools(2, 2)),
    S(ints(3), dtype=ut.float64),
    S(np.zeros(2, np.complex64)),
]


def like(fill):
    return lambda x, dtype=None: fill(x, kind(dtype, x.dtype))


op("zeros_like", like(np.zeros_like), LIKE)
op("ones_like", like(np.ones_like), LIKE)
op("empty_like", like(np.empty_like), [S(arr(0, 2)), S(ints(0)), S(arr(0), dtype=ut.int64)])
op(
    "full_like",
    lambda x, value, dtype=None: np.full(x.shape, value, kind(dtype, x.dtype)),
    [
        S(arr(3, 2), 2.5),
        S(arr(), 1),
        S(ints(3), 2.7),
        S(ints(0, 2), 1),
        S(bools(2), 3),
        S(ints(2), 2.5, dtype=ut.float32),
        S(arr(3), np.nan),
    ],
    bad=[Bad(S(ints(2), np.nan), errors.ArgumentError, r"\[full_like\] nan")],
)

op(
    "scalar_tensor",
    lambda s, dtype=None: np.array(s, kind(dtype)),
    [S(2), S(2.5), S(True), S(2, dtype=ut.int64), S(1 + 1j, dtype=ut.complex64)],
    bad=[Bad(S(1j), errors.DTypeError, r"\[scalar_tensor\].*1j")],
)


def np_arange(start, end=None, step=1, dtype=None):
    """NumPy's arange, which computes floats as start + i * step as well."""
    values = np.arange(start) if end is None else np.arange(start, end, step)
    return values.astype(kind(dtype, np.float32 if values.dtype == np.float64 else values.dtype))


op(
    "arange",
    np_arange,
    [
        S(5),
        S(0),
        S(2, 7),
        S(7, 2, -2),
        S(0, 7, 3),
        S(1.5),
        S(0, 1, 0.125),
        S(1, 0, -0.25),
        S(3, 3),
        S(5, dtype=ut.float64),
        S(5, dtype=ut.uint8),
        S(0.0, 4.0, dtype=ut.int64),
        S(-3, 3),
        S(0, 1, 0.1),
        S(2**40, 2**40 + 3),
    ],
    rtol=1e-6,
    bad=[
        Bad(S(0, 1, 0), errors.ArgumentError, r"\[arange\] step.*zero.*0"),
        Bad(S(3, 0), errors.ArgumentError, r"\[arange\] from 3 to 0 with step 1"),
        Bad(S(np.inf), errors.ArgumentError, r"\[arange\].*inf"),
        Bad(S(np.nan), errors.ArgumentError, r"\[arange\].*nan"),
        Bad(S(3, dtype=ut.bool), errors.DTypeError, r"\[arange\].*bool"),
        Bad(S(3, dtype=ut.complex64), errors.DTypeError, r"\[arange\].*complex64"),
        Bad(S(0, 3, 0.5, dtype=ut.int64), errors.ArgumentError, r"\[arange\] step.*0\.5"),
        Bad(S(1j), errors.DTypeError, r"\[arange\].*1j"),
        Bad(S("3"), errors.DTypeError, r"\[arange\].*'3'"),
    ],
)


def np_linspace(start, end, steps, dtype=None):
    values = np.linspace(start, end, steps)
    if dtype is None and values.dtype == np.float64 and np.ndim(start) == np.ndim(end) == 0:
        floats = [np.asarray(v).dtype for v in (start, end) if isinstance(v, np.ndarray)]
        return values.astype(floats[0] if floats else np.float32)
    return values.astype(kind(dtype, np.complex64))


op(
    "linspace",
    np_linspace,
    [
        S(0, 1, 5),
        S(-2, 3.5, 7),
        S(3, -3, 4),
        S(0, 1, 1),
        S(0, 1, 0),
        S(0, 1, 2),
        S(2, 2, 3),
        S(0, 10, 4, dtype=ut.int64),
        S(0, 1, 5, dtype=ut.float64),
        S(0, 1j, 3),
        S(1e-3, 1e3, 9),
        S(-5, 5, 11, dtype=ut.int32),
        S(arr(), arr(seed=1), 5, dtype=ut.float64),
        S(arr(), 1.5, 4, dtype=ut.float64),
        S(0, arr(), 1, dtype=ut.float64),
    ],
    rtol=1e-6,
    atol=1e-7,
    bad=[
        Bad(S(0, 1, -1), errors.ArgumentError, r"\[linspace\] steps.*-1"),
        Bad(S(0, 1, 2.5), errors.DTypeError, r"\[linspace\] steps.*2.5"),
        Bad(S(arr(2), 1, 3), errors.ShapeError, r"\[linspace\].*\(2,\)"),
        Bad(S(0, 1, 3, dtype=ut.bool), errors.DTypeError, r"\[linspace\].*bool"),
        Bad(S(0, 1j, 3, dtype=ut.float64), errors.DTypeError, r"\[linspace\].*1j.*float64"),
    ],
)

op(
    "logspace",
    lambda start, end, steps, base=10.0, dtype=None: np.logspace(
        start, end, steps, base=base
    ).astype(kind(dtype)),
    [
        S(0, 2, 3),
        S(-3, 3, 7),
        S(0, 5, 6, base=2.0),
        S(0, 1, 0),
        S(1, 1, 1),
        S(0, 3, 4, base=2, dtype=ut.int64),
        S(0, 1, 5, dtype=ut.float64),
    ],
    rtol=1e-6,
    bad=[Bad(S(0, 1, -1), errors.ArgumentError, r"\[logspace\] steps.*-1")],
)

op(
    "eye",
    lambda n, m=None, dtype=None: np.eye(n, m, dtype=kind(dtype)),
    [S(3), S(2, 4), S(4, 2), S(0), S(0, 3), S(3, 0), S(2, dtype=ut.bool), S(1, dtype=ut.int64)],
    bad=[
        Bad(S(-1), errors.ShapeError, r"\[eye\].*-1"),
        Bad(S(2, 2.5), errors.DTypeError, r"\[eye\].*2.5"),
    ],
)

op(
    "clone",
    lambda x: x.copy(),
    [
        S(arr(3, 4)),
        S(arr()),
        S(arr(0, 3)),
        S(arr(4, 3).T),
        S(ints(3)),
        S(bools(2)),
        S(np.broadcast_to(arr(1, 3), (2, 3))),
    ],
)

op(
    "range",
    lambda start, end, step=1, dtype=None: start + step * np.arange((end - start) // step + 1),
    [S(1, 4), S(1, 2, 0.5), S(4, 1, -1), S(0, 5, 2, dtype=ut.int64), S(2, 2)],
    bad=[Bad(S(1, 2, 0), ValueError, r"\[range\] from 1 to 2"), Bad(S(4, 1), ValueError, "range")],
    torch=None,  # deprecated there, with a warning
)
