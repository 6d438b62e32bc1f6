"""Tables looked up by index: embedding, bags of embeddings, one-hot rows."""

from __future__ import annotations

from importlib import import_module
from threading import Lock
from typing import Any

from ... import dtypes
from ...backends.registry import backend_of
from ...core.dispatch import apply, cast
from ...core.modes import current, no_grad
from ...core.op import Op
from ...core.reading import READERS, tell
from ...core.register import function
from ...core.tensor import Tensor, wrap
from ...errors import ArgumentError, BoundsError, DTypeError, ShapeError, UnsupportedError
from ..elementwise.comparison import where
from ..index.indexing import in_range, index_by, position_tensor, unindex
from ..index.scatter import index_add, index_reduce
from ..reduce.sort import searchsorted


def value_range(t: Tensor) -> tuple[int, int]:
    """The smallest and the largest element of an integer tensor; (0, -1) when it is empty."""
    array = t._array
    if not array.size:
        return 0, -1
    k = backend_of(array)
    every = tuple(range(len(array.shape)))
    low = k.to_host(k.reduce("min", array, every, False))
    return int(low), int(k.to_host(k.reduce("max", array, every, False)))


def require_within(
    t: Tensor, low: int, high: int, message: str, *more: Any, but: int | None = None
) -> None:
    """Raise a BoundsError unless all of an integer tensor is from `low` to `high` - 1, or `but`.

    The message has a place for the element that is not, and for `more`.
    """

    def error(host: Any) -> BoundsError:
        if but is not None:
            host = host[host != but]
        least, most = int(host.min()), int(host.max())
        return BoundsError(message.format(least if least < low else most, *more))

    backend_of(t._array).require(t._array, low, high, error, but)


def steps(count: int, like: Tensor) -> Tensor:
    """0, 1, 2 … on the device of another tensor."""
    return wrap(backend_of(like._array).arange(0, 1, count, dtypes.int64.numpy))


