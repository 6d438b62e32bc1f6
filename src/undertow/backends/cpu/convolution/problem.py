"""What a convolution's algorithm is chosen by, and what it gives.

Note [two products]
The form `conv` sums over channels and taps. There are two ways to see a matrix product in it:
  - windows on the right: for each element of the batch, (outputs × steps) @ (steps × positions),
    where a step is a tap of a channel.
  - windows on the left, for more taps than positions, as in the gradient of a weight: there the
    form's channels are the images of a batch, its taps the positions of the cotangent, and its
    positions the taps of the weight. The product is a sum over channels of
    (batch and positions × taps) @ (taps × outputs).
Either way elements are summed in an order that the shapes alone decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ....kernel.expr import arg, call, trace
from ....kernel.windows import Geometry
from ...base import Backend, Shape

_RELU = call("maximum", arg(0), 0)
_SUM = trace(lambda a, b: a + b, 2)


class Arrays(NamedTuple):
    """The operands of the form `conv`, its result first."""

    out: Any
    x: Any
    w: Any
    bias: Any


class Problem(NamedTuple):
    """A convolution as the form `conv` has it. Of its arrays only dtypes and layouts count."""

    out: Any
    x: Any
    w: Any
    bias: Any
    geometry: Geometry
    relu: bool
    mode: str  # cpu.fast_convolution

    @property
    def left(self) -> bool:
        """Whether there are more taps than positions; see Note [two products]."""
        return math.prod(self.geometry.kernel) > math.prod(self.geometry.output)

    @property
    def dilated(self) -> bool:
        """Whether there are zeros between the elements of the input."""
        return max(self.geometry.input_dilation) > 1


class Way(NamedTuple):
    """How to compute convolutions of one layout."""

    run: Callable[[Arrays, Backend], bool]  # False: wrong, since something is not finite
    bias: bool  # a part of it; else it is added afterwards
    relu: bool  # likewise

    def compute(self, a: Arrays, relu: bool, backend: Backend) -> bool:
        """Write the convolution with everything; what `run` says."""
        rest = None if self.bias else a.bias
        if not self.run(a if rest is None else a._replace(bias=None), backend):
            return False
        finish(a.out, rest, relu and not self.relu, backend)
        return True


def reshaped(a: Any, shape: Shape, backend: Backend) -> Any:
    """An array in another shape: a view, or else one of a copy."""
    found = a.reshape(shape)
    return found if np.may_share_memory(found, a) else backend.copy(a).reshape(shape)


def beside(bias: Any, out: Any) -> Any:
    """The bias, to be broadcast to the result."""
    return bias.reshape(*bias.shape, *(1,) * (out.ndim - 3))


def finish(out: Any, bias: Any, relu: bool, backend: Backend) -> None:
    """Add the bias, if there is one, and then make what is negative 0."""
    if bias is not None:
        given = out, np.broadcast_to(beside(bias, out), out.shape)
        backend.map(_SUM, given, out.dtype, out)
    if relu:
        backend.map(_RELU, (out,), out.dtype, out)
