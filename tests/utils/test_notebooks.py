"""What notebooks and terminals are shown."""

from __future__ import annotations

import sys
from io import StringIO
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends import debug
from undertow.timeseries import TimeSeries


@pytest.mark.parametrize(
    "thing, words",
    [
        (ut.ones(2, 3, requires_grad=True), ["2 × 3", "float32", "cpu", "wants a gradient", "1."]),
        (ut.tensor(7), ["one element", "int64", "tensor(7)"]),
        (ut.nn.Linear(2, 3), ["Linear, 9 parameters", "in_features=2"]),
        (ut.nn.LazyLinear(3), ["LazyLinear, 0 parameters"]),
        (ut.distributions.Normal(ut.zeros(4), 1.0), ["Normal, batch (4,), event ()"]),
        (ut.utils.data.TensorDataset(ut.ones(5, 2)), ["5 samples", "(float32[2])"]),
        (ut.utils.data.TensorDataset(ut.ones(0, 2)), ["0 samples"]),
        (
            TimeSeries("waves", np.zeros((3, 1, 4), np.float32), ("a", "<b>", "a")),
            ["waves: 3 series, 1 channels, length 4", "classes: &lt;b&gt;, a"],
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_html_tells_what_it_is(thing: Any, words: list[str]) -> None:
    html = thing._repr_html_()
    for word in words:
        assert word in html
    assert html.count("<pre>") == 1


def test_a_view_draws_no_sample() -> None:
    class Noise(ut.utils.data.Dataset[ut.Tensor]):
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> ut.Tensor:
            raise AssertionError("a sample was drawn")

    both = ut.utils.data.ConcatDataset([Noise(), Noise()])
    assert "ConcatDataset, 6 samples" in both._repr_html_()
    before = ut.get_rng_state()
    ut.utils.data.TensorDataset(ut.ones(5, 2))._repr_html_()
    assert ut.equal(before, ut.get_rng_state())


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_is_told_once_of_compiling(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    out = Terminal() if terminal else StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr(debug, "_compiling", [0, 0.0, False])
    for _ in range(6):
        debug.compiled(0.3)
    told = "undertow: compiling 4 kernels and more; once for each ...\n"
    assert out.getvalue() == (told if terminal else "")
