"""The table of algorithms: each against NumPy where it is forced, and the choice itself."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends.cpu.backend import CpuBackend
from undertow.backends.cpu.calls import choice, launch
from undertow.backends.cpu.convolution import choose, conv
from undertow.backends.cpu.convolution.choose import TABLE, only
from undertow.backends.cpu.convolution.problem import Problem
from undertow.backends.sliding import correlate
from undertow.errors import ArgumentError, UnsupportedError
from undertow.kernel.windows import Geometry

BACKEND = CpuBackend(ut.device("cpu"))
FOUND, TRIED = 12, 800  # convolutions that each algorithm must be tested with, and drawn at most
ROLES = ["forward", "input", "weight"]


def drawn(seed: int, name: str) -> tuple[Any, ...]:
    """A random product: result, x, w, bias, geometry. Some are of the kind that `name` is for."""
    choose = random.Random(seed).choice
    rank, role = choose([1, 1, 2, 2, 3]), choose(ROLES)
    kind = choose(["any", "any", "stride 1", name])
    kernel = tuple(
        choose([1, 2, 3, 4, 5, 8]) if rank < 3 else choose([1, 2, 3]) for _ in range(rank)
    )
    counts = tuple(choose([1, 2, 5, 9, 14] if rank > 1 else [1, 4, 20, 70]) for _ in range(rank))
    ones, steps = (1,) * rank, tuple(choose([1, 2, 3]) for _ in range(rank))
    stride, dilation = ((steps, ones), (ones, steps), (ones, ones))[choose([0, 1, 2])]
    padding = tuple((choose([0, 1, 2, -1]), choose([0, 1, 2, -1])) for _ in range(rank))
    if kind == "stride 1":
        stride = dilation = ones
    elif kind == "patches":
        stride, dilation, padding = kernel, ones, ((0, choose([0, 0, 1])),) * rank
    elif kind == "woven":
        role, stride, dilation = "input", tuple(choose([2, 2, 1]) for _ in range(rank)), ones
    elif kind == "product":
        kernel, stride, dilation, padding = (ones, ones, ones, ((0, 0),) * rank)
    size = tuple(
        max((c - 1) * s + (k - 1) * d + 1 - low - high, 1)
        for c, s, k, d, (low, high) in zip(counts, stride, kernel, dilation, padding, strict=True)
    )
    if kind == "product" and choose([0, 1]):
        kernel = size
    g = Geometry(size, kernel, stride, padding, ones, dilation)
    n, groups, c, o = (
        choose([1, 2, 3]),
        choose([1, 1, 2]),
        choose([1, 3, 16, 17]),
        choose([1, 5, 18]),
    )
    dtype = choose([np.float32, np.float32, np.float64])
    normal = np.random.default_rng(seed).standard_normal
    x, w, y = normal((n, groups, c, *size)), normal((groups, o, c, *kernel)), None
    bias, last = None, range(3, 3 + rank)
    y = normal((n, groups, o, *g.output))
    if role == "forward":
        shape, bias = y.shape, choose([None, normal((groups, o)).astype(dtype)])
    elif role == "input":
        shape, x, g = x.shape, y, g.of_input
        w = w.swapaxes(1, 2)[(..., *(slice(None, None, -1),) * rank)]
    else:
        shape, g = (c, groups, o, *kernel), g.of_kernel
        x, w = x.transpose(2, 1, 0, *last), y.transpose(1, 2, 0, *last)
    return np.full(shape, np.nan, dtype), x.astype(dtype), w.astype(dtype), bias, g


def possible(name: str) -> Any:
    """Products that an algorithm can compute, drawn at random."""
    found = 0
    for seed in range(TRIED):
        out, x, w, bias, g = drawn(seed, name)
        if not min(out.size, x.size, w.size) or found == FOUND:
            continue
        try:
            with only(name):
                taken = choose.choose(Problem(out, x, w, bias, g, False, "auto"), name)
        except UnsupportedError:
            continue
        if taken is None or (name == "woven" and taken[0] != name):
            continue
        found += 1
        yield seed, (out, x, w, bias, g)
    assert found == FOUND


def expected(x: Any, w: Any, bias: Any, geometry: Geometry, shape: Any) -> Any:
    """NumPy's result in float64."""
    want = np.zeros(shape)
    given = [None if a is None else a.astype(np.float64) for a in (x, w, bias)]
    with np.errstate(invalid="ignore"):
        correlate(want, *given, geometry, np.matmul)
    return want


