"""torch's `_foreach_*`: an operation on every tensor of a list.

Note [lists of tensors]
What gives new tensors is the operation of each tensor by itself: a call costs less than a row of a
launch does. What changes tensors in place is one launch for all of them (core/update) where nothing
is recorded, all are of single precision or all of double, and one number goes with all. Functions
that change tensors return the list that they were given, as in torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import dtypes
from ..backends.base import Backend
from ..backends.registry import OF_CLASS
from ..core.modes import current
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor, node_of, share, wrap
from ..core.update import Update
from ..errors import ArgumentError, DTypeError, ShapeError
from ..nn.parameter import Parameter
from ..ops.linalg.matrix_norms import linalg_vector_norm

Tensors = Sequence[Tensor]
_MISSING = object()
_FLOATS = (dtypes.float32.numpy, dtypes.float64.numpy)

_UNARY = """
abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg
reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc
""".split()  # noqa: SIM905
# Of two lists, or of a list and numbers; what torch calls the second argument.
_BINARY = dict.fromkeys(("add", "sub", "mul", "div", "maximum", "minimum"), "other")
_BINARY |= {"clamp_max": "other", "clamp_min": "other", "pow": "exponent"}
_TERNARY = ("addcmul", "addcdiv", "lerp")
_SECOND = ("other", "scalar", "scalars", "exponent")
_THIRD = ("value", "scalars", "weight", "weights")


# What is computed for a tensor -------------------------------------------------------------------
def _of(name: str) -> Callable[..., Any]:
    """The operation as a function of tensors, or of scalar expressions."""
    if name in ("maximum", "clamp_min"):
        return lambda x, y: FUNCTIONS["clamp_min" if _number(y) else "maximum"](x, y)
    if name in ("minimum", "clamp_max"):
        return lambda x, y: FUNCTIONS["clamp_max" if _number(y) else "minimum"](x, y)
    if name in ("add", "sub"):
        plain = FUNCTIONS[name]
        return lambda x, y, a=1: plain(x, y) if a.__class__ is int and a == 1 else plain(x, a * y)
    if name in ("addcmul", "addcdiv"):
        weighed = FUNCTIONS[name]
        return lambda x, a, b, v: weighed(x, a, b, value=v)
    return FUNCTIONS[name]


def _several(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex))


def _formula(name: str) -> Callable[..., Any]:
    """The operation on scalar expressions, where numbers are expressions as well."""
    if name in ("clamp_min", "clamp_max"):
        return FUNCTIONS["maximum" if name == "clamp_min" else "minimum"]
    if name == "addcmul":
        return lambda x, a, b, v: x + v * (a * b)
    if name == "addcdiv":
        return lambda x, a, b, v: x + v * (a / b)
    if name == "lerp":
        return lambda x, y, w: x + w * (y - x)
    if name == "lerp_beyond":  # torch's formula for weights from one half on
        return lambda x, y, w: y - (y - x) * (1 - w)
    return FUNCTIONS[name] if name in ("maximum", "minimum") else _of(name)


# One launch for all ------------------------------------------------------------------------------
_updates: dict[Any, Update] = {}
# Whose formula is an expression of scalars, to the last bit that of the function.
_LAUNCHED = frozenset(
    {*_UNARY, "add", "sub", "mul", "div", "clamp_min", "clamp_max", "maximum", "minimum"}
    | {"addcmul", "addcdiv", "lerp", "lerp_beyond"}
) - {"round", "lgamma", "frac"}


def _launched(name: str, rows: list[list[Any]], numbers: tuple[Any, ...]) -> bool:
    """Whether one launch changed the first of every row; else each wants to be looked at."""
    if name not in _LAUNCHED or not all(map(_real_number, numbers)):
        return False
    if not all(map(_quick, zip(*rows, strict=True))):
        return False
    key = (name, len(rows[0]), len(numbers))
    update = _updates.get(key)
    if update is None:
        formula = _formula(name)
        update = _updates[key] = Update(
            f"_foreach_{name}_", lambda *given: (formula(*given),), len(rows[0]), len(numbers), (0,)
        )
    return update.attempt(rows, [float(n) for n in numbers])


def _quick(tensors: Sequence[Any]) -> bool:
    """Whether nothing is recorded of these tensors, and the first is of single or double precision.

    Whether they fit together is not looked at here.
    """
    state = current()
    for t in tensors:
        if t.__class__ not in _PLAIN:
            return False
    if not state.plain or tensors[0]._array.dtype not in _FLOATS:
        return False
    return not state.grad or not [t for t in tensors if node_of(t) is not None]


def _changed(tensors: list[Any]) -> Backend | None:
    """The device of tensors that can be changed as they lie, whose versions count that; or None."""
    if not _quick(tensors) or current().writing is not None:
        return None
    first = tensors[0]._array
    kind, dtype, backend = first.__class__, first.dtype, OF_CLASS.get(first.__class__)
    arrays = [t._array for t in tensors]
    if backend is None or [a for a in arrays if a.dtype is not dtype or a.__class__ is not kind]:
        return None
    aliases = [t._alias or share(t) for t in tensors]
    if not backend.all_plain(arrays) or [a for a in aliases if a.inference]:
        return None
    for alias in aliases:
        alias.version.value += 1
    return backend


def _real_number(n: Any) -> bool:
    return n.__class__ is float or n.__class__ is int


def _one_number(value: Any) -> Any:
    """The number that a tensor without dimensions, or a list, has for all; else what was given."""
    if value.__class__ in (list, tuple) and value and _real_number(value[0]):
        first, kind = value[0], value[0].__class__
        for n in value:  # zeros may differ in their signs
            if n is not first and (n.__class__ is not kind or n != first or not n):
                return value
        return first
    if value.__class__ is Tensor and not value.ndim and _quick((value,)):
        return value.item()
    return value


# Arguments ---------------------------------------------------------------------------------------
def _listed(op: str, tensors: Any, like: Sequence[Any] | None = None) -> list[Any]:
    found = list(tensors)
    if not found:
        raise ArgumentError(f"[{op}] the list must have at least one tensor, got none")
    if like is not None and len(found) != len(like):
        raise ShapeError(
            f"[{op}] lists must have the same number of elements, got {len(like)} and {len(found)}"
        )
    return found


def _given(op: str, args: tuple[Any, ...], named: dict[str, Any], words: Sequence[str]) -> Any:
    """The one argument that may be a number, numbers, a tensor or tensors, by any of its names."""
    if args:
        return args[0]
    for word in words:
        if word in named:
            return named.pop(word)
    return _MISSING


def _spread(op: str, value: Any, like: Sequence[Any]) -> tuple[list[Any] | None, Any]:
    """An argument as one thing for each tensor, or as one thing for all."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise ShapeError(
                f"[{op}] a tensor for all must have no dimensions, got shape {value.shape}"
            )
        return None, value
    if _several(value):
        return _listed(op, value, like), None
    return None, value


