"""How tensors are shown; `conformance/test_torch_printing.py` compares every layout with torch."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut


@pytest.fixture(autouse=True)
def _defaults():
    yield
    ut.set_printoptions(profile="default")


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda: ut.tensor([1.0, 2.0]), "tensor([1., 2.])"),
        (lambda: ut.tensor([1, 2]), "tensor([1, 2])"),
        (lambda: ut.tensor(3.5), "tensor(3.5000)"),
        (lambda: ut.tensor(True), "tensor(True)"),
        (lambda: ut.tensor([]), "tensor([])"),
        (lambda: ut.zeros(0, 3), "tensor([], size=(0, 3))"),
        (lambda: ut.zeros(0, dtype=ut.int64), "tensor([], dtype=undertow.int64)"),
        (lambda: ut.tensor([1.5], dtype=ut.float64), "tensor([1.5000], dtype=undertow.float64)"),
        (lambda: ut.tensor([1.5, np.nan, np.inf]), "tensor([1.5000,    nan,    inf])"),
        (lambda: ut.tensor([1e-6, 1.0]), "tensor([1.0000e-06, 1.0000e+00])"),
        (lambda: ut.tensor([1 + 2j, 0.5 - 1j]), "tensor([1.0000+2.j, 0.5000-1.j])"),
        (lambda: ut.tensor([[1], [20]]), "tensor([[ 1],\n        [20]])"),
        (lambda: ut.ones(2, requires_grad=True), "tensor([1., 1.], requires_grad=True)"),
        (lambda: ut.ones(2, requires_grad=True) * 2, "tensor([2., 2.], grad_fn=<MulBackward0>)"),
        (lambda: ut.ones(2, device="reference"), "tensor([1., 1.], device='reference')"),
        (lambda: ut.ones(2, dtype=ut.bfloat16), "tensor([1., 1.], dtype=undertow.bfloat16)"),
    ],
)
def test_repr(make, expected: str) -> None:
    assert repr(make()) == expected
    assert str(make()) == expected


def test_summary() -> None:
    text = repr(ut.arange(1001))
    assert text == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    assert "..." not in repr(ut.arange(1000))


def test_options() -> None:
    x = ut.tensor([3.14159])
    ut.set_printoptions(precision=2)
    assert repr(x) == "tensor([3.14])"
    assert ut.get_printoptions()["precision"] == 2
    with ut.printoptions(precision=6):
        assert repr(x) == "tensor([3.141590])"
    assert repr(x) == "tensor([3.14])"
    ut.set_printoptions(sci_mode=True)
    assert repr(x) == "tensor([3.14e+00])"
    ut.set_printoptions(profile="full")
    assert "..." not in repr(ut.arange(5000))


@pytest.mark.parametrize(
    "options, match",
    [({"profile": "tall"}, "tall.*default, short, full"), ({"precision": -1}, "precision.*-1")],
)
def test_bad_options_change_nothing(options, match: str) -> None:
    before = ut.get_printoptions()
    with pytest.raises(ut.errors.ArgumentError, match=match):
        ut.set_printoptions(threshold=7, **options)
    assert ut.get_printoptions() == before


def test_options_return_after_an_error() -> None:
    with pytest.raises(KeyError), ut.printoptions(precision=1):
        raise KeyError
    assert ut.get_printoptions()["precision"] == 4


def test_large_tensors_are_shown_quickly() -> None:
    """Only the shown elements are formatted, also of a non-contiguous tensor."""
    x = ut.from_numpy(np.broadcast_to(np.float32(1.5), (10_000, 10_000)))
    assert repr(x).count("1.5") == 36


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q"]))


def test_results_with_names_stand_in_lines() -> None:
    assert repr(ut.ones(2, 2).max(0)) == (
        "Selection(\nvalues=tensor([1., 1.]),\nindices=tensor([0, 0]))"
    )


def test_groups_of_an_optimiser_are_apart() -> None:
    text = repr(ut.optim.SGD([{"params": [ut.ones(1)]}, {"params": [ut.ones(1)], "lr": 1.0}]))
    assert "weight_decay: 0\n\nParameter Group 1\n" in text


def test_distributions_show_shapes() -> None:
    d = ut.distributions
    assert repr(d.Normal(ut.zeros(2), 1.0)) == "Normal(loc: (2,), scale: (2,))"
    mixed = d.MixtureSameFamily(d.Categorical(ut.ones(2)), d.Normal(ut.zeros(2), 1.0))
    assert repr(mixed).splitlines()[1:] == [
        "  Categorical(probs: (2,), logits: (2,)),",
        "  Normal(loc: (2,), scale: (2,)))",
    ]


def test_lists_of_parameters_are_indented() -> None:
    text = repr(ut.nn.ParameterList([ut.ones(2), ut.ones(3, 2)]))
    assert text.splitlines()[2] == "    (1): Parameter containing: [undertow.float32 of size 3x2]"
