"""Parametrizations, and the weight and spectral norms in both their forms."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow import nn
from undertow.core.tensor import wrap
from undertow.nn.utils import parametrizations, parametrize

pytestmark = pytest.mark.filterwarnings("ignore:.nn.utils.weight_norm:FutureWarning")


class Doubled(nn.Module):
    def forward(self, x: ut.Tensor) -> ut.Tensor:
        return x * 2

    def right_inverse(self, x: ut.Tensor) -> ut.Tensor:
        return x / 2


class Summed(nn.Module):
    def forward(self, a: ut.Tensor, b: ut.Tensor) -> ut.Tensor:
        return a + b

    def right_inverse(self, x: ut.Tensor) -> tuple[ut.Tensor, ut.Tensor]:
        return x - 1, ut.ones_like(x)


class Squared(nn.Module):
    def forward(self, x: ut.Tensor) -> ut.Tensor:
        return x * x


def test_register_and_remove() -> None:
    """The value stays, the original is learned, an assignment goes backwards, removal restores."""
    layer = nn.Linear(2, 3)
    weight, before = layer.weight, layer.weight.detach().clone()
    assert parametrize.register_parametrization(layer, "weight", Doubled()) is layer
    assert type(layer).__name__ == "ParametrizedLinear"
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert isinstance(layer, nn.Linear)
    assert parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias")
    assert layer.parametrizations.weight.original is weight
    assert ut.equal(layer.weight, before)
    assert ut.equal(weight, before / 2)
    layer.weight = ut.ones(3, 2)
    assert ut.equal(weight, ut.full((3, 2), 0.5))
    layer(ut.ones(1, 2)).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[2.0, 2.0]] * 3
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert layer.weight is weight
    assert ut.equal(layer.weight, ut.ones(3, 2))
    assert sorted(layer.state_dict()) == ["bias", "weight"]


def test_several() -> None:
    """Two of one tensor, two tensors of one module, and leaving the original."""
    layer = nn.Linear(2, 2)
    before = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Doubled())
    parametrize.register_parametrization(layer, "weight", Squared())
    parametrize.register_parametrization(layer, "bias", Summed())
    assert np.allclose(layer.weight.detach().numpy(), (before**2).numpy())
    assert list(layer.state_dict()) == [
        "parametrizations.weight.original",
        "parametrizations.bias.original0",
        "parametrizations.bias.original1",
    ]
    with pytest.raises(ValueError, match="sequence of tensors"):
        parametrize.remove_parametrizations(layer, "bias", leave_parametrized=False)
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert np.allclose(layer.weight.detach().numpy(), (before / 2).numpy())
    assert type(layer).__name__ == "ParametrizedLinear"
    parametrize.remove_parametrizations(layer, "bias")
    assert isinstance(layer.bias, nn.Parameter)


def test_buffers_and_caching() -> None:
    """A buffer stays a buffer; within `cached` a tensor is computed once."""
    module, calls = nn.Module(), []
    module.register_buffer("table", ut.ones(2))

    class Counted(nn.Module):
        def forward(self, x: ut.Tensor) -> ut.Tensor:
            calls.append(1)
            return x

    parametrize.register_parametrization(module, "table", Counted())
    assert [n for n, _ in module.named_buffers()] == ["parametrizations.table.original"]
    calls.clear()
    with parametrize.cached():
        assert module.table is module.table
        with parametrize.cached():
            _ = module.table
        assert len(calls) == 1
    _ = module.table
    assert len(calls) == 2


def test_copies_are_apart() -> None:
    """Copies and pickles stay parametrized when the first is not any more."""
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Doubled())
    others = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))]
    wanted = layer.weight.detach().clone()
    parametrize.remove_parametrizations(layer, "weight")
    for other in others:
        assert parametrize.is_parametrized(other, "weight")
        assert ut.equal(other.weight, wanted)


def test_refused() -> None:
    """Other shapes or dtypes, tensors that are not there, assignments without an inverse."""

    class Shorter(nn.Module):
        def forward(self, x: ut.Tensor) -> ut.Tensor:
            return x[:1]

    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=r"shape \(2, 2\)[^$]*shape \(1, 2\)"):
        parametrize.register_parametrization(layer, "weight", Shorter())
    parametrize.register_parametrization(layer, "bias", Shorter(), unsafe=True)
    assert layer.bias.shape == (1,)
    with pytest.raises(ValueError, match="'wait'"):
        parametrize.register_parametrization(layer, "wait", Doubled())
    with pytest.raises(ValueError, match="does not have a parametrization"):
        parametrize.remove_parametrizations(layer, "weight")
    parametrize.register_parametrization(layer, "weight", Squared())
    with pytest.raises(RuntimeError, match="Squared does not implement right_inverse"):
        layer.weight = ut.ones(2, 2)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("name", ["matrix_exp", "cayley", "householder"])
def test_orthogonal_stays_orthogonal(shape: Any, name: str) -> None:
    """Through steps of an optimiser, and what is assigned comes back, made orthogonal."""
    layer = nn.Linear(*reversed(shape), dtype=ut.float64)
    parametrizations.orthogonal(layer, orthogonal_map=name)
    optimiser = ut.optim.SGD(layer.parameters(), 0.5)
    for _ in range(3):
        optimiser.zero_grad()
        layer(ut.ones(1, shape[1], dtype=ut.float64)).square().sum().backward()
        optimiser.step()
    weight = layer.weight.mT if shape[0] < shape[1] else layer.weight
    identity = ut.eye(weight.shape[-1], dtype=ut.float64)
    assert (weight.mT @ weight - identity).abs().max() < 1e-12
    q = ut.linalg.qr(ut.randn(max(shape), min(shape), dtype=ut.float64)).Q
    q = q.mT if shape[0] < shape[1] else q
    layer.weight = q
    assert (layer.weight - q).abs().max() < 1e-12


def test_orthogonal_without_trivialization() -> None:
    """Only reflections can be assigned then."""
    layer = nn.Linear(3, 3)
    parametrizations.orthogonal(layer, orthogonal_map="householder", use_trivialization=False)
    assert (layer.weight.T @ layer.weight - ut.eye(3)).abs().max() < 1e-5
    with pytest.raises(NotImplementedError, match="use_trivialization=False"):
        parametrizations.orthogonal(
            nn.Linear(3, 3), orthogonal_map="cayley", use_trivialization=False
        ).weight = ut.eye(3)
    with pytest.raises(ValueError, match="orthogonal_map must be one of"):
        parametrizations.orthogonal(nn.Linear(3, 3), orthogonal_map="qr")
    module = nn.Module()
    module.weight = nn.Parameter(ut.ones(3, 3, dtype=ut.complex64))
    with pytest.raises(ValueError, match="householder"):
        parametrizations.orthogonal(module, orthogonal_map="householder")


LAYERS = [
    (lambda: nn.Linear(3, 4), (5, 3), 0),
    (lambda: nn.Conv1d(2, 4, 3), (1, 2, 6), 0),
    (lambda: nn.ConvTranspose2d(2, 4, 3), (1, 2, 4, 4), 1),
]


@pytest.mark.parametrize("form", [nn.utils.weight_norm, parametrizations.weight_norm])
@pytest.mark.parametrize("make, shape, _", LAYERS)
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(form: Any, make: Any, shape: Any, _: int, dim: int | None) -> None:
    """The output stays; the length learns apart from the direction; gradients are right."""
    layer = make().double()
    x = wrap(np.random.default_rng(0).normal(size=shape))
    before = layer(x).detach()
    form(layer, dim=dim)
    assert np.allclose(layer(x).detach().numpy(), before.numpy())
    old = form is nn.utils.weight_norm
    names = ("weight_g", "weight_v") if old else ("original0", "original1")
    held = layer if old else layer.parametrizations.weight
    g, v = (getattr(held, name) for name in names)
    assert g.ndim == (0 if dim is None else v.ndim)
    with ut.no_grad():
        v.mul_(3)
    assert np.allclose(layer(x).detach().numpy(), before.numpy())
    values = {n: p.detach().clone().requires_grad_() for n, p in layer.named_parameters()}
    run = lambda *ps: ut.func.functional_call(layer, dict(zip(values, ps, strict=True)), (x,))
    assert ut.autograd.gradcheck(run, tuple(values.values()))
    if old:
        nn.utils.remove_weight_norm(layer)
        with pytest.raises(ValueError, match="not found"):
            nn.utils.remove_weight_norm(layer)
    else:
        parametrize.remove_parametrizations(layer, "weight")
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    assert np.allclose(layer(x).detach().numpy(), before.numpy())


@pytest.mark.parametrize("form", [nn.utils.spectral_norm, parametrizations.spectral_norm])
@pytest.mark.parametrize("make, shape, dim", LAYERS)
def test_spectral_norm(form: Any, make: Any, shape: Any, dim: int) -> None:
    """The largest singular value becomes 1, in training more and more closely."""
    ut.manual_seed(0)
    layer = form(make().double())
    x = wrap(np.random.default_rng(0).normal(size=shape))
    for _ in range(100):
        layer(x)
    matrix = np.moveaxis(layer.weight.detach().numpy(), dim, 0)
    assert np.linalg.norm(matrix.reshape(len(matrix), -1), 2) == pytest.approx(1, rel=1e-5)
    layer.eval()
    same = layer(x)
    assert ut.equal(layer(x), same)
    layer.train()
    layer(x).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    layer.eval()
    if form is nn.utils.spectral_norm:
        nn.utils.remove_spectral_norm(layer)
    else:
        parametrize.remove_parametrizations(layer, "weight")
    assert sorted(layer.state_dict()) == ["bias", "weight"]


def test_older_states_of_weight_norm() -> None:
    """A state of the hook's form is loaded by the parametrization."""
    old, new = nn.utils.weight_norm(nn.Linear(2, 3)), parametrizations.weight_norm(nn.Linear(2, 3))
    new.load_state_dict(old.state_dict())
    assert ut.equal(new(ut.ones(2)), old(ut.ones(2)))
    with pytest.raises(ValueError, match="two weight_norm hooks"):
        nn.utils.weight_norm(old)


