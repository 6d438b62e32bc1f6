"""Several tensors into one, and one into several."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from .. import dtypes
from ..core.dispatch import apply, cast
from ..core.op import Op
from ..core.register import function
from ..core.tensor import Tensor
from ..errors import ArgumentError, DTypeError, ShapeError
from ..shapes import as_int, wrap_dim
from .movement import along, narrowed, own_dim, selected

# Joining -------------------------------------------------------------------------------------
_cat = Op(
    "cat",
    lambda k, *given: k.concat(given[:-2], given[-2]),
    inputs="*tensors",
    params="dim edges",
    vjp={"tensors": lambda g, dim, edges, position: narrowed(
        g, dim, edges[position], edges[position + 1] - edges[position])},
)  # fmt: skip
_stack = Op(
    "stack",
    lambda k, *given: k.concat([k.slice(x, along(given[-1], None)) for x in given[:-1]], given[-1]),
    inputs="*tensors",
    params="dim",
    vjp={"tensors": lambda g, dim, position: selected(g, dim, position)},
)


def listed(op: str, tensors: Any) -> list[Tensor]:
    """The tensors of an argument that takes several, at least one."""
    if isinstance(tensors, Tensor):
        raise DTypeError(f"[{op}] expects a list or tuple of tensors, got one Tensor")
    found = list(tensors)
    if not found:
        raise ArgumentError(f"[{op}] expects at least one tensor, got an empty list")
    for t in found:
        if not isinstance(t, Tensor):
            raise DTypeError(f"[{op}] expects tensors, got {type(t).__name__}")
    return found


def promoted(tensors: list[Tensor]) -> list[Tensor]:
    """The tensors in their common dtype."""
    first = tensors[0]._array.dtype
    if all(t._array.dtype is first for t in tensors):
        return tensors
    dtype = dtypes.result_type(*((t.dtype, 2 if t._array.shape else 1) for t in tensors))
    return [cast(t, dtype) for t in tensors]


def _join(op: str, tensors: list[Tensor], dim: Any) -> Tensor:
    tensors = promoted(tensors)
    # A vector of no elements joins with anything, as in torch.
    full = [t for t in tensors if t._array.shape != (0,)] or tensors
    shape = full[0]._array.shape
    d = own_dim(op, dim, len(shape))
    for t in full:
        other = t._array.shape
        if len(other) != len(shape) or other[:d] != shape[:d] or other[d + 1 :] != shape[d + 1 :]:
            raise ShapeError(
                f"[{op}] shapes {tuple(shape)} and {tuple(other)} must agree in every dimension "
                f"but {d}, along which they are joined"
            )
    edges = tuple(accumulate((t._array.shape[d] for t in full), initial=0))
    return apply(_cat, full, (d, edges))  # type: ignore[no-any-return]


@function(method=False)
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors one after the other along an existing dimension.

    >>> import undertow as ut
    >>> ut.cat([ut.tensor([1, 2]), ut.tensor([3])])
    tensor([1, 2, 3])
    """
    return _join("cat", listed("cat", tensors), dim)


@function(method=False)
def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The same as `cat`.

    >>> import undertow as ut
    >>> ut.concat([ut.tensor([1, 2]), ut.tensor([3])])
    tensor([1, 2, 3])
    """
    return _join("concat", listed("concat", tensors), dim)


@function(method=False)
def concatenate(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The same as `cat`.

    >>> import undertow as ut
    >>> ut.concatenate([ut.tensor([1, 2]), ut.tensor([3])])
    tensor([1, 2, 3])
    """
    return _join("concatenate", listed("concatenate", tensors), dim)


@function(method=False)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape along a new dimension.

    >>> import undertow as ut
    >>> ut.stack([ut.tensor([1, 2]), ut.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    parts = promoted(listed("stack", tensors))
    shape = parts[0]._array.shape
    d = wrap_dim("stack", dim, len(shape) + 1)
    for t in parts:
        if t._array.shape != shape:
            raise ShapeError(
                f"[stack] expects tensors of one shape, got {tuple(shape)} and {t.shape}; "
                "use cat to join along an existing dimension"
            )
    return apply(_stack, parts, (d,))  # type: ignore[no-any-return]


# Splitting: the parts are views ---------------------------------------------------------------
def cut(x: Tensor, dim: int, lengths: Sequence[int]) -> tuple[Tensor, ...]:
    """Consecutive views of the given lengths along `dim`."""
    starts = accumulate(lengths, initial=0)
    return tuple([narrowed(x, dim, start, n) for start, n in zip(starts, lengths, strict=False)])


@function()
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of equal size (the last may be smaller), or of the sizes listed, along `dim`.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3]).split(2)
    (tensor([1, 2]), tensor([3]))
    """
    d = own_dim("split", dim, tensor.ndim)
    size = tensor._array.shape[d]
    if isinstance(split_size_or_sections, (tuple, list)):
        return split_with_sizes(tensor, split_size_or_sections, d)
    step = as_int("split", "split_size", split_size_or_sections)
    if step < 0 or (step == 0 and size):
        raise ArgumentError(f"[split] the size of a part must be positive, got {step}")
    count = max(-(-size // step), 1) if step else 1
    return cut(tensor, d, [step] * (count - 1) + [size - step * (count - 1)])


@function()
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Consecutive views of the sizes listed along `dim`, which they must fill.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3]).split_with_sizes([1, 2])
    (tensor([1]), tensor([2, 3]))
    """
    d = own_dim("split_with_sizes", dim, input.ndim)
    size = input._array.shape[d]
    lengths = [as_int("split_with_sizes", "a size", n) for n in split_sizes]
    if any(n < 0 for n in lengths) or sum(lengths) != size:
        raise ArgumentError(
            f"[split_with_sizes] sizes {lengths} must not be negative and add up to {size}, "
            f"the size of dimension {d}; they add up to {sum(lengths)}"
        )
    return cut(input, d, lengths)


@function()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` views of equal size (the last may be smaller) along `dim`.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3]).chunk(2)
    (tensor([1, 2]), tensor([3]))
    """
    count = as_int("chunk", "chunks", chunks)
    d = own_dim("chunk", dim, input.ndim)
    if count <= 0:
        raise ArgumentError(f"[chunk] chunks must be positive, got {count}")
    size = input._array.shape[d]
    if not size:
        return cut(input, d, [0] * count)
    return split(input, -(-size // count), d)


@function()
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of every position along `dim`, without that dimension.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).unbind()
    (tensor([1, 2]), tensor([3, 4]))
    """
    d = own_dim("unbind", dim, input.ndim)
    return tuple([selected(input, d, i) for i in range(input._array.shape[d])])
