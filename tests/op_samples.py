"""The table of ops: for every public function, sample inputs, a NumPy reference, bad inputs.

`tests/samples/<room>.py` fills it, mirroring `src/undertow/ops/<room>.py`; `test_ops.py` turns it
into tests. A public function without an entry fails the suite (`test_architecture.py`).

In a sample every float64 or complex128 NumPy array becomes a tensor that requires gradients, other
arrays become tensors that do not, also inside lists and tuples; `Const(array)` is one without.
Strides are kept, so `a.T` makes a non-contiguous tensor.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from complex_samples import complex_samples

DIFFERENTIATED = (np.float64, np.complex128)


class Const:
    """A floating or complex array in a sample that is not differentiated."""

    def __init__(self, array: Any) -> None:
        found = np.asarray(array)
        self.array = found if found.dtype == np.complex128 else found.astype(np.float64)


class Sample:
    """The arguments of one call: `S(array, dim=1)`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        parts = [_short(a) for a in self.args]
        parts += [f"{k}={_short(v)}" for k, v in self.kwargs.items()]
        return f"({', '.join(parts)})"


S = Sample


@dataclass
class Bad:
    """A call that must raise: the error's type and a regular expression for its message."""

    sample: Sample
    error: type[Exception]
    match: str


@dataclass
class Singular:
    """A call at a point where the function has a kink, an edge or a special value.

    `test_singular.py` holds its gradient against slopes from both sides, and torch's.
    """

    sample: Sample
    torch: bool  # whether torch's gradient is the same


@dataclass
class OpInfo:
    """One public function: `name` is "sum" or "nn.functional.relu"."""

    name: str
    samples: list[Sample]
    reference: Callable[..., Any] | None  # NumPy arrays in (same arguments), arrays out
    bad: list[Bad] = field(default_factory=list)
    singular: list[Singular] = field(default_factory=list)
    grad: bool = True  # whether gradcheck and gradgradcheck apply
    gradgrad: bool = True
    torch_grad: bool = True  # False: torch has no derivative to compare with
    torch_gradgrad: bool = True  # False: torch has no second derivative to compare with
    torch: Any = "same"  # "same" name in torch, another dotted name, a callable, or None
    # What is differentiated, and compared with torch, of a function whose arguments or results have
    # more freedom than their elements (symmetry, phases): made of the function, ours or torch's.
    within: Callable[[Any], Callable[..., Any]] | None = None
    method: bool = True  # compare with the Tensor method of that name, if there is one
    inplace: bool = True  # compare with the in-place method of that name, if there is one
    rtol: float = 1e-7
    atol: float = 1e-9
    check_dtype: bool = True  # whether the conformance test also compares the dtype with torch


TABLE: dict[str, OpInfo] = {}


def add(info: OpInfo) -> None:
    """Enter an op into the table."""
    if info.name in TABLE:
        raise ValueError(f"{info.name} has samples already")
    info.samples = [*info.samples, *complex_samples(info.name, info.samples, Sample)]
    TABLE[info.name] = info


def op(
    name: str, reference: Callable[..., Any] | None, samples: Iterable[Sample], **more: Any
) -> None:
    """Enter an op into the table, in short."""
    add(OpInfo(name, list(samples), reference, **more))


def singular(name: str, *samples: Sample, torch: bool = True) -> None:
    """Give an op of the table points where its derivative needs a decision; see `Singular`."""
    TABLE[name].singular += [Singular(sample, torch) for sample in samples]


def arr(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0) -> Any:
    """Random float64 numbers, well apart from integers, ties and each other's edges."""
    random = np.random.default_rng(seed + 1000 * len(shape))
    return random.uniform(low, high, shape)


def positive(*shape: int, seed: int = 0) -> Any:
    """Random float64 numbers between 0.3 and 2.5."""
    return arr(*shape, seed=seed, low=0.3, high=2.5)


def ints(*shape: int, seed: int = 0, low: int = -5, high: int = 6) -> Any:
    """Random int64 numbers."""
    return np.random.default_rng(seed).integers(low, high, shape)


def bools(*shape: int, seed: int = 0) -> Any:
    """Random booleans."""
    return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)


def unary_samples(make: Callable[..., Any] = arr) -> list[Sample]:
    """Shapes that every elementwise function of one tensor must take."""
    return [
        S(make(3, 4)),
        S(make()),  # zero-d
        S(make(1)),
        S(make(0, 3)),  # empty
        S(make(4, 3).T),  # non-contiguous
        S(make(2, 6)[:, ::2]),  # strided
    ]


def binary_samples(
    make: Callable[..., Any] = arr, other: Callable[..., Any] | None = None
) -> list[Sample]:
    """Shapes and broadcasts that every elementwise function of two tensors must take."""
    second = other or make
    return [
        S(make(3, 4), second(3, 4, seed=1)),
        S(make(3, 1), second(4, seed=1)),  # both broadcast
        S(make(2, 3, 4), second(4, seed=1)),
        S(make(), second(3, seed=1)),  # zero-d with dimensions
        S(make(), second(seed=1)),
        S(make(4, 3).T, second(3, 4, seed=1)),  # non-contiguous
        S(make(0, 3), second(1, 3, seed=1)),  # empty
        S(make(1, 1), second(1, seed=1)),
    ]


def _short(value: Any) -> str:
    if isinstance(value, Const):
        value = value.array
    if isinstance(value, np.ndarray):
        return f"{value.dtype.kind}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_short, value))}]"
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)  # a repr would differ from process to process
    return repr(value)


def load() -> dict[str, OpInfo]:
    """The whole table."""
    import samples

    for module in sorted(m.name for m in pkgutil.iter_modules(samples.__path__)):
        importlib.import_module(f"samples.{module}")  # no more than a lookup the second time
    return TABLE
