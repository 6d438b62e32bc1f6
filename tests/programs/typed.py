"""A user's program, for `tests/house/test_stubs.py`: what mypy must infer, and what it must refuse.

`# R: type` is what `reveal_type` on that line says, `# E: code` the error that mypy reports there;
every other line must be free of errors. It is read by mypy and never run.
"""

from typing import reveal_type

import numpy as np

import undertow as ut
import undertow.nn.functional as F
from undertow import Tensor

x = ut.ones(2, 3, requires_grad=True)
i = ut.tensor([0, 1])

# Making tensors
reveal_type(x)  # R: Tensor
reveal_type(ut.zeros((2, 3), dtype=ut.float64, device="cpu"))  # R: Tensor
reveal_type(ut.zeros(size=[2, 3], dtype=np.float32))  # R: Tensor
reveal_type(ut.full((2,), 7.5))  # R: Tensor
reveal_type(ut.randn(2, generator=ut.Generator()))  # R: Tensor
reveal_type(ut.randint(10, (2,)))  # R: Tensor
reveal_type(ut.randint(1, 10, size=(2,)))  # R: Tensor
reveal_type(ut.rand_like(x, dtype=ut.float64))  # R: Tensor
reveal_type(x.new_zeros(2, 3))  # R: Tensor
reveal_type(ut.from_numpy(np.ones(3)))  # R: Tensor
ut.ones("a")  # E: arg-type
ut.ones(2.5)  # E: call-overload
ut.zeros(2, dtype=3)  # E: call-overload
ut.full((2,), "a")  # E: arg-type
ut.zeros_like([1.0])  # E: arg-type
ut.arange(3, requires_gradient=True)  # E: call-arg
ut.not_a_function(x)  # E: attr-defined

# Operators
reveal_type(x + 1)  # R: Tensor
reveal_type(2.5 * x - x / 2)  # R: Tensor
reveal_type(1j + x)  # R: Tensor
reveal_type(x @ x.T)  # R: Tensor
reveal_type(-(x**2))  # R: Tensor
reveal_type((x > 0) & ~(x == 1))  # R: Tensor
reveal_type(x[0])  # R: Tensor
reveal_type(x[..., None, 1:, i])  # R: Tensor
x[0] = 1.5
x += 1
x + "a"  # E: operator
x["a"]  # E: index

# Properties and plain methods
reveal_type(x.shape)  # R: Size
reveal_type(x.size())  # R: Size
reveal_type(x.size(0))  # R: int
reveal_type(x.dtype)  # R: DType
reveal_type(x.grad)  # R: Tensor | None
reveal_type(x.mT)  # R: Tensor
reveal_type(x.numpy())  # R: ndarray[tuple[Any, ...], dtype[Any]]
reveal_type(x.sum().item())  # R: int | float
reveal_type(len(x))  # R: int
reveal_type(float(x.sum()))  # R: float
reveal_type(list(x))  # R: list[Tensor]
reveal_type(x.backward())  # R: None
x.not_a_method()  # E: attr-defined

# Functions and methods
reveal_type(x.exp().sum(dim=(0, 1), keepdim=True))  # R: Tensor
reveal_type(x.sum(0))  # R: Tensor
reveal_type(x.reshape(3, -1).permute((1, 0)).view(ut.int32))  # R: Tensor
reveal_type(x.to(ut.float64))  # R: Tensor
reveal_type(x.to("cpu", ut.float64, copy=True))  # R: Tensor
reveal_type(x.add_(1, alpha=2).mul_(x).clamp_(min=0))  # R: Tensor
reveal_type(ut.where(x > 0, x, 0))  # R: Tensor
reveal_type(ut.where(x > 0))  # R: tuple[Tensor, ...]
reveal_type(ut.cat([x, x], dim=1))  # R: Tensor
reveal_type(ut.einsum("ij,kj->ik", x, x))  # R: Tensor
reveal_type(ut.allclose(x, x))  # R: bool
reveal_type(x.split(1))  # R: tuple[Tensor, ...]
x.sum(dim="q")  # E: arg-type
x.exp(2)  # E: call-arg
x.add_("a")  # E: arg-type
x.view("a", 2)  # E: call-overload
ut.cat(3)  # E: arg-type
ut.exp("a")  # E: arg-type

