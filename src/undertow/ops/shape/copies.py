"""Copies of views, under names of their own: `ut.transpose_copy` is `transpose`, then `clone`.

And parts that share memory while nobody follows it: `ut.unsafe_split` and its kin.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...core.register import FUNCTIONS, function
from ...core.tensor import Tensor, Version, new_alias, node_of, wrap
from ...shapes import as_int, wrap_dim
from . import diagonal, joining, movement, strided  # noqa: F401 (where the views are)


def _publish_unsafe(what: str, call: str) -> None:
    splitting = FUNCTIONS[what]

    def parts(*args: Any, **kwargs: Any) -> Any:
        found = []
        for part in splitting(*args, **kwargs):
            alone = wrap(part._array, node_of(part), part._index)
            alone._alias = new_alias(Version(), inference=part.is_inference())
            found.append(alone)
        return tuple(found)

    parts.__doc__ = f"""The parts that `{what}` gives, as if they did not share memory.

    A change of one in place has no effect on the history of `input` or of the other parts, and is
    not noticed by gradients that need those; right if `input` itself is not used any more.

    >>> import undertow as ut
    >>> ut.unsafe_{what}(ut.tensor([1, 2]), {call})
    (tensor([1]), tensor([2]))
    """
    parts.__wrapped__ = inspect.unwrap(splitting)  # type: ignore[attr-defined]
    parts.__annotations__ = {"input": "Tensor", "return": "Any"}
    function(name=f"unsafe_{what}")(parts)


for _name, _call in {"chunk": "2", "split": "1", "split_with_sizes": "[1, 1]"}.items():
    _publish_unsafe(_name, _call)


def _view(input: Tensor, size: Any = None, *, dtype: Any = None) -> Tensor:
    return input.view(dtype if size is None else size)


def _slice(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    where = wrap_dim("slice_copy", dim, input.ndim)
    return input[(slice(None),) * where + (slice(start, end, as_int("slice_copy", "step", step)),)]


def _alias(input: Tensor) -> Tensor:
    return input.expand_as(input)


def _detach(input: Tensor) -> Tensor:
    return input.detach()


def _expand(input: Tensor, size: Any, *, implicit: bool = False) -> Tensor:
    return input.expand(size)


def _unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    return input.unfold(dimension, size, step)


# By the name of the copy: the view, and a call of it with what it prints.
_VIEWS: dict[str, tuple[Callable[..., Any] | str, str, str]] = {
    "alias_copy": (_alias, "(x[0])", "tensor([1, 2])"),
    "as_strided_copy": ("as_strided", "(x, (2,), (2,))", "tensor([1, 3])"),
    "detach_copy": (_detach, "(x[0])", "tensor([1, 2])"),
    "diagonal_copy": ("diagonal", "(x)", "tensor([1, 4])"),
    "expand_copy": (_expand, "(x[:1], (2, 2))", "tensor([[1, 2],\n            [1, 2]])"),
    "narrow_copy": ("narrow", "(x, 0, 1, 1)", "tensor([[3, 4]])"),
    "permute_copy": ("permute", "(x, (1, 0))", "tensor([[1, 3],\n            [2, 4]])"),
    "select_copy": ("select", "(x, 0, 1)", "tensor([3, 4])"),
    "slice_copy": (_slice, "(x, 0, 1)", "tensor([[3, 4]])"),
    "split_copy": ("split", "(x, 1)[1]", "tensor([[3, 4]])"),
    "split_with_sizes_copy": ("split_with_sizes", "(x, (1, 1))[1]", "tensor([[3, 4]])"),
    "squeeze_copy": ("squeeze", "(x[:1])", "tensor([1, 2])"),
    "t_copy": ("t", "(x)", "tensor([[1, 3],\n            [2, 4]])"),
    "transpose_copy": ("transpose", "(x, 0, 1)", "tensor([[1, 3],\n            [2, 4]])"),
    "unbind_copy": ("unbind", "(x)[1]", "tensor([3, 4])"),
    "unfold_copy": (_unfold, "(x[0], 0, 2, 1)", "tensor([[1, 2]])"),
    "unsqueeze_copy": ("unsqueeze", "(x[0], 0)", "tensor([[1, 2]])"),
    "view_as_complex_copy": ("view_as_complex", "(x[0].float())", "tensor(1.+2.j)"),
    "view_as_real_copy": ("view_as_real", "(ut.tensor(1 + 2j))", "tensor([1., 2.])"),
    "view_copy": (_view, "(x, (4,))", "tensor([1, 2, 3, 4])"),
}


def _publish(name: str, view: Callable[..., Any] | str, call: str, printed: str) -> None:
    viewing = FUNCTIONS[view] if isinstance(view, str) else view
    given = inspect.unwrap(viewing)

    def copied(*args: Any, **kwargs: Any) -> Any:
        found = viewing(*args, **kwargs)
        several = isinstance(found, (tuple, list))
        return tuple([t.clone() for t in found]) if several else found.clone()

    what = name.removesuffix("_copy")
    copied.__doc__ = f"""A copy of the view that `{what}` gives: it shares no memory with `input`.

    >>> import undertow as ut
    >>> x = ut.tensor([[1, 2], [3, 4]])
    >>> ut.{name}{call}
    {printed}
    """
    copied.__wrapped__ = given  # type: ignore[attr-defined]
    copied.__annotations__ = {"input": "Tensor", "return": "Any"}
    method: bool | str = name == "narrow_copy"
    function(name=name, method=method)(copied)


for _name, _parts in _VIEWS.items():
    _publish(_name, *_parts)


@function(method=False)
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like `input`, every element of which is `value`, a number or a tensor with one.

    >>> import undertow as ut
    >>> ut.fill(ut.zeros(2), 3)
    tensor([3., 3.])
    """
    return input.clone().fill_(value)
