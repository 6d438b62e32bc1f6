"""The axes that vary, and the other sizes with which a model is called to learn what they change.

Note [probes]
The first probes multiply each size by a prime number of its own, so that multiples of one size are
none of another. The next add little: a number that follows a remainder of a size differs between
two neighbours. The last are large in one axis each, to cross a branch on a size, and to stay
affordable when several axes vary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.tensor import Tensor
from ..errors import ArgumentError, UnsupportedError
from .graph import Axis

_PRIMES = ((2, 3, 5, 7), (3, 5, 7, 11))  # for each name
_ADDED = ((1, 2, 3, 4), (2, 1, 4, 3))
_MOST = len(_ADDED[0])


def axes_by_name(names: list[str], axes: Any, shapes: Any) -> dict[str, dict[int, str]]:
    """Which dimensions of which tensors vary, and their names."""
    found: dict[str, dict[int, str]] = {}
    if shapes is not None:
        pairs = shapes.items() if isinstance(shapes, Mapping) else zip(names, shapes, strict=False)
        for name, dims in pairs:
            if dims:
                listed = dims.items() if isinstance(dims, Mapping) else enumerate(dims)
                found[name] = {int(d): str(n) for d, n in listed if n is not None}
    for name, dims in (axes or {}).items():
        told = dims if isinstance(dims, Mapping) else {d: f"{name}_{d}" for d in dims}
        found[name] = {int(d): str(n) for d, n in told.items()}
    return found


def check_names(
    wanted: dict[str, dict[int, str]], names: list[str], output_names: Sequence[str] | None
) -> None:
    """Dynamic axes must be those of inputs or outputs."""
    known = {*names, *(output_names or ())}
    for name in wanted:
        if name not in known and (output_names or not name.startswith("output")):
            raise ArgumentError(
                f"[onnx.export] dynamic axes of {name!r}, which is no input: {names}"
            )


def find_axes(
    tensors: list[Tensor], names: list[str], wanted: dict[str, dict[int, str]]
) -> list[Axis]:
    """The axes of inputs that vary, as they are in the first trace."""
    found = []
    for t, name in zip(tensors, names, strict=True):
        for dim, axis in wanted.get(name, {}).items():
            if not -t.ndim <= dim < t.ndim:
                raise ArgumentError(
                    f"[onnx.export] input {name!r} of shape {t.shape} has no dimension {dim}"
                )
            size = t.shape[dim]
            if not size:
                raise ArgumentError(f"[onnx.export] dimension {dim} of input {name!r} is empty")
            found.append(Axis(name, dim % t.ndim, axis, size, size))
    if len({a.name for a in found}) > _MOST:
        raise UnsupportedError(f"[onnx.export] at most {_MOST} sizes may vary")
    return found


def probes(axes: Sequence[Axis]) -> Iterator[list[Axis]]:
    """The axes with other sizes in the second trace; see Note [probes]."""
    order = {name: i for i, name in enumerate(dict.fromkeys([a.name for a in axes]))}
    for primes in _PRIMES:
        yield [a._replace(second=a.first * primes[order[a.name]]) for a in axes]
    for added in _ADDED:
        yield [a._replace(second=a.first + added[order[a.name]]) for a in axes]
    for large in order:
        yield [
            a._replace(second=8 * a.first + 5 if a.name == large else a.first + 1 + order[a.name])
            for a in axes
        ]


def resized(args: Sequence[Any], names: Sequence[str], axes: Sequence[Axis]) -> list[Any]:
    """The arguments of the second trace: the first ones, repeated along the axes that vary."""
    listed = iter(names)
    return [_resized(a.detach(), next(listed), axes) if isinstance(a, Tensor) else a for a in args]


def _resized(t: Tensor, name: str, axes: Sequence[Axis]) -> Tensor:
    counts, parts = [1] * t.ndim, [slice(None)] * t.ndim
    for axis in axes:
        if axis.input == name:
            counts[axis.dim] = -(-axis.second // axis.first)
            parts[axis.dim] = slice(axis.second)
    return t.repeat(*counts)[tuple(parts)].contiguous() if any(c > 1 for c in counts) else t
