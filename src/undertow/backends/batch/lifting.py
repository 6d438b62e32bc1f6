"""What cannot be done with a batch, and why."""

from __future__ import annotations

from ...errors import InplaceError, UnsupportedError


class ValueLookedAtError(UnsupportedError):
    """A function that is mapped over a batch asked for a value, which differs between elements."""

    def __init__(self, what: str = "asks for the value of an element") -> None:
        super().__init__(
            f"[vmap] the function {what}, and there is one for each element of the batch; use "
            "ut.where or ut.cond instead of a branch, or vmap(..., loop=True)"
        )


class UnmappedWriteError(InplaceError, UnsupportedError):
    """A value that differs between elements was written into a tensor that they share."""

    def __init__(self, op: str = "the function") -> None:
        super().__init__(
            f"[vmap] {op} writes a value of its own for each element in place into a tensor that "
            "is not mapped; do it out of place, or make the tensor from a mapped one, as by "
            "x.new_zeros(...)"
        )
