"""Pruning of parameters, and what it does to a module's state."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow import nn
from undertow.nn.utils import prune


def _layer() -> Any:
    layer = nn.Linear(4, 3)
    values = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    with ut.no_grad():
        layer.weight.copy_(ut.from_numpy(values * (-1) ** np.arange(4)))
    return layer


def test_a_pruned_parameter_is_its_original_times_a_mask() -> None:
    layer = _layer()
    before = layer.weight
    assert prune.l1_unstructured(layer, "weight", amount=5) is layer
    assert layer.weight_orig is before
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight_orig"]
    kept = np.abs(before.detach().numpy()) > 5
    np.testing.assert_array_equal(layer.weight_mask.numpy(), kept)
    np.testing.assert_array_equal(layer.weight.detach().numpy(), before.detach().numpy() * kept)
    layer(ut.ones(2, 4)).sum().backward()
    np.testing.assert_array_equal(before.grad.numpy(), 2.0 * kept)


def test_the_hook_follows_the_original() -> None:
    layer = prune.l1_unstructured(_layer(), "weight", amount=0.5)
    x = ut.eye(4)
    with ut.no_grad():
        layer.weight_orig.fill_(1.0)
        layer.bias.zero_()
    np.testing.assert_array_equal(layer(x).detach().numpy().T, layer.weight_mask.numpy())


def test_remove_leaves_one_parameter() -> None:
    layer = prune.l1_unstructured(_layer(), "weight", amount=5)
    expected = layer.weight.detach().numpy()
    parameter = layer.weight_orig
    prune.remove(layer, "weight")
    assert layer.weight is parameter
    assert not prune.is_pruned(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    np.testing.assert_array_equal(layer.weight.detach().numpy(), expected)
    with pytest.raises(ValueError, match="not pruned"):
        prune.remove(layer, "weight")


def test_a_second_method_prunes_what_is_left() -> None:
    layer = _layer()
    prune.l1_unstructured(layer, "weight", amount=6)
    prune.l1_unstructured(layer, "weight", amount=0.5)
    assert int(layer.weight_mask.sum()) == 3
    prune.random_unstructured(layer, "weight", amount=1)
    assert int(layer.weight_mask.sum()) == 2
    (hook,) = [h.fn for h in layer._hooks.forward_pre.values()]
    assert [type(m) for m in hook] == [prune.L1Unstructured] * 2 + [prune.RandomUnstructured]


def test_slices_are_pruned_whole() -> None:
    layer = prune.ln_structured(_layer(), "weight", amount=1, n=2, dim=0)
    assert layer.weight_mask.sum(1).tolist() == [0.0, 4.0, 4.0]
    prune.ln_structured(layer, "weight", amount=0.5, n=float("inf"), dim=-1)
    assert layer.weight_mask.sum(0).tolist() == [0.0, 0.0, 2.0, 2.0]
    prune.random_structured(layer, "weight", amount=1, dim=1)
    assert layer.weight_mask.sum().item() == 2.0


def test_scores_decide_in_place_of_the_elements() -> None:
    layer = _layer()
    scores = ut.arange(12, 0, -1).reshape(3, 4).float()
    prune.l1_unstructured(layer, "weight", amount=4, importance_scores=scores)
    assert layer.weight_mask.sum(1).tolist() == [4.0, 4.0, 0.0]
    with pytest.raises(ValueError, match="importance_scores must have"):
        prune.l1_unstructured(layer, "weight", amount=4, importance_scores=ut.ones(2))


def test_global_pruning_compares_all_parameters() -> None:
    a, b = _layer(), _layer()
    with ut.no_grad():
        b.weight.mul_(100)
    pairs = [(a, "weight"), (b, "weight")]
    prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=0.5)
    assert (a.weight_mask.sum().item(), b.weight_mask.sum().item()) == (0.0, 12.0)
    with pytest.raises(TypeError, match="unstructured method"):
        prune.global_unstructured(pairs, pruning_method=prune.LnStructured, amount=0.5, n=2)


@pytest.mark.parametrize("amount", [-1, 1.5, "a", 13])
def test_bad_amounts_change_nothing(amount: Any) -> None:
    layer = _layer()
    with pytest.raises((ValueError, TypeError), match="Unstructured"):
        prune.l1_unstructured(layer, "weight", amount=amount)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    assert not prune.is_pruned(layer)


def test_pruned_modules_are_copied_and_pickled() -> None:
    layer = prune.l1_unstructured(_layer(), "weight", amount=5)
    x = ut.randn(2, 4)
    layer(x)
    for other in (pickle.loads(pickle.dumps(prune.identity(_layer(), "bias"))),):
        assert prune.is_pruned(other)
    again = prune.identity(_layer(), "weight")
    again.load_state_dict(layer.state_dict())
    ut.testing.assert_close(again(x), layer(x))
    with ut.no_grad():
        layer(x)
    assert prune.is_pruned(copy.deepcopy(layer))
