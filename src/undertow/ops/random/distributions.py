"""Discrete distributions, and tensors filled in place from every distribution."""

from __future__ import annotations

import math
from types import EllipsisType
from typing import Any

from ... import dtypes
from ...backends.batch import drawing
from ...backends.registry import backend_of, backend_on
from ...core.dispatch import cast
from ...core.generator import Generator
from ...core.inplace import overwrite
from ...core.modes import no_grad
from ...core.protocol import plain_number
from ...core.register import FUNCTIONS, attach, function, guarded
from ...core.tensor import Tensor, differentiated, wrap
from ...dtypes import DType
from ...errors import ArgumentError, DTypeError, ShapeError
from ...kernel.expr import trace
from ...shapes import Shape, as_int
from ..create.from_data import made
from ..elementwise.complex_numbers import view_as_real
from .random import (
    MANTISSA_BITS,
    bounded,
    check_std,
    drawn,
    integer_words,
    rand,
    randn,
    span,
    uniform_words,
    words,
)

_below = trace(lambda word, limit: word < limit, 2)


def _carrying(sample: Tensor, source: Tensor) -> Tensor:
    """`sample` as a function of `source` whose derivative is zero, as in torch."""
    if differentiated(source):
        return sample + source * 0
    return sample


def coins(op: str, shape: Shape, p: Any, dtype: DType, device: Any, generator: Any) -> Tensor:
    """Ones with probability `p`, a number or a floating tensor that broadcasts to `shape`."""
    if isinstance(p, Tensor):
        if not p.is_floating_point():
            raise DTypeError(f"[{op}] probabilities are floating, got {p.dtype}")
        if p.numel() and not (span(p)[0] >= 0 and span(p)[1] <= 1):
            raise ArgumentError(
                f"[{op}] probabilities must lie in 0 to 1, got values from {span(p)[0]} to "
                f"{span(p)[1]}"
            )
        wide = p.dtype if p.dtype.itemsize > 2 else dtypes.float32
        uniform = drawn(op, uniform_words, shape, wide, device, generator, False)
        hits = uniform < p.detach().to(wide)
        return cast(hits, dtype)
    if not 0 <= p <= 1:
        raise ArgumentError(f"[{op}] probabilities must lie in 0 to 1, got {p}")
    k = drawing(backend_on(device))
    limit = round(p * 2**32)
    bits = words(k, generator, math.prod(shape))
    if limit == 2**32:
        array = k.full(shape, 1, dtype.numpy)
    else:
        array = k.reshape(k.map(_below, (bits, limit), dtype.numpy), shape)
    return wrap(array)


@function()
def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Ones with the probabilities in `input`, or with probability `p` in the shape of `input`.

    >>> import undertow as ut
    >>> ut.bernoulli(ut.tensor([0.0, 1.0, 1.0]))
    tensor([0., 1., 1.])
    """
    chances = input if p is None else plain_number(p)
    sample = coins("bernoulli", input.shape, chances, input.dtype, input.device, generator)
    return _carrying(sample, input)


@function()
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Indices drawn with probabilities proportional to the weights in each row of `input`.

    Without replacement, each nonzero weight is drawn at most once; asking for more of them than
    there are is an error (torch goes on with zero weights).

    >>> import undertow as ut
    >>> ut.multinomial(ut.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    count = as_int("multinomial", "num_samples", num_samples)
    if input.ndim not in (1, 2) or not input.shape[-1]:
        raise ShapeError(
            f"[multinomial] expects weights of 1 or 2 dimensions, got shape {input.shape}"
        )
    if not input.is_floating_point():
        raise DTypeError(f"[multinomial] expects floating weights, got {input.dtype}")
    if count <= 0:
        raise ArgumentError(f"[multinomial] num_samples must be at least 1, got {count}")
    with no_grad():
        weights = input.detach().double()
        rows = weights.numel() // weights.shape[-1]
        if rows:
            low, high = span(weights)
            if not (low >= 0 and high < math.inf):
                raise ArgumentError(
                    "[multinomial] weights must be finite and at least 0, got values from "
                    f"{low} to {high}"
                )
        k = backend_of(weights._array)
        sums = weights.cumsum(-1)
        totals = sums[..., -1:]
        if rows and span(totals)[0] == 0:
            raise ArgumentError("[multinomial] the weights of a row are all zero")
        if replacement or count == 1:
            sums = sums / totals  # ends with exactly 1, above every uniform
            draws = uniform_words(k, generator, rows * count, dtypes.float64)
            draws = k.reshape(draws, (*weights.shape[:-1], count))
            return made(k.searchsorted(sums._array, draws, True))
        available = int(min(span((weights > 0).sum(-1))[0], count)) if rows else count
        if count > available:
            raise ArgumentError(
                f"[multinomial] cannot draw {count} samples without replacement from "
                f"{available} nonzero weights"
            )
        # The largest of weight / exponential are a sample without replacement.
        noise = wrap(uniform_words(k, generator, weights.numel(), dtypes.float64, open=True))
        keys = weights / -noise.log().reshape(weights.shape)
        return made(
            k.copy(k.slice(k.sort(keys._array, weights.ndim - 1, True)[1], (..., slice(0, count))))
        )


@function(method=False)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Counts with the Poisson rates in `input`.

    >>> import undertow as ut
    >>> ut.poisson(ut.zeros(3))
    tensor([0., 0., 0.])
    """
    if not input.is_floating_point():
        raise DTypeError(f"[poisson] expects floating rates, got {input.dtype}")
    if input.numel() and not (span(input)[0] >= 0 and span(input)[1] < math.inf):
        raise ArgumentError(
            f"[poisson] rates must be finite and at least 0, got values from {span(input)[0]} to "
            f"{span(input)[1]}"
        )
    with no_grad():
        rate = input.detach().double()
        small = _poisson_by_inversion(rate.clamp(max=10.0), generator)
        if rate.numel() and span(rate)[1] > 10:
            large = _poisson_by_rejection(rate.clamp(min=10.0), generator)
            small = large.where(rate > 10, small)
        sample = cast(small, input.dtype)
    return _carrying(sample, input)


