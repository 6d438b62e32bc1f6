"""Values for parameters to start from, written in place and outside the graph."""

from __future__ import annotations

import math
import warnings
from typing import Any, TypeVar

from ..core.modes import no_grad
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..dtypes import finfo

T = TypeVar("T", bound=Tensor)

_GAINS = {
    **dict.fromkeys(["linear", "sigmoid", *(f"conv{n}d" for n in "123")], 1.0),
    **dict.fromkeys([f"conv_transpose{n}d" for n in "123"], 1.0),
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much to scale weights in front of a nonlinearity.

    >>> import undertow as ut
    >>> ut.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(
            f"Unsupported nonlinearity {nonlinearity}; known are {sorted([*_GAINS, 'leaky_relu'])}"
        )
    return _GAINS[nonlinearity]


def uniform_(tensor: T, a: float = 0.0, b: float = 1.0, generator: Any = None) -> T:
    """Uniform values between `a` and `b`.

    >>> import undertow as ut
    >>> w = ut.nn.init.uniform_(ut.empty(1000), -0.1, 0.1)
    >>> bool((w.abs() <= 0.1).all())
    True
    """
    with no_grad():
        tensor.uniform_(a, b, generator=generator)
    return tensor


def _no_grad_uniform_(tensor: T, a: float, b: float, generator: Any = None) -> T:
    return uniform_(tensor, a, b, generator)


def normal_(tensor: T, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> T:
    """Normal values.

    >>> import undertow as ut
    >>> w = ut.nn.init.normal_(ut.empty(10000), mean=1.0, std=0.1)
    >>> abs(w.mean().item() - 1) < 0.01
    True
    """
    with no_grad():
        tensor.normal_(mean, std, generator=generator)
    return tensor


def trunc_normal_(
    tensor: T,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> T:
    """Normal values that lie between `a` and `b`.

    >>> import undertow as ut
    >>> bool((ut.nn.init.trunc_normal_(ut.empty(1000)).abs() <= 2).all())
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
            "values may be incorrect.",
            stacklevel=2,
        )

    def below(x: float) -> float:  # the normal distribution function
        return (1 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2

    # Half precision has too few numbers near one, where erfinv is steep, and at one it is infinite.
    with no_grad():
        wide = tensor if tensor.dtype.itemsize > 2 else tensor.float()
        edge = 1 - finfo(wide.dtype).eps / 2
        wide.uniform_(2 * below(a) - 1, 2 * below(b) - 1, generator=generator)
        wide.clamp_(-edge, edge).erfinv_()
        wide.mul_(std * math.sqrt(2.0)).add_(mean).clamp_(a, b)
        if wide is not tensor:
            tensor.copy_(wide)
    return tensor


def constant_(tensor: T, val: float) -> T:
    """One value everywhere.

    >>> import undertow as ut
    >>> ut.nn.init.constant_(ut.empty(3), 0.5)
    tensor([0.5000, 0.5000, 0.5000])
    """
    with no_grad():
        tensor.fill_(val)
    return tensor


def ones_(tensor: T) -> T:
    """Ones.

    >>> import undertow as ut
    >>> ut.nn.init.ones_(ut.empty(3))
    tensor([1., 1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: T) -> T:
    """Zeros.

    >>> import undertow as ut
    >>> layer = ut.nn.Linear(3, 2)
    >>> _ = ut.nn.init.zeros_(layer.bias)
    >>> layer.bias
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """
    return constant_(tensor, 0.0)


def eye_(tensor: T) -> T:
    """The identity matrix.

    >>> import undertow as ut
    >>> ut.nn.init.eye_(ut.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.copy_(FUNCTIONS["eye"](*tensor.shape, dtype=tensor.dtype, device=tensor.device))
    return tensor


def dirac_(tensor: T, groups: int = 1) -> T:
    """The kernel of a convolution that keeps its input's channels as they are.

    >>> import undertow as ut
    >>> conv = ut.nn.Conv1d(2, 2, 3, padding=1, bias=False)
    >>> _ = ut.nn.init.dirac_(conv.weight)
    >>> x = ut.rand(1, 2, 5)
    >>> ut.equal(conv(x), x)
    True
    """
    if not 3 <= tensor.ndim <= 5:
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.shape[0] // groups
    centre = tuple(n // 2 for n in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.shape[1])):
                tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor: T, gain: float = 1.0, generator: Any = None) -> T:
    """Uniform values whose variance is gain² · 2 / (fan_in + fan_out) (Glorot and Bengio).

    >>> import undertow as ut
    >>> w = ut.nn.init.xavier_uniform_(ut.empty(30, 24))
    >>> bool((w.abs() <= (6 / (30 + 24)) ** 0.5).all())
    True
    """
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: T, gain: float = 1.0, generator: Any = None) -> T:
    """Normal values whose variance is gain² · 2 / (fan_in + fan_out) (Glorot and Bengio).

    >>> import undertow as ut
    >>> w = ut.nn.init.xavier_normal_(ut.empty(100, 100))
    >>> abs(w.std().item() - (2 / 200) ** 0.5) < 0.01
    True
    """
    std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(
    tensor: T,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> T:
    """Uniform values whose variance is gain² / fan (He and others).

    >>> import undertow as ut
    >>> w = ut.nn.init.kaiming_uniform_(ut.empty(64, 24))
    >>> bool((w.abs() <= 0.5).all())
    True
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: T,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> T:
    """Normal values whose variance is gain² / fan (He and others).

    >>> import undertow as ut
    >>> w = ut.nn.init.kaiming_normal_(ut.empty(200, 50), nonlinearity="relu")
    >>> abs(w.std().item() - (2 / 50) ** 0.5) < 0.02
    True
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: T, gain: float = 1, generator: Any = None) -> T:
    """A matrix with orthonormal rows or columns, whichever there are fewer of, times `gain`.

    >>> import undertow as ut
    >>> w = ut.nn.init.orthogonal_(ut.empty(3, 5))
    >>> ut.allclose(w @ w.T, ut.eye(3), atol=1e-5)
    True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    with no_grad():
        rows, cols = tensor.shape[0], tensor.numel() // tensor.shape[0]
        flat = FUNCTIONS["empty"](rows, cols, dtype=tensor.dtype, device=tensor.device)
        flat.normal_(0, 1, generator=generator)
        q = _orthonormal(flat.t() if rows < cols else flat)
        tensor.copy_((q.t() if rows < cols else q).reshape(tensor.shape)).mul_(gain)
    return tensor


def _orthonormal(a: Tensor) -> Tensor:
    """Q of the QR decomposition whose R has a positive diagonal, by Gram and Schmidt, twice."""
    columns: list[Tensor] = []
    for column in a.double().unbind(1):
        if columns:
            q = FUNCTIONS["stack"](columns, 1)
            for _ in range(2):  # once is not enough for nearly parallel columns
                column = column - q @ (q.t() @ column)
        columns.append(column / (column * column).sum().sqrt())
    return FUNCTIONS["stack"](columns, 1).to(a.dtype)


def sparse_(tensor: T, sparsity: float, std: float = 0.01, generator: Any = None) -> T:
    """Normal values, of which a fraction `sparsity` of every column is zero.

    >>> import undertow as ut
    >>> w = ut.nn.init.sparse_(ut.empty(10, 4), sparsity=0.7)
    >>> (w == 0).sum(0)
    tensor([7, 7, 7, 7])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(cols):
            which = FUNCTIONS["randperm"](rows, device=tensor.device)[:zeros]
            tensor[which, column] = 0
    return tensor


def _deprecated(name: str) -> Any:
    """The name without underscore that torch still has."""
    new = globals()[f"{name}_"]

    def old(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"nn.init.{name} is now deprecated in favor of nn.init.{name}_.",
            FutureWarning,
            stacklevel=2,
        )
        return new(*args, **kwargs)

    old.__name__, old.__doc__ = name, f"`{name}_`, as it was called once."
    return old


uniform = _deprecated("uniform")
normal = _deprecated("normal")
constant = _deprecated("constant")
eye = _deprecated("eye")
dirac = _deprecated("dirac")
xavier_uniform = _deprecated("xavier_uniform")
xavier_normal = _deprecated("xavier_normal")
kaiming_uniform = _deprecated("kaiming_uniform")
kaiming_normal = _deprecated("kaiming_normal")
orthogonal = _deprecated("orthogonal")
sparse = _deprecated("sparse")

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]
