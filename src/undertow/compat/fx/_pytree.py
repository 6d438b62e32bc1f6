"""Containers taken apart by a shape that is known: what generated code calls with its inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...utils._pytree import TreeSpec, tree_flatten

FlattenFuncSpec = Callable[[Any, TreeSpec], list[Any]]
FlattenFuncExactMatchSpec = Callable[[Any, TreeSpec], bool]

SUPPORTED_NODES: dict[Any, FlattenFuncSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[Any, FlattenFuncExactMatchSpec | None] = {}


def register_pytree_flatten_spec(
    cls: Any,
    flatten_fn_spec: FlattenFuncSpec,
    flatten_fn_exact_match_spec: FlattenFuncExactMatchSpec | None = None,
) -> None:
    """Say how instances of a class are taken apart by a shape."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree: Any, spec: TreeSpec, exact_structural_match: bool = False) -> Any:
    """The leaves of a tree, where `spec` says.

    >>> from undertow.fx._pytree import tree_flatten_spec
    >>> from undertow.utils._pytree import tree_structure
    >>> tree_flatten_spec({"a": 1, "b": [2, 3]}, tree_structure({"a": 0, "b": [0, 0]}))
    [1, 2, 3]
    """
    if spec.is_leaf():
        return [pytree]
    if spec.type in SUPPORTED_NODES:
        children = SUPPORTED_NODES[spec.type](pytree, spec)
        exact = SUPPORTED_NODES_EXACT_MATCH[spec.type]
        if exact_structural_match and exact is not None and not exact(pytree, spec):
            raise RuntimeError(f"Cannot flatten pytree {pytree}, given spec: {spec}")
        leaves = []
        for child, child_spec in zip(children, spec.children_specs, strict=True):
            leaves += tree_flatten_spec(child, child_spec, exact_structural_match)
        return leaves
    found, real = tree_flatten(pytree)
    if real != spec:
        raise RuntimeError(
            f"Real spec {real} of object {pytree} is different from expected spec {spec}"
        )
    return found


def _by_key(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[k] for k in spec.context]


def _by_index(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[i] for i in range(len(spec.children_specs))]


def _same_length(d: Any, spec: TreeSpec) -> bool:
    return len(d) == len(spec.children_specs)


register_pytree_flatten_spec(dict, _by_key, _same_length)
for _kind in (list, tuple, "namedtuple"):
    register_pytree_flatten_spec(_kind, _by_index, _same_length)
