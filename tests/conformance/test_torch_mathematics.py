"""What of torch's mathematics the op table cannot compare: values without derivatives there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance
NUMBERS = np.random.default_rng(0).normal(size=(30, 2))
WEIGHTS = np.random.default_rng(1).uniform(0.1, 2, 30)


def both(call: Any) -> tuple[Any, Any]:
    """The results of a call with either library, as lists of arrays."""
    found = []
    for lib in (ut, torch):
        results = call(lib)
        flat = list(results) if isinstance(results, (tuple, list)) else [results]
        flat = [t for r in flat for t in (r if isinstance(r, (tuple, list)) else [r])]
        found.append([np.asarray(t.detach()) for t in flat])
    return found[0], found[1]


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, x, w: lib.histogram(x[:, 0], 5),
        lambda lib, x, w: lib.histogram(x[:, 0], 5, range=(-1.0, 1.0), weight=w, density=True),
        lambda lib, x, w: lib.histogram(x[:, 0], lib.tensor([-1.0, 0.0, 2.0]).double()),
        lambda lib, x, w: lib.histogramdd(x, [3, 4]),
        lambda lib, x, w: lib.histogramdd(x, 3, range=[-1.0, 1.0, -2.0, 2.0], weight=w),
        lambda lib, x, w: lib.nextafter(x[:, 0], x[:, 1]),
        lambda lib, x, w: lib.nextafter(x[:, 0].float(), x[:, 1].float()),
        lambda lib, x, w: lib.nextafter(x[:, 0].bfloat16(), x[:, 1].bfloat16()).float(),
        lambda lib, x, w: lib.frexp(x.float()),
        lambda lib, x, w: lib.frexp(x.half()),
        lambda lib, x, w: lib.frexp(lib.tensor([1e-42, 3e38, 0.0, 1e-38])),
        lambda lib, x, w: lib.gcd(lib.tensor([0, -12, 6]), lib.tensor([0, 18, -4])),
        lambda lib, x, w: lib.cov(x.T, correction=2),
        lambda lib, x, w: lib.segment_reduce(x, "mean", lengths=lib.tensor([10, 0, 20])),
        lambda lib, x, w: lib.ones(3).set_(lib.arange(6.0), 1, (2, 2), (1, 2)),
        lambda lib, x, w: lib.empty_strided((2, 3), (3, 1)).zero_(),
        lambda lib, x, w: lib.tensor(lib.empty_permuted((2, 3, 4), (1, 2, 0)).stride()),
    ],
)
def test_values(call: Any) -> None:
    """They are the same."""
    ours, theirs = both(lambda lib: call(lib, lib.tensor(NUMBERS), lib.tensor(WEIGHTS)))
    for found, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
        assert found.dtype == expected.dtype


def test_polar_of_negative_sizes() -> None:
    """The difference that compatibility.md tells: torch's gradient fails its own check there."""
    size, angle = [-1.5, 2.0], [0.3, 1.0]
    slopes = []
    for lib in (ut, torch):
        t = lib.tensor(size, dtype=lib.float64, requires_grad=True)
        lib.polar(t, lib.tensor(angle, dtype=lib.float64)).real.sum().backward()
        slopes.append(t.grad.tolist())
    np.testing.assert_allclose(slopes[0], np.cos(angle))
    np.testing.assert_allclose(slopes[1], np.cos(angle) * [-1, 1])
