"""Samples for `undertow.ops.random.binomial`; `test_distributions.py` looks at its numbers."""

from __future__ import annotations

from op_samples import Bad, Const, S, ints, op

op(
    "binomial",
    None,
    [
        S(Const([0.0, 4.0, 50.0]), Const([0.3, 0.9, 0.5])),
        S(Const([[3.0], [400.0]]), Const([0.1, 0.5])),
    ],
    bad=[
        Bad(S(ints(2), Const([0.5, 0.5])), TypeError, r"\[binomial\] count must be floating"),
        Bad(S(Const([1.0]), Const([1.5])), ValueError, r"\[binomial\] prob must lie"),
        Bad(S(Const([-1.0]), Const([0.5])), ValueError, r"\[binomial\] count must be finite"),
    ],
    torch=None,
    method=False,
)
