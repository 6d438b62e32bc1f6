"""How a tensor is shown: torch's layout, precision, notation and suffixes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from .. import dtypes
from ..backends.dual import level_at, parts
from ..backends.registry import backend_of
from ..errors import ArgumentError
from .tensor import Tensor


@dataclass(frozen=True)
class PrintOptions:
    """What `set_printoptions` sets."""

    precision: int = 4  # digits after the point
    threshold: float = 1000  # more elements than this are summarised
    edgeitems: int = 3  # how many are shown at each end of a dimension then
    linewidth: int = 80
    sci_mode: bool | None = None  # None: where magnitudes call for it


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
_options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are shown; what is not given stays, except `sci_mode`, as in torch.

    `profile` is "default", "short" or "full".

    >>> import undertow as ut
    >>> ut.set_printoptions(precision=2)
    >>> ut.tensor([3.14159])
    tensor([3.14])
    >>> ut.set_printoptions(profile="default")
    """
    global _options
    options = _options
    if profile is not None:
        if profile not in _PROFILES:
            raise ArgumentError(
                f"[set_printoptions] there is no profile {profile!r}; use one of "
                f"{', '.join(_PROFILES)}"
            )
        options = _PROFILES[profile]
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name, value in changes.items():
        if not isinstance(value, (int, float)) or not value >= 0:
            raise ArgumentError(
                f"[set_printoptions] {name} must be a number of at least 0, got {value!r}"
            )
    _options = replace(options, sci_mode=sci_mode, **changes)


