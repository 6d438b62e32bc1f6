"""`vmap`: a function of one element as a function of a batch.

The function is called once, with tensors that have the shape of one element and hold all of them
(Note [batches] in backends/batch). A function that looks at values, or does something else that
cannot be done for all elements at once, is called once for every element instead, and the results
are stacked.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ..autograd.function import VmapRuleError
from ..backends.batch import Frame, UnmappedWriteError, enclosing, frames_of
from ..core.batching import has_all, into_batch, is_mapped, out_of_batch, seen_out_of_batch
from ..core.generator import rewind, watched
from ..core.tensor import Tensor
from ..errors import ArgumentError, DimError, UnsupportedError
from ..ops.elementwise.comparison import equal
from ..ops.shape.joining import cat, stack
from ..utils._pytree import TreeSpec, broadcast_prefix, tree_flatten, tree_unflatten

_RANDOMNESS = ("error", "different", "same")


class _Wrong(ArgumentError):
    """A result that does not fit what was asked for: a loop would not help."""


class _WrongDim(DimError):
    """A result that does not have the dimension where the batch is wanted."""


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
    loop: bool | None = None,
) -> Callable[..., Any]:
    """`func` over a dimension of its arguments: on all elements at once.

    `in_dims` says which dimension of each argument that is; None gives the whole argument to every
    element. Keyword arguments are given whole, too.
    `out_dims` says where the new dimension stands in each result; None is for what is the same for
    every element, of any type. Random numbers are an error unless `randomness` is "different" for
    each element, or the "same". With `chunk_size` only so many elements are computed at a time.

    A function that looks at values (`item()`, a branch) is called once for every element instead,
    with a warning: `loop=True` says so at once, and with `loop=False` it is an error.

    >>> import undertow as ut
    >>> ut.func.vmap(ut.dot)(ut.ones(3, 2), ut.arange(6.0).reshape(3, 2))
    tensor([1., 5., 9.])
    >>> per_sample = ut.func.vmap(ut.func.grad(lambda w, x: (w * x) ** 2), in_dims=(None, 0))
    >>> per_sample(ut.tensor(3.0), ut.tensor([1.0, 2.0]))
    tensor([ 6., 24.])
    """
    if randomness not in _RANDOMNESS:
        raise ArgumentError(f"[vmap] randomness is one of {_RANDOMNESS}, got {randomness!r}")
    return _mapped(func, in_dims, out_dims, randomness, chunk_size, loop, True)


def over_rows(func: Callable[..., Any], chunk_size: int | None = None) -> Callable[..., Any]:
    """`vmap` of a function of ours: a loop, where one is needed, is nobody's surprise."""
    return _mapped(func, 0, 0, "same", chunk_size, None, False)


def _mapped(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    loop: bool | None,
    warn: bool,
) -> Callable[..., Any]:
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
        call = _Mapped(func, leaves, dims, spec, kwargs, out_dims, randomness, loop, warn)
        if chunk_size is None or chunk_size >= size:
            return call.run(leaves, size)
        return call.in_chunks(size, chunk_size)

    return mapped


