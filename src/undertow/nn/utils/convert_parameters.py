"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...errors import DeviceError, DTypeError, ShapeError


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters, one after the other.

    >>> import undertow as ut
    >>> ut.nn.utils.parameters_to_vector([ut.ones(2), ut.zeros(1, 1)])
    tensor([1., 1., 0.])
    """
    given = list(parameters)
    for parameter in given:
        if parameter.device != given[0].device:
            raise DeviceError(
                f"[parameters_to_vector] found parameters on {given[0].device} and on "
                f"{parameter.device}; they must be on one device"
            )
    return FUNCTIONS["cat"]([p.reshape(-1) for p in given])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give parameters the elements of a vector, in order; they become views of it.

    >>> import undertow as ut
    >>> layer = ut.nn.Linear(2, 1)
    >>> ut.nn.utils.vector_to_parameters(ut.tensor([1.0, 2.0, 3.0]), layer.parameters())
    >>> layer.weight.detach(), layer.bias.detach()
    (tensor([[1., 2.]]), tensor([3.]))
    """
    if not isinstance(vec, Tensor):
        raise DTypeError(f"[vector_to_parameters] expected a Tensor, got {type(vec).__name__}")
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        if end > vec.numel():
            raise ShapeError(
                f"[vector_to_parameters] the vector has {vec.numel()} elements, and the "
                f"parameters have at least {end}"
            )
        parameter.data = vec[start:end].view(parameter.shape).detach()
        start = end
