"""Every module class, under the paths that torch has (`nn.modules.linear` …)."""

from .container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .linear import Bilinear, Identity, LazyLinear, Linear
from .module import Module
from .rnn import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNBase, RNNCell, RNNCellBase

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "Bilinear",
    "GRUCell",
    "Identity",
    "LSTMCell",
    "LazyLinear",
    "Linear",
    "Module",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "Sequential",
]