@pytest.mark.parametrize("name", TABLE)
def test_forced_against_numpy(name: str) -> None:
    """Values, with a bias and relu, by any number of threads."""
    limit = ut.get_num_threads()
    for seed, (out, x, w, bias, g) in possible(name):
        want, relu = expected(x, w, bias, g, out.shape), bool(seed % 2)
        if relu:
            want = np.maximum(want, 0)
        found = []
        try:
            for threads in (1, 2):
                ut.set_num_threads(threads)
                out[...] = np.nan
                with only(name):
                    assert conv.run_conv(out, x, w, bias, g, BACKEND, relu)
                found.append(out.copy())
        finally:
            ut.set_num_threads(limit)
        assert found[0].tobytes() == found[1].tobytes()
        scale = max(np.abs(want).max(), 1)
        atol = (2e-5 if out.dtype == np.float32 else 1e-12) * scale
        np.testing.assert_allclose(out, want, rtol=0, atol=atol, err_msg=f"{seed} {g}")


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("which", ["x", "w"])
@pytest.mark.parametrize("name", TABLE)
def test_forced_with_what_is_not_finite(name: str, which: str, value: float) -> None:
    """It reaches what it must; and no weight meets a zero of the padding, see Note [zeros …]."""
    for seed, (out, x, w, bias, g) in possible(name):
        given = np.ascontiguousarray(x if which == "x" else w)
        given.flat[np.random.default_rng(seed).integers(given.size)] = value
        x, w = (given, w) if which == "x" else (x, given)
        want = expected(x, w, bias, g, out.shape)
        with only(name):
            right = conv.run_conv(out, x, w, bias, g, BACKEND, False)
        if not right:  # then NumPy is asked
            assert which == "w"
            assert g.meets_zeros
            continue
        for test in (np.isnan, np.isposinf, np.isneginf):
            np.testing.assert_array_equal(test(out), test(want), err_msg=f"{seed} {g}")


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("activation", [None, "relu"])
def test_weights_that_are_not_finite(
    value: float, activation: str | None, monkeypatch: Any
) -> None:
    """Wherever one stands, the answer is the reference device's, in all three products."""
    monkeypatch.setattr(choice, "MODE", "always")
    monkeypatch.setattr(launch, "PLANS", launch.Plans())
    rng = np.random.default_rng(0)
    for seed in range(60):
        pick = random.Random(seed).choice
        transposed, c, o, stride = pick([0, 1]), pick([2, 16]), pick([2, 17]), pick([1, 2, 3])
        arrays = [rng.standard_normal((2, c, 9, 11)), rng.standard_normal((o, c, 3, pick([1, 4])))]
        if transposed:
            arrays[1] = arrays[1].swapaxes(0, 1).copy()
        given = arrays[pick([0, 1, 1])]
        given.flat[rng.integers(given.size)] = value * pick([1, -1])
        f = ut.nn.functional.conv_transpose2d if transposed else ut.nn.functional.conv2d
        more = {} if transposed else {"activation": activation}
        answers = []
        for dtype, device in ((pick([ut.float32, ut.float64]), "cpu"), (ut.float64, "reference")):
            x, w = (ut.tensor(a, dtype=dtype, device=device).requires_grad_() for a in arrays)
            with ut.no_grad():
                plain = f(x, w, stride=stride, padding=1, **more)
            y = f(x, w, stride=stride, padding=1)
            slopes = ut.autograd.grad(y, (x, w), ut.ones_like(y))
            answers.append([t.detach().cpu().numpy() for t in (plain, y, *slopes)])
        for mine, right in zip(*answers, strict=True):
            for test in (np.isnan, np.isposinf, np.isneginf):
                np.testing.assert_array_equal(test(mine), test(right), err_msg=f"{seed}")


