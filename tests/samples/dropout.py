"""Samples for `undertow.ops.nn.dropout`; `test_random.py` has the probabilities."""

from __future__ import annotations

from op_samples import Bad, S, arr, ints, op
from undertow import errors

SHAPES = {
    "dropout": [(3, 4), (), (0, 3)],
    "dropout1d": [(2, 3, 4), (3, 4)],
    "dropout2d": [(2, 3, 2, 2), (2, 3, 4)],
    "dropout3d": [(1, 3, 2, 2, 2), (3, 2, 2, 2)],
    "alpha_dropout": [(3, 4), (), (0, 3)],
    "feature_alpha_dropout": [(2, 3), (2, 3, 4)],
}

for name, shapes in SHAPES.items():
    first = arr(*shapes[0])
    samples = [S(arr(*shape), p, training=True) for shape in shapes for p in (0.0, 0.3, 1.0)]
    samples += [S(first, 0.5, training=False)]
    bad = [
        Bad(S(first, 1.5, training=True), errors.ArgumentError, rf"\[{name}\].*1\.5"),
        Bad(S(ints(*shapes[0]), 0.5, training=True), errors.DTypeError, rf"\[{name}\].*int64"),
    ]
    op(f"nn.functional.{name}", None, samples, torch=None, bad=bad)
