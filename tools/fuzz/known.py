"""Known differences: defects that wait for their repair. Take an entry out with its cure."""

from __future__ import annotations

import re

from .case import Case

# What the verdict says, and what the last line of the case is, as regular expressions.
DEFECTS = [
    # An output without elements is answered by torch.
    (r"refused with ShapeError: \[conv_transpose\dd\] .* output of size", r"conv_transpose"),
    # A dimension of size 1 is repeated as a view, so a later change in place shows through.
    (r"", r"repeat_interleave"),
    # With factor or groups 1 it is a view.
    (r"", r"pixel_shuffle|pixel_unshuffle|channel_shuffle"),
    # 0 * x ** -1 is NaN where x is NaN or its inverse overflows; an exponent of zero has slope 0.
    (r"derivative 1 of x0 differs by inf", r"lib\.pow\(x0, x1\)"),
    # In float32 the rounding errors of a long scan add up; after +inf the derivative is NaN.
    (r"", r"logcumsumexp"),
]


def known(case: Case, wrong: str) -> bool:
    """Whether a shrunk failure is one of them."""
    code = "\n".join(map(str, case.lines))
    return any(re.search(what, wrong) and re.search(where, code) for what, where in DEFECTS)
