"""Functions made of functions: derivatives, maps over batches, modules without state of their own.

Arguments and results may be nested tuples, lists and dicts of tensors. The transforms can be
nested in any order, and plain autograd goes through all of them.
"""

from .. import nn as _nn  # noqa: F401  # whole, see Note [imports of threads]
from .batches import vmap
from .derivatives import (
    functionalize,
    grad,
    grad_and_value,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jet,
    jvp,
    laplacian,
    linearize,
    vjp,
)
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jet",
    "jvp",
    "laplacian",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
