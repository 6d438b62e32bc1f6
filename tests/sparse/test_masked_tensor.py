"""Masked tensors: what is not there counts for nothing, in values and in gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.masked import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

DATA = np.random.default_rng(5).standard_normal((3, 4))
MASK = np.array([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 0]], bool)


def make(requires_grad: bool = False) -> Any:
    return masked_tensor(ut.tensor(DATA), ut.tensor(MASK), requires_grad)


def host(x: Any) -> Any:
    """As NumPy's masked array."""
    return np.ma.array(x.get_data().detach().numpy(), mask=~x.get_mask().numpy())


def same(found: Any, wanted: Any) -> None:
    assert is_masked_tensor(found)
    got = host(found)
    np.testing.assert_array_equal(np.ma.getmaskarray(got), np.ma.getmaskarray(wanted))
    np.testing.assert_allclose(got.filled(0), np.ma.filled(wanted, 0), rtol=1e-12)


ARRAY = np.ma.array(DATA, mask=~MASK)


@pytest.mark.parametrize(
    "ours, wanted",
    [
        (lambda x: x + 1, ARRAY + 1),
        (lambda x: 1 - x, 1 - ARRAY),
        (lambda x: 2 / x, 2 / ARRAY),
        (lambda x: ut.ones(4) * x, ARRAY),
        (lambda x: ut.add(x, x), 2 * ARRAY),
        (lambda x: ut.mul(2, x), 2 * ARRAY),
        (lambda x: x**2, ARRAY**2),
        (lambda x: x.exp(), np.ma.exp(ARRAY)),
        (lambda x: ut.exp(x), np.ma.exp(ARRAY)),
        (lambda x: -x.abs(), -abs(ARRAY)),
        (lambda x: ut.clamp(x, min=0), np.ma.maximum(ARRAY, 0)),
        (lambda x: x.clone().mul_(x), ARRAY * ARRAY),
        (lambda x: x.clone().exp_(), np.ma.exp(ARRAY)),
        (lambda x: x < 0, ARRAY < 0),
        (lambda x: x.t(), ARRAY.T),
        (lambda x: x[1:, 0], ARRAY[1:, 0]),
        (lambda x: x.reshape(-1), ARRAY.reshape(-1)),
        (lambda x: x.split(2, 1)[1], ARRAY[:, 2:]),
        (lambda x: ut.cat([x, x], 1), np.ma.concatenate([ARRAY, ARRAY], 1)),
        (lambda x: ut.stack([x, x]), np.ma.stack([ARRAY, ARRAY])),
        (lambda x: x.sum(), ARRAY.sum()),
        (lambda x: ut.sum(x, 0), ARRAY.sum(0)),
        (lambda x: x.mean(1), ARRAY.mean(1)),
        (lambda x: x.prod(0), ARRAY.prod(0)),
        (lambda x: x.amax(1), ARRAY.max(1)),
        (lambda x: x.amin((0, 1)), ARRAY.min()),
        (lambda x: x.var(0), ARRAY.var(0, ddof=1).filled(np.nan)),
        (lambda x: x.argmax(), ARRAY.argmax()),
        (lambda x: x.argmin(1), np.ma.array(ARRAY.argmin(1), mask=[0, 1, 0])),
        (lambda x: x.norm(), np.sqrt((ARRAY**2).sum())),
        (lambda x: (x > -9).all(1), np.ma.array([1, 1, 1], mask=[0, 1, 0])),
    ],
)
def test_values(ours: Any, wanted: Any) -> None:
    """As NumPy's masked arrays have them."""
    found = ours(make())
    if isinstance(wanted, np.ndarray) and not isinstance(wanted, np.ma.MaskedArray):
        wanted = np.ma.array(wanted, mask=~found.get_mask().numpy())
    same(found, wanted)


def test_softmax() -> None:
    """Over what is there; the rest stays masked."""
    found = ut.nn.functional.softmax(make(), 1)
    wanted = np.ma.exp(ARRAY)
    same(found, wanted / wanted.sum(1, keepdims=True))
    assert is_masked_tensor(make().log_softmax(0))


