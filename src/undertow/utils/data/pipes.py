"""Data pipes: datasets that are chained by methods, `pipe.map(f).batch(4)`.

`functional_datapipe` gives a class of pipes a method on all pipes. Of torch's own pipes there are
the mapping, the filter and the batches; a generator function does the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from ...errors import ArgumentError
from .dataset import Dataset, IterableDataset

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe"]


class _Chained:
    """Methods that make the next pipe, by name."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        made = type(self).functions.get(name)
        if made is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return functools.partial(made, self)

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Give all pipes a method."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Give all pipes a method that makes a pipe of a class."""
        if function_name in cls.functions:
            raise ArgumentError(f"[functional_datapipe] there is a {function_name!r} already")
        cls.functions[function_name] = cls_to_register

    def reset(self) -> None:
        """Begin again: nothing, unless a subclass has a state."""


class IterDataPipe(_Chained, IterableDataset[Any]):
    """Samples one after the other; chained by methods.

    >>> class Numbers(IterDataPipe):
    ...     def __iter__(self):
    ...         return iter(range(5))
    >>> list(Numbers().map(lambda x: x * x).filter(lambda x: x > 1).batch(2))
    [[4, 9], [16]]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


class MapDataPipe(_Chained, Dataset[Any]):
    """Samples by number; chained by methods."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


class DFIterDataPipe(IterDataPipe):
    """A pipe of data frames."""


class DataChunk(list[Any]):
    """The samples of a batch."""

    def __init__(self, items: Iterable[Any]) -> None:
        super().__init__(items)
        self.items = items


class functional_datapipe:
    """Give pipes a method that makes a pipe of the class below.

    >>> @functional_datapipe("example_double")
    ... class Double(IterDataPipe):
    ...     def __init__(self, source):
    ...         self.source = source
    ...
    ...     def __iter__(self):
    ...         return (2 * x for x in self.source)
    >>> class Numbers(IterDataPipe):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(Numbers().example_double())
    [0, 2, 4]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Any) -> Any:
        base: Any = IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe
        base.register_datapipe_as_function(self.name, cls)
        return cls


@functional_datapipe("map")
class _Mapped(IterDataPipe):
    def __init__(self, source: Iterable[Any], fn: Callable[..., Any]) -> None:
        self.source, self.fn = source, fn

    def __iter__(self) -> Iterator[Any]:
        return map(self.fn, self.source)


@functional_datapipe("filter")
class _Filtered(IterDataPipe):
    def __init__(self, source: Iterable[Any], filter_fn: Callable[..., Any]) -> None:
        self.source, self.fn = source, filter_fn

    def __iter__(self) -> Iterator[Any]:
        return filter(self.fn, self.source)


@functional_datapipe("batch")
class _Batched(IterDataPipe):
    def __init__(self, source: Iterable[Any], batch_size: int, drop_last: bool = False) -> None:
        self.source, self.size, self.drop_last = source, batch_size, drop_last

    def __iter__(self) -> Iterator[Any]:
        batch = []
        for sample in self.source:
            batch.append(sample)
            if len(batch) == self.size:
                yield DataChunk(batch)
                batch = []
        if batch and not self.drop_last:
            yield DataChunk(batch)
