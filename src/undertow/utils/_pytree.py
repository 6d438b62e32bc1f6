"""Nested containers as lists of leaves: what a function takes or returns, under torch's names.

A container is a tuple, a named tuple, a list, a dict, an OrderedDict, a defaultdict, a deque or
what was registered (`pytree_nodes`); everything else, None included, is a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..errors import ArgumentError
from .pytree_keys import GetAttrKey, KeyEntry, KeyPath, MappingKey, SequenceKey, key_get, keystr
from .pytree_nodes import (
    SUPPORTED_NODES,
    Context,
    NodeDef,
    PyTree,
    _deregister_pytree_node,
    _dict_flatten,
    _dict_flatten_with_keys,
    _dict_unflatten,
    _get_node_type,
    _is_namedtuple_instance,
    _list_flatten,
    _list_flatten_with_keys,
    _list_unflatten,
    _private_register_pytree_node,
    _register_pytree_node,
    _tuple_flatten,
    _tuple_unflatten,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    register_constant,
    register_dataclass,
    register_pytree_node,
)
from .pytree_specs import (
    LeafSpec,
    TreeSpec,
    children_like,
    treespec_dumps,
    treespec_leaf,
    treespec_loads,
    treespec_pprint,
    treespec_tuple,
)

__all__ = [
    "Context",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "PyTree",
    "SUPPORTED_NODES",
    "SequenceKey",
    "TreeSpec",
    "_broadcast_to_and_flatten",
    "_deregister_pytree_node",
    "_dict_flatten",
    "_dict_flatten_with_keys",
    "_dict_unflatten",
    "_get_node_type",
    "_is_namedtuple_instance",
    "_list_flatten",
    "_list_flatten_with_keys",
    "_list_unflatten",
    "_private_register_pytree_node",
    "_register_pytree_node",
    "_tuple_flatten",
    "_tuple_unflatten",
    "arg_tree_leaves",
    "broadcast_prefix",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "map_only",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_leaf",
    "treespec_loads",
    "treespec_pprint",
    "treespec_tuple",
]

IsLeaf = Callable[[Any], bool] | None
_LEAF = LeafSpec()


# Taking apart and putting together ----------------------------------------------------------------
def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves, from left to right, and the shape of the tree.

    >>> from undertow.utils._pytree import tree_flatten, tree_unflatten
    >>> leaves, spec = tree_flatten({"a": 1, "b": (2, [3])})
    >>> leaves
    [1, 2, 3]
    >>> tree_unflatten([4, 5, 6], spec)
    {'a': 4, 'b': (5, [6])}
    """
    leaves: list[Any] = []

    def walk(node: Any) -> TreeSpec:
        kind = _get_node_type(node)
        if kind not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(node)):
            leaves.append(node)
            return _LEAF
        children, context = SUPPORTED_NODES[kind].flatten_fn(node)
        return TreeSpec(kind, context, [walk(child) for child in children])

    spec = walk(tree)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """A tree of that shape with these leaves."""
    return treespec.unflatten(leaves)


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether there is no container.

    >>> tree_is_leaf(1), tree_is_leaf([1])
    (True, False)
    """
    return _get_node_type(tree) not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(tree))


_is_leaf = tree_is_leaf


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves, one after the other."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
    else:
        for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
            yield from tree_iter(child, is_leaf)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves, from left to right."""
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of the arguments of a call."""
    return [leaf for given in (*args, *kwargs.values()) for leaf in tree_iter(given)]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """The shape of a tree."""
    return tree_flatten(tree, is_leaf)[1]


# Functions of leaves ------------------------------------------------------------------------------
def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of the same shape, with `func` of each leaf, and of what stands there in `rests`.

    >>> from undertow.utils._pytree import tree_map
    >>> tree_map(lambda a, b: a + b, {"a": [1, 2]}, {"a": [10, 20]})
    {'a': [11, 22]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten([func(*values) for values in zip(leaves, *others, strict=True)])


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Call a function for each leaf, and give the tree back."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    for values in zip(leaves, *others, strict=True):
        func(*values)
    return tree


def map_only(kind: Any, /) -> Callable[[Callable[..., Any]], Callable[[Any], Any]]:
    """A function for leaves of a type, or for those that a predicate picks; others stay."""
    picks = _picks(kind)
    return lambda func: lambda x: func(x) if picks(x) else x


def _picks(kind: Any) -> Callable[[Any], bool]:
    if isinstance(kind, (type, tuple)) or not callable(kind):
        return lambda x: isinstance(x, kind)
    return kind


def tree_map_only(kind: Any, /, func: Callable[..., Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """`tree_map` of the leaves of a type, or of those that a predicate picks; others stay."""
    return tree_map(map_only(kind)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    kind: Any, /, func: Callable[..., Any], tree: Any, is_leaf: IsLeaf = None
) -> Any:
    """`tree_map_` of the leaves of a type."""
    return tree_map_(map_only(kind)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are so."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether a leaf is so."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    kind: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None
) -> bool:
    """Whether all leaves of a type are so."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, kind))


def tree_any_only(
    kind: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None
) -> bool:
    """Whether a leaf of a type is so."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, kind))


# Paths --------------------------------------------------------------------------------------------
def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves with the keys that lead to them, and the shape of the tree.

    >>> tree_flatten_with_path({"a": [1]})[0]
    [((MappingKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves with the keys that lead to them."""
    return list(_with_paths((), tree, is_leaf))


def _with_paths(path: KeyPath, tree: Any, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    ways = SUPPORTED_NODES[_get_node_type(tree)]
    if ways.flatten_with_keys_fn is None:
        raise ArgumentError(
            f"[tree_flatten_with_path] {type(tree).__name__} has no keys; register it with "
            "flatten_with_keys_fn"
        )
    for key, child in ways.flatten_with_keys_fn(tree)[0]:
        yield from _with_paths((*path, key), child, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None
) -> Any:
    """`tree_map` whose function gets the path first.

    >>> tree_map_with_path(lambda path, x: keystr(path), {"a": [1]})
    {'a': ["['a'][0]"]}
    """
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    rows = zip(found, *others, strict=True)
    return spec.unflatten([func(*pair, *rest) for pair, *rest in rows])


# Prefixes -----------------------------------------------------------------------------------------
def broadcast_prefix(prefix: Any, tree: Any) -> list[Any] | None:
    """A value for each leaf, where one leaf of `prefix` may stand for all below it; None if not.

    >>> from undertow.utils._pytree import broadcast_prefix
    >>> broadcast_prefix((0, None), ([1, 2], 3))
    [0, 0, None]
    """
    return _broadcast_to_and_flatten(prefix, tree_structure(tree))


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: IsLeaf = None
) -> list[Any] | None:
    """A value of `tree` for each leaf of a shape, where a leaf may stand for all below it."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    children = None if treespec.is_leaf() else children_like(treespec, tree)
    if children is None:
        return None
    found: list[Any] = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        below = _broadcast_to_and_flatten(child, spec, is_leaf)
        if below is None:
            return None
        found += below
    return found
