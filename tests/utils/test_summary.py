"""`ut.summary`: rows by hand for small models, and that the model is left as it was."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut


def net() -> ut.nn.Module:
    return ut.nn.Sequential(
        ut.nn.Conv1d(3, 8, 5),
        ut.nn.BatchNorm1d(8),
        ut.nn.Sequential(ut.nn.ReLU(), ut.nn.Flatten()),
        ut.nn.Linear(8 * 16, 4),
    )


def test_rows() -> None:
    """Shapes, parameters, FLOPs and bytes of each layer."""
    found = ut.summary(net(), ut.ones(2, 3, 20))
    rows = {r.path: r for r in found.rows}
    assert list(rows) == ["", "0", "1", "2", "2.0", "2.1", "3"]
    assert rows["0"].inputs == [(2, 3, 20)]
    assert rows["0"].outputs == [(2, 8, 16)]
    assert rows["0"].parameters == 8 * 3 * 5 + 8
    assert rows["0"].flops == 2 * 2 * 8 * 16 * 3 * 5
    assert rows["0"].activations == 4 * 2 * 8 * 16
    assert rows["3"].flops == 2 * 2 * 128 * 4
    assert rows["2"].activations == 0  # its layers have them
    assert rows["2.1"].activations == 0  # a view
    assert found.parameters == sum(p.numel() for p in net().parameters())
    assert rows[""].flops >= rows["0"].flops + rows["3"].flops
    assert "Conv1d" in str(found)
    assert "<td" in found._repr_html_()


def test_the_model_is_left_as_it_was() -> None:
    """Modes, statistics, hooks; also when its forward fails."""
    model = net().train()
    model[2].eval()
    before = {name: t.clone() for name, t in model.state_dict().items()}
    modes = [m.training for m in model.modules()]
    ut.summary(model, (2, 3, 20), time=True)
    with pytest.raises(ut.errors.UndertowError):
        ut.summary(model, ut.ones(2, 4, 20))
    assert [m.training for m in model.modules()] == modes
    for name, t in model.state_dict().items():
        assert np.array_equal(t.numpy(), before[name].numpy())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    with ut.profiler.profile():  # none is on
        pass


def test_shared_modules_and_parameters() -> None:
    """A layer that is called twice counts twice; its parameters, and tied ones, once."""

    class Twice(ut.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = ut.nn.Linear(4, 4)
            self.b = ut.nn.Linear(4, 4)
            self.b.weight = self.a.weight

        def forward(self, x: ut.Tensor) -> ut.Tensor:
            return self.b(self.a(self.a(x)))

    found = ut.summary(Twice(), ut.ones(3, 4))
    rows = {r.path: r for r in found.rows}
    assert rows["a"].calls == 2
    assert rows["a"].flops == 2 * rows["b"].flops == 2 * 2 * 3 * 4 * 4
    assert found.parameters == 16 + 4 + 4
    assert "a: Linear x2" in str(found)


def test_times_and_bad_input() -> None:
    """Shares of the whole are below it; what is no module is refused."""
    found = ut.summary(net(), ut.ones(2, 3, 20), time=True)
    assert 0 < sum(r.time for r in found.rows if r.kind != "Sequential") <= found.time
    assert "Share" in str(found)
    assert "Input" not in str(ut.summary(net()))
    with pytest.raises(ut.errors.ArgumentError, match="module"):
        ut.summary(3)  # type: ignore[arg-type]
    with pytest.raises(ut.errors.ArgumentError, match="inputs"):
        ut.summary(net(), time=True)