def _fresh(rate: Tensor, generator: Any) -> Tensor:
    """Open uniform numbers, one for each rate."""
    k = backend_of(rate._array)
    flat = uniform_words(k, generator, rate.numel(), dtypes.float64, open=True)
    return wrap(k.reshape(flat, rate.shape))


def _poisson_by_inversion(rate: Tensor, generator: Any) -> Tensor:
    """Count up until the cumulated probability passes a uniform number; for small rates."""
    uniform = _fresh(rate, generator)
    term = (-rate).exp()
    total, count = term, rate * 0
    for n in range(1, 150):  # at rate 10 the terms vanish in double precision long before
        beyond = uniform > total
        if not rate.numel() or not bool(beyond.any()):
            break
        count = count + beyond.to(rate.dtype)
        term = term * rate / n
        total = total + term
    return count


def _poisson_by_rejection(rate: Tensor, generator: Any) -> Tensor:
    """Hörmann's transformed rejection (PTRS, 1993), for rates of at least 10.

    Every round proposes a count for each element; the first accepted one stays.
    """
    b = 0.931 + 2.53 * rate.sqrt()
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2)
    log_rate = rate.log()
    count: Tensor = rate.floor()
    waiting = rate == rate
    while bool(waiting.any()):
        u = _fresh(rate, generator) - 0.5
        v = _fresh(rate, generator)
        us = 0.5 - u.abs()
        proposal = ((2 * a / us + b) * u + rate + 0.43).floor()
        fast = (us >= 0.07) & (v <= squeeze)
        possible = (proposal >= 0) & ((us >= 0.013) | (v <= us))
        safe = proposal.clamp(min=0.0)
        bound = safe * log_rate - rate - (safe + 1).lgamma()
        exact = v.log() + inverse.log() - (a / (us * us) + b).log() <= bound
        accepted = waiting & (fast | (possible & exact))
        count = proposal.where(accepted, count)
        waiting = waiting & ~accepted
    return count


# In place -----------------------------------------------------------------------------------
def _refill(op: str, self: Tensor, draw: Any, generator: Any) -> Tensor:
    """Overwrite with what `draw` makes of numbers in the tensor's dtype (single for halves)."""
    wide = self.dtype if self.dtype.itemsize > 2 else dtypes.float32
    if not wide.is_floating_point:
        wide = dtypes.float64
    k = backend_of(self._array)
    flat = wrap(uniform_words(k, generator, self.numel(), wide, open=True))
    return overwrite(op, self, draw(flat).reshape(self.shape))


def _floating(op: str, self: Tensor) -> None:
    if not self.is_floating_point():
        raise DTypeError(f"[{op}] needs a floating tensor, this one is {self.dtype}")


def uniform_(
    self: Tensor,
    from_: float = 0,
    to: float = 1,
    *,
    generator: Generator | None = None,
    **bounds: float,
) -> Tensor:
    """Fill with uniform numbers in [from, to).

    >>> import undertow as ut
    >>> ut.empty(3).uniform_(2, 2)
    tensor([2., 2., 2.])
    """
    low = bounds.pop("from", from_)
    if bounds:
        raise DTypeError(f"[uniform_] takes from, to and generator, not {', '.join(bounds)}")
    if self.is_complex():
        uniform_(view_as_real(self), low, to, generator=generator)
        return self
    _floating("uniform_", self)
    if not low <= to:
        raise ArgumentError(f"[uniform_] expects from <= to, got {low} and {to}")
    if not to - low <= dtypes.finfo(self.dtype).max:
        raise ArgumentError(
            f"[uniform_] to - from must be a number of {self.dtype}, got {to} and {low}"
        )
    wide = self.dtype if self.dtype.itemsize > 2 else dtypes.float32
    noise = rand(self.shape, generator=generator, dtype=wide, device=self.device)
    values = cast(noise * (to - low) + low, self.dtype)
    if low < to:  # rounding may have reached it
        end, start = (FUNCTIONS["tensor"](v, dtype=self.dtype, device="cpu") for v in (to, low))
        values = values.clamp(max=FUNCTIONS["nextafter"](end, start).item())
    return overwrite("uniform_", self, values)


