"""Recurrent networks and cells; the functions that they call are in `ops/recurrent`."""

from __future__ import annotations

import warnings
from typing import Any

from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, ShapeError
from ...kernel.cells import CELLS
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .linear import new_parameter
from .module import Module
from .rnn_cell import GRUCell as GRUCell
from .rnn_cell import LSTMCell as LSTMCell
from .rnn_cell import RNNCell as RNNCell
from .rnn_cell import RNNCellBase as RNNCellBase
from .rnn_cell import reset_uniform

_FUNCTION = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}
_GATES = {
    mode: CELLS[kind].gates
    for mode, kind in zip(_FUNCTION, ("lstm", "gru", "tanh", "relu"), strict=True)
}
_zeros = FUNCTIONS["zeros"]


class RNNBase(Module):
    """What RNN, LSTM and GRU share: parameters by layer and direction, and what they accept.

    `mode` is "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".

    >>> import undertow as ut
    >>> lstm = ut.nn.LSTM(3, 4)
    >>> isinstance(lstm, ut.nn.RNNBase), [tuple(w.shape) for w in lstm.parameters()]
    (True, [(16, 3), (16, 4), (16,), (16,)])
    """

    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if mode not in _FUNCTION:
            raise ArgumentError(f"[{name}] mode must be one of {', '.join(_FUNCTION)}, got {mode}")
        for what, size in (("input_size", input_size), ("hidden_size", hidden_size)):
            if type(size) is not int:
                raise DTypeError(f"[{name}] {what} must be an integer, got {size!r}")
        if hidden_size <= 0 or num_layers <= 0:
            raise ArgumentError(
                f"[{name}] hidden_size and num_layers must be greater than zero, got "
                f"{hidden_size} and {num_layers}"
            )
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ArgumentError(
                f"[{name}] dropout must be a probability, from 0 to 1, got {dropout!r}"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                f"[{name}] dropout stands between layers, so dropout={dropout} has no effect with "
                "num_layers=1",
                stacklevel=3,
            )
        if proj_size and mode != "LSTM":
            raise ArgumentError(f"[{name}] only an LSTM has projections, got proj_size={proj_size}")
        if proj_size < 0 or proj_size >= hidden_size:
            raise ArgumentError(
                f"[{name}] proj_size must be smaller than hidden_size, or 0 for no projection; got "
                f"{proj_size} with hidden_size={hidden_size}"
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        state = proj_size or hidden_size
        rows = _GATES[mode] * hidden_size
        directions = 1 + bidirectional
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[:directions]:
                wide = state * directions if layer else input_size
                shapes: dict[str, tuple[int, ...]] = {}
                shapes |= {"weight_ih": (rows, wide), "weight_hh": (rows, state)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = [f"{stem}_l{layer}{suffix}" for stem in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    setattr(self, name, new_parameter(*shape, device=device, dtype=dtype))
                self._all_weights.append(names)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform values within 1 / sqrt(hidden_size)."""
        reset_uniform(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Nothing: the weights need not lie together here. torch's cuDNN wants them to."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    # Arguments --------------------------------------------------------------------------------
    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise unless an input fits."""
        wanted = 3 if batch_sizes is None else 2
        if input.dim() != wanted:
            raise ShapeError(
                f"[{type(self).__name__}] input must have {wanted} dimensions, got {input.dim()}: "
                f"shape {input.shape}"
            )
        if input.size(-1) != self.input_size:
            raise ShapeError(
                f"[{type(self).__name__}] input.size(-1) must be equal to input_size, expected "
                f"{self.input_size}, got {input.shape[-1]}"
            )

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the states for such an input."""
        if batch_sizes is None:
            batch = input.size(0 if self.batch_first else 1)
        else:
            batch = int(batch_sizes[0])
        return self._states(batch, self.proj_size or self.hidden_size)

    def _states(self, batch: int, size: int) -> tuple[int, int, int]:
        return self.num_layers * (1 + self.bidirectional), batch, size

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raise unless a state has the shape that is expected."""
        if hx.shape != expected_hidden_size:
            told = msg.format(expected_hidden_size, list(hx.shape))
            raise ShapeError(f"[{type(self).__name__}] {told}")

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise unless input and state fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """States in another order of the batch."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # What LSTM has two of ---------------------------------------------------------------------
    def _first(self, x: Tensor, batch: int) -> Any:
        """States of zeros."""
        size = self.proj_size or self.hidden_size
        return _zeros(self._states(batch, size), dtype=x.dtype, device=x.device)

    def _batched(self, hx: Any, ndim: int) -> Any:
        """States of an input without a batch, with one of size 1."""
        return self._ranked(hx, ndim).unsqueeze(1)

    def _unbatched(self, hx: Any) -> Any:
        return hx.squeeze(1)

    def _ranked(self, hx: Tensor, ndim: int) -> Tensor:
        if hx.ndim != ndim:
            kind = "batched 3-D" if ndim == 3 else "unbatched 2-D"
            raise ShapeError(
                f"[{type(self).__name__}] For {kind} input, hx should also be {ndim}-D but got "
                f"{hx.ndim}-D tensor"
            )
        return hx

    # Running ----------------------------------------------------------------------------------
    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> Any:
        """The states of the last layer at all steps, and the last states of all layers.

        Sequences are (steps, batch, features), or (batch, steps, features) with `batch_first`, or
        without a batch, or packed.
        """
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        name = type(self).__name__
        if not hasattr(type(input), "__torch_function__"):
            raise ArgumentError(
                f"[{name}] input must be a Tensor or a PackedSequence, got {type(input).__name__}"
            )
        ndim = input.dim()  # by methods: what answers for itself has these
        if ndim not in (2, 3):
            raise ShapeError(
                f"[{name}] Expected input to be 2D or 3D, got {ndim}D: shape {input.shape}"
            )
        batched = ndim == 3
        along = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(along)
        if hx is None:
            hx = self._first(input, input.size(along))
        elif not batched:
            hx = self._batched(hx, 2)
        else:
            self._ranked_states(hx)
        self.check_forward_args(input, hx, None)
        given = (input, hx, self._flat(), *self._how(), self.batch_first)
        out, last = self._called(given)
        if not batched:
            return out.squeeze(along), self._unbatched(last)
        return out, last

    def _packed(self, input: PackedSequence, hx: Any) -> Any:
        data, batch_sizes, order, back = input
        if hx is None:
            hx = self._first(data, int(batch_sizes[0]))
        else:  # its sequences are in the order in which they were given
            hx = self.permute_hidden(hx, order)
        self.check_forward_args(data, hx, batch_sizes)
        out, last = self._called((data, batch_sizes, hx, self._flat(), *self._how()))
        return PackedSequence(out, batch_sizes, order, back), self.permute_hidden(last, back)

    def _ranked_states(self, hx: Any) -> None:
        self._ranked(hx, 3)

    def _how(self) -> tuple[Any, ...]:
        """The arguments of the functions between the weights and `batch_first`."""
        return self.bias, self.num_layers, self.dropout, self.training, self.bidirectional

    @property
    def _flat_weights(self) -> list[Parameter]:
        """The weights in their order, under torch's name; what is put into it changes nothing."""
        return self._flat()

    def _flat(self) -> list[Parameter]:
        return [getattr(self, name) for names in self._all_weights for name in names]

    def _called(self, given: tuple[Any, ...]) -> tuple[Tensor, Any]:
        out, *last = FUNCTIONS[_FUNCTION[self.mode]](*given)
        return out, last[0] if len(last) == 1 else tuple(last)

    def extra_repr(self) -> str:
        """Its sizes, and what is not as usual."""
        shown = [str(self.input_size), str(self.hidden_size)]
        usual = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
        }
        for name, value in usual.items():
            if getattr(self, name) != value:
                shown.append(f"{name}={getattr(self, name)}")
        return ", ".join(shown)


class RNN(RNNBase):
    """A plain recurrent network: tanh or relu of the input's and the state's products.

    >>> import undertow as ut
    >>> network = ut.nn.RNN(10, 20, num_layers=2)
    >>> out, h_n = network(ut.zeros(5, 3, 10))
    >>> out.shape, h_n.shape
    ((5, 3, 20), (2, 3, 20))
    """

    nonlinearity: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ArgumentError("[RNN] proj_size argument is only supported for LSTM, not RNN")
        if len(args) > 3:
            nonlinearity, args = args[3], (*args[:3], *args[4:])
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(
                f"[RNN] nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}"
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """A network of gated recurrent units.

    >>> import undertow as ut
    >>> network = ut.nn.GRU(10, 20, bidirectional=True)
    >>> out, h_n = network(ut.zeros(5, 3, 10))
    >>> out.shape, h_n.shape
    ((5, 3, 40), (2, 3, 20))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ArgumentError("[GRU] proj_size argument is only supported for LSTM, not GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """A long short-term memory; its state is a pair (h, c).

    With `proj_size` the state that a step hands on is a projection of what the cell gives.

    >>> import undertow as ut
    >>> network = ut.nn.LSTM(10, 20, num_layers=2, batch_first=True)
    >>> out, (h_n, c_n) = network(ut.zeros(3, 5, 10))
    >>> out.shape, h_n.shape, c_n.shape
    ((3, 5, 20), (2, 3, 20), (2, 3, 20))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the memories for such an input."""
        batch = self.get_expected_hidden_size(input, batch_sizes)[1]
        return self._states(batch, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise unless input, state and memory fit."""
        self.check_input(input, batch_sizes)
        h, c = hidden
        expected = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(h, expected, "Expected hidden[0] size {}, got {}")
        expected = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(c, expected, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """State and memory in another order of the batch."""
        if permutation is None:
            return hx
        h, c = self._pair(hx)
        return h.index_select(1, permutation), c.index_select(1, permutation)

    def _first(self, x: Tensor, batch: int) -> Any:
        memory = self._states(batch, self.hidden_size)
        return super()._first(x, batch), _zeros(memory, dtype=x.dtype, device=x.device)

    def _batched(self, hx: Any, ndim: int) -> Any:
        h, c = self._pair(hx)
        return self._ranked(h, ndim).unsqueeze(1), self._ranked(c, ndim).unsqueeze(1)

    def _unbatched(self, hx: Any) -> Any:
        return hx[0].squeeze(1), hx[1].squeeze(1)

    def _ranked_states(self, hx: Any) -> None:
        for t in self._pair(hx):
            self._ranked(t, 3)

    def _pair(self, hx: Any) -> Any:
        if isinstance(hx, Tensor) or len(hx) != 2:
            got = f"a tensor of shape {hx.shape}" if isinstance(hx, Tensor) else f"{len(hx)} values"
            raise ArgumentError(f"[LSTM] hx must be a pair (h_0, c_0), got {got}")
        return hx
