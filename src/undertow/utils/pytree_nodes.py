"""Which classes are containers, and how each is taken apart and made again."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, NamedTuple

from ..errors import ArgumentError
from .pytree_keys import GetAttrKey, MappingKey, SequenceKey

PyTree = Any
Context = Any
Flatten = Callable[[Any], tuple[list[Any], Any]]  # the children, and what else is to be kept
Unflatten = Callable[[Iterable[Any], Any], Any]


class NodeDef(NamedTuple):
    """What is known of a class of containers."""

    type: Any
    flatten_fn: Flatten
    unflatten_fn: Unflatten
    flatten_with_keys_fn: Callable[[Any], tuple[list[Any], Any]] | None
    name: str | None = None  # in texts of shapes
    to_dumpable: Callable[[Any], Any] | None = None  # what is kept, as what JSON knows, and back
    from_dumpable: Callable[[Any], Any] | None = None


SUPPORTED_NODES: dict[Any, NodeDef] = {}


def _get_node_type(tree: Any) -> Any:
    """The type under which a tree is known: `namedtuple` for those of no registered class."""
    kind = type(tree)
    return namedtuple if kind not in SUPPORTED_NODES and is_namedtuple_class(kind) else kind


def is_namedtuple_class(cls: Any) -> bool:
    """Whether a class is one of named tuples."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
    )


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether something is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether something is a named tuple or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def is_structseq_class(cls: Any) -> bool:
    """Whether a class is one of C's sequences with names, as `time.struct_time`."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and isinstance(getattr(cls, "n_sequence_fields", None), int)
    )


def is_structseq_instance(obj: Any) -> bool:
    """Whether something is one of C's sequences with names."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether something is one of C's sequences with names, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


# Registering --------------------------------------------------------------------------------------
def register_pytree_node(
    cls: type,
    flatten_fn: Flatten,
    unflatten_fn: Unflatten,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
    **more: Any,
) -> None:
    """Make instances of a class containers, given how to take them apart and make them again.

    >>> from undertow.utils._pytree import register_pytree_node, tree_leaves
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda c, _: Pair(*c))
    >>> tree_leaves(Pair(1, [2]))
    [1, 2]
    """
    if cls in SUPPORTED_NODES:
        raise ArgumentError(f"[register_pytree_node] {cls} is already registered as pytree node")
    SUPPORTED_NODES[cls] = NodeDef(
        cls,
        flatten_fn,
        unflatten_fn,
        flatten_with_keys_fn,
        serialized_type_name,
        to_dumpable_context,
        from_dumpable_context,
    )


_register_pytree_node = _private_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls: type) -> None:
    """Make instances of a class leaves again."""
    SUPPORTED_NODES.pop(cls, None)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make instances of a dataclass containers: their fields are the children.

    Fields that are None are not children, as in torch.
    """
    if field_names is None:
        if not dataclasses.is_dataclass(cls):
            raise ArgumentError(f"[register_dataclass] {cls} is no dataclass; give field_names")
        field_names = [f.name for f in dataclasses.fields(cls) if f.init]
    names = [n for n in field_names if n not in (drop_field_names or ())]

    def take(obj: Any) -> tuple[list[Any], Any]:
        there = [n for n in names if getattr(obj, n) is not None]
        absent = [n for n in names if n not in there]
        return [getattr(obj, n) for n in there], (there, absent)

    def take_keys(obj: Any) -> tuple[list[Any], Any]:
        values, kept = take(obj)
        return [(GetAttrKey(n), v) for n, v in zip(kept[0], values, strict=True)], kept

    def make(values: Iterable[Any], kept: Any) -> Any:
        there, absent = kept
        return cls(**dict(zip(there, values, strict=True)), **dict.fromkeys(absent))

    register_pytree_node(
        cls, take, make, serialized_type_name=serialized_type_name, flatten_with_keys_fn=take_keys
    )


def register_constant(cls: type) -> None:
    """Make instances of a class part of the shape of a tree: containers without children."""
    register_pytree_node(cls, lambda obj: ([], obj), lambda _, obj: obj)


# The ones that there are --------------------------------------------------------------------------
def _tuple_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d), None


def _tuple_unflatten(values: Iterable[Any], context: Context) -> tuple[Any, ...]:
    return tuple(values)


_list_flatten = _tuple_flatten


def _list_unflatten(values: Iterable[Any], context: Context) -> list[Any]:
    return list(values)


def _list_flatten_with_keys(d: Any) -> tuple[list[Any], Context]:
    return [(SequenceKey(i), v) for i, v in enumerate(d)], None


def _dict_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: Any) -> tuple[list[Any], Context]:
    return [(MappingKey(k), v) for k, v in d.items()], list(d)


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _fields_with_keys(d: Any) -> tuple[list[Any], Context]:
    return [(GetAttrKey(n), getattr(d, n)) for n in d._fields], type(d)


def _register_own() -> None:
    rows: list[tuple[Any, Flatten, Unflatten, Any]] = [
        (tuple, _tuple_flatten, _tuple_unflatten, _list_flatten_with_keys),
        (list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
        (dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
        (
            namedtuple,
            lambda d: (list(d), type(d)),
            lambda values, kind: kind(*values),
            _fields_with_keys,
        ),
        (
            OrderedDict,
            _dict_flatten,
            lambda values, keys: OrderedDict(zip(keys, values, strict=True)),
            _dict_flatten_with_keys,
        ),
        (
            defaultdict,
            lambda d: (list(d.values()), [d.default_factory, list(d)]),
            lambda values, kept: defaultdict(kept[0], zip(kept[1], values, strict=True)),
            lambda d: (_dict_flatten_with_keys(d)[0], [d.default_factory, list(d)]),
        ),
        (
            deque,
            lambda d: (list(d), d.maxlen),
            lambda values, maxlen: deque(values, maxlen=maxlen),
            lambda d: (_list_flatten_with_keys(d)[0], d.maxlen),
        ),
    ]
    texts = {namedtuple: (_class_name, _class_of), defaultdict: (_named_factory, _factory_of)}
    for kind, take, make, take_keys in rows:
        name = f"{kind.__module__}.{kind.__name__}"
        SUPPORTED_NODES[kind] = NodeDef(
            kind, take, make, take_keys, name, *texts.get(kind, (None, None))
        )


def _class_name(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _class_of(name: str) -> Any:
    module, _, last = name.rpartition(".")
    return getattr(import_module(module), last)


def _named_factory(kept: Any) -> dict[str, Any]:
    factory, keys = kept
    return {
        "default_factory_module": getattr(factory, "__module__", None),
        "default_factory_name": getattr(factory, "__qualname__", None),
        "dict_context": keys,
    }


def _factory_of(text: Any) -> list[Any]:
    name = text["default_factory_name"]
    factory = name and getattr(import_module(text["default_factory_module"]), name)
    return [factory, text["dict_context"]]


_register_own()