def normal_(
    self: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None
) -> Tensor:
    """Fill with normal numbers of the given mean and standard deviation.

    >>> import undertow as ut
    >>> ut.empty(2).normal_(5, 0)
    tensor([5., 5.])
    """
    check_std("normal_", std)
    if not (self.is_floating_point() or self.is_complex()):
        _floating("normal_", self)
    noise = randn(self.shape, generator=generator, dtype=self.dtype, device=self.device)
    return overwrite("normal_", self, noise * std + mean)


def log_normal_(
    self: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None
) -> Tensor:
    """Fill with exp of normal numbers of the given mean and standard deviation.

    >>> import undertow as ut
    >>> bool((ut.empty(5).log_normal_() > 0).all())
    True
    """
    _floating("log_normal_", self)
    if not std > 0:
        raise ArgumentError(f"[log_normal_] std must be above 0, got {std}")
    noise = randn(self.shape, generator=generator, dtype=self.dtype, device=self.device)
    return overwrite("log_normal_", self, (noise * std + mean).exp())


def bernoulli_(
    self: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """Fill with ones with probability `p` (a number, or a tensor that broadcasts), else zeros.

    >>> import undertow as ut
    >>> ut.zeros(2).bernoulli_(ut.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    source = coins("bernoulli_", self.shape, p, self.dtype, self.device, generator)
    return overwrite("bernoulli_", self, source)


def random_(
    self: Tensor,
    from_: int | None = None,
    to: int | EllipsisType | None = ...,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with integers: `random_(to)` below to, `random_(from, to)` from from.

    Without bounds, all integers from 0 that the dtype holds (exactly, for a floating one); with
    `random_(from, None)`, those from from.

    >>> import undertow as ut
    >>> ut.empty(3).random_(4, 5)
    tensor([4., 4., 4.])
    """
    dtype = self.dtype
    if dtype.is_complex:
        raise DTypeError(f"[random_] gives integers, which {dtype} is not for")
    low = 0 if from_ is None or to is ... else from_
    if to is ...:
        to = from_
    if to is not None:
        high = to
    elif dtype.is_floating_point:
        high = 2 ** MANTISSA_BITS.get(dtype.name, 53) + 1
    else:
        high = 2 if dtype is dtypes.bool else dtypes.iinfo(dtype).max + 1
    first, last = bounded("random_", low, high, dtype)
    k = backend_of(self._array)
    array = integer_words(k, generator, self.numel(), first, last, dtype)
    return overwrite("random_", self, wrap(k.reshape(array, self.shape)))


def exponential_(self: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponential numbers of the given rate; never exactly zero.

    >>> import undertow as ut
    >>> bool((ut.empty(5).exponential_() > 0).all())
    True
    """
    _floating("exponential_", self)
    if not lambd > 0:
        raise ArgumentError(f"[exponential_] lambd must be above 0, got {lambd}")
    return _refill("exponential_", self, lambda u: u.log() * (-1 / lambd), generator)


def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of trials up to the first success, each of probability `p`.

    >>> import undertow as ut
    >>> bool((ut.empty(5).geometric_(0.5) >= 1).all())
    True
    """
    if not 0 < p < 1:
        raise ArgumentError(f"[geometric_] p must lie between 0 and 1, got {p}")
    scale = 1 / math.log1p(-p)
    return _refill("geometric_", self, lambda u: (u.log() * scale).ceil(), generator)


def cauchy_(
    self: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None
) -> Tensor:
    """Fill with Cauchy numbers of the given median and scale.

    >>> import undertow as ut
    >>> ut.empty(5).cauchy_().shape
    (5,)
    """
    _floating("cauchy_", self)
    if not sigma > 0:
        raise ArgumentError(f"[cauchy_] sigma must be above 0, got {sigma}")
    return _refill(
        "cauchy_", self, lambda u: ((u - 0.5) * math.pi).tan() * sigma + median, generator
    )


for _method in (
    uniform_,
    normal_,
    log_normal_,
    bernoulli_,
    random_,
    exponential_,
    geometric_,
    cauchy_,
):
    attach(_method.__name__, guarded(_method, _method.__name__))
