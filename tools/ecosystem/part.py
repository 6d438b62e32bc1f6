"""A part of a package: a small function that runs some of it and returns numbers to compare.

Parts import `torch` and know nothing of who answers to that name, so that one file runs with
genuine torch, which records the numbers, and with Undertow, which is held against them. No random
number of torch is involved: parameters are filled by their names and inputs come from NumPy.
"""

from __future__ import annotations

import contextlib
import math
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

Numbers = dict[str, list[float]]
PARTS: dict[str, Part] = {}


class LeftOut(Exception):
    """A part cannot run here, which is no defect: the sources of its package are not at hand."""


@dataclass(frozen=True)
class Part:
    """A part and how it is compared."""

    name: str
    run: Callable[[], Numbers]
    tolerance: float  # of a difference, relative to the norm of what is compared
    quick: bool  # whether the short suite runs it
    dtype: str  # what torch.get_default_dtype() is while it runs


def part(
    name: str, *, quick: bool = False, tolerance: float = 1e-7, dtype: str = "float64"
) -> Callable[[Callable[[], Numbers]], Callable[[], Numbers]]:
    """Add a function to the parts of its file, by the name under which its numbers are kept."""

    def add(run: Callable[[], Numbers]) -> Callable[[], Numbers]:
        assert name not in PARTS, f"there are two parts {name}"
        PARTS[name] = Part(name, run, tolerance, quick, dtype)
        return run

    return add


# Inputs and weights --------------------------------------------------------------------------
def normal(*shape: int, seed: int = 0, grad: bool = True) -> Any:
    """Normal numbers of the default dtype, of which gradients are compared."""
    made = torch.tensor(_normal(f"input {seed}", shape), dtype=torch.get_default_dtype())
    return made.requires_grad_(grad)


def uniform(*shape: int, seed: int = 0, grad: bool = True) -> Any:
    """Numbers between 0 and 1, such as pictures."""
    made = np.random.RandomState(seed).uniform(size=shape)
    return torch.tensor(made, dtype=torch.get_default_dtype()).requires_grad_(grad)


def integers(high: int, *shape: int, low: int = 0, seed: int = 0) -> Any:
    """Whole numbers from `low` to `high` - 1, such as tokens and labels."""
    return torch.tensor(np.random.RandomState(seed).randint(low, high, size=shape))


def _normal(name: str, shape: Sequence[int]) -> Any:
    return np.random.RandomState(zlib.crc32(name.encode()) & 0x7FFFFFFF).standard_normal(shape)


