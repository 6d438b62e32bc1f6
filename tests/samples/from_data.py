"""Samples for `ops.create.from_data`; `test_tensor.py` has the errors and the awkward data."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, S, ints, op
from undertow import errors


def np_tensor(data, dtype=None):
    """What NumPy makes of it, with Python floats in single precision."""
    array = np.array(data)
    if dtype is not None:
        return array.astype(dtype.numpy)
    small = {np.dtype(np.float64): np.float32, np.dtype(np.complex128): np.complex64}
    return array if isinstance(data, np.ndarray) else array.astype(small.get(array.dtype))


DATA = [
    S(1),
    S(2.5),
    S(True),
    S(1j),
    S([]),
    S([1, 2]),
    S([[1.0, 2.5], [3.0, 4.0]]),
    S([True, False]),
    S([[], []]),
    S([1, 2.5]),
    S([True, 2]),
    S((1, (2)), dtype=ut.float64),
    S([1.7], dtype=ut.int32),
    S([0, 2], dtype=ut.bool),
    S(ints(2, 3)),
    S([[[1]]]),
    S([1.5, 2], dtype=ut.complex64),
]
RAGGED = Bad(S([[1, 2], [1, 2, 3]]), errors.ShapeError, r"depth 1, .* length 2 and .* length 3")
NAN = Bad(S([np.nan], dtype=ut.int64), errors.ArgumentError, "nan.*int64")
TEXT = Bad(S("abc"), errors.DTypeError, "'abc' is text")
# torch.tensor(tensor) warns that clone().detach() is clearer, so tensors are left to `clone`.
LISTS = [s for s in DATA if not isinstance(s.args[0], np.ndarray)]

op("tensor", np_tensor, LISTS, bad=[RAGGED, NAN, TEXT])
op("as_tensor", np_tensor, DATA, bad=[RAGGED, NAN, TEXT])
COPY = Bad(S([1], copy=False), errors.ArgumentError, r"\[asarray\].*copy=False")
op("asarray", np_tensor, DATA, bad=[RAGGED, NAN, COPY])
# These two take arrays of other libraries: see `test_interop.py`.
op(
    "frombuffer",
    None,
    [],
    bad=[
        Bad(S(3, dtype=ut.uint8), errors.ArgumentError, r"\[frombuffer\].*int"),
        Bad(S(b"", dtype=ut.uint8), errors.ArgumentError, "at least one element"),
        Bad(S(b"abcd", dtype=ut.int32, offset=4), errors.ArgumentError, "at least one element"),
        Bad(S(b"abc", dtype=ut.int32), errors.ArgumentError, r"\[frombuffer\] 3 bytes"),
    ],
)
op("from_numpy", None, [], bad=[Bad(S([1]), errors.DTypeError, r"\[from_numpy\].*list")])
op("from_dlpack", None, [], bad=[Bad(S([1]), errors.DTypeError, r"\[from_dlpack\] list")])