# Results that depend on the arguments
reveal_type(ut.max(x))  # R: Tensor
reveal_type(ut.max(x, x))  # R: Tensor
reveal_type(x.max(dim=1))  # R: tuple[Tensor, Tensor, fallback=Selection]
reveal_type(x.max(dim=1).indices)  # R: Tensor
values, indices = x.sort(descending=True)
reveal_type(values)  # R: Tensor
reveal_type(x.median())  # R: Tensor
reveal_type(x.median(dim=0).values)  # R: Tensor
reveal_type(x.aminmax().max)  # R: Tensor
reveal_type(x.nonzero())  # R: Tensor
reveal_type(x.nonzero(as_tuple=True))  # R: tuple[Tensor, ...]
reveal_type(x.unique())  # R: Tensor
reveal_type(x.unique(return_counts=True))  # R: tuple[Tensor, Tensor]
all_three = ut.unique(x, return_inverse=True, return_counts=True)
reveal_type(all_three)  # R: tuple[Tensor, Tensor, Tensor]
reveal_type(F.max_pool1d(x, 2))  # R: Tensor
reveal_type(F.max_pool1d(x, 2, return_indices=True))  # R: tuple[Tensor, Tensor]
reveal_type(ut.atleast_2d(x))  # R: Tensor
reveal_type(ut.atleast_2d(x, x))  # R: tuple[Tensor, ...]
reveal_type(x.type())  # R: str
reveal_type(x.type(ut.float64))  # R: Tensor

# nn.functional
reveal_type(F.gelu(x, approximate="tanh"))  # R: Tensor
reveal_type(F.conv1d(x, x, padding="same", stride=(1,)))  # R: Tensor
reveal_type(F.cross_entropy(x, i, reduction="sum"))  # R: Tensor
reveal_type(F.elu_(x, 0.5))  # R: Tensor
F.gelu(3)  # E: arg-type
F.softmax(x, dim="last")  # E: arg-type
F.conv1d(x)  # E: call-arg
F.not_there(x)  # E: attr-defined


# Names that are types
def half_of(t: Tensor, kind: ut.dtype = ut.float32, where: ut.device | None = None) -> Tensor:
    """Use the package's names in annotations."""
    with ut.no_grad():
        return t.to(where, kind) / 2


# A typical module
class Net(ut.nn.Module):
    """A call has the types of `forward`."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = ut.nn.Sequential(ut.nn.Linear(2, width), ut.nn.ReLU())
        self.lstm = ut.nn.LSTM(width, width)
        self.head = ut.nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """A call of a layer is a tensor."""
        y = F.relu(self.layers(x))
        z, _ = self.lstm(y)
        return self.head(y + z)


class Pair(ut.nn.Module):
    """Two results."""

    def forward(self, x: Tensor, scale: float = 1.0) -> tuple[Tensor, dict[str, Tensor]]:
        """A tensor and a dict."""
        return x, {"scaled": x * scale}


@ut.no_grad()
def evaluate(net: Net, x: Tensor) -> float:
    """A decorated function keeps its type."""
    return net(x).mean().item()


net = Net(3)
reveal_type(net(x))  # R: Tensor
reveal_type(Pair()(x, scale=2.0))  # R: tuple[Tensor, dict[str, Tensor]]
reveal_type(net.state_dict())  # R: dict[str, Any]
reveal_type(net.layers[0])  # R: Module
reveal_type(net.layers[1:])  # R: Sequential
reveal_type(net.head.weight)  # R: Parameter
reveal_type(net.to("cpu").eval())  # R: Net
reveal_type(evaluate(net, x))  # R: float
net("x")  # E: arg-type
Pair()(x, size=2)  # E: call-arg