@pytest.mark.parametrize("form", [nn.utils.spectral_norm, parametrizations.spectral_norm])
def test_spectral_norm_of_complex_weights(form: Any) -> None:
    """The singular vectors of a complex matrix are conjugated; the weight was rotated instead."""
    layer = nn.Linear(2, 2, dtype=ut.complex128)
    given = ut.tensor([[0.3 + 0.4j, 0.0], [0.0, 0.1 - 0.2j]], dtype=ut.complex128)
    layer.weight = nn.Parameter(given)
    form(layer)
    for _ in range(20):
        layer(ut.ones(1, 2, dtype=ut.complex128))
    ut.testing.assert_close(layer.weight.detach(), given / 0.5)


def test_spectral_norm_of_a_vector() -> None:
    """A vector is divided by its length."""
    norm = parametrizations.spectral_norm(nn.LayerNorm(4))
    assert (norm.weight**2).sum().item() == pytest.approx(1)
    for form in (nn.utils.spectral_norm, parametrizations.spectral_norm):
        with pytest.raises(ValueError, match="to be positive, got 0"):
            form(nn.Linear(2, 2), n_power_iterations=0)


def test_transfer() -> None:
    """Parametrizations and what they learn go to another module, which shares them."""

    class Scaled(nn.Module):
        def forward(self, size: ut.Tensor, direction: ut.Tensor) -> ut.Tensor:
            return size * direction

        def right_inverse(self, x: ut.Tensor) -> tuple[ut.Tensor, ut.Tensor]:
            size = x.norm()
            return size, x / size

    transfer = nn.utils.parametrize.transfer_parametrizations_and_params
    old, new = nn.Linear(2, 2), nn.Linear(2, 2)
    assert transfer(old, new) is new
    assert not nn.utils.parametrize.is_parametrized(new)
    nn.utils.parametrize.register_parametrization(old, "weight", nn.Tanh(), unsafe=True)
    nn.utils.parametrize.register_parametrization(old, "bias", Scaled())
    transfer(old, new, "bias")
    assert new._names == ("bias",)  # type: ignore[attr-defined]
    transfer(old, other := nn.Module())
    for name in ("weight", "bias"):
        assert ut.equal(getattr(other, name), getattr(old, name))
    (other.weight.sum() + other.bias.sum()).backward()  # type: ignore[operator, union-attr]
    assert old.parametrizations.weight.original.grad is not None
    assert old.parametrizations.bias.original1.grad is not None


