"""Places in a model where numbers would become integers, and floating numbers again."""

from __future__ import annotations

from typing import Any

from ....core.tensor import Tensor
from ....nn import Module


class QuantStub(Module):
    """Where numbers would become integers: lets them through.

    >>> import undertow as ut
    >>> ut.ao.quantization.QuantStub()(ut.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig is not None:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """The tensor itself."""
        return x


class DeQuantStub(QuantStub):
    """Where integers would become floating numbers again: lets them through."""


class QuantWrapper(Module):
    """A module between the two stubs."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.quant, self.dequant = QuantStub(), DeQuantStub()
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Any) -> Any:
        """The module's output."""
        return self.dequant(self.module(self.quant(X)))
