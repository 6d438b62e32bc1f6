"""Recurrent cells: one step of what `rnn.py` runs over whole sequences."""

from __future__ import annotations

import math
from typing import Any

from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from .. import init
from ..parameter import Parameter
from .linear import new_parameter
from .module import Module

_zeros = FUNCTIONS["zeros"]


def reset_uniform(module: Module, hidden_size: int) -> None:
    """Uniform values within 1 / sqrt(hidden_size) for every parameter."""
    bound = 1 / math.sqrt(hidden_size) if hidden_size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


class RNNCellBase(Module):
    """What the cells share: their parameters, and inputs with and without a batch.

    >>> import undertow as ut
    >>> cell = ut.nn.GRUCell(3, 4)
    >>> isinstance(cell, ut.nn.RNNCellBase), tuple(cell.weight_ih.shape)
    (True, (12, 3))
    """

    input_size: int
    hidden_size: int
    bias: bool
    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = new_parameter(rows, input_size, device=device, dtype=dtype)
        self.weight_hh = new_parameter(rows, hidden_size, device=device, dtype=dtype)
        for name in ("bias_ih", "bias_hh"):
            if bias:
                setattr(self, name, new_parameter(rows, device=device, dtype=dtype))
            else:
                self.register_parameter(name, None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform values within 1 / sqrt(hidden_size)."""
        reset_uniform(self, self.hidden_size)

    def _run(self, function: str, input: Tensor, hx: Any) -> Any:
        """One step; a state of an input without a batch has none either."""
        name = type(self).__name__
        ndim = input.dim()  # by methods: what answers for itself has these
        if ndim not in (1, 2):
            raise ShapeError(
                f"[{name}] Expected input to be 1D or 2D, got {ndim}D: shape {input.shape}"
            )
        if input.size(-1) != self.input_size:
            raise ShapeError(
                f"[{name}] input has {input.shape[-1]} features, expected input_size="
                f"{self.input_size}"
            )
        pair = function == "lstm_cell"
        batched = ndim == 2
        x = input if batched else input.unsqueeze(0)
        if hx is None:
            zeros = _zeros(x.size(0), self.hidden_size, dtype=x.dtype, device=x.device)
            hx = (zeros, zeros) if pair else zeros
        else:
            if pair and (isinstance(hx, Tensor) or len(hx) != 2):
                raise ArgumentError(f"[{name}] hx must be a pair (h_0, c_0)")
            hx = (
                self._states(hx, x, batched)
                if not pair
                else tuple([self._states(t, x, batched) for t in hx])
            )
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        found = FUNCTIONS[function](x, hx, *weights)
        if batched:
            return found
        return tuple([t.squeeze(0) for t in found]) if pair else found.squeeze(0)

    def _states(self, hx: Tensor, x: Tensor, batched: bool) -> Tensor:
        wanted = (*x.shape[:1], self.hidden_size)[0 if batched else 1 :]
        if hx.shape != wanted:
            raise ShapeError(
                f"[{type(self).__name__}] hx must have shape {tuple(wanted)} for this input and "
                f"hidden_size={self.hidden_size}, got {hx.shape}"
            )
        return hx if batched else hx.unsqueeze(0)

    def extra_repr(self) -> str:
        """Its sizes, and what is not as usual."""
        shown = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            shown += ", bias=False"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return shown if nonlinearity == "tanh" else f"{shown}, nonlinearity={nonlinearity}"


class RNNCell(RNNCellBase):
    """One step of a plain recurrent network.

    >>> import undertow as ut
    >>> cell = ut.nn.RNNCell(10, 20)
    >>> cell(ut.zeros(3, 10), ut.zeros(3, 20)).shape
    (3, 20)
    """

    nonlinearity: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(
                f"[RNNCell] nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}"
            )
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The new state."""
        found: Tensor = self._run(f"rnn_{self.nonlinearity}_cell", input, hx)
        return found


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory.

    >>> import undertow as ut
    >>> cell = ut.nn.LSTMCell(10, 20)
    >>> h, c = cell(ut.zeros(3, 10))
    >>> h.shape, c.shape
    ((3, 20), (3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The new state and memory."""
        found: tuple[Tensor, Tensor] = self._run("lstm_cell", input, hx)
        return found


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit.

    >>> import undertow as ut
    >>> cell = ut.nn.GRUCell(10, 20)
    >>> cell(ut.zeros(3, 10)).shape
    (3, 20)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The new state."""
        found: Tensor = self._run("gru_cell", input, hx)
        return found
