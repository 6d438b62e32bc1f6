"""Convolution: what the origin did and got wrong, derivatives of every order, the geometry."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import undertow as ut
from samples.convolution import np_conv, np_conv_transpose
from undertow.autograd import grad, gradcheck, gradgradcheck
from undertow.autograd.functional import hessian
from undertow.backends import sliding
from undertow.backends.cpu.backend import CpuBackend
from undertow.core.dispatch import apply, transfer
from undertow.kernel.windows import Geometry
from undertow.ops.nn.convolution import _conv, _input, _weight


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def leaf(array: Any) -> ut.Tensor:
    return ut.tensor(np.asarray(array, np.float64), requires_grad=True)


# The origin's own cases ----------------------------------------------------------------------
def test_identity_kernel() -> None:
    """A kernel of one element scales, and its gradients are the kernel and the sum of the input."""
    x = ut.tensor([[[1.0, 2.0, 3.0]]], requires_grad=True)
    w = ut.tensor([[[2.0]]], requires_grad=True)
    y = ut.conv1d(x, w)
    assert y.tolist() == [[[2.0, 4.0, 6.0]]]
    y.sum().backward()
    assert x.grad.tolist() == [[[2.0, 2.0, 2.0]]]
    assert w.grad.tolist() == [[[6.0]]]


def test_bias() -> None:
    """The bias is added once to each element, and gathers the cotangents of all of them."""
    x = ut.tensor([[[1.0, 2.0]]], requires_grad=True)
    w, b = ut.tensor([[[1.0]]]), ut.tensor([10.0], requires_grad=True)
    y = ut.conv1d(x, w, b)
    assert y.tolist() == [[[11.0, 12.0]]]
    y.sum().backward()
    assert b.grad.tolist() == [2.0]


def test_kernel_of_three() -> None:
    """Inner elements are seen by more windows than those at the ends."""
    x = ut.tensor([[[1.0, 2.0, 3.0, 4.0, 5.0]]], requires_grad=True)
    y = ut.conv1d(x, ut.ones(1, 1, 3))
    assert y.tolist() == [[[6.0, 9.0, 12.0]]]
    y.sum().backward()
    assert x.grad.tolist() == [[[1.0, 2.0, 3.0, 2.0, 1.0]]]


def test_weight_is_transposed_in_the_input_gradient() -> None:
    """Input channel c collects W[o, c] over the outputs o, not W[c, o]."""
    x = ut.zeros(1, 2, 1, requires_grad=True)
    w = ut.tensor([[1.0, 2.0], [3.0, 4.0]]).unsqueeze(-1)
    ut.conv1d(x, w).backward(ut.ones(1, 2, 1))
    assert x.grad.flatten().tolist() == [4.0, 6.0]


def test_channels_differ_in_each_group() -> None:
    """Two groups of three inputs and two outputs each."""
    x, w = leaf(normal(2, 6, 5)), leaf(normal(4, 3, 2, seed=1))
    y = ut.conv1d(x, w, groups=2)
    g = normal(*y.shape, seed=2)
    y.backward(ut.tensor(g))
    expected = np_conv_transpose(1)(g, w.detach().numpy(), groups=2)
    np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("length", [1, 2, 5, 8, 9])
@pytest.mark.parametrize("kernel, stride, dilation", [(3, 2, 1), (2, 3, 1), (4, 2, 2), (1, 4, 1)])
def test_same_padding_with_a_stride(length: int, kernel: int, stride: int, dilation: int) -> None:
    """There are ceil(length / stride) windows; forward and backward agree on where they are."""
    x, w = leaf(normal(1, 2, length)), leaf(normal(3, 2, kernel, seed=1))

    def run(x: Any, w: Any) -> Any:
        return ut.conv1d(x, w, stride=stride, padding="same", dilation=dilation)

    assert run(x, w).shape == (1, 3, -(-length // stride))
    assert gradcheck(run, [x, w])


def test_same_padding_is_tensorflows() -> None:
    """Of an odd number of padded elements the extra one is at the end."""
    ones = ut.ones(1, 1, 4)
    assert ut.conv1d(ones, ut.ones(1, 1, 3), stride=2, padding="same").tolist() == [[[3.0, 2.0]]]
    assert ut.conv1d(ones, ut.ones(1, 1, 2), padding="same").tolist() == [[[2.0, 2.0, 2.0, 1.0]]]


def test_second_order_is_attached() -> None:
    """The gradient of a gradient of a convolution is neither zero nor missing."""
    x, w = leaf(normal(1, 2, 6)), leaf(normal(3, 2, 3, seed=1))
    (gx,) = grad(ut.conv1d(x, w).square().sum(), x, create_graph=True)
    (gw,) = grad(gx.square().sum(), w)
    assert gw.abs().min() > 0


# Derivatives ---------------------------------------------------------------------------------
GRID = [
    dict(zip(("c", "o", "groups", "k", "stride", "dilation", "padding", "n"), values, strict=True))
    for values in itertools.product(
        (1, 2), (1, 3), (1, 2), (1, 2, 3), (1, 2), (1, 2), (0, (2, 1), (-1, 2)), (1, 2)
    )
]


def configured(c: Any) -> Any:
    """The operands and the function of a point of the grid."""
    pad = c["padding"] if isinstance(c["padding"], int) else [c["padding"]]
    length = 6 + c["stride"]
    x = leaf(normal(c["n"], c["groups"] * c["c"], length))
    w = leaf(normal(c["groups"] * c["o"], c["c"], c["k"], seed=1))
    b = leaf(normal(c["groups"] * c["o"], seed=2))

    def run(x: Any, w: Any, b: Any) -> Any:
        return ut.conv1d(x, w, b, c["stride"], pad, c["dilation"], c["groups"])

    return run, [x, w, b]


@pytest.mark.parametrize("part", range(8))
def test_gradients_over_a_grid(part: int) -> None:
    """First and second derivatives with respect to everything, on a grid of all arguments."""
    for c in [*GRID[part::8], {**GRID[part], "n": 0}]:
        run, inputs = configured(c)
        assert gradcheck(run, inputs, fast_mode=True), c
        assert gradgradcheck(run, inputs, fast_mode=True), c


SUBSETS = [s for s in itertools.product((False, True), repeat=3) if any(s)]
AWKWARD = {
    "c": 2,
    "o": 3,
    "groups": 2,
    "k": 3,
    "stride": 2,
    "dilation": 2,
    "padding": (3, -1),
    "n": 2,
}


@pytest.mark.parametrize("wanted", SUBSETS)
def test_every_subset_of_inputs(wanted: tuple[bool, ...], monkeypatch: Any) -> None:
    """Only the gradients that are wanted are computed, and they are right."""
    run, inputs = configured(AWKWARD)
    inputs = [t if want else t.detach() for t, want in zip(inputs, wanted, strict=True)]
    leaves = [t for t in inputs if t.requires_grad]
    calls = []
    form = CpuBackend.conv
    monkeypatch.setattr(CpuBackend, "conv", lambda *a: calls.append(1) or form(*a))
    y = run(*inputs)
    grads = grad(y, leaves, ut.ones_like(y))
    assert len(calls) == 1 + wanted[0] + wanted[1]
    monkeypatch.undo()
    every = [t.detach().requires_grad_() for t in inputs]
    y = run(*every)
    expected = [g for g, want in zip(grad(y, every, ut.ones_like(y)), wanted, strict=True) if want]
    for g, e in zip(grads, expected, strict=True):
        np.testing.assert_array_equal(g.numpy(), e.numpy())
    assert gradcheck(lambda *_: run(*inputs), leaves)
    if run(*inputs).requires_grad and (wanted[0] or wanted[1]):
        assert gradgradcheck(lambda *_: run(*inputs), leaves, fast_mode=True)


def test_gradients_own_their_memory() -> None:
    """The kernels write them where they stay, so that a leaf keeps them without a copy."""
    x, w = leaf(normal(2, 4, 6)), leaf(normal(6, 2, 3, seed=1))
    y = ut.conv1d(x, w, groups=2)
    y.backward(ut.ones_like(y))
    for array in (y._array, x.grad._array, w.grad._array):
        assert array.base is None
        assert array.flags.c_contiguous


@pytest.mark.parametrize("layout", ["channels last", "every other", "expanded", "reversed"])
def test_gradients_of_strided_inputs(layout: str) -> None:
    """The strides of the operands do not matter."""
    whole, kernels = normal(2, 9, 12), normal(3, 8, 4, seed=1)
    x = {
        "channels last": lambda a: a.permute(0, 2, 1),
        "every other": lambda a: a[:, ::3, ::2],
        "expanded": lambda a: a[:, :3, :1].expand(2, 3, 7),
        "reversed": lambda a: a.flip(2)[:, :3],
    }[layout]

    def run(a: Any, b: Any) -> Any:
        seen = x(a)
        return ut.conv1d(seen, b.permute(1, 0, 2)[:, : seen.shape[1], ::2], stride=2)

    if layout == "channels last":
        whole = whole[:, :, :3]
    assert gradcheck(run, [leaf(whole), leaf(kernels)], fast_mode=True)
    assert gradgradcheck(run, [leaf(whole), leaf(kernels)], fast_mode=True)


def test_reversed_memory_from_numpy() -> None:
    """Negative strides, which only NumPy can make."""
    x, w = normal(2, 3, 8)[:, ::-1, ::-1], normal(2, 3, 3)[..., ::-1]
    found = ut.conv1d(ut.from_numpy(x), ut.from_numpy(w))
    np.testing.assert_allclose(found.numpy(), np_conv(1)(x, w), atol=1e-12)


@pytest.mark.parametrize(
    "name, kernel, how",
    [
        ("conv1d", (4, 1, 3), {"stride": 2, "padding": [(2, -1)], "groups": 2}),
        ("conv2d", (2, 2, 2, 1), {"padding": "same", "stride": 2, "dilation": (1, 2)}),
        ("conv_transpose1d", (2, 2, 3), {"stride": 2, "output_padding": 1, "padding": 1}),
    ],
)
def test_third_order(name: str, kernel: Any, how: Any) -> None:
    """The gradient of a gradient passes gradgradcheck: three orders and their cross terms."""
    x = leaf(normal(1, 2, *[4] * (len(kernel) - 2)))
    w, b = leaf(normal(*kernel, seed=1)), leaf(normal(4 if "groups" in how else 2, seed=2))

    def slopes(*inputs: Any) -> Any:
        y = getattr(ut, name)(*inputs, **how)
        return grad((y * y * y).sum(), inputs, create_graph=True)

    assert gradcheck(slopes, [x, w, b], fast_mode=True)
    assert gradgradcheck(slopes, [x, w, b], fast_mode=True, rtol=1e-2, atol=1e-4)


def test_hessian_blocks_are_convolutions() -> None:
    """Of <c, x * w> the block (x, w) is <c, e * f> for unit vectors, and the others vanish."""
    x, w, c = normal(1, 2, 4), normal(2, 2, 2, seed=1), normal(1, 2, 5, seed=2)
    how = {"padding": 1}

    def form(x: Any, w: Any) -> Any:
        return (ut.tensor(c) * ut.conv1d(x, w, **how)).sum()

    blocks = hessian(form, (ut.tensor(x), ut.tensor(w)))
    assert not blocks[0][0].any()
    assert not blocks[1][1].any()
    units = np.eye(x.size).reshape(-1, *x.shape), np.eye(w.size).reshape(-1, *w.shape)
    expected = [[(c * np_conv(1)(e, f, **how)).sum() for f in units[1]] for e in units[0]]
    block = blocks[0][1].reshape(x.size, w.size).numpy()
    np.testing.assert_allclose(block, expected, atol=1e-12)
    np.testing.assert_allclose(blocks[1][0].reshape(w.size, x.size).numpy(), block.T, atol=1e-12)


@pytest.mark.parametrize("how", [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "groups": 2}])
def test_mixed_derivatives_are_convolutions(how: Any) -> None:
    """d/dw <dL/dx, v> is the weight gradient at v instead of x, and the other way round."""
    x, v = leaf(normal(2, 2, 7)), leaf(normal(2, 2, 7, seed=5))
    w = leaf(normal(4, 2 // how.get("groups", 1), 3, seed=1))
    u = leaf(normal(*w.shape, seed=6))
    y = ut.conv1d(x, w, **how)
    c = ut.tensor(normal(*y.shape, seed=2))
    gx, gw = grad(y, [x, w], c, create_graph=True)
    np.testing.assert_array_equal(
        grad(gx, w, v, retain_graph=True)[0].numpy(), grad(ut.conv1d(v, w, **how), w, c)[0].numpy()
    )
    np.testing.assert_array_equal(
        grad(gw, x, u, retain_graph=True)[0].numpy(), grad(ut.conv1d(x, u, **how), x, c)[0].numpy()
    )


# The primitive -------------------------------------------------------------------------------
def geometries() -> Any:
    """A rank, a geometry of that rank, and groups."""

    def of(rank: int) -> Any:
        def each(values: Any) -> Any:
            return st.tuples(*[values] * rank)

        small = st.integers(-2, 3)
        return st.builds(
            Geometry,
            each(st.integers(1, 6)),
            each(st.integers(1, 3)),
            each(st.integers(1, 3)),
            each(st.tuples(small, small)),
            each(st.integers(1, 3)),
            each(st.integers(1, 3)),
        )

    return st.integers(0, 2).flatmap(of)


@settings(max_examples=150, deadline=None)
@given(geometries(), st.integers(1, 2), st.integers(0, 2), st.integers(0, 10))
def test_primitive(geometry: Geometry, groups: int, batch: int, seed: int) -> None:
    """Against the definition on a dilated input; the three products are each other's adjoints."""
    rank = len(geometry.size)
    x = normal(batch, 2 * groups, *geometry.size, seed=seed)
    w = normal(3 * groups, 2, *geometry.kernel, seed=seed + 1)
    y = normal(batch, 3 * groups, *geometry.output, seed=seed + 2)
    tx, tw, ty = map(ut.tensor, (x, w, y))
    found = apply(_conv, (tx, tw, None), (geometry, groups))
    assert found.shape == y.shape
    if y.size and min(geometry.padded, default=1) > 0:
        wide = np.zeros(
            (
                *x.shape[:2],
                *[
                    (n - 1) * d + 1
                    for n, d in zip(geometry.size, geometry.input_dilation, strict=True)
                ],
            )
        )
        wide[(..., *[slice(None, None, d) for d in geometry.input_dilation])] = x
        expected = np_conv(rank)(
            wide, w, None, geometry.stride, geometry.padding or 0, geometry.dilation, groups
        )
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
    by_x = apply(_input, (ty, tw, None), (geometry, groups))
    by_w = apply(_weight, (tx, ty), (geometry, groups))
    assert by_x.shape == x.shape
    assert by_w.shape == w.shape
    assert by_w.is_contiguous()
    expected = (found.numpy() * y).sum()
    np.testing.assert_allclose((by_x.numpy() * x).sum(), expected, atol=1e-10)
    np.testing.assert_allclose((by_w.numpy() * w).sum(), expected, atol=1e-10)


