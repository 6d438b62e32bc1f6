"""Modules as functions of their parameters; torch's `func`."""

from ..nn.utils.stateless import functional_call

__all__ = ["functional_call"]
