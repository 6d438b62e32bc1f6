"""`utils._pytree`: containers of every kind, paths, texts of shapes."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest

from undertow.utils import _pytree as tree

Point = namedtuple("Point", "x y")
TREES: list[Any] = [
    {"a": 1, "b": (2, [3])},
    Point(1, [2, 3]),
    OrderedDict(b=1, a=[2, 3]),
    defaultdict(list, a=1, b=(2, 3)),
    deque([1, {"a": 2}, 3], maxlen=5),
    [],
    None,
]


@pytest.mark.parametrize("given", TREES, ids=str)
def test_apart_and_together(given: Any) -> None:
    leaves, spec = tree.tree_flatten(given)
    assert leaves == (list(range(1, spec.num_leaves + 1)) if given is not None else [None])
    back = tree.tree_unflatten(leaves, spec)
    assert back == given
    assert type(back) is type(given)
    assert tree.tree_structure(back) == spec
    assert hash(tree.tree_structure(back)) == hash(spec)
    assert [leaf for _, leaf in tree.tree_leaves_with_path(given)] == leaves
    for path, leaf in tree.tree_leaves_with_path(given):
        assert tree.key_get(given, path) == leaf
    assert tree.treespec_loads(tree.treespec_dumps(spec)) == spec


def test_functions_of_leaves() -> None:
    given = {"a": 1, "b": [2.0, "c"]}
    assert tree.tree_map_only(int, lambda x: x + 1, given) == {"a": 2, "b": [2.0, "c"]}
    assert tree.tree_map_only(lambda x: x == "c", str.upper, given) == {"a": 1, "b": [2.0, "C"]}
    assert tree.tree_any(lambda x: x == 2.0, given)
    assert tree.tree_all_only(int, lambda x: x == 1, given)
    assert tree.tree_map(lambda a, b: (a, b), [1, 2], [3, (4, 5)]) == [(1, 3), (2, (4, 5))]
    assert tree.tree_map(lambda a, b: a + b, {"x": 1, "y": 2}, {"y": 3, "x": 4}) == {"x": 5, "y": 5}
    mixed = tree.tree_map(lambda a, b: a + b, OrderedDict(x=1, y=2), {"y": 3, "x": 4})
    assert mixed == OrderedDict(x=5, y=5)
    assert tree.broadcast_prefix({"x": 1, "y": 2}, OrderedDict(y=[3, 4], x=5)) == [2, 2, 1]
    with pytest.raises(ValueError, match="differ"):
        tree.tree_map(lambda a, b: a, [1, 2], (1, 2))
    with pytest.raises(ValueError, match="differ"):
        tree.tree_map(lambda a, b: a, [1, 2], [1])
    assert tree.tree_map_with_path(lambda p, x: tree.keystr(p), Point(1, {"k": 2})) == Point(
        ".x", {"k": ".y['k']"}
    )
    seen: list[int] = []
    assert tree.tree_map_(seen.append, [1, [2]]) == [1, [2]]
    assert seen == [1, 2]


def test_classes_of_ones_own() -> None:
    @dataclass
    class Two:
        a: Any
        b: Any = None

    tree.register_dataclass(Two)
    assert tree.tree_leaves(Two(1, [2])) == [1, 2]
    assert tree.tree_map(lambda x: x + 1, Two(1)) == Two(2)
    with pytest.raises(ValueError, match="already registered"):
        tree.register_pytree_node(Two, lambda t: ([], None), lambda c, k: Two(None))
    tree._deregister_pytree_node(Two)
    tree.register_pytree_node(
        Two,
        lambda t: ([t.a], frozenset(t.b)),
        lambda c, kept: Two(*c, kept),
        serialized_type_name="Two",
        to_dumpable_context=sorted,
        from_dumpable_context=frozenset,
    )
    spec = tree.tree_structure(Two(1, "ab"))
    assert tree.treespec_loads(tree.treespec_dumps(spec)) == spec
    tree._deregister_pytree_node(Two)
    assert tree.tree_is_leaf(Two(1))
