"""Lists and dictionaries that do not change: the arguments of a node hold these."""

from __future__ import annotations

from typing import Any, NoReturn

from ...utils._pytree import register_pytree_node

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. If you are attempting to "
        "modify the kwargs or args of an fx.Node, create a new copy and assign the copy to the "
        "node: node.args = new_args"
    )


class immutable_list(list[Any]):
    """A list that refuses to change.

    >>> from undertow.fx.immutable_collections import immutable_list
    >>> immutable_list([1, 2])
    [1, 2]
    """

    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dictionary that refuses to change.

    >>> from undertow.fx.immutable_collections import immutable_dict
    >>> immutable_dict({"dim": 1})
    {'dim': 1}
    """

    clear = pop = popitem = setdefault = update = _refuse
    __delitem__ = __ior__ = __setitem__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)


register_pytree_node(
    immutable_list, lambda t: (list(t), None), lambda values, _: immutable_list(values)
)
register_pytree_node(
    immutable_dict,
    lambda t: (list(t.values()), list(t)),
    lambda values, keys: immutable_dict(zip(keys, values, strict=True)),
)
