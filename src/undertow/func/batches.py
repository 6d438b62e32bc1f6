"""`vmap`: a function of one element as a function of a batch.

The function is called once for every element, and the results are stacked. So it may do whatever
Python can do, look at values and take branches; what it costs is that many calls.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.generator import rewind, watched
from ..core.tensor import Tensor
from ..errors import ArgumentError, UnsupportedError
from ..ops.comparison import equal
from ..ops.joining import stack
from ..utils._pytree import broadcast_prefix, tree_flatten, tree_unflatten

_RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """`func` over a dimension of its arguments: once per element, with the results stacked.

    `in_dims` says which dimension of each argument that is; None gives the whole argument every
    time. Keyword arguments are given whole. `out_dims` says where the new dimension stands in each
    result; None is for what is the same for every element, of any type. Random numbers are an error
    unless `randomness` is "different" for each element, or the "same". `chunk_size` is accepted.

    >>> import undertow as ut
    >>> ut.func.vmap(ut.dot)(ut.ones(3, 2), ut.arange(6.0).reshape(3, 2))
    tensor([1., 5., 9.])
    >>> per_sample = ut.func.vmap(ut.func.grad(lambda w, x: (w * x) ** 2), in_dims=(None, 0))
    >>> per_sample(ut.tensor(3.0), ut.tensor([1.0, 2.0]))
    tensor([ 6., 24.])
    """
    if randomness not in _RANDOMNESS:
        raise ArgumentError(f"[vmap] randomness is one of {_RANDOMNESS}, got {randomness!r}")
    if chunk_size is not None and chunk_size <= 0:
        raise ArgumentError(f"[vmap] chunk_size must be None or above 0, got {chunk_size}")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        dims = broadcast_prefix(tuple(in_dims) if isinstance(in_dims, list) else in_dims, args)
        if dims is None:
            raise ArgumentError(
                f"[vmap] in_dims={in_dims} has another structure than the arguments; give an int "
                "or None for each of them"
            )
        leaves, spec = tree_flatten(args)
        size = _batch(leaves, dims)
        whole = [x for x, d in zip(leaves, dims, strict=True) if d is None]
        whole = [x for x in whole + tree_flatten(kwargs)[0] if isinstance(x, Tensor)]
        versions = [x._version for x in whole]
        rows = []
        with watched() as begun:
            for i in range(size):
                if randomness == "same":
                    rewind(begun)
                here = [
                    x if d is None else x.select(d, i) for x, d in zip(leaves, dims, strict=True)
                ]
                rows.append(tree_flatten(func(*tree_unflatten(here, spec), **kwargs)))
                if versions != [x._version for x in whole]:
                    raise UnsupportedError(
                        "[vmap] the function changed an argument in place that is not mapped: that "
                        "would happen once for every element; map it, or change a clone()"
                    )
        if randomness == "error" and begun:
            raise ArgumentError(
                '[vmap] the function drew random numbers; say randomness="different" for numbers '
                'of its own for each element, or "same"'
            )
        return _stacked(rows, out_dims)

    return mapped


def _batch(leaves: list[Any], dims: list[Any]) -> int:
    """The size of the dimension that is mapped, which all arguments agree on."""
    sizes: dict[int, Any] = {}
    for x, d in zip(leaves, dims, strict=True):
        if d is None:
            continue
        if not isinstance(x, Tensor):
            raise ArgumentError(
                f"[vmap] in_dims is {d} for a {type(x).__name__}; only tensors are mapped, give "
                "None for it"
            )
        if not isinstance(d, int) or not -x.ndim <= d < x.ndim:
            raise ArgumentError(f"[vmap] a tensor of shape {x.shape} has no dimension {d}")
        sizes.setdefault(x.shape[d], x.shape)
    if not sizes:
        raise ArgumentError("[vmap] there is nothing to map: in_dims is None for every argument")
    if len(sizes) > 1:
        raise ArgumentError(
            f"[vmap] the mapped dimensions have different sizes: {sorted(sizes)}, of tensors of "
            f"shapes {', '.join(map(str, sizes.values()))}"
        )
    (size,) = sizes
    if size == 0:
        raise UnsupportedError(
            "[vmap] the mapped dimension has size 0, and the shape of a result is known only when "
            "the function was called"
        )
    return size


def _stacked(rows: list[Any], out_dims: Any) -> Any:
    """The results of all calls as one, with the new dimension where it is wanted."""
    spec = rows[0][1]
    whole = tree_unflatten(rows[0][0], spec)
    dims = broadcast_prefix(tuple(out_dims) if isinstance(out_dims, list) else out_dims, whole)
    if dims is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims = broadcast_prefix(out_dims[0], whole)
    if dims is None:
        raise ArgumentError(
            f"[vmap] out_dims={out_dims} has another structure than what the function returns"
        )
    columns = zip(*(row for row, _ in rows), strict=True)
    return tree_unflatten([_joined(c, d) for c, d in zip(columns, dims, strict=True)], spec)


def _joined(column: tuple[Any, ...], dim: Any) -> Any:
    """One result of all calls: stacked, or the one that they agree on."""
    first = column[0]
    if dim is None:
        if isinstance(first, Tensor) and not all(equal(first, x) for x in column[1:]):
            raise ArgumentError(
                "[vmap] out_dims is None for a result that differs between elements; say at which "
                "dimension they are to be stacked"
            )
        return first
    if not isinstance(dim, int):
        raise ArgumentError(f"[vmap] out_dims are ints or None, got {dim!r}")
    if not isinstance(first, Tensor):
        raise ArgumentError(
            f"[vmap] the function must return tensors, got {type(first).__name__}; give None in "
            "out_dims for it"
        )
    return stack(column, dim)