def test_an_input_that_is_not_finite_beside_padding() -> None:
    """In a transposed convolution's gradient by the weight it is what slides, by one kernel."""
    rng, answers = np.random.default_rng(0), []
    x, w = rng.standard_normal((1, 48, 5, 5)), rng.standard_normal((48, 1, 9, 7))
    x[0, 25, 1, 0] = np.inf
    for device in ("cpu", "reference"):
        leaf = ut.tensor(w, device=device, requires_grad=True)
        y = ut.conv_transpose2d(ut.tensor(x, device=device), leaf, stride=2, padding=1)
        (slope,) = ut.autograd.grad(y, leaf, ut.ones_like(y))
        answers.append(slope.cpu().numpy())
    assert np.isfinite(answers[0][25]).any()
    for test in (np.isnan, np.isinf):
        np.testing.assert_array_equal(*map(test, answers))


def test_what_is_not_possible_is_an_error() -> None:
    x, w = ut.randn(2, 16, 100), ut.randn(16, 16, 3)
    with only("patches"), pytest.raises(UnsupportedError, match="no patches convolution"):
        ut.conv1d(x, w)
    with (
        pytest.raises(ArgumentError, match="no algorithm 'quick'; there are patches, direct"),
        only("quick"),
    ):
        pass
    with only("packed"):
        with only("lanes"):
            assert choose.forced == "lanes"
        assert choose.forced == "packed"
    assert choose.forced == ""


# What docs/inside_convolution.md says: x, w, steps, and the algorithm of forward, input and weight.
CHOICES = [
    ((2, 3, 64, 64), (64, 3, 16, 16), {"stride": 16}, ["patches"] * 3),
    ((2, 64, 200), (64, 1, 5), {"groups": 64, "padding": 2}, ["direct"] * 3),
    ((2, 64, 200), (64, 64, 1), {}, ["product", "product", "product"]),
    ((2, 64, 400), (64, 64, 3), {"padding": 1}, ["fewer"] * 3),
    ((2, 64, 48, 48), (64, 64, 4, 4), {"stride": 2, "padding": 1}, ["fewer", "woven", "lanes"]),
    ((2, 64, 900), (64, 64, 3), {"stride": 3}, ["lanes", "woven", "lanes"]),
    ((2, 64, 600), (16, 64, 9), {"dilation": 2, "padding": 8}, ["shifted", "packed", "shifted"]),
]


@pytest.mark.parametrize(("shape", "kernel", "steps", "names"), CHOICES, ids=str)
def test_the_choice(shape: Any, kernel: Any, steps: Any, names: Any, monkeypatch: Any) -> None:
    """By layouts alone: the same for other values, and for another batch; not a weight's."""
    seen: list[str] = []
    plain = choose.choose

    def noted(p: Problem, forced: str = "") -> Any:
        found = plain(p)
        assert found is not None
        seen.append(found[0])
        return found

    for batch, value in ((shape[0], 1.0), (shape[0], float("nan")), (5, 1.0)):
        seen.clear()
        monkeypatch.setattr(launch, "PLANS", launch.Plans())
        monkeypatch.setattr(conv.table, "choose", noted)
        x = ut.full((batch, *shape[1:]), value, requires_grad=True)
        w = ut.full(kernel, value, requires_grad=True)
        f = ut.conv1d if len(shape) == 3 else ut.conv2d
        found = []
        y = f(x, w, **steps)
        found.append(seen[0])
        for leaf in (x, w):
            seen.clear()
            ut.autograd.grad(y, leaf, ut.ones_like(y), retain_graph=True)
            found.append(seen[0])
        count = 3 if batch == shape[0] else 2
        assert found[:count] == names[:count]


def test_the_table_of_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "inside_convolution.md").read_text()
    table = text[text.index("| algorithm | what it does |") :].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [*TABLE, "phases"]
