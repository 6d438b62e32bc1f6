"""Known differences: defects that wait for their repair. Take an entry out with its cure."""

from __future__ import annotations

import re

from .case import Case

# What the verdict says, and what the last line of the case is, as regular expressions.
DEFECTS = [
    # 0 * x ** -1 is NaN where the inverse of a tiny x overflows; an exponent of zero has slope 0.
    (r"derivative 1 of x0 differs by inf", r"lib\.pow\(x0, x1\)"),
    # After +inf the derivative is NaN.
    (r"derivative", r"logcumsumexp"),
]


def known(case: Case, wrong: str) -> bool:
    """Whether a shrunk failure is one of them."""
    code = "\n".join(map(str, case.lines))
    return any(re.search(what, wrong) and re.search(where, code) for what, where in DEFECTS)
