"""Indices under `vmap`, which need no help here."""

from contextlib import nullcontext


class TransformGetItemToIndex(nullcontext[None]):
    """A block in which `x[i]` may have an `i` that `vmap` batches, as everywhere here.

    >>> import undertow as ut
    >>> with TransformGetItemToIndex():
    ...     ut.vmap(lambda i: ut.tensor([5, 6, 7])[i])(ut.tensor([2, 0]))
    tensor([7, 5])
    """
