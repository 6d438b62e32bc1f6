"""Samples into batches: nested containers keep their form, what is in them becomes tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from copy import copy
from typing import Any

import numpy as np

from .... import dtypes
from ....backends.shared_memory import stacked
from ....core.modes import current
from ....core.tensor import Tensor, node_of
from ....errors import ArgumentError, DTypeError
from ....ops.create.from_data import as_tensor, made, tensor
from ....ops.shape.joining import stack

CollateMap = dict[Any, Callable[..., Any]]  # by a type, or a tuple of types


def _is_text_or_objects(array: Any) -> bool:
    return array.dtype.kind in "SUO"


def _rebuilt(like: Any, parts: Any) -> Any:
    """A container of the same type with other parts, as far as the type can be made at all.

    It may have attributes of its own, so a mutable one is a changed copy.
    """
    try:
        if isinstance(like, Mapping):
            if not isinstance(like, MutableMapping):
                return type(like)(parts)  # type: ignore[call-arg]
            clone: Any = copy(like)
            clone.update(parts)
            return clone
        if not isinstance(like, MutableSequence):
            return type(like)(parts)
        clone = copy(like)
        for i, part in enumerate(parts):
            clone[i] = part
        return clone
    except TypeError:  # such as range
        return parts


def default_convert(data: Any) -> Any:
    """NumPy's arrays and numbers, alone or in containers, as tensors; all else as it is.

    What a loader without batches (`batch_size=None`) does to each sample.

    >>> import numpy as np
    >>> default_convert({"x": np.array([1, 2]), "name": "a"})
    {'x': tensor([1, 2]), 'name': 'a'}
    """
    if isinstance(data, (np.ndarray, np.generic)) and not isinstance(data, (np.str_, np.bytes_)):
        return data if _is_text_or_objects(data) else as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuilt(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):  # a named one
        return type(data)(*(default_convert(d) for d in data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]  # a list, as in torch
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt(data, [default_convert(d) for d in data])
    return data


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """A batch of samples, with a function for each type of what is in them.

    >>> collate(
    ...     [(1, "a"), (2, "b")], collate_fn_map={int: lambda b, **_: sum(b), str: collate_str_fn}
    ... )
    [3, ('a', 'b')]
    """
    first = batch[0]
    if collate_fn_map is not None:
        function = collate_fn_map.get(type(first))
        if function is None:
            function = next((f for t, f in collate_fn_map.items() if isinstance(first, t)), None)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)

    def joined(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return _rebuilt(first, {key: joined([d[key] for d in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):  # a named one
        return type(first)(*(joined(samples) for samples in zip(*batch, strict=False)))
    if isinstance(first, Sequence):
        sizes = {len(sample) for sample in batch}
        if len(sizes) > 1:
            raise ArgumentError(
                "[default_collate] each element in list of batch should be of equal size, got "
                f"sizes {sorted(sizes)}; pad them, or give the loader a collate_fn"
            )
        parts = [joined(samples) for samples in zip(*batch, strict=True)]
        return parts if isinstance(first, tuple) else _rebuilt(first, parts)
    raise _unfit(type(first))


def _unfit(found: Any) -> DTypeError:
    return DTypeError(
        "[default_collate] default_collate: batch must contain tensors, numpy arrays, numbers, "
        f"dicts or lists; found {found}; give the loader a collate_fn"
    )


def collate_tensor_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Tensors along a new first dimension; in a worker, where the loader's process can use it."""
    # Most samples have no history, and then there is nothing to record.
    if not current().grad or all(node_of(t) is None for t in batch):
        array = stacked([t._array for t in batch])
        if array is not None:
            return made(array)
    return stack(batch)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """NumPy arrays as tensors, then these."""
    if _is_text_or_objects(batch[0]):
        raise _unfit(batch[0].dtype)
    return collate([as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """NumPy numbers in their own dtype."""
    return as_tensor(np.asarray(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Python's floats, which are float64."""
    return tensor(batch, dtype=dtypes.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Python's integers and booleans."""
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Text and bytes stay as they are."""
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def plain() -> bool:
    """Whether tensors are collated as here, and not by a function that a user put into the map."""
    return default_collate_fn_map.get(Tensor) is collate_tensor_fn


def default_collate(batch: Any) -> Any:
    """A list of samples as one batch: tensors, arrays and numbers get a new first dimension.

    Dicts, named tuples and lists are collated part by part, tuples become lists, text stays text.
    `default_collate_fn_map` says what is done with which type, and can be added to.

    >>> default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    {'x': tensor([1., 2.], dtype=undertow.float64), 'name': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
