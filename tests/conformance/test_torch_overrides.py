"""Who is asked for which function, and what subclasses give, as in torch; resized bytes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

ASKED: dict[Any, list[str]] = {}


def logging_class(library: Any) -> Any:
    """A subclass of the library's Tensor that writes down the names of what it is asked for."""
    asked = ASKED.setdefault(library, [])

    class Logged(library.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(getattr(func, "__name__", str(func)))
            return super().__torch_function__(func, types, args, kwargs)

    return Logged


KINDS = {library: logging_class(library) for library in (ut, torch)}

CALLS = [
    *("x + x", "1 + x", "x - 1", "1 - x", "x * 2", "x / 2", "x % 2", "x ** 2"),
    *("p + x", "p * x", "x @ x.mT", "-x", "abs(x)", "x < 1", "x >= 1", "x != 1"),
    *("x.sum()", "x.sum(0)", "t.sum(x, dim=0)", "x.max(0)", "t.max(x, 0)", "x.split(1)"),
    *("x[0]", "x[:, 1]", "x[..., None]", "p[x[0].long()]", "x.shape", "x.dtype", "x.device"),
    *("x.T", "x.mT", "x.size()", "x.dim()", "x.numel()", "len(x)", "x.is_floating_point()"),
    *("x.clone()", "x.detach()", "x.to(t.float64)", "x.double()", "x.reshape(3, 2)"),
    *("x.add_(1)", "x.clone().mul_(2)", "x.softmax(-1)", "t.softmax(x, -1)", "x.new_zeros(3)"),
    *("F.softmax(x, -1)", "F.gelu(x)", "F.linear(x, p)", "F.layer_norm(x, (3,))", "F.relu(x)"),
    *("F.mse_loss(x, p)", "F.dropout(x, 0.0)", "F.interpolate(x[None], scale_factor=2)"),
    *("t.cat([p, x])", "t.stack([x, p])", "t.where(x > 0, x, p)", "t.einsum('ij,kj->ik', x, p)"),
    *("t.zeros_like(x)", "t.allclose(x, p)", "t.equal(x, p)", "t.matmul(x, x.T)", "t.mul(p, x)"),
    *("x.grad", "x.requires_grad", "x.is_leaf", "x.grad_fn", "t.is_tensor(x)", "x.tolist()"),
    *("x.sum().item()", "float(x.sum())", "bool(x.sum() > 0)", "x.unbind(0)", "x.numpy()"),
    *("t.nn.Linear(3, 2)(x)", "t.nn.LayerNorm(3)(x)", "x.norm()", "x.std()", "x.view(6)"),
    *("t.is_floating_point(x)", "x.type(t.float64)", "x.permute(1, 0)", "x.expand(2, 2, 3)"),
]


def kinds_of(value: Any) -> Any:
    """The classes in a result, by names that both libraries have."""
    if isinstance(value, (tuple, list)) and type(value).__name__ != "Size":
        return [kinds_of(v) for v in value]
    if hasattr(value, "__torch_function__"):
        return type(value).__name__
    return "other"


@pytest.mark.parametrize("call", CALLS)
def test_the_same_functions_are_asked_for(call: str) -> None:
    seen = []
    for library in (ut, torch):
        x = library.ones(2, 3).as_subclass(KINDS[library])
        given = {"x": x, "p": library.ones(2, 3), "t": library, "F": library.nn.functional}
        ASKED[library].clear()
        result = eval(call, given)
        seen.append(([*ASKED[library]], kinds_of(result)))
    assert seen[0] == seen[1]


def test_copies_and_pickles() -> None:
    for library in (ut, torch):
        x = library.ones(2)
        x.note = 5
        for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert made.note == 5
        assert not hasattr(x.clone(), "note")


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("how", ["", "antialias", "align_corners"])
def test_bytes_of_resized_images(mode: str, how: str) -> None:
    """Bit by bit: weights of 15 bits, the widths rounded before the heights."""
    if "AVX" not in torch.backends.cpu.get_cpu_capability():
        pytest.skip("torch computes bytes otherwise on this machine")
    random = np.random.RandomState(0)
    more = {how: True} if how else {}
    for _ in range(20):
        channels, size = random.randint(1, 5), tuple(map(int, random.randint(1, 60, 2)))
        x = random.randint(0, 256, (1, channels, *random.randint(1, 60, 2))).astype(np.uint8)
        theirs = torch.nn.functional.interpolate(torch.from_numpy(x), size, mode=mode, **more)
        ours = ut.nn.functional.interpolate(ut.from_numpy(x), size, mode=mode, **more)
        assert np.array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.filterwarnings("ignore")  # sparse layouts are in beta state
@pytest.mark.parametrize(
    "text",
    [
        "lib.sparse_coo_tensor([[0]], [1.0], (2,))",
        "lib.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1))",
        "lib.sparse_compressed_tensor([0, 1], [0], [1.0], (1, 1), layout=lib.sparse_csr)",
    ],
)
def test_a_mode_is_asked_by_constructors_of_sparse_tensors(text: str) -> None:
    found = []
    for lib in (ut, torch):
        seen: list[Any] = []

        class Watch(lib.overrides.TorchFunctionMode):  # type: ignore[misc]
            def __torch_function__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None, seen: Any = seen
            ) -> Any:
                seen.append(func.__name__)
                return func(*args, **(kwargs or {}))

        with Watch():
            eval(text, {"lib": lib})
        found.append(seen)
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"])
def test_recurrent_layers_ask_what_is_no_tensor(kind: str) -> None:
    found = []
    for lib in (ut, torch):
        calls: list[str] = []

        class Held:
            def __init__(self, x: Any) -> None:
                self.x, self.dtype, self.device, self.is_cuda = x, x.dtype, x.device, False

            def dim(self) -> int:
                return int(self.x.dim())

            def size(self, *dims: int) -> Any:
                return self.x.size(*dims)

            @classmethod
            def __torch_function__(
                cls, func: Any, types: Any, args: Any = (), kwargs: Any = None, calls: Any = calls
            ) -> Any:
                calls.append(func.__name__)
                return func(*[a.x if isinstance(a, cls) else a for a in args], **(kwargs or {}))

        layer = getattr(lib.nn, kind)(3, 2)
        out = layer(Held(lib.ones((4, 3) if "Cell" in kind else (5, 4, 3))))
        first = out[0] if isinstance(out, tuple) else out
        found.append((calls, tuple(first.shape)))
    assert found[0] == found[1]


def test_broadcast_all_asks_what_is_no_tensor() -> None:
    found = []
    for lib in (ut, torch):

        class Held:
            def __init__(self, x: Any) -> None:
                self.x = x

            @classmethod
            def __torch_function__(
                cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                plain = [a.x if isinstance(a, cls) else a for a in args]
                return [cls(t) for t in func(*plain, **(kwargs or {}))]

        broadcast_all = lib.distributions.utils.broadcast_all
        for given in ((Held(lib.ones(3)), lib.zeros(())), (Held(lib.ones(3)), Held(lib.zeros(1)))):
            found.append([(type(t).__name__, t.x.tolist()) for t in broadcast_all(*given)])
        with pytest.raises((TypeError, ValueError)):
            broadcast_all(lib.ones(2), "two")
    assert found[:2] == found[2:]