def fill(module: Any) -> Any:
    """Give every parameter, and the statistics of norms, values that follow from its name."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            _fill(name, parameter, parameter.dim() > 1)
        for name, buffer in module.named_buffers():
            last = name.rpartition(".")[2]
            if last == "running_mean":
                _fill(name, buffer, False)
            elif last == "running_var":
                buffer.copy_(torch.tensor(np.abs(_normal(name, buffer.shape)) + 0.5))
    return module


def _fill(name: str, tensor: Any, matrix: bool) -> None:
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.numel() == 0:
        return
    values = _normal(name, tuple(tensor.shape))
    if matrix:  # so that sums keep their size
        values /= math.sqrt(max(1, values[0].size))
    else:
        values = 0.1 * values + (1 if name.endswith(("weight", "gamma", "scale")) else 0)
    tensor.copy_(torch.tensor(values, dtype=tensor.dtype))


# Numbers -------------------------------------------------------------------------------------
def step(
    module: Any, *inputs: Any, loss: Callable[[Any], Any] | None = None, **named: Any
) -> Numbers:
    """Fill a module, run it forward and backward; the numbers of its outputs and gradients.

    `loss` says which of the outputs are taken, where not all of the floating ones are.
    """
    fill(module)
    module.eval()
    return compare(module, *inputs, parameters=module.named_parameters(), loss=loss, **named)


def compare(
    function: Callable[..., Any],
    *inputs: Any,
    parameters: Any = (),
    loss: Callable[[Any], Any] | None = None,
    gradients: bool = True,
    **named: Any,
) -> Numbers:
    """Run a function; the numbers of its outputs, and of the gradients of inputs and parameters."""
    given = function(*inputs, **named)
    outputs = tensors(given if loss is None else loss(given))
    found = {f"output {name}": measure(value) for name, value in outputs.items()}
    total = sum(
        (value * like(value, f"cotangent {name}")).sum().real
        for name, value in outputs.items()
        if value.requires_grad
    )
    if not gradients or not torch.is_tensor(total):
        return found
    leaves = {n: t for n, t in tensors((inputs, named)).items() if t.requires_grad and t.is_leaf}
    weights = {n: p for n, p in dict(parameters).items() if p.requires_grad}
    slopes = torch.autograd.grad(total, [*leaves.values(), *weights.values()], allow_unused=True)
    for name, slope in zip(leaves, slopes, strict=False):
        found[f"gradient {name}"] = [] if slope is None else measure(slope)
    of_weights = [
        measure(g, n) for n, g in zip(weights, slopes[len(leaves) :], strict=True) if g is not None
    ]
    if of_weights:  # of all together: how many, their norm and their projection
        squares = math.sqrt(sum(m[-2] ** 2 for m in of_weights))
        found["gradients"] = [len(of_weights), squares, sum(m[-1] for m in of_weights)]
    return found


def tensors(value: Any, name: str = "") -> dict[str, Any]:
    """The tensors in a nested structure, with a name for each."""
    if torch.is_tensor(value):
        return {name: value.to_dense() if value.layout != torch.strided else value}
    if is_dataclass(value) and not isinstance(value, (type, Mapping)):
        value = vars(value)
    if isinstance(value, Mapping):
        items: Any = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        return {}
    found: dict[str, Any] = {}
    for key, inner in items:
        found |= tensors(inner, f"{name}.{key}" if name else str(key))
    return found


def like(value: Any, name: str) -> Any:
    """Fixed numbers in the shape of a tensor."""
    return torch.tensor(_normal(name, tuple(value.shape))).to(value.dtype)


def measure(value: Any, name: str = "") -> list[float]:
    """How many elements a tensor has, their norm and their product with fixed numbers."""
    array = np.asarray(value.detach().to("cpu").resolve_conj().numpy())
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], -1)
    flat = array.astype(np.float64).ravel()
    finite = np.where(np.isfinite(flat), flat, 1e3 * np.sign(np.nan_to_num(flat, nan=0.5)))
    direction = np.cos(np.arange(flat.size) + len(name))
    return [flat.size, float(np.linalg.norm(finite)), float(finite @ direction)]


# Surroundings --------------------------------------------------------------------------------
@contextlib.contextmanager
def surroundings(dtype: str) -> Iterator[None]:
    """A default dtype, and torch's random numbers out of NumPy."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        with numpys_random_numbers():
            yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def numpys_random_numbers() -> Iterator[None]:
    """Functions that draw, drawing from NumPy: the same numbers whoever is torch."""
    random = np.random.RandomState(0)

    def shape_of(size: Any) -> tuple[int, ...]:
        return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)

    def made(values: Any, dtype: Any = None, requires_grad: bool = False, **_: Any) -> Any:
        kind = dtype or torch.get_default_dtype()
        return torch.tensor(values).to(kind).requires_grad_(requires_grad)

    def rand(*size: Any, **named: Any) -> Any:
        return made(random.uniform(size=shape_of(size or (named.pop("size"),))), **named)

    def randn(*size: Any, **named: Any) -> Any:
        return made(random.standard_normal(shape_of(size or (named.pop("size"),))), **named)

    def randint(*bounds: Any, dtype: Any = None, **named: Any) -> Any:
        *ends, size = bounds if "size" not in named else (*bounds, named.pop("size"))
        low, high = (
            ends if len(ends) == 2 else (named.pop("low", 0), *(ends or [named.pop("high")]))
        )
        drawn = random.randint(int(low), int(high), size=tuple(size))
        return made(drawn, dtype=dtype or torch.int64, **named)

    def randperm(n: int, dtype: Any = None, **named: Any) -> Any:
        return made(random.permutation(n), dtype=dtype or torch.int64, **named)

    def rand_like(other: Any, dtype: Any = None, **named: Any) -> Any:
        return rand(tuple(other.shape), dtype=dtype or other.dtype)

    def randn_like(other: Any, dtype: Any = None, **named: Any) -> Any:
        return randn(tuple(other.shape), dtype=dtype or other.dtype)

    def normal_(self: Any, mean: float = 0.0, std: float = 1.0, **_: Any) -> Any:
        return _set(self, mean + std * random.standard_normal(tuple(self.shape)))

    def uniform_(self: Any, a: float = 0.0, b: float = 1.0, **_: Any) -> Any:
        return _set(self, random.uniform(float(a), float(b), size=tuple(self.shape)))

    def exponential_(self: Any, rate: float = 1.0, **_: Any) -> Any:
        return _set(self, random.exponential(1 / rate, size=tuple(self.shape)))

    functions = [rand, randn, randint, randperm, rand_like, randn_like]
    methods = [normal_, uniform_, exponential_]
    kept = [(torch, f.__name__, getattr(torch, f.__name__)) for f in functions]
    kept += [(torch.Tensor, f.__name__, getattr(torch.Tensor, f.__name__)) for f in methods]
    for (owner, name, _), function in zip(kept, [*functions, *methods], strict=True):
        setattr(owner, name, function)
    try:
        yield
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


def _set(tensor: Any, values: Any) -> Any:
    with torch.no_grad():
        return tensor.copy_(torch.tensor(values, dtype=tensor.dtype))


def source(name: str) -> Path:
    """The folder of a package that has no release, below ECOSYSTEM_SOURCES."""
    folder = os.environ.get("ECOSYSTEM_SOURCES")
    if folder is None or not (Path(folder) / name).is_dir():
        raise LeftOut(f"there is no folder {name} in ECOSYSTEM_SOURCES={folder or ''}")
    return Path(folder) / name