def _run(
    name: str,
    given: Any,
    rows: list[list[Any]],
    inplace: bool,
    extra: tuple[Any, ...] = (),
    own: Any = None,
) -> Any:
    """The operation of each row, whose first one is the tensor that may be changed.

    `given` is the list of the first ones.
    """
    fn = own or _of(name)
    if not inplace:
        return tuple([fn(*row, *extra) for row in rows])
    if own is None:
        beyond = name == "lerp" and extra and abs(extra[0]) >= 0.5
        if _launched("lerp_beyond" if beyond else name, rows, extra):
            return given
    method = getattr(Tensor, f"{name}_", None) if name not in _TERNARY else None
    for row in rows:
        if name in _ALPHA and extra and len(row) == 2:
            method(row[0], row[1], alpha=extra[0])  # type: ignore[misc]
        elif method is not None and not (name in ("clamp_min", "clamp_max") and extra):
            method(row[0], *row[1:], *extra)
        else:
            value = fn(*row, *extra)
            if value.dtype.category > row[0].dtype.category:
                raise DTypeError(
                    f"[_foreach_{name}_] the result is {value.dtype}, which cannot be written into "
                    f"{row[0].dtype}"
                )
            row[0].copy_(value)
    return given


# The functions -----------------------------------------------------------------------------------
def _unary(name: str, inplace: bool) -> Callable[..., Any]:
    def run(self: Tensors) -> Any:
        return _run(name, self, [[t] for t in _listed(run.__name__, self)], inplace)

    return run