@settings(max_examples=200, deadline=None)
@given(geometries())
def test_geometry_of_the_gradients(geometry: Geometry) -> None:
    """The geometries of the gradients give the sizes of what they are gradients of."""
    assert geometry.of_input.output == geometry.size
    assert geometry.of_kernel.output == geometry.kernel
    if all(geometry.output):  # twice turned, nothing but the elements that no window saw is lost
        assert geometry.of_input.of_input.output == geometry.output
        assert geometry.of_kernel.of_kernel.output == geometry.output


def test_four_dimensions() -> None:
    """The primitive does not count dimensions."""
    geometry = Geometry((3, 2, 3, 2), (2, 1, 2, 2), (1, 1, 2, 1), ((1, 0),) * 4, (1,) * 4, (1,) * 4)
    x, w = leaf(normal(1, 1, 3, 2, 3, 2)), leaf(normal(2, 1, 2, 1, 2, 2, seed=1))

    def run(x: Any, w: Any) -> Any:
        return apply(_conv, (x, w, None), (geometry, 1))

    assert gradcheck(run, [x, w], fast_mode=True)
    assert gradgradcheck(run, [x, w], fast_mode=True)


@pytest.mark.parametrize("columns", [1, 40, 200])
def test_blocks_do_not_change_the_result(columns: int, monkeypatch: Any) -> None:
    """However few windows are laid out at a time."""
    x, w = normal(3, 4, 6, 5), normal(6, 2, 3, 2, seed=1)
    expected = np_conv(2)(x, w, None, 1, 1, 1, 2)
    monkeypatch.setattr(sliding, "_COLUMNS", columns)
    found = ut.conv2d(ut.tensor(x), ut.tensor(w), padding=1, groups=2)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_windows_are_never_all_laid_out() -> None:
    """The memory is that of the padded input, the output and a block of columns."""
    x, w = ut.zeros(16, 16, 64, 64), ut.zeros(16, 16, 5, 5)
    ut.conv2d(x, w, padding=2)  # imports and compiles
    tracemalloc.start()
    y = ut.conv2d(x, w, padding=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = y.numel() * y.element_size()
    assert peak < 3 * size + 8 * sliding._COLUMNS
    assert peak < 25 * size / 3  # the windows would be 25 times as large


# Arguments -----------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16])
def test_half_precision_is_computed_in_single(dtype: Any) -> None:
    """Products and the bias are summed in float32 and rounded once."""
    x, w, b = (
        ut.tensor(normal(*s, seed=i)).to(dtype)
        for i, s in enumerate([(2, 40, 9), (3, 40, 3), (3,)])
    )
    found = ut.conv1d(x, w, b, padding=1)
    expected = ut.conv1d(x.float(), w.float(), b.float(), padding=1).to(dtype)
    assert found.dtype is dtype
    assert ut.equal(found, expected)


def test_complex_numbers() -> None:
    """Four real convolutions."""
    x, w = normal(1, 2, 6) + 1j * normal(1, 2, 6, seed=1), normal(3, 2, 3) + 1j * normal(3, 2, 3)
    expected = np_conv(1)(x, w)
    np.testing.assert_allclose(ut.conv1d(ut.tensor(x), ut.tensor(w)).numpy(), expected, atol=1e-12)


def test_small_integers_wrap() -> None:
    """As in torch, integers keep their dtype."""
    y = ut.conv1d(ut.full((1, 1, 2), 100, dtype=ut.int8), ut.full((1, 1, 2), 1, dtype=ut.int8))
    assert y.dtype is ut.int8
    assert y.tolist() == [[[-56]]]


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_no_channels(rank: int, batch: tuple[int, ...]) -> None:
    """Without input channels there are no output channels, as in torch, and gradients are zero."""
    x = ut.zeros(*batch, 0, *(5,) * rank, requires_grad=True)
    w = ut.zeros(4, 0, *(2,) * rank, requires_grad=True)
    bias = ut.ones(4, requires_grad=True)
    y = getattr(ut, f"conv{rank}d")(x, w, bias, stride=2, padding=1, groups=2)
    assert y.shape == (*batch, 0, *(3,) * rank)
    found = grad(y.sum(), (x, w, bias))
    assert [g.shape for g in found] == [x.shape, w.shape, bias.shape]
    assert found[2].tolist() == [0.0] * 4


@pytest.mark.parametrize("which", ["weight", "bias"])
def test_mixed_devices(which: str) -> None:
    """The error names the function and both devices."""
    there = {name: "reference" if name == which else "cpu" for name in ("weight", "bias")}
    w, b = transfer(ut.ones(1, 1, 2), there["weight"]), transfer(ut.ones(1), there["bias"])
    with pytest.raises(ut.errors.DeviceError, match=r"\[conv1d\].*cpu and reference"):
        ut.conv1d(ut.ones(1, 1, 3), w, b)


def test_lists_and_numpy_integers() -> None:
    """Arguments may be any integers in any sequence."""
    x, w = ut.ones(1, 1, 5, 5), ut.ones(1, 1, 2, 2)
    found = ut.conv2d(x, w, stride=[np.int64(2), 1], padding=[[1, 0], (0, np.int32(1))])
    assert found.shape == (1, 1, 3, 5)


def test_transposed_is_the_adjoint() -> None:
    """<conv(x), y> = <x, conv_transpose(y)>, where the output padding says which x was meant."""
    for length in (7, 8):
        x, w = normal(2, 3, length), normal(4, 3, 2, seed=1)
        y = ut.conv1d(ut.tensor(x), ut.tensor(w), stride=2)
        c = normal(*y.shape, seed=2)
        extra = (length - 2) % 2
        back = ut.conv_transpose1d(ut.tensor(c), ut.tensor(w), stride=2, output_padding=extra)
        assert back.shape == x.shape
        np.testing.assert_allclose((y.numpy() * c).sum(), (back.numpy() * x).sum(), atol=1e-10)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_transposed_convolution_with_an_empty_output(rank: int, device: str) -> None:
    """Padding may cut everything off: an empty result, and gradients of zero to any order."""
    function = getattr(ut, f"conv_transpose{rank}d")
    others = (3,) * (rank - 1)
    x = ut.ones(2, 2, 1, *others, device=device, requires_grad=True)
    w = ut.ones(2, 1, *(2,) * rank, device=device, requires_grad=True)
    b = ut.ones(2, device=device, requires_grad=True)
    y = function(x, w, b, padding=(1, *(0,) * (rank - 1)), groups=2)
    assert y.shape == (2, 2, 0, *(4,) * (rank - 1))
    first = ut.autograd.grad(y.sum(), [x, w, b], create_graph=True)
    total = first[0].square().sum() + first[1].square().sum()
    second = ut.autograd.grad(total, [x, w], materialize_grads=True)
    for found, t in zip([*first, *second], [x, w, b, x, w], strict=True):
        assert found.shape == t.shape
        assert not found.any()
    with pytest.raises(ut.errors.ShapeError, match=r"would give an output of size \(-2"):
        function(x, w, padding=(2, *(0,) * (rank - 1)))


# What is not finite ---------------------------------------------------------------------------
@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("channels", [1, 16, 64])
@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_infinite_weights_do_not_meet_padding(value, channels, device):
    x = ut.ones(2, channels, 40, device=device, requires_grad=True)
    w = ut.ones(channels, channels, 3, device=device)
    w[0, 0, 0] = value
    y = ut.conv1d(x, w, padding=1)
    assert y[:, 0].isfinite().tolist() == [[True] + [False] * 39] * 2
    assert bool(y[:, 1:].isfinite().all())
    (found,) = grad(y, x, ut.ones_like(y))
    assert found[:, 0].isfinite().tolist() == [[False] * 39 + [True]] * 2
    assert bool(found[:, 1:].isfinite().all())


@pytest.mark.parametrize("channels", [2, 32])
def test_infinite_weights_of_strided_and_transposed_convolutions(channels):
    """Every second place is met by the tap, but for what is padding."""
    x = ut.ones(1, channels, 33, requires_grad=True)
    w = ut.ones(channels, channels, 3)
    w[0, 0, 2] = math.inf
    y = ut.conv1d(x, w, stride=2, padding=1)
    assert y[0, 0].isfinite().tolist() == [False] * 16 + [True]
    (found,) = grad(y, x, ut.ones_like(y))
    assert found[0, 0].isfinite().tolist() == [True, False] * 16 + [True]
    assert not bool(found.isnan().any())
    turned = ut.conv_transpose1d(x.detach(), w, stride=2, padding=1)
    assert turned[0, 0].isfinite().tolist() == [True, False] * 32 + [True]
    assert not bool(turned.isnan().any())