class _Mapped:
    """A call of a function that is mapped."""

    def __init__(
        self,
        func: Callable[..., Any],
        leaves: list[Any],
        dims: list[Any],
        spec: TreeSpec,
        kwargs: Any,
        out_dims: Any,
        randomness: str,
        loop: bool | None,
        warn: bool,
    ) -> None:
        self.func, self.leaves, self.dims, self.spec = func, leaves, dims, spec
        self.kwargs, self.out_dims = kwargs, out_dims
        self.randomness, self.loop, self.warn = randomness, loop, warn
        self.results: list[Any] = []  # the dimension of each result, of the last run

    def run(self, leaves: list[Any], size: int) -> Any:
        """On all elements at once, or else on one after the other."""
        if self.loop:
            return self._one_by_one(leaves, size)
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        before = [x._version for x in tensors]
        try:
            return self._at_once(leaves, size)
        except (_Wrong, _WrongDim, VmapRuleError):
            raise
        except Exception as error:
            unmapped = self.warn and isinstance(error, UnmappedWriteError)
            written = before != [x._version for x in tensors]  # a loop would write again
            if self.loop is not None or size == 0 or unmapped or written:
                raise
            found = self._one_by_one(leaves, size)
            if not self.warn:
                return found
            reason = str(error).partition(";")[0]
            warnings.warn(
                f"vmap called {getattr(self.func, '__name__', 'the function')} once for every "
                f"element, since that could not be done for all at once: {reason}. Pass loop=True "
                "to do so without this warning",
                stacklevel=3,
            )
            return found

    def in_chunks(self, size: int, chunk: int) -> Any:
        """On some elements after the others."""
        parts = []
        seen: dict[Any, tuple[int, int]] = {}
        for start in range(0, size, chunk):
            if self.randomness == "same":
                rewind(seen)
            stop = min(start + chunk, size)
            some = [
                x if d is None else x.narrow(d, start, stop - start)
                for x, d in zip(self.leaves, self.dims, strict=True)
            ]
            with watched() as begun:
                parts.append(tree_flatten(self.run(some, stop - start)))
            seen = {**begun, **seen}
        spec = parts[0][1]
        columns = zip(*(part for part, _ in parts), strict=True)
        return tree_unflatten(
            [c[0] if d is None else cat(c, d) for c, d in zip(columns, self.results, strict=True)],
            spec,
        )

    def _at_once(self, leaves: list[Any], size: int) -> Any:
        frame = Frame(size, enclosing.get(), self.randomness)
        here = [
            x if d is None else into_batch(x, frame, d % x.ndim)
            for x, d in zip(leaves, self.dims, strict=True)
        ]
        given = [x._array if isinstance(x, Tensor) else None for x in here]
        token = enclosing.set(frame)
        try:
            with watched() as begun:
                result = self.func(*tree_unflatten(here, self.spec), **self.kwargs)
        finally:
            enclosing.reset(token)
        self._check_random(begun)
        found, spec = tree_flatten(result)
        self.results = _result_dims(self.out_dims, result)
        places = {  # without those that `t_` and the like have turned
            id(x): i
            for i, (x, array) in enumerate(zip(here, given, strict=True))
            if isinstance(x, Tensor) and x._array is array
        }
        outs = []
        for x, d in zip(found, self.results, strict=True):
            i = places.get(id(x), -1)
            before = None if i < 0 else self.dims[i]
            if before is not None and d is not None:
                _check_result(x, d)
            if before is not None and d is not None and (d - before) % leaves[i].ndim == 0:
                outs.append(leaves[i])  # what the function was given, perhaps changed in place
            else:
                outs.append(self._out(x, d, frame, leaves))
        return tree_unflatten(outs, spec)

    def _out(self, x: Any, dim: Any, frame: Frame, leaves: list[Any]) -> Any:
        if dim is None:
            if isinstance(x, Tensor) and is_mapped(x, frame):
                raise _Wrong(_DIFFERS)
            if isinstance(x, Tensor) and frame in frames_of(x._array):  # equal elements
                return out_of_batch(x, frame, 0)[0]
            return x
        _check_result(x, dim)
        base = x._base
        if (
            base is not None
            and any(base is t or base is t._base for t in leaves)
            and has_all(x, frame)
        ):
            return seen_out_of_batch(x, frame, dim)  # a view of an argument, as in torch
        if x._alias is not None or x._node is not None or not is_mapped(x, frame):
            x = x.clone()  # a result has memory of its own: a node may have saved this one
        found = out_of_batch(x, frame, dim)
        return found if is_mapped(x, frame) else found.contiguous()

    def _check_random(self, begun: Any) -> None:
        if self.randomness == "error" and begun:
            raise _Wrong(
                '[vmap] the function drew random numbers; say randomness="different" for numbers '
                'of its own for each element, or "same"'
            )

    def _one_by_one(self, leaves: list[Any], size: int) -> Any:
        """The function called for each element, and the results stacked."""
        whole = [x for x, d in zip(leaves, self.dims, strict=True) if d is None]
        whole = [x for x in whole + tree_flatten(self.kwargs)[0] if isinstance(x, Tensor)]
        versions = [x._version for x in whole]
        rows = []
        with watched() as begun:
            for i in range(size):
                if self.randomness == "same":
                    rewind(begun)
                here = [
                    x if d is None else x.select(d, i)
                    for x, d in zip(leaves, self.dims, strict=True)
                ]
                rows.append(
                    tree_flatten(self.func(*tree_unflatten(here, self.spec), **self.kwargs))
                )
                if versions != [x._version for x in whole]:
                    raise UnsupportedError(
                        "[vmap] the function changed an argument in place that is not mapped: that "
                        "would happen once for every element; map it, or change a clone()"
                    )
        self._check_random(begun)
        if not rows:
            raise UnsupportedError(
                "[vmap] the mapped dimension has size 0, and by a loop the shape of a result is "
                "known only when the function was called"
            )
        spec = rows[0][1]
        self.results = _result_dims(self.out_dims, tree_unflatten(rows[0][0], spec))
        columns = zip(*(row for row, _ in rows), strict=True)
        return tree_unflatten(
            [_joined(c, d) for c, d in zip(columns, self.results, strict=True)], spec
        )


