"""Forward mode by hand: tensors with tangents, as in `torch.autograd.forward_ad`.

A tangent says how a tensor changes along a direction, and every op says how its result does; see
Note [tangents] in backends/dual. `func.jvp` is the same as a function of functions.

>>> import undertow as ut
>>> import undertow.autograd.forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(ut.tensor(3.0), ut.tensor(1.0))
...     fwAD.unpack_dual(x * x).tangent
tensor(6.)
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple

from ..backends.dual import Level
from ..backends.registry import backend_of
from ..backends.wrapped import WRAPPERS
from ..core.tensor import Tensor
from ..errors import ArgumentError, DTypeError, GradientError, ShapeError, UnsupportedError
from .forward_mode import dual, level_of, unpacked

_open: ContextVar[tuple[Level, ...]] = ContextVar("undertow_dual_levels", default=())
_current_level = -1  # torch's name for the number of the innermost level


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin a level, whose number is returned; `exit_dual_level` ends it. See `dual_level`."""
    global _current_level
    _current_level = len(_open.get())
    _open.set((*_open.get(), Level()))
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """End the innermost level: its tangents are forgotten."""
    global _current_level
    levels = _open.get()
    if not levels:
        raise GradientError("[exit_dual_level] there is no level to leave")
    if level is not None and level != len(levels) - 1:
        raise GradientError(
            f"[exit_dual_level] only the innermost level, {len(levels) - 1}, can be left, got "
            f"{level}"
        )
    levels[-1].end()
    _open.set(levels[:-1])
    _current_level = len(levels) - 2


class dual_level:
    """A block in which tensors may have tangents, forgotten at its end.

    >>> import undertow as ut
    >>> with ut.autograd.forward_ad.dual_level():
    ...     x = ut.autograd.forward_ad.make_dual(ut.ones(2), ut.tensor([1.0, 0.0]))
    ...     ut.autograd.forward_ad.unpack_dual(x.exp()).tangent
    tensor([2.7183, 0.0000])
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


def _level(op: str, level: int | None) -> Level:
    levels = _open.get()
    if not levels:
        raise GradientError(
            f"[{op}] there is no level of forward mode here; do it inside of dual_level()"
        )
    if level is not None and not 0 <= level < len(levels):
        raise GradientError(f"[{op}] there is no level {level}")
    return levels[-1] if level is None else levels[level]


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of a tensor that has a tangent, of the same shape and dtype.

    >>> import undertow as ut
    >>> import undertow.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(ut.ones(2), ut.ones(2))
    ...     fwAD.unpack_dual(x * 3).tangent
    tensor([3., 3.])
    """
    return with_tangent("make_dual", tensor, tangent, _level("make_dual", level))


def with_tangent(op: str, x: Any, change: Any, level: Level) -> Tensor:
    """A view of `x` with a tangent at a level."""
    for t in (x, change):
        if not isinstance(t, Tensor):
            raise DTypeError(f"[{op}] takes tensors, got {type(t).__name__}")
        if not t.dtype.is_differentiable:
            raise ArgumentError(f"[{op}] takes floating or complex tensors, got one of {t.dtype}")
    if WRAPPERS in (backend_of(x._array), backend_of(change._array)):
        raise UnsupportedError(f"[{op}] a wrapper (`_make_wrapper_subclass`) has no tangents here")
    if x.shape != change.shape:
        raise ShapeError(f"[{op}] a tangent of {change.shape} does not fit {x.shape}")
    if x.dtype is not change.dtype:
        raise DTypeError(f"[{op}] a tangent of {change.dtype} does not fit {x.dtype}")
    if level_of(x) is level:
        raise GradientError(f"[{op}] this tensor has a tangent of this level already")
    if level_of(change) is level:
        raise GradientError(f"[{op}] this tangent has a tangent of this level itself")
    view: Tensor = x.view(x.shape)
    view._array = dual(view, change, level)
    return view


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal of a tensor, and its tangent, or None.

    >>> import undertow as ut
    >>> import undertow.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     fwAD.unpack_dual(ut.ones(1))
    UnpackedDualTensor(primal=tensor([1.]), tangent=None)
    """
    levels = _open.get()
    if not levels:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*unpacked(tensor, _level("unpack_dual", level)))