def _binary(name: str, inplace: bool) -> Callable[..., Any]:
    def run(self: Any, *args: Any, **named: Any) -> Any:
        op = run.__name__
        other = _given(op, args, named, _SECOND)
        alpha = named.pop("alpha", 1)
        if other is _MISSING or named or len(args) > 1 or (alpha != 1 and name not in _ALPHA):
            raise ArgumentError(
                f"[{op}] takes a list of tensors and a number, numbers, a tensor or tensors, got "
                f"{len(args)} and {sorted(named)}"
            )
        if name == "pow" and _number(self):  # a number to the power of each tensor
            return tuple([FUNCTIONS["pow"](self, t) for t in _listed(op, other)])
        mine = _listed(op, self)
        extra = (alpha,) if alpha != 1 else ()
        if inplace and name != "pow":
            other = _one_number(_listed(op, other, mine) if _several(other) else other)
        each, one = _spread(op, other, mine)
        if each is not None:
            return _run(name, self, [list(r) for r in zip(mine, each, strict=True)], inplace, extra)
        if _number(one) and not extra:
            return _run(name, self, [[t] for t in mine], inplace, (one,))
        return _run(name, self, [[t, one] for t in mine], inplace, extra)

    return run


def _ternary(name: str, inplace: bool) -> Callable[..., Any]:
    def run(self: Tensors, *args: Any, **named: Any) -> Any:
        op = run.__name__
        lists = [self, *args[:2]]
        for word in ("tensor1", "tensors1", "tensor2"):
            if word in named:
                lists.append(named.pop(word))
        count = 2 if name == "lerp" else 3
        rest = [*lists[count:], *args[2:]]
        value = rest[0] if rest else _given(op, (), named, _THIRD)
        if len(lists) < count or len(rest) > 1 or named or (value is _MISSING and name == "lerp"):
            raise ArgumentError(
                f"[{op}] takes {count} lists of tensors and what they are weighed by, got "
                f"{len(args) + 1} arguments and {sorted(named)}"
            )
        value = 1 if value is _MISSING else value
        mine = _listed(op, lists[0])
        rows = zip(mine, *[_listed(op, other, mine) for other in lists[1:count]], strict=True)
        if isinstance(value, Tensor) and value.ndim == 1:
            value = value.tolist() if not value.requires_grad else list(value.unbind())
        if inplace:
            value = _one_number(_listed(op, value, mine) if _several(value) else value)
        each, one = _spread(op, value, mine)
        if each is None and _number(one):
            return _run(name, self, [list(row) for row in rows], inplace, (one,))
        weights = [one] * len(mine) if each is None else each
        whole = [[*row, w] for row, w in zip(rows, weights, strict=True)]
        return _run(name, self, whole, inplace, own=_of(name))

    return run


_ALPHA = ("add", "sub")
_PLAIN = {Tensor, Parameter}
_DOC = "The operation `{}` of every tensor of a list{}; see Note [lists of tensors]."


def _publish(name: str, fn: Callable[..., Any], inplace: bool) -> None:
    public = f"_foreach_{name}{'_' if inplace else ''}"
    fn.__name__ = fn.__qualname__ = public
    fn.__doc__ = _DOC.format(name, ", in place" if inplace else "")
    globals()[public] = fn