_DIFFERS = (
    "[vmap] out_dims is None for a result that differs between elements; say at which dimension "
    "they are to be stacked"
)


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
        if not isinstance(d, int):
            raise ArgumentError(f"[vmap] in_dims are ints or None, got {d!r}")
        if not -x.ndim <= d < x.ndim:
            raise ArgumentError(f"[vmap] a tensor of shape {x.shape} has no dimension {d}")
        sizes.setdefault(x.shape[d], x.shape)
    if not sizes:
        raise ArgumentError(
            "[vmap] there is nothing to map: there is no argument, or in_dims is None for each"
        )
    if len(sizes) > 1:
        raise ArgumentError(
            f"[vmap] the mapped dimensions have different sizes: {sorted(sizes)}, of tensors of "
            f"shapes {', '.join(map(str, sizes.values()))}"
        )
    (size,) = sizes
    return size


def _result_dims(out_dims: Any, result: Any) -> list[Any]:
    """Where the new dimension stands in each tensor of a result."""
    dims = broadcast_prefix(tuple(out_dims) if isinstance(out_dims, list) else out_dims, result)
    alone = isinstance(result, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1
    if dims is None and alone:
        dims = broadcast_prefix(out_dims[0], result)
    if dims is None:
        raise _Wrong(
            f"[vmap] out_dims={out_dims} has another structure than what the function returns"
        )
    return dims


def _check_result(x: Any, dim: Any) -> None:
    if not isinstance(dim, int):
        raise _Wrong(f"[vmap] out_dims are ints or None, got {dim!r}")
    if not isinstance(x, Tensor):
        raise _Wrong(
            f"[vmap] the function must return tensors, got {type(x).__name__}; give None in "
            "out_dims for it"
        )
    if not -x.ndim - 1 <= dim <= x.ndim:
        raise _WrongDim(f"[vmap] out_dims is {dim} for a result of shape {x.shape}")


def _joined(column: tuple[Any, ...], dim: Any) -> Any:
    """One result of all calls: stacked, or the one that they agree on."""
    first = column[0]
    if dim is None:
        if isinstance(first, Tensor) and not all(equal(first, x) for x in column[1:]):
            raise _Wrong(_DIFFERS)
        return first
    _check_result(first, dim)
    return stack(column, dim)