def get_printoptions() -> dict[str, Any]:
    """The options that `set_printoptions` sets, as its keyword arguments.

    >>> import undertow as ut
    >>> ut.get_printoptions()["precision"]
    4
    """
    return asdict(_options)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Options of `set_printoptions` for the length of a `with` block.

    >>> import undertow as ut
    >>> with ut.printoptions(precision=1):
    ...     print(ut.tensor([3.14159]))
    tensor([3.1])
    """
    global _options
    before = _options
    set_printoptions(**options)
    try:
        yield
    finally:
        _options = before


class Notation:
    """One way of writing numbers, chosen for all shown values together, and its width."""

    __slots__ = ("spec", "suffix", "width")

    def __init__(self, values: Any) -> None:
        self.spec = ""  # of str.format; "" writes integers and booleans as they are
        self.suffix = ""
        self.width = 1
        if values.dtype.kind in "iub":
            self.width = max((len(str(v)) for v in values.tolist()), default=1)
            return
        values = values.astype(np.float64)
        values = values[np.isfinite(values) & (values != 0)]
        self.spec, self.suffix = ".0f", "."
        if not values.size:
            return
        sizes = np.abs(values)
        low, high = float(sizes.min()), float(sizes.max())
        scientific = _options.sci_mode
        if scientific is None:
            scientific = high / low > 1000 or high > 1e8 or low < 1e-4
        if scientific:
            self.spec, self.suffix = f".{_options.precision}e", ""
        elif (values != np.ceil(values)).any():
            self.spec, self.suffix = f".{_options.precision}f", ""
        self.width = max(len(self.write(v)) for v in values.tolist())

    def write(self, value: Any) -> str:
        if not self.spec:
            text = str(value)
        else:
            text = format(value, self.spec)
            if self.suffix and math.isfinite(value):
                text += self.suffix
        return text.rjust(self.width)


class ComplexNotation:
    """Real and imaginary parts, each in a notation of its own."""

    __slots__ = ("imag", "real", "width")

    def __init__(self, values: Any) -> None:
        self.real, self.imag = Notation(values.real), Notation(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def write(self, value: complex) -> str:
        imag = self.imag.write(value.imag).lstrip()
        return f"{self.real.write(value.real)}{'' if imag[0] in '+-' else '+'}{imag}j"


def _edges(size: int, summarise: bool) -> tuple[range, range]:
    """The positions shown along a dimension: at its beginning, and after the dots."""
    edge = _options.edgeitems
    if summarise and size > 2 * edge:
        return range(edge), range(size - edge, size)
    return range(size), range(0)


def _shown(k: Any, x: Any, summarise: bool) -> Any:
    """The elements that will be written, as a NumPy array; the others stay on the device."""
    for dim, size in enumerate(x.shape):
        first, last = _edges(size, summarise)
        if len(first) < size:
            lead = (slice(None),) * dim
            parts = (slice(first.start, first.stop), slice(last.start, last.stop))
            x = k.concat([k.slice(x, (*lead, part)) for part in parts], dim)
    return k.to_host(x)


def _write(
    x: Any,
    sizes: tuple[int, ...],
    indent: int,
    summarise: bool,
    notation: Notation | ComplexNotation,
) -> str:
    """The nested brackets of the shown elements `x` of an array of these sizes.

    `indent` is the column of the opening bracket.
    """
    if not sizes:
        return notation.write(x.item())
    first, _ = _edges(sizes[0], summarise)
    dots = len(first) < sizes[0]
    if len(sizes) > 1:
        parts = [_write(row, sizes[1:], indent + 1, summarise, notation) for row in x]
        if dots:
            parts.insert(len(first), "...")
        return f"[{(',' + chr(10) * (len(sizes) - 1) + ' ' * (indent + 1)).join(parts)}]"
    items = [notation.write(v) for v in x.tolist()]
    if dots:
        items.insert(len(first), " ..." if first else "...")
    per_line = max(1, (_options.linewidth - indent) // (notation.width + 2))
    lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
    return f"[{(',' + chr(10) + ' ' * (indent + 1)).join(lines)}]"


def _suffixes(t: Tensor) -> Iterator[str]:
    """What the numbers alone do not tell."""
    if t.device.type != "cpu":
        yield f"device='{t.device}'"
    default = dtypes.get_default_dtype()
    usual: tuple[dtypes.DType, ...] = (default,)  # no elements show any other dtype
    shows = t.numel() and not t.is_meta
    if shows:
        usual = (default, dtypes.complex_of(default), dtypes.int64, dtypes.bool)
    if t.is_meta or (not _options.edgeitems if shows else t.ndim != 1):
        yield f"size={t.shape}"
    if t.dtype not in usual:
        yield f"dtype={t.dtype}"
    node = t.grad_fn
    if node is not None:
        yield f"grad_fn=<{node.name()}>"
    elif t.requires_grad:
        yield "requires_grad=True"
    level = level_at(t._array)
    if level is not None:
        yield f"tangent={parts(t._array, level)[1]!r}"


def elements(t: Tensor, prefix: str = "tensor(") -> str:
    """The elements after a prefix, whose width they are indented by; not yet closed."""
    if backend_of(t._array).device.type == "meta":  # also of a wrapper, which says another device
        return prefix + "..."
    if not t.numel():
        return prefix + "[]"
    summarise = t.numel() > _options.threshold
    shown = _shown(backend_of(t._array), t._array, summarise)
    if t.dtype in dtypes.FLOAT8:
        shown = shown.astype(np.float32)
    notation = (ComplexNotation if t.is_complex() else Notation)(shown.reshape(-1))
    return prefix + _write(shown, t.shape, len(prefix), summarise, notation)


def closed(text: str, suffixes: Iterable[str], indent: int, below: bool = False) -> str:
    """A text with what follows the elements, on new lines where it must be, or if `below`."""
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if below or column + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
        below = False
    return text + ")"


def in_lines(results: Any) -> str:
    """A named tuple of results, each in lines of its own, as torch shows them."""
    fields = ",\n".join(f"{name}={value!r}" for name, value in results._asdict().items())
    return f"{type(results).__name__}(\n{fields})"


def describe(t: Tensor, prefix: str = "tensor(", contents: str | None = None) -> str:
    """The text of `repr(t)` and `str(t)`, with `contents` in the place of its elements if given."""
    shown = elements(t, prefix) if contents is None else prefix + contents
    text = closed(shown, _suffixes(t), len(prefix))
    return f"Parameter({text})" if "_is_param" in vars(t) else text