@function(top=False, method=False, functional=True)
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A 1 at the class of each element along a new last dimension, and zeros elsewhere.

    Without `num_classes` there are as many classes as the largest element needs.

    >>> import undertow as ut
    >>> ut.nn.functional.one_hot(ut.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if tensor.dtype is not dtypes.int64:
        raise DTypeError(f"[one_hot] expects class indices of dtype int64, got {tensor.dtype}")
    if num_classes == -1:
        if not tensor.numel():
            raise ArgumentError(
                "[one_hot] the number of classes of an empty tensor is unknown; pass num_classes"
            )
        if READERS:
            tell(tensor)
        num_classes = value_range(tensor)[1] + 1
    elif num_classes < 1 and (tensor.numel() or num_classes < -1):
        raise ArgumentError(f"[one_hot] num_classes must be at least 1, got {num_classes}")
    message = "[one_hot] class index {} is out of range for {} classes"
    require_within(tensor, 0, num_classes, message, num_classes)
    return cast(tensor.unsqueeze(-1) == steps(num_classes, tensor), dtypes.int64)


# Rows of a table -----------------------------------------------------------------------------
# Rows whose gradient is scaled (0 for padding, 1/frequency) on its way back to the table.
_scaled_rows = Op(
    "embedding",
    lambda k, weight, indices, scale: k.take(weight, (indices,)),
    inputs="weight indices scale",
    vjp={
        # What is scaled by 0 is left out, whatever it is: NaN as well.
        "weight": lambda g, indices, scale, weight_shape: unindex(
            where(scale == 0, 0, g * scale), (indices,), (0,), weight_shape
        )
    },
)


def _rows(
    indices: Tensor,
    weight: Tensor,
    padding_idx: int | None,
    by_frequency: bool,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` at indices that are in range."""
    if sparse and current().grad and weight.requires_grad:
        return _rows_apart(indices, weight, padding_idx)
    if padding_idx is None and not by_frequency:
        return index_by(weight, (indices,), (0,))
    scale = weight.detach().new_ones(indices.shape)
    if by_frequency:
        counts = indices.reshape(-1).bincount(minlength=weight.shape[0])
        scale = scale / index_by(counts, (indices,), (0,))
    if padding_idx is not None:
        scale = where(indices == padding_idx, 0, scale)
    return apply(_scaled_rows, (weight, indices, scale.unsqueeze(-1)))


_adding = Lock()


def _rows_apart(indices: Tensor, weight: Tensor, padding_idx: int | None) -> Tensor:
    """Rows whose gradient goes to `.grad` of the table as a sparse tensor.

    They are a leaf of their own, so that nothing in the graph is as large as the table; when their
    gradient has come it is handed on. A dense gradient that is there already takes it up.
    """

    def hand_on(rows: Tensor) -> None:
        values, rows.grad = rows.grad, None
        assert values is not None
        at, values = indices.reshape(-1), values.reshape(indices.numel(), weight.shape[1])
        if padding_idx is not None:
            counted = at != padding_idx
            at, values = at[counted], values[counted]
        kind = import_module("undertow.sparse").SparseCOO
        new = kind(at.unsqueeze(0), values, weight.shape, False)
        with _adding:
            weight._grad = new if weight._grad is None else new + weight._grad

    rows = index_by(weight.detach(), (indices,), (0,)).requires_grad_()
    rows.register_post_accumulate_grad_hook(hand_on)
    return rows


def _table(
    op: str, indices: Any, weight: Tensor, padding_idx: int | None, sparse: bool, scaled: bool
) -> tuple[Tensor, int | None]:
    """The checked indices, and the padding index counted from the front."""
    if sparse and scaled:
        raise UnsupportedError(f"[{op}] scale_grad_by_freq does not go with sparse gradients")
    if sparse and not weight.is_leaf:
        raise UnsupportedError(
            f"[{op}] sparse gradients are for a leaf, and weight was made by "
            f"{weight.grad_fn.name()}; pass sparse=False"  # type: ignore[union-attr]
        )
    shape = weight._array.shape
    if len(shape) != 2:
        raise ShapeError(f"[{op}] weight must be a table (rows, features), got {weight.shape}")
    rows = shape[0]
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise ArgumentError(
                f"[{op}] padding_idx {padding_idx} is out of range for a table of {rows} rows"
            )
        padding_idx %= rows
    return in_range(op, position_tensor(op, indices, "input"), rows, 0), padding_idx


def _limit_norms(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Shrink, in place, the rows that are looked up and longer than `max_norm`."""
    with no_grad():
        table, used = weight.detach(), indices.unique()
        rows = index_by(table, (used,), (0,))
        norms = rows.norm(norm_type, 1, True)
        shrink = where(norms > max_norm, max_norm / (norms + 1e-7), 1)
        table.index_copy_(0, used, rows * shrink)


@function(top=False, method=False, functional=True)
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of the table `weight` at the indices `input`.

    Row `padding_idx` receives no gradient. `max_norm` first shrinks the rows that are looked up, in
    place, to that norm. `scale_grad_by_freq` divides a row's gradient by its number of occurrences.
    With `sparse`, backward gives the table, a leaf, a sparse gradient of the rows looked up, for
    SGD, Adagrad or SparseAdam.

    >>> import undertow as ut
    >>> table = ut.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> ut.nn.functional.embedding(ut.tensor([2, 0]), table)
    tensor([[5., 6.],
            [1., 2.]])
    """
    indices, padding_idx = _table(
        "embedding", input, weight, padding_idx, sparse, scale_grad_by_freq
    )
    if max_norm is not None:
        _limit_norms(weight, indices, max_norm, norm_type)
    return _rows(indices, weight, padding_idx, scale_grad_by_freq, sparse)


# Bags ----------------------------------------------------------------------------------------
@function(top=False, method=False, functional=True)
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of the rows in each bag of indices.

    The bags are the rows of a 2-d `input`, or the parts of a 1-d one that start at `offsets`. An
    empty bag gives zeros; indices equal to `padding_idx` do not count.

    >>> import undertow as ut
    >>> table = ut.tensor([[1.0], [2.0], [30.0]])
    >>> ut.nn.functional.embedding_bag(ut.tensor([0, 1, 2]), table, ut.tensor([0, 2]), mode="sum")
    tensor([[ 3.],
            [30.]])
    """
    op = "embedding_bag"
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError(f"[{op}] mode must be 'sum', 'mean' or 'max', got {mode!r}")
    if mode == "max" and sparse:
        raise UnsupportedError(f"[{op}] sparse gradients do not go with mode='max'")
    if mode == "max" and scale_grad_by_freq:
        raise ArgumentError(f"[{op}] scale_grad_by_freq=True does not go with mode='max'")
    if per_sample_weights is not None:
        if mode != "sum":
            raise UnsupportedError(f"[{op}] per_sample_weights need mode='sum', got {mode!r}")
        if per_sample_weights.shape != input.shape:
            raise ShapeError(
                f"[{op}] per_sample_weights need the input's shape {input.shape}, got "
                f"{per_sample_weights.shape}"
            )
    indices, padding_idx = _table(op, input, weight, padding_idx, sparse, scale_grad_by_freq)
    starts, total = _bags(op, indices, offsets, include_last_offset)
    indices = indices.reshape(-1)[:total]
    bags = starts.shape[0]
    bag = searchsorted(starts, steps(total, indices), right=True) - 1
    if max_norm is not None:
        _limit_norms(weight, indices, max_norm, norm_type)
    if per_sample_weights is not None:
        per_sample_weights = per_sample_weights.reshape(-1, 1)[:total]
    if padding_idx is not None:
        counted = indices != padding_idx
        bag, indices = bag[counted], indices[counted]
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights[counted]
    rows = _rows(indices, weight, None, scale_grad_by_freq, sparse)
    out: Tensor = rows.new_zeros((bags, weight.shape[1]))
    if mode == "max" and rows.numel():
        return index_reduce(out, 0, bag, rows, "amax", include_self=False)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights
    out = index_add(out, 0, bag, rows)
    if mode == "mean":
        out = out / bag.bincount(minlength=bags).clamp_min(1).unsqueeze(-1)
    return out


def _bags(
    op: str, indices: Tensor, offsets: Tensor | None, include_last: bool
) -> tuple[Tensor, int]:
    """Where each bag begins in the flattened indices, and how many of these are in bags."""
    if indices.ndim == 2:
        if offsets is not None:
            raise ArgumentError(
                f"[{op}] the rows of an input {indices.shape} are its bags; offsets must be None"
            )
        return steps(indices.shape[0], indices) * indices.shape[1], indices.numel()
    if indices.ndim != 1:
        raise ShapeError(f"[{op}] input must be 1-d or 2-d, got shape {indices.shape}")
    if offsets is None or offsets.ndim != 1:
        found = "None" if offsets is None else f"shape {offsets.shape}"
        raise ShapeError(f"[{op}] a 1-d input needs 1-d offsets, got {found}")
    starts = position_tensor(op, offsets, "offsets")
    total, listed = indices.shape[0], starts.tolist()
    if include_last and not listed:
        raise ArgumentError(f"[{op}] include_last_offset=True needs at least one offset, got none")
    if listed and (listed[0] != 0 or listed[-1] > total or listed != sorted(listed)):
        raise ArgumentError(
            f"[{op}] offsets must rise from 0 to at most the {total} indices, got {listed}"
        )
    if include_last:  # what follows the last offset is in no bag
        return starts[:-1], listed[-1]
    return starts, total if listed else 0
