"""Nested containers as lists of leaves: what a function takes or returns, under torch's names.

A container is a tuple, a named tuple, a list, a dict, an OrderedDict, a defaultdict or what was
registered; everything else, None included, is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError

Flatten = Callable[[Any], tuple[list[Any], Any]]  # the children, and what else is to be kept
Unflatten = Callable[[Iterable[Any], Any], Any]

_CONTAINERS: dict[Any, tuple[Flatten, Unflatten]] = {
    tuple: (lambda t: (list(t), None), lambda values, _: tuple(values)),
    list: (lambda t: (list(t), None), lambda values, _: list(values)),
    dict: (
        lambda t: (list(t.values()), list(t)),
        lambda values, keys: dict(zip(keys, values, strict=True)),
    ),
    OrderedDict: (
        lambda t: (list(t.values()), list(t)),
        lambda values, keys: OrderedDict(zip(keys, values, strict=True)),
    ),
    defaultdict: (
        lambda t: (list(t.values()), (t.default_factory, list(t))),
        lambda values, kept: defaultdict(kept[0], zip(kept[1], values, strict=True)),
    ),
}
_NAMED: tuple[Flatten, Unflatten] = (
    lambda t: (list(t), type(t)),
    lambda values, kind: kind(*values),
)


@dataclass(frozen=True)
class TreeSpec:
    """The shape of a tree: its container, what that keeps, and the shapes of its children.

    A leaf has no container.
    """

    type: Any
    context: Any
    children_specs: tuple[TreeSpec, ...]

    def is_leaf(self) -> bool:
        """Whether there is no container here."""
        return self.type is None

    @property
    def num_leaves(self) -> int:
        """How many leaves there are below."""
        return 1 if self.type is None else sum(c.num_leaves for c in self.children_specs)


_LEAF = TreeSpec(None, None, ())


def _container(tree: Any) -> Any:
    """The type under which a container is known; None for a leaf."""
    kind = type(tree)
    if kind in _CONTAINERS:
        return kind
    return "namedtuple" if isinstance(tree, tuple) and hasattr(kind, "_fields") else None


def _ways(kind: Any) -> tuple[Flatten, Unflatten]:
    return _NAMED if kind == "namedtuple" else _CONTAINERS[kind]


def register_pytree_node(
    cls: type, flatten_fn: Flatten, unflatten_fn: Unflatten, **names: Any
) -> None:
    """Make instances of a class containers, given how to take them apart and make them again."""
    _CONTAINERS[cls] = flatten_fn, unflatten_fn


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """The leaves, from left to right, and the shape of the tree.

    >>> from undertow.utils._pytree import tree_flatten, tree_unflatten
    >>> leaves, spec = tree_flatten({"a": 1, "b": (2, [3])})
    >>> leaves
    [1, 2, 3]
    >>> tree_unflatten([4, 5, 6], spec)
    {'a': 4, 'b': (5, [6])}
    """
    kind = None if is_leaf is not None and is_leaf(tree) else _container(tree)
    if kind is None:
        return [tree], _LEAF
    children, context = _ways(kind)[0](tree)
    parts = [tree_flatten(child, is_leaf) for child in children]
    leaves = [leaf for part, _ in parts for leaf in part]
    return leaves, TreeSpec(kind, context, tuple(spec for _, spec in parts))


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """A tree of that shape with these leaves."""
    values = list(leaves)
    if len(values) != treespec.num_leaves:
        raise ArgumentError(
            f"[tree_unflatten] the tree has {treespec.num_leaves} leaves, got {len(values)}"
        )
    return _rebuild(iter(values), treespec)


def _rebuild(leaves: Any, spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    return _ways(spec.type)[1]([_rebuild(leaves, c) for c in spec.children_specs], spec.context)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves, from left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The shape of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """A tree of the same shape, with `func` of each leaf, and of those of `rests` there.

    >>> from undertow.utils._pytree import tree_map
    >>> tree_map(lambda a, b: a + b, {"a": [1, 2]}, {"a": [10, 20]})
    {'a': [11, 22]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = []
    for rest in rests:
        found, shape = tree_flatten(rest, is_leaf)
        if shape != spec:
            raise ArgumentError(f"[tree_map] the trees differ in shape: {spec} and {shape}")
        others.append(found)
    return tree_unflatten([func(*values) for values in zip(leaves, *others, strict=True)], spec)


def tree_map_only(kind: Any, func: Callable[..., Any], tree: Any) -> Any:
    """`tree_map` of the leaves of a type, or of those that a predicate picks; others stay."""
    of_kind = isinstance(kind, (type, tuple))
    return tree_map(lambda x: func(x) if (isinstance(x, kind) if of_kind else kind(x)) else x, tree)


def broadcast_prefix(prefix: Any, tree: Any) -> list[Any] | None:
    """A value for each leaf, where one leaf of `prefix` may stand for all below it; None if not.

    >>> from undertow.utils._pytree import broadcast_prefix
    >>> broadcast_prefix((0, None), ([1, 2], 3))
    [0, 0, None]
    """
    kind = _container(prefix)
    if kind is None:
        return [prefix] * len(tree_leaves(tree))
    if _container(tree) != kind:
        return None
    (values, first), (parts, second) = (_ways(kind)[0](t) for t in (prefix, tree))
    if first != second or len(values) != len(parts):
        return None
    found = [broadcast_prefix(v, p) for v, p in zip(values, parts, strict=True)]
    return None if None in found else [leaf for some in found if some for leaf in some]