def test_where() -> None:
    """Chooses data and masks."""
    x = make()
    found = ut.where(ut.tensor(DATA > 0), x, 7.0)
    same(found, np.ma.array(np.where(DATA > 0, DATA, 7), mask=(DATA > 0) & ~MASK))
    same(x.where(x.get_mask(), ut.zeros(4).double()), np.ma.array(np.where(MASK, DATA, 0)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(),
        lambda x: (x * x).mean(),
        lambda x: (x.exp() * x).sum(1).sum(),
        lambda x: x.softmax(1).amax(),
        lambda x: ut.where(ut.tensor(DATA > 0), x, x * 2).sum(),
        lambda x: (ut.cat([x, x]) ** 3)[0].sum(),
    ],
)
def test_gradients(function: Any) -> None:
    """What is not there has no influence; the slope of the rest is that of finite differences."""
    x = make(True)
    function(x).backward()
    assert is_masked_tensor(x.grad)
    np.testing.assert_array_equal(x.grad.get_mask().numpy(), MASK)
    for i, j in np.argwhere(MASK):
        ends = []
        for step in (1e-6, -1e-6):
            moved = DATA.copy()
            moved[i, j] += step
            ends.append(function(masked_tensor(ut.tensor(moved), ut.tensor(MASK))).item())
        np.testing.assert_allclose(host(x.grad)[i, j], (ends[0] - ends[1]) / 2e-6, atol=1e-6)


def test_history() -> None:
    """as_masked_tensor keeps it, and what is masked stays finite; masked_tensor makes a leaf."""
    x = ut.tensor([4.0, 0.0, -1.0], requires_grad=True)
    y = as_masked_tensor(x * 1, x > 0)
    assert not y.is_leaf
    y.sqrt().log().sum().backward()
    assert x.grad.tolist() == [0.125, 0.0, 0.0]
    z = masked_tensor(x, x > 0, True)
    assert z.is_leaf
    assert z.requires_grad
    z.sum().backward(z.sum().detach())
    assert z.grad.to_tensor(0).tolist() == [4.0, 0.0, 0.0]
    assert x.grad.tolist() == [0.125, 0.0, 0.0]


def test_what_it_is() -> None:
    x = make()
    assert (x.shape, x.ndim, x.dim(), x.size(1), x.numel(), len(x)) == ((3, 4), 2, 2, 4, 12, 3)
    assert x.dtype is ut.float64
    assert x.float().dtype is ut.float32
    assert x.to_tensor(-1.0).tolist() == np.where(MASK, DATA, -1).tolist()
    assert [row.shape for row in x] == [(4,)] * 3
    assert x.sum().item() == pytest.approx(ARRAY.sum())
    assert bool(x[0, 0] == DATA[0, 0])
    assert x.get_data().data_ptr() != ut.tensor(DATA).data_ptr()
    assert not is_masked_tensor(ut.ones(1))
    assert isinstance(x, MaskedTensor)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "argmax", "argmin"])
@pytest.mark.parametrize("dim", [None, 0, 1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_shapes_of_reductions(name: str, dim: int | None, keepdim: bool) -> None:
    """The mask of a result has its shape."""
    found = getattr(make(), name)(dim=dim, keepdim=keepdim)
    wanted = (
        getattr(ut.tensor(DATA), name)(dim=dim, keepdim=keepdim).shape if name != "prod" else None
    )
    assert found.get_mask().shape == found.get_data().shape == found.shape
    assert wanted is None or found.shape == wanted


def test_a_result_that_is_larger() -> None:
    row = masked_tensor(ut.tensor(DATA[0]), ut.tensor(MASK[0]))
    found = row + ut.ones(3, 4)
    assert found.get_mask().shape == (3, 4)
    assert found.get_mask().numpy().tolist() == [MASK[0].tolist()] * 3


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: masked_tensor([1.0], ut.ones(1).bool()), TypeError, "data must be a Tensor"),
        (lambda: masked_tensor(ut.ones(1), ut.ones(1)), TypeError, "bool.*float32"),
        (lambda: masked_tensor(ut.ones(1), ut.ones(2).bool()), ValueError, r"\(1,\) and \(2,\)"),
        (lambda: make() + masked_tensor(ut.tensor(DATA), ut.tensor(~MASK)), ValueError, "differ"),
        (lambda: make().add_(masked_tensor(ut.tensor(DATA), ut.tensor(~MASK))), ValueError, "mask"),
        (lambda: make()[1, 1].item(), ValueError, r"\[item\].*masked"),
        (lambda: make() @ make(), TypeError, "MaskedTensor"),
        (lambda: make().matmul(make()), NotImplementedError, r"\[matmul\].*to_tensor"),
        (lambda: ut.cumsum(ut.ones(3), make()), NotImplementedError, r"\[cumsum\]"),
        (lambda: make().nothing, AttributeError, "nothing"),
        (lambda: ut.where(True, make(), 1.0), TypeError, r"\[where\]"),
    ],
)
def test_errors(call: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        call()
