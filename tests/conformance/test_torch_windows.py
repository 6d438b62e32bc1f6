"""Convolution, pooling and resampling against torch on random arguments: values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance
F = torch.nn.functional
random = np.random.default_rng


def agree(name: str, arrays: list[Any], *args: Any, **kwargs: Any) -> bool:
    """Whether both libraries take the call; if so, they must give the same, and both gradients."""
    ours = [None if a is None else ut.tensor(a, requires_grad=True) for a in arrays]
    theirs = [None if a is None else torch.tensor(a, requires_grad=True) for a in arrays]
    what = f"{name} {[a if a is None else a.shape for a in arrays]} {args} {kwargs}"
    try:
        expected = getattr(F, name)(*theirs, *args, **kwargs)
    except (RuntimeError, ValueError):
        with pytest.raises(ut.errors.UndertowError, match=rf"\[{name}\]"):
            print(f"torch refuses {what}", getattr(ut.nn.functional, name)(*ours, *args, **kwargs))
        return False
    found = getattr(ut.nn.functional, name)(*ours, *args, **kwargs)
    if isinstance(expected, tuple):
        np.testing.assert_array_equal(found[1].numpy(), expected[1].numpy(), what)
        found, expected = found[0], expected[0]
    assert found.shape == tuple(expected.shape), what
    np.testing.assert_allclose(
        found.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-10, err_msg=what
    )
    seed = random(1).standard_normal(found.shape)
    found.backward(ut.tensor(seed))
    expected.backward(torch.tensor(seed))
    for a, b in zip(ours, theirs, strict=True):
        if a is not None:
            np.testing.assert_allclose(
                a.grad.numpy(), b.grad.numpy(), rtol=1e-9, atol=1e-10, err_msg=what
            )
    return True


def integers(r: Any, low: int, high: int, rank: int) -> tuple[int, ...]:
    return tuple(map(int, r.integers(low, high, rank)))


def transposed_sizes(size: Any, kernel: Any, how: dict[str, Any]) -> list[int]:
    """The sizes of the output of a transposed convolution."""
    steps = (how[name] for name in ("stride", "padding", "dilation", "output_padding"))
    return [
        (n - 1) * s - 2 * p + d * (k - 1) + o + 1
        for n, k, s, p, d, o in zip(size, kernel, *steps, strict=True)
    ]


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_convolution(rank: int, transposed: bool) -> None:
    """Channels, groups, strides, dilations, paddings; both refuse the same."""
    r = random(rank)
    taken = 0
    for _ in range(60):
        groups = int(r.choice([1, 1, 2, 3]))
        inputs, outputs = groups * int(r.integers(1, 3)), groups * int(r.integers(1, 3))
        x = r.standard_normal((int(r.integers(1, 3)), inputs, *integers(r, 1, 7, rank)))
        channels = (inputs, outputs // groups) if transposed else (outputs, inputs // groups)
        w = r.standard_normal((*channels, *integers(r, 1, 4, rank)))
        b = r.standard_normal(outputs) if r.random() < 0.5 else None
        how: dict[str, Any] = {
            "stride": integers(r, 1, 4, rank),
            "padding": integers(r, 0, 3, rank),
            "dilation": integers(r, 1, 3, rank),
            "groups": groups,
        }
        name = f"conv{rank}d"
        if transposed:
            name = f"conv_transpose{rank}d"
            how["output_padding"] = integers(r, 0, 2, rank)
            sizes = transposed_sizes(x.shape[2:], w.shape[2:], how)
            steps = zip(how["output_padding"], how["stride"], how["dilation"], strict=True)
            fits = all(o < max(s, d) for o, s, d in steps)
            if min(sizes) == 0 and fits:  # torch answers in single precision only, we always do
                tensors = [None if a is None else ut.tensor(a) for a in (x, w, b)]
                out = getattr(ut.nn.functional, name)(*tensors, **how)
                assert out.shape == (x.shape[0], outputs, *sizes)
                continue
        taken += agree(name, [x, w, b], **how)
    assert taken >= 15


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.filterwarnings("ignore:Using padding=.same")
@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_padding_modes(rank: int, mode: str) -> None:
    """Those of torch's modules, by integers, one for each dimension, and "same"."""
    r = random(40 + rank)
    for trial in range(12):
        groups = int(r.choice([1, 2]))
        inputs, outputs = 2 * groups, groups * int(r.integers(1, 3))
        kernel, dilation = integers(r, 1, 4, rank), integers(r, 1, 3, rank)
        padding: Any = [int(r.integers(0, 4)), integers(r, 0, 4, rank), "same"][trial % 3]
        stride = (1,) * rank if padding == "same" else integers(r, 1, 3, rank)
        module = getattr(torch.nn, f"Conv{rank}d")(
            inputs,
            outputs,
            kernel,
            stride,
            padding,
            dilation,
            groups,
            padding_mode=mode,
            dtype=torch.float64,
        )
        x = r.standard_normal((2, inputs, *integers(r, 5, 8, rank)))
        given = torch.tensor(x, requires_grad=True)
        expected = module(given)
        ours = [
            ut.tensor(a, requires_grad=True)
            for a in (x, module.weight.detach().numpy(), module.bias.detach().numpy())
        ]
        found = getattr(ut.nn.functional, f"conv{rank}d")(
            *ours, stride, padding, dilation, groups, padding_mode=mode
        )
        seed = r.standard_normal(found.shape)
        expected.backward(torch.tensor(seed))
        found.backward(ut.tensor(seed))
        pairs = [(found.detach(), expected.detach())]
        pairs += [
            (a.grad, b.grad) for a, b in zip(ours, (given, module.weight, module.bias), strict=True)
        ]
        for a, b in pairs:
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pooling(rank: int) -> None:
    """Kernels, strides, paddings, dilations, rounding, divisors."""
    r = random(10 + rank)
    taken = 0
    for _ in range(60):
        x = r.standard_normal((2, *integers(r, 1, 8, rank)))
        x = x if r.random() < 0.5 else x[None]
        kernel = integers(r, 1, 5, rank)
        stride = integers(r, 1, 4, rank) if r.random() < 0.7 else None
        pad = tuple(int(r.integers(0, k // 2 + 1)) for k in kernel)
        ceil = bool(r.random() < 0.5)
        if rank == 3 and any(n < k for n, k in zip(x.shape[-rank:], kernel, strict=True)):
            continue  # volumes smaller than a window: only we take them
        more = {"divisor_override": 3} if rank > 1 and r.random() < 0.3 else {}
        counts = bool(r.random() < 0.5)
        taken += agree(f"avg_pool{rank}d", [x], kernel, stride, pad, ceil, counts, **more)
        dilation = integers(r, 1, 3, rank) if ceil is False and not any(pad) else 1
        taken += agree(
            f"max_pool{rank}d", [x], kernel, stride, pad, dilation, ceil, return_indices=True
        )
        target = integers(r, 1, 9, rank)
        taken += agree(f"adaptive_avg_pool{rank}d", [x], target)
        taken += agree(f"adaptive_max_pool{rank}d", [x], target, return_indices=True)
    assert taken >= 100


MODES = {
    1: ["nearest", "nearest-exact", "linear", "area"],
    2: ["nearest", "nearest-exact", "bilinear", "bicubic", "lanczos", "area"],
    3: ["nearest", "nearest-exact", "trilinear", "area"],
}


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_interpolate(rank: int) -> None:
    """Modes, sizes, factors, corners, antialias."""
    r = random(20 + rank)
    for _ in range(80):
        x = r.standard_normal((1, 2, *integers(r, 2, 7, rank)))
        mode = str(r.choice(MODES[rank]))
        how: dict[str, Any] = {"mode": mode}
        if mode.endswith(("linear", "cubic")) and r.random() < 0.6:
            how["align_corners"] = bool(r.random() < 0.5)
        if mode in ("bilinear", "bicubic", "lanczos") and r.random() < 0.6:
            how["antialias"] = True
        if r.random() < 0.5:
            how["size"] = integers(r, 2, 10, rank)
        else:
            how["scale_factor"] = tuple(map(float, r.choice([0.7, 1.0, 1.3, 2.0, 2.6], rank)))
            # Where torch's forward and backward disagree about a dimension that keeps its size.
            if mode.startswith("nearest") or mode == "bicubic" or "antialias" in how:
                how["recompute_scale_factor"] = True
            if any(int(n * f) < 2 for n, f in zip(x.shape[2:], how["scale_factor"], strict=True)):
                continue  # torch's antialias is wrong for images one pixel wide
        agree("interpolate", [x], **how)


def test_unfold_and_fold() -> None:
    r = random(30)
    taken = 0
    for _ in range(80):
        x = r.standard_normal((2, *integers(r, 1, 7, 2)))
        kernel, stride, dilation = (integers(r, 1, 4, 2) for _ in range(3))
        how = {"dilation": dilation, "padding": integers(r, 0, 3, 2), "stride": stride}
        if agree("unfold", [x], kernel, **how):
            taken += 1
            columns = F.unfold(torch.tensor(x), kernel, **how).shape
            agree("fold", [r.standard_normal(columns)], x.shape[1:], kernel, **how)
    assert taken >= 40


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_transposed_convolution_with_an_empty_output(rank: int) -> None:
    """torch answers where oneDNN computes, and refuses elsewhere; Undertow answers always."""
    how = {"padding": 1, "stride": 2, "output_padding": 1, "groups": 2}
    shapes = []
    for lib in (ut, torch):
        x, w = lib.ones(1, 2, *(1,) * rank), lib.ones(2, 2, *(1,) * rank)
        try:
            y = getattr(lib, f"conv_transpose{rank}d")(x, w, **how)
        except RuntimeError:
            assert lib is torch
            pytest.skip("this torch has no oneDNN")
        shapes.append(tuple(y.shape))
    assert shapes == [(1, 4, *(0,) * rank)] * 2


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("steps", [(1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1)])
def test_gradients_of_convolutions_as_functions(rank: int, steps: Any) -> None:
    """`nn.grad`, which may be differentiated in turn."""
    groups = steps[-1]
    rng = np.random.default_rng(0)
    x, w = (
        rng.standard_normal((2, 4, *[6] * rank)),
        rng.standard_normal((6, 4 // groups, *[3] * rank)),
    )
    results = []
    for lib in (ut, torch):
        given = [lib.tensor(a).requires_grad_() for a in (x, w)]
        out = getattr(lib.nn.functional, f"conv{rank}d")(*given, None, *steps)
        g = lib.ones_like(out) * 0.5 + out.detach()
        by_x = getattr(lib.nn.grad, f"conv{rank}d_input")(x.shape, given[1], g, *steps)
        by_w = getattr(lib.nn.grad, f"conv{rank}d_weight")(given[0], w.shape, g, *steps)
        (by_x.square().sum() + by_w.square().sum()).backward()
        results.append([by_x, by_w, given[0].grad, given[1].grad])
        plain = getattr(lib.nn.grad, f"conv{rank}d_input")(x.shape, given[1].detach(), g, *steps)
        assert not plain.requires_grad
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-10)
