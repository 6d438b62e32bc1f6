"""`opcheck`: whether an operator does what its schema says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...errors import ArgumentError
from ...ops.elementwise.comparison import equal
from ...utils._pytree import tree_leaves, tree_map_only
from .._ops import IMPLICIT, OpOverload, lookup

__all__ = ["opcheck"]

_TESTS = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_dynamic",
)


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = _TESTS,
    raise_exception: bool = True,
    **tolerances: Any,
) -> dict[str, str]:
    """Whether an operator changes what it says, has a derivative, and knows its shapes.

    >>> import undertow as ut
    >>> @ut.library.custom_op("example_checked::negative", mutates_args=())
    ... def negative(x: ut.Tensor) -> ut.Tensor:
    ...     return -x
    >>> ut.library.opcheck(negative, (ut.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}
    """
    found = lookup(op)
    results = {}
    for name in [test_utils] if isinstance(test_utils, str) else test_utils:
        try:
            _CHECKS[name](found, args, kwargs or {})
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise
            results[name] = repr(error)
    return results


def _copies(tree: Any) -> Any:
    return tree_map_only(Tensor, lambda t: t.detach().clone().requires_grad_(t.requires_grad), tree)


def _schema(op: OpOverload, args: Any, kwargs: Any) -> None:
    values, named = op._schema.bind(*_copies((args, kwargs)))
    given = [*values, *named.values()]
    before = _copies(given)
    with no_grad():
        result = op(*values, **named)
    for argument, old, new in zip(op._schema.arguments, before, given, strict=True):
        pairs = zip(tree_leaves(old), tree_leaves(new), strict=True)
        same = all(equal(a, b) for a, b in pairs if isinstance(a, Tensor))
        if not same and not argument.is_write:
            raise ArgumentError(
                f"[opcheck] {op.name()} changed {argument.name}, which its schema does not say; "
                "name it in mutates_args"
            )
    count = 0 if result is None else len(result) if isinstance(result, tuple) else 1
    if count != len(op._schema.returns):
        raise ArgumentError(
            f"[opcheck] {op.name()} returned {count} results, its schema has "
            f"{len(op._schema.returns)}"
        )


def _autograd(op: OpOverload, args: Any, kwargs: Any) -> None:
    wanted = any(isinstance(t, Tensor) and t.requires_grad for t in tree_leaves((args, kwargs)))
    keys = {IMPLICIT, "Autograd"} | {k for k in op.kernels if k.startswith("Autograd")}
    if wanted and op.rule is None and not keys & set(op.kernels):
        raise ArgumentError(f"[opcheck] {op.name()} has no derivative; use register_autograd")


def _fake(op: OpOverload, args: Any, kwargs: Any) -> None:
    with no_grad():
        real = tree_leaves(op(*_copies(args), **_copies(kwargs)))
        meta = tree_map_only(Tensor, lambda t: t.detach().to("meta"), (args, kwargs))
        fake = tree_leaves(op(*meta[0], **meta[1]))
    for a, b in zip(real, fake, strict=True):
        if isinstance(a, Tensor) and (a.shape, a.dtype) != (b.shape, b.dtype):
            raise ArgumentError(
                f"[opcheck] {op.name()} returns {a.dtype} of shape {tuple(a.shape)}, and its "
                f"register_fake {b.dtype} of shape {tuple(b.shape)}"
            )


def _backward(op: OpOverload, args: Any, kwargs: Any) -> None:
    values, named = _copies((args, kwargs))
    outputs = [t for t in tree_leaves(op(*values, **named)) if isinstance(t, Tensor)]
    total = [t.sum() for t in outputs if t.requires_grad]
    if total:
        sum(total[1:], total[0]).backward()


_CHECKS: dict[str, Callable[[OpOverload, Any, Any], None]] = {
    "test_schema": _schema,
    "test_autograd_registration": _autograd,
    "test_faketensor": _fake,
    "test_aot_dispatch_static": _backward,
    "test_aot_dispatch_dynamic": _backward,
}
