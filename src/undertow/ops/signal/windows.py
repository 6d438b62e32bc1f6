"""Windows of signals: those of `ut.signal.windows`, and the old names such as `hann_window`.

All but one are sums of cosines, or functions of the position relative to the middle. `M` elements
are symmetric, or with `sym=False` the first of a period, whose next element would be the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from ... import dtypes
from ...core.register import function
from ...core.tensor import Tensor
from ...devices import DeviceLike
from ...dtypes import DType, DTypeLike
from ...errors import ArgumentError
from ...shapes import as_int
from ..create.creation import linspace, ones
from ..elementwise.special import i0

SPACE = "signal.windows"


def _made(
    op: str,
    M: Any,
    dtype: Any,
    device: Any,
    requires_grad: bool,
    shape: Callable[[Callable[[float, float], Tensor], int], Tensor],
    single: float | None = 1.0,
) -> Tensor:
    """A window of M elements; `shape` is given `steps(first, distance)` and M.

    `single` is the window of one element; None if it is computed like others.
    """
    count = as_int(op, "M", M)
    wanted: DType = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if count < 0:
        raise ArgumentError(f"[{op}] M must not be negative, got {count}")
    if not wanted.is_floating_point:
        raise ArgumentError(f"[{op}] makes floating windows, got dtype {wanted}")

    # Half precision is rounded once, at the end.
    exact = wanted if wanted.itemsize >= 4 else dtypes.float32

    def steps(first: float, distance: float) -> Tensor:
        return linspace(first, first + (count - 1) * distance, count, dtype=exact, device=device)

    if count == 0 or (count == 1 and single is not None):
        found = ones(count, dtype=wanted, device=device)
    else:
        found = shape(steps, count).to(wanted)
    return found.requires_grad_() if requires_grad else found


def _cosines(
    op: str, M: Any, weights: Iterable[float], sym: bool, dtype: Any, device: Any, grad: bool
) -> Tensor:
    """The sum of weights[k] * cos(k x), with alternating signs."""
    listed = list(weights)
    if not listed:
        raise ArgumentError(f"[{op}] a needs at least one coefficient")

    def shape(steps: Any, count: int) -> Tensor:
        x = steps(0.0, 2 * math.pi / (count - sym))
        total = x * 0 + listed[0]
        for k, w in enumerate(listed[1:], 1):
            total = total + (w if k % 2 == 0 else -w) * (x * k).cos()
        return total

    return _made(op, M, dtype, device, grad, shape)


def _publish_cosines(name: str, what: str, weights: list[float], shown: str) -> None:
    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return _cosines(name, M, weights, sym, dtype, device, requires_grad)

    window.__doc__ = f"""{what} window of `M` elements.

    >>> import undertow as ut
    >>> ut.signal.windows.{name}(4)
    {shown}
    """
    function(name=name, space=SPACE)(window)


_publish_cosines("hamming", "The Hamming", [0.54, 0.46], "tensor([0.0800, 0.7700, 0.7700, 0.0800])")
_publish_cosines("hann", "The Hann", [0.5, 0.5], "tensor([0.0000, 0.7500, 0.7500, 0.0000])")
_publish_cosines(
    "blackman",
    "The Blackman",
    [0.42, 0.5, 0.08],
    "tensor([-1.4901e-08,  6.3000e-01,  6.3000e-01, -1.4901e-08])",
)
_publish_cosines(
    "nuttall",
    "The minimal 4-term Nuttall",
    [0.3635819, 0.4891775, 0.1365995, 0.0106411],
    "tensor([3.6280e-04, 5.2923e-01, 5.2923e-01, 3.6280e-04])",
)


@function(space=SPACE)
def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A window that is a sum of cosines with the coefficients `a`, of alternating signs.

    >>> import undertow as ut
    >>> ut.signal.windows.general_cosine(4, a=[0.46, 0.23, 0.31])
    tensor([0.5400, 0.4200, 0.4200, 0.5400])
    """
    return _cosines("general_cosine", M, a, sym, dtype, device, requires_grad)


@function(space=SPACE)
def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`alpha` less `1 - alpha` times a cosine.

    >>> import undertow as ut
    >>> ut.signal.windows.general_hamming(4, alpha=0.6)
    tensor([0.2000, 0.8000, 0.8000, 0.2000])
    """
    weights = [alpha, 1 - alpha]
    return _cosines("general_hamming", M, weights, sym, dtype, device, requires_grad)


@function(space=SPACE)
def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle that ends in zeros.

    >>> import undertow as ut
    >>> ut.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """

    def shape(steps: Any, count: int) -> Tensor:
        return 1 - steps(-1.0, 2 / (count - sym)).abs()

    return _made("bartlett", M, dtype, device, requires_grad, shape)


