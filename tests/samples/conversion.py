"""Samples for `ops.create.conversion`; `test_tensor.py` has those that are only methods."""

from __future__ import annotations

import numpy as np

from op_samples import Bad, S, arr, bools, ints, op, unary_samples
from undertow import errors

COMPLEX = np.array([1 + 2j, 3 - 1j])

op("resolve_conj", lambda x: x, unary_samples())
op("resolve_neg", lambda x: x, unary_samples())
op("is_tensor", lambda x: isinstance(x, np.ndarray), [S(arr(2)), S(1.5), S([1])])
ANY = [S(arr(2)), S(ints(2)), S(bools(2)), S(COMPLEX), S(arr(0))]
op("is_floating_point", lambda x: x.dtype.kind == "f", ANY)
op("is_complex", lambda x: x.dtype.kind == "c", ANY)
op("is_inference", lambda x: False, ANY)  # tests/core/test_modes.py has the others
op("numel", np.size, [*ANY, S(arr(2, 3)), S(arr())])
op(
    "is_nonzero",
    bool,
    [S(arr(1)), S(ints()), S(np.zeros((1, 1)))],
    bad=[Bad(S(arr(2)), errors.ArgumentError, r"\[is_nonzero\].*\(2,\)")],
)
op("result_type", None, [S(arr(2), 1), S(ints(2), 1.5), S(ints(2), arr())], torch=None)