def test_functional_call_goes_through_properties():
    class Twice(nn.Module):
        def forward(self, x):
            return x * 2

        def right_inverse(self, x):
            return x / 2

    layer = nn.Linear(2, 2, bias=False)
    before = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Twice())
    given = {"weight": ut.full((2, 2), 3.0)}
    assert ut.func.functional_call(layer, given, ut.ones(1, 2)).tolist() == [[6.0, 6.0]]
    assert bool((layer.weight == before).all())
    with pytest.raises(TypeError, match="'in_features' of Linear is no tensor but a int"):
        ut.func.functional_call(nn.Linear(2, 2), {"in_features": ut.ones(2)}, ut.ones(1, 2))


def test_a_further_parametrization_inverts_its_own_results() -> None:
    """`right_inverse` is tried with what `forward` gave: its domain need not hold the old value."""

    class Positive(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.exp()

        def right_inverse(self, y: Any) -> Any:
            if (y <= 0).any():
                raise ValueError("not positive")
            return y.log()

    class Doubled(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

        def right_inverse(self, y: Any) -> Any:
            return y / 2

    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Doubled())
    parametrize.register_parametrization(layer, "weight", Positive())
    layer.weight = ut.full((2, 2), 4.0)
    assert ut.allclose(layer.weight, ut.full((2, 2), 4.0))


def test_right_inverse_may_change_the_shape() -> None:
    class Flat(nn.Module):
        def forward(self, v: ut.Tensor) -> ut.Tensor:
            return v.reshape(2, 2)

        def right_inverse(self, w: ut.Tensor) -> ut.Tensor:
            return w.reshape(4)

    m = nn.Linear(2, 2)
    parametrize.register_parametrization(m, "weight", Flat())
    assert m.weight.shape == (2, 2)
    assert m.parametrizations.weight.original.shape == (4,)
    m.weight = ut.ones(2, 2)
    assert m.weight.tolist() == [[1, 1], [1, 1]]


def test_right_inverse_keeps_the_device() -> None:
    class Moved(nn.Module):
        def forward(self, x: ut.Tensor) -> ut.Tensor:
            return x.float()

        def right_inverse(self, w: ut.Tensor) -> ut.Tensor:
            return w.to("meta")

    m = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="may not change the dtype or the device"):
        parametrize.register_parametrization(m, "weight", Moved())
    assert not parametrize.is_parametrized(m)