@function(space=SPACE)
def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Half a period of a sine.

    >>> import undertow as ut
    >>> ut.signal.windows.cosine(4)
    tensor([0.3827, 0.9239, 0.9239, 0.3827])
    """

    def shape(steps: Any, count: int) -> Tensor:
        distance = math.pi / (count if sym or count == 1 else count + 1)
        found: Tensor = steps(0.5 * distance, distance).sin()
        return found

    return _made("cosine", M, dtype, device, requires_grad, shape, None)


def _from_middle(steps: Any, count: int, sym: bool, scale: float, middle: Any = None) -> Tensor:
    """Positions relative to the middle, times `scale`."""
    if middle is None:
        middle = (count - 1 if sym or count == 1 else count) / 2
    found: Tensor = steps(-middle * scale, scale)
    return found


@function(space=SPACE)
def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`exp(-abs(position - center) / tau)`; symmetric ones have their centre in the middle.

    >>> import undertow as ut
    >>> ut.signal.windows.exponential(5)
    tensor([0.1353, 0.3679, 1.0000, 0.3679, 0.1353])
    """
    if not tau > 0:
        raise ArgumentError(f"[exponential] tau must be above 0, got {tau}")
    if sym and center is not None:
        raise ArgumentError(f"[exponential] sym=True takes no center, got {center}")

    def shape(steps: Any, count: int) -> Tensor:
        return (-_from_middle(steps, count, sym, 1 / tau, center).abs()).exp()

    return _made("exponential", M, dtype, device, requires_grad, shape, None)


@function(space=SPACE)
def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A normal density with the standard deviation `std`, 1 in the middle.

    >>> import undertow as ut
    >>> ut.signal.windows.gaussian(5)
    tensor([0.1353, 0.6065, 1.0000, 0.6065, 0.1353])
    """
    if not std > 0:
        raise ArgumentError(f"[gaussian] std must be above 0, got {std}")

    def shape(steps: Any, count: int) -> Tensor:
        return (-_from_middle(steps, count, sym, 1 / (std * math.sqrt(2))).square()).exp()

    return _made("gaussian", M, dtype, device, requires_grad, shape, None)


@function(space=SPACE)
def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Kaiser window: `i0(beta * sqrt(1 - x**2)) / i0(beta)` for x from -1 to 1.

    >>> import undertow as ut
    >>> ut.signal.windows.kaiser(5)
    tensor([5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01, 5.2773e-05])
    """
    if not beta >= 0:
        raise ArgumentError(f"[kaiser] beta must not be negative, got {beta}")

    def shape(steps: Any, count: int) -> Tensor:
        x = steps(-1.0, 2 / (count - sym))
        top = x * 0 + beta
        return i0(beta * (1 - x * x).clamp(min=0).sqrt()) / i0(top)

    return _made("kaiser", M, dtype, device, requires_grad, shape)


# The old names, which are periodic unless told otherwise -----------------------------------------
def _old(name: str, weights: list[float] | None, shown: str) -> None:
    def window(
        window_length: int,
        periodic: bool = True,
        *,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        how = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
        if weights is None:
            return bartlett(window_length, sym=not periodic, **how)  # type: ignore[arg-type]
        return general_cosine(window_length, a=weights, sym=not periodic, **how)  # type: ignore[arg-type]

    window.__doc__ = f"""`signal.windows.{name.removesuffix("_window")}`, periodic by default.

    >>> import undertow as ut
    >>> ut.{name}(4)
    {shown}
    """
    function(name=name, method=False)(window)


_old("hann_window", [0.5, 0.5], "tensor([0.0000, 0.5000, 1.0000, 0.5000])")
_old(
    "blackman_window",
    [0.42, 0.5, 0.08],
    "tensor([-1.4901e-08,  3.4000e-01,  1.0000e+00,  3.4000e-01])",
)
_old("bartlett_window", None, "tensor([0.0000, 0.5000, 1.0000, 0.5000])")


@function(method=False)
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`alpha` less `beta` times a cosine, periodic by default.

    >>> import undertow as ut
    >>> ut.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    weights = [alpha, beta]
    return _cosines(
        "hamming_window", window_length, weights, not periodic, dtype, device, requires_grad
    )


@function(method=False)
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`signal.windows.kaiser`, periodic by default.

    >>> import undertow as ut
    >>> ut.kaiser_window(4)
    tensor([5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01])
    """
    how = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return kaiser(window_length, beta=beta, sym=not periodic, **how)  # type: ignore[arg-type]
