"""Every module class, under the paths that torch has (`nn.modules.linear` …)."""

from .container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .linear import Bilinear, Identity, LazyLinear, Linear
from .module import Module

__all__ = [
    "Bilinear",
    "Identity",
    "LazyLinear",
    "Linear",
    "Module",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
]
