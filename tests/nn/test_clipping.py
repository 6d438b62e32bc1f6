"""Clipping of gradients, parameters as a vector, fused norms, modules as functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow import nn
from undertow.core.tensor import wrap
from undertow.nn.utils import clip_grad_norm_, get_total_norm


def learned(*grads: Any) -> list[nn.Parameter]:
    """Parameters with those gradients."""
    made = []
    for grad in grads:
        parameter = nn.Parameter(ut.zeros(1) if grad is None else ut.zeros(np.shape(grad)))
        parameter.grad = None if grad is None else ut.tensor(grad)
        made.append(parameter)
    return made


@pytest.mark.parametrize("order", [1.0, 2.0, 3.5, float("inf"), 2])
def test_clip_grad_norm(order: float) -> None:
    """All gradients are one vector, whose norm is returned and cut down to the largest allowed."""
    random = np.random.default_rng(0)
    grads = [random.normal(size=shape).astype(np.float32) for shape in [(3, 4), (5,), (), (2, 0)]]
    flat = np.concatenate([g.ravel() for g in grads])
    parameters = [*learned(*(g.tolist() for g in grads[:3])), *learned(None)]
    wanted = np.linalg.norm(flat, order)
    assert get_total_norm([p.grad for p in parameters[:3]], order).item() == pytest.approx(wanted)
    total = clip_grad_norm_(iter(parameters), 0.5, order)
    assert total.item() == pytest.approx(wanted, rel=1e-6)
    found = np.concatenate([p.grad.numpy().ravel() for p in parameters[:3]])
    assert np.allclose(found, flat * 0.5 / (wanted + 1e-6))
    clip_grad_norm_(parameters, 10.0, order)
    assert np.allclose(np.concatenate([p.grad.numpy().ravel() for p in parameters[:3]]), found)


def test_clip_grad_norm_of_different_kinds() -> None:
    """Several dtypes count together; nothing at all is a norm of zero."""
    parameters = learned([3.0], [4.0])
    parameters[1].data = parameters[1].data.double()
    parameters[1].grad = ut.tensor([4.0], dtype=ut.float64)
    assert clip_grad_norm_(parameters, 100.0).item() == pytest.approx(5)
    assert clip_grad_norm_(learned(None), 1.0).item() == 0
    with pytest.warns(UserWarning, match="empty generator"):
        clip_grad_norm_([], 1.0)


def test_non_finite_norms() -> None:
    """They are an error if asked for, and otherwise scale all gradients as they are."""
    (parameter,) = learned([float("nan"), 1.0])
    with pytest.raises(RuntimeError, match=r"order 2.0 for gradients is non-finite \(nan\)"):
        clip_grad_norm_(parameter, 1.0, error_if_nonfinite=True)
    clip_grad_norm_(parameter, 1.0)
    assert np.isnan(parameter.grad.numpy()).all()
    (parameter,) = learned([float("inf"), 1.0])
    clip_grad_norm_(parameter, 1.0)
    assert np.isnan(parameter.grad.numpy()[0])
    assert parameter.grad.numpy()[1] == 0


def test_clip_grad_value() -> None:
    """Every element is clamped."""
    parameters = learned([-3.0, 1.0], None)
    nn.utils.clip_grad_value_(parameters, 2)
    assert parameters[0].grad.tolist() == [-2.0, 1.0]
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        nn.utils.clip_grad_norm(parameters, 1.0)


def test_gradients_of_any_layout() -> None:
    """Views and half precision are changed where they are."""
    for dtype in (ut.float32, ut.bfloat16, ut.float64):
        whole = ut.arange(12.0, dtype=dtype).reshape(3, 4)
        parameter = nn.Parameter(ut.zeros(4, 3, dtype=dtype))
        parameter.grad = whole.t()
        version = parameter.grad._version
        clip_grad_norm_(parameter, 1.0)
        assert parameter.grad._version > version
        assert whole.double().norm().item() == pytest.approx(1, rel=1e-2)
        nn.utils.clip_grad_value_(parameter, 0.25)
        assert whole.max().item() == 0.25


def test_vectors() -> None:
    """Parameters as one vector and back; gradients flow through the vector."""
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    vector = nn.utils.parameters_to_vector(model.parameters())
    assert vector.shape == (13,)
    vector.sum().backward()
    assert all((p.grad == 1).all() for p in model.parameters())
    nn.utils.vector_to_parameters(ut.arange(13.0), model.parameters())
    assert model[1].bias.item() == 12
    assert isinstance(model[0].weight, nn.Parameter)
    with pytest.raises(TypeError, match="expected a Tensor"):
        nn.utils.vector_to_parameters([1.0], model.parameters())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="has 3 elements"):
        nn.utils.vector_to_parameters(ut.ones(3), model.parameters())


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_fusion(bias: bool, affine: bool) -> None:
    """A fused layer does what the two did."""
    random = np.random.default_rng(0)
    cases = [
        (nn.Conv2d(2, 3, 3, bias=bias), nn.BatchNorm2d(3, affine=affine), (1, 2, 5, 5), False),
        (nn.ConvTranspose1d(2, 3, 3, bias=bias), nn.BatchNorm1d(3, affine=affine), (1, 2, 5), True),
        (nn.Linear(2, 3, bias=bias), nn.BatchNorm1d(3, affine=affine), (4, 2), None),
    ]
    for layer, norm, shape, transpose in cases:
        layer.double()
        norm.double()
        x = wrap(random.normal(size=shape))
        for _ in range(3):
            norm(layer(x) + wrap(random.normal(size=layer(x).shape)))
        with pytest.raises(ValueError, match="only for eval"):
            nn.utils.fuse_conv_bn_eval(layer, norm)
        layer.eval()
        norm.eval()
        fuse = nn.utils.fuse_linear_bn_eval if transpose is None else nn.utils.fuse_conv_bn_eval
        fused = fuse(layer, norm, *([transpose] if transpose else []))
        assert np.allclose(fused(x).detach().numpy(), norm(layer(x)).detach().numpy())
    with pytest.raises(ValueError, match="num_features"):
        nn.utils.fuse_linear_bn_eval(nn.Linear(2, 3).eval(), nn.BatchNorm1d(2).eval())


def test_functional_call() -> None:
    """Other tensors for one call; ties are kept, names are checked if asked for."""
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model.tied = model[0].weight
    before = model.state_dict()
    zeros = {n: ut.zeros_like(v) for n, v in before.items() if n != "0.weight"}
    x = ut.ones(3, 2)
    out = ut.func.functional_call(model, (zeros, {}), x)
    assert (out == 0).all()
    assert all(ut.equal(v, before[n]) for n, v in model.state_dict().items())
    assert zeros["1.num_batches_tracked"].item() == 1
    call = nn.utils.stateless.functional_call
    with pytest.raises(RuntimeError, match="different values"):
        call(model, {"tied": ut.ones(2, 2), "0.weight": ut.zeros(2, 2)}, x)
    call(model, {"tied": ut.ones(2, 2), "0.weight": ut.zeros(2, 2)}, x, tie_weights=False)
    with pytest.raises(RuntimeError, match=r"Sequential has no \['wait'\]"):
        call(model, {"wait": x}, x, strict=True)
    with pytest.raises(RuntimeError, match=r"strict=True, .* \['0.bias'"):
        call(model, {"0.weight": ut.ones(2, 2)}, x, strict=True)
    with pytest.raises(ValueError, match="given twice"):
        call(model, (zeros, zeros), x)
    with pytest.raises(TypeError, match="got int"):
        call(model, 3, x)
    with pytest.raises(ValueError, match="input"):
        call(model, zeros, ut.ones(3, 5))
    assert ut.equal(model[0].weight, before["0.weight"])


def test_skip_init() -> None:
    """It makes the module, and refuses what is none or takes no device."""
    assert nn.utils.skip_init(nn.Linear, 2, out_features=1).weight.shape == (1, 2)
    with pytest.raises(RuntimeError, match="Expected a Module"):
        nn.utils.skip_init(int, 2)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="'device' arg"):
        nn.utils.skip_init(nn.ReLU)
    conv = nn.Conv2d(1, 1, 1)
    assert nn.utils.convert_conv2d_weight_memory_format(conv, None) is conv
