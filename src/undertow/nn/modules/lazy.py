"""Modules that learn the sizes of their parameters from the first input."""

from __future__ import annotations

from typing import Any

from ..parameter import is_lazy
from .module import Module


class LazyModuleMixin:
    """Put before a module class: `initialize_parameters(*input)` is called at the first input.

    After that the module is of the class `cls_to_become`, and no different from any other.

    >>> import undertow as ut
    >>> layer = ut.nn.LazyLinear(2)
    >>> layer(ut.ones(4, 3)).shape, layer
    ((4, 2), Linear(in_features=3, out_features=2, bias=True))
    """

    cls_to_become: type[Module] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        assert isinstance(self, Module)
        self._waits = self.register_forward_pre_hook(_meet, with_kwargs=True)

    def has_uninitialized_params(self) -> bool:
        """Whether it has not seen an input yet, nor a state_dict."""
        assert isinstance(self, Module)
        return any(is_lazy(v) for v in (*self._parameters.values(), *self._buffers.values()))

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize the parameters for such an input."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )


def _meet(module: Any, args: Any, kwargs: Any) -> None:
    """Before the first forward: make the parameters, and stop being lazy."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(
            f"module {type(module).__name__} has not been fully initialized by "
            "initialize_parameters()"
        )
    module._waits.remove()
    del module._waits
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become
