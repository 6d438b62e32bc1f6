"""Types of tensors by their shapes, for annotations of graphs."""

from __future__ import annotations

from typing import Any

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class TensorType:
    """A tensor of these sizes, each a number or `Dyn`."""

    def __init__(self, dim: Any) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and list(self.__args__) == list(other.__args__)

    def __hash__(self) -> int:
        return hash(tuple(self.__args__))

    @staticmethod
    def __class_getitem__(*args: Any) -> TensorType:
        found = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
        return TensorType(tuple(found))


class _DynType:
    """A size or type that is not known."""

    def __init__(self) -> None:
        self.__name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash(_DynType)

    def __str__(self) -> str:
        return "Dyn"

    __repr__ = __str__


Dyn = _DynType()


def is_consistent(t1: Any, t2: Any) -> bool:
    """Whether something may be of both types."""
    if Dyn in (t1, t2) or t1 == t2:
        return True
    if not (isinstance(t1, TensorType) and isinstance(t2, TensorType)):
        return False
    sizes = list(zip(t1.__args__, t2.__args__, strict=False))
    return len(t1.__args__) == len(t2.__args__) and all(is_consistent(a, b) for a, b in sizes)


def is_more_precise(t1: Any, t2: Any) -> bool:
    """Whether whatever is of the first type is of the second."""
    if t1 == t2 or t2 == Dyn:
        return True
    if not (isinstance(t1, TensorType) and isinstance(t2, TensorType)):
        return False
    sizes = list(zip(t1.__args__, t2.__args__, strict=False))
    return len(t1.__args__) == len(t2.__args__) and all(is_more_precise(a, b) for a, b in sizes)
