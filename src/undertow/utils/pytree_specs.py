"""The shape of a tree, without its leaves."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from ..errors import ArgumentError
from .pytree_nodes import SUPPORTED_NODES, _get_node_type

__all__ = [
    "LeafSpec",
    "TreeSpec",
    "treespec_dumps",
    "treespec_leaf",
    "treespec_loads",
    "treespec_pprint",
    "treespec_tuple",
]

_DICTS = (dict, OrderedDict, defaultdict)


class TreeSpec:
    """The shape of a tree: its container, what that keeps, and the shapes of its children.

    A leaf has no container.
    """

    __slots__ = ("_children", "_context", "num_children", "num_leaves", "num_nodes", "type")

    num_children: int
    num_leaves: int
    num_nodes: int

    def __init__(self, type: Any, context: Any, children_specs: Iterable[TreeSpec] = ()) -> None:
        self.type, self._context, self._children = type, context, list(children_specs)
        self.num_children = len(self._children)
        self.num_leaves: int = 1 if type is None else sum(c.num_leaves for c in self._children)
        self.num_nodes: int = 1 + sum(c.num_nodes for c in self._children)

    @property
    def context(self) -> Any:
        """What the container keeps beside its children: keys, a class."""
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The shapes of the children."""
        return self._children

    def children(self) -> list[TreeSpec]:
        """The shapes of the children, in a list of their own."""
        return self._children.copy()

    def child(self, index: int) -> TreeSpec:
        """The shape of one child."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Whether there is no container here."""
        return self.type is None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        mine = (self.type, self._context, self._children)
        return mine == (other.type, other._context, other._children)

    def __hash__(self) -> int:
        return hash((self.type, str(self._context), tuple(self._children)))

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self._children))
        kind = getattr(self.type, "__name__", self.type)
        return f"TreeSpec({kind}, {self._context!r}, [{inner}])"

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """A tree of this shape with these leaves."""
        values = list(leaves)
        if len(values) != self.num_leaves:
            raise ArgumentError(
                f"[tree_unflatten] the tree has {self.num_leaves} leaves, got {len(values)}"
            )
        return _rebuild(iter(values), self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What stands in a tree where this shape has its leaves; an error if it is another shape.

        >>> from undertow.utils._pytree import tree_structure
        >>> tree_structure([0, 0]).flatten_up_to([1, (2, 3)])
        [1, (2, 3)]
        """
        found: list[Any] = []
        _up_to(self, tree, found)
        return found


class LeafSpec(TreeSpec):
    """The shape of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None)

    def __repr__(self) -> str:
        return "*"


def _rebuild(leaves: Iterator[Any], spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    values = [_rebuild(leaves, child) for child in spec._children]
    return SUPPORTED_NODES[spec.type].unflatten_fn(values, spec._context)


def _up_to(spec: TreeSpec, tree: Any, found: list[Any]) -> None:
    if spec.type is None:
        found.append(tree)
        return
    children = children_like(spec, tree)
    if children is None:
        raise ArgumentError(f"[tree_map] the trees differ: one has {spec}, the other {tree!r:.80}")
    for child, below in zip(spec._children, children, strict=True):
        _up_to(child, below, found)


def children_like(spec: TreeSpec, tree: Any) -> list[Any] | None:
    """The children of a tree if it is such a container as the shape, in its order, else None.

    Dicts of any kind are alike if they have the same keys.
    """
    kind = _get_node_type(tree)
    if kind in _DICTS and spec.type in _DICTS:
        keys = spec._context[1] if spec.type is defaultdict else spec._context
        return [tree[key] for key in keys] if set(keys) == set(tree) else None
    if kind != spec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return (
        list(children) if (len(children), context) == (spec.num_children, spec._context) else None
    )


def treespec_leaf() -> LeafSpec:
    """The shape of a leaf."""
    return LeafSpec()


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The shape of a tuple of these.

    >>> treespec_tuple([treespec_leaf(), treespec_leaf()]).unflatten([1, 2])
    (1, 2)
    """
    return TreeSpec(tuple, None, iterable)


def treespec_pprint(treespec: TreeSpec) -> str:
    """The tree with stars for leaves.

    >>> from undertow.utils._pytree import tree_structure
    >>> treespec_pprint(tree_structure({"a": [1, 2]}))
    "{'a': [*, *]}"
    """

    class Star:
        def __repr__(self) -> str:
            return "*"

    return repr(treespec.unflatten([Star() for _ in range(treespec.num_leaves)]))


# As text ------------------------------------------------------------------------------------------
def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A shape as text, for trees of plain containers; `treespec_loads` reads it.

    >>> from undertow.utils._pytree import tree_structure
    >>> spec = tree_structure({"a": [1, 2]})
    >>> treespec_loads(treespec_dumps(spec)) == spec
    True
    """
    return json.dumps([1, _dumped(treespec)])


def _dumped(spec: TreeSpec) -> Any:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    name = SUPPORTED_NODES[spec.type].name
    if name is None:
        raise ArgumentError(
            f"[treespec_dumps] {spec.type} was registered without serialized_type_name"
        )
    dump = SUPPORTED_NODES[spec.type].to_dumpable or json.dumps
    children = [_dumped(c) for c in spec._children]
    return {"type": name, "context": dump(spec._context), "children_spec": children}


def treespec_loads(serialized: str) -> TreeSpec:
    """The shape that a text of `treespec_dumps` says."""
    protocol, data = json.loads(serialized)
    if protocol != 1:
        raise ArgumentError(f"[treespec_loads] knows protocol 1, got {protocol}")
    return _loaded(data)


def _loaded(data: Any) -> TreeSpec:
    if data["type"] is None:
        return LeafSpec()
    kind = next((k for k, d in SUPPORTED_NODES.items() if d.name == data["type"]), None)
    if kind is None:
        raise ArgumentError(f"[treespec_loads] {data['type']} is not registered")
    context = (SUPPORTED_NODES[kind].from_dumpable or json.loads)(data["context"])
    return TreeSpec(kind, context, [_loaded(c) for c in data["children_spec"]])