for _inplace in (False, True):
    for _name in _UNARY:
        _publish(_name, _unary(_name, _inplace), _inplace)
    for _name in _BINARY:
        _publish(_name, _binary(_name, _inplace), _inplace)
    for _name in _TERNARY:
        _publish(_name, _ternary(_name, _inplace), _inplace)


_copy = Update("_foreach_copy_", lambda old, new: (new,), 2, 0, (0,))


def _foreach_zero_(self: Tensors) -> Tensors:
    """Set every element of every tensor to zero."""
    tensors = _listed("_foreach_zero_", self)
    backend = _changed(tensors)
    if backend is not None:
        backend.zero([t._array for t in tensors])
    else:
        for t in tensors:
            t.zero_()
    return self


def _foreach_copy_(self: Tensors, src: Tensors, non_blocking: bool = False) -> Tensors:
    """Copy tensors into those of another list."""
    mine = _listed("_foreach_copy_", self)
    others = _listed("_foreach_copy_", src, mine)
    rows = list(zip(mine, others, strict=True))
    if not (_quick(mine) and _quick(others) and _copy.attempt(rows, ())):
        for target, source in rows:
            target.copy_(source)
    return self


def _foreach_clone(self: Tensors, *, memory_format: Any = None) -> tuple[Tensor, ...]:
    """A copy of every tensor."""
    return tuple([t.clone() for t in _listed("_foreach_clone", self)])


def _foreach_mm(self: Tensors, mat2: Tensors) -> tuple[Tensor, ...]:
    """The products of two lists of matrices."""
    mine = _listed("_foreach_mm", self)
    pairs = zip(mine, _listed("_foreach_mm", mat2, mine), strict=True)
    return tuple([FUNCTIONS["mm"](a, b) for a, b in pairs])


def _foreach_max(self: Tensors) -> tuple[Tensor, ...]:
    """The largest element of every tensor."""
    return tuple([t.max() for t in _listed("_foreach_max", self)])


def _foreach_norm(self: Tensors, ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of every tensor as a vector."""
    tensors = _listed("_foreach_norm", self)
    if ord == 2 and dtype is None and _quick(tensors):
        arrays = [t._array for t in tensors]
        kind, wanted = arrays[0].__class__, arrays[0].dtype
        backend = OF_CLASS.get(kind)
        if backend is not None and not [
            a for a in arrays if a.dtype is not wanted or a.__class__ is not kind
        ]:
            found = backend.norms(arrays)
            if found is not None:
                return tuple([wrap(norm) for norm in found])
    return tuple([linalg_vector_norm(t, ord, dtype=dtype) for t in tensors])


def _foreach_powsum(self: Tensors, ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The sum of the magnitudes of every tensor to a power: its norm without the root."""
    found = []
    for t in _listed("_foreach_powsum", self):
        x = (t if dtype is None else t.to(dtype)).abs()
        found.append((x * x if ord == 2 else x**ord).sum())
    return tuple(found)


# Mixed precision ---------------------------------------------------------------------------------
def _amp_foreach_non_finite_check_and_unscale_(
    self: Tensors, found_inf: Tensor, inv_scale: Tensor
) -> None:
    """Multiply gradients in place by `inv_scale`; `found_inf` is 1 if one was not finite."""
    grads = list(self)
    if any(not bool(FUNCTIONS["isfinite"](t).all()) for t in grads):
        found_inf.fill_(1.0)
    if grads:
        globals()["_foreach_mul_"](grads, inv_scale.item())


def _amp_update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """Change a scale in place: smaller after what is not finite, larger after many good steps."""
    if found_inf.item():
        self.mul_(scale_backoff_factor)
        growth_tracker.zero_()
    elif growth_tracker.item() + 1 == growth_interval:
        larger = self * scale_growth_factor
        if FUNCTIONS["isfinite"](larger).all():
            self.copy_(larger)
        growth_tracker.zero_()
    else:
        growth_tracker.add_(1)
    return self


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
