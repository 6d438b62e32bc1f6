"""Bad input, over the whole table: an error of ours that names the op, and nothing changed."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import undertow as ut
import undertow.nn.functional as F


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ut.cumsum(None, 0), r"^\[cumsum\] input must be a Tensor, got NoneType"),
        (lambda: ut.sum([1.0, 2.0]), r"^\[sum\] input must be a Tensor, got list; convert it"),
        (lambda: ut.sum(ut.ones(2), keepdim="x"), r"^\[sum\] keepdim must be True .* str 'x'"),
        (lambda: ut.hstack(3), r"^\[hstack\] tensors must be a sequence of Tensors, got int 3"),
        (lambda: ut.ones(2).put_(ut.tensor([0]), None), r"^\[put_\] source must be a Tensor"),
        (lambda: ut.ones(2).index_add_(0, ut.tensor([0]), "x"), r"^\[index_add_\] source .* 'x'"),
        (lambda: ut.ones(2).normal_(0, "x"), r"^\[normal_\] std must be a number, got str 'x'"),
        (lambda: ut.gather("x", 0, ut.tensor(0)), r"^\[gather\] input .* got str 'x'"),
        (lambda: F.cosine_similarity(ut.ones(2), None), r"^\[cosine_similarity\] x2 must be a"),
        (lambda: F.cross_entropy(ut.ones(2, 3), [0, 1]), r"^\[cross_entropy\] target .* list"),
        (lambda: F.nll_loss(ut.ones(1, 2), ut.tensor([0]), "x"), r"weight must be a Tensor or N"),
    ],
)
def test_argument_of_the_wrong_type(call: Any, message: str) -> None:
    """The public function and the argument are named, not what stumbled over it inside."""
    with pytest.raises(ut.errors.DTypeError, match=message):
        call()


def test_other_failures_tell_the_arguments() -> None:
    """What Python or NumPy raise inside becomes an error of ours, with the op and its arguments."""
    with pytest.raises(ut.errors.DTypeError, match=r"^\[unflatten\] .*sizes=3"):
        ut.ones(6).unflatten(0, 3)
    with pytest.raises(ut.errors.ArgumentError, match=r"^\[unfold\] .*shape \(4,\), .*step=36893"):
        ut.ones(4).unfold(0, 2, 2**65)


def test_guard_leaves_other_errors_alone() -> None:
    """A wrong signature is Python's own error, and an error of a user's hook stays what it is."""
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'dim'"):
        ut.cumsum(ut.ones(2))

    def pack(t: ut.Tensor) -> Any:
        raise ValueError("mine")

    x = ut.ones(2, requires_grad=True)
    with (
        ut.autograd.graph.saved_tensors_hooks(pack, lambda t: t),
        pytest.raises(ValueError, match=r"^mine$"),
    ):
        x.prod()


def test_too_large_for_memory() -> None:
    """A size that no memory holds is an error for code that catches either builtin."""
    for error in (MemoryError, RuntimeError, ut.errors.UndertowError):
        with pytest.raises(error, match=r"^\[zeros\] .*1099511627776"):
            ut.zeros(2**40, 2**10)


# Larger than any address space, so that no machine promises the memory.
@pytest.mark.parametrize(
    "call, message",
    [
        (lambda a, b: a[:, None] * b, r"^\[mul\] a float32 array of shape \(10000000, 100000000\)"),
        (lambda a, b: 2 * a.expand(10**8, 10**7), r"^\[mul\] .* takes 4,000,000,000,000,000 bytes"),
        (lambda a, b: a.expand(10**8, 10**7).exp(), r"^\[exp\] .* 4,000,000,000,000,000 bytes"),
        (lambda a, b: a[:, None] @ b[None], r"^\[matmul\] .* 4,000,000,000,000,000 bytes"),
        (lambda a, b: a[:, None].double() + b, r"^\[add\] .* 8,000,000,000,000,000 bytes"),
        (lambda a, b: a.expand(10**8, 10**7).clone(), r"^\[clone\] .* takes 4,000,000,000,000,0"),
        (lambda a, b: ut.cat([b.expand(10**7, 10**8)] * 2), r"^\[cat\] .* 8,000,000,000,000,000 b"),
        (lambda a, b: ut.rand(10**7, 10**8), r"^\[rand\] "),
    ],
)
@pytest.mark.parametrize("grad", [False, True])
def test_results_too_large_for_memory(call: Any, message: str, grad: bool) -> None:
    """The error names the op, the result's shape and the bytes, whichever way the call took."""
    a = ut.ones(1).expand(10**7).requires_grad_(grad)
    with pytest.raises(ut.errors.OutOfMemoryError, match=message):
        call(a, ut.ones(1).expand(10**8))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: x * 2**70, r"\[mul\] 1180591620717411303424 is out of range for int64"),
        (lambda x: 2**63 - x, r"sub\] 9223372036854775808 is out of range"),
        (lambda x: x.clamp(max=2**63), r"\[clamp\] 9223372036854775808 is out of range"),
        (lambda x: ut.where(x > 0, x, 2**63), r"\[where\] 9223372036854775808 is out of range"),
        (lambda x: x.double() * 2**2000, r"\[mul\] int too large"),
    ],
)
def test_numbers_out_of_range(call: Any, message: str) -> None:
    """A number that integers of 64 bits do not hold is an error, not its last 64 bits."""
    with pytest.raises(ut.errors.ArgumentError, match=message):
        call(ut.tensor([1, 2]))


def test_comparisons_take_any_integer() -> None:
    """A comparison with a number out of range is right all the same."""
    x = ut.tensor([1, 2], dtype=ut.int8)
    assert (x < 300).all()
    assert (x < 2**70).all()
    assert not (x == -(2**63)).any()


def test_complex_parameters_of_real_tensors() -> None:
    """They are refused, where NumPy would drop the imaginary part with a warning."""
    for call in (lambda x: F.threshold(x, 0.5, 1j), lambda x: F.leaky_relu(x, 1j)):
        with pytest.raises(ut.errors.DTypeError, match=r"\[\w+\] takes real numbers .* got 1j"):
            call(ut.ones(2))


def fits() -> list[Any]:
    """Losses and layers of a (2, 3) input with a further tensor that would broadcast it to more."""
    x, y, w = ut.full((2, 3), 0.5), ut.ones(2, 3), ut.ones(4, 2, 3)
    return [
        (lambda: F.binary_cross_entropy(x, y, weight=w), "binary_cross_entropy"),
        (lambda: F.binary_cross_entropy_with_logits(x, y, w), "binary_cross_entropy_with_logits"),
        (lambda: F.binary_cross_entropy_with_logits(x, y, pos_weight=w), "pos_weight"),
        (lambda: F.multilabel_soft_margin_loss(x, y, w), "multilabel_soft_margin_loss"),
        (lambda: F.linear(x, ut.ones(5, 3), ut.ones(5, 1)), "linear"),
        (lambda: F.bilinear(x, x, ut.ones(5, 3, 3), ut.ones(5, 1)), "bilinear"),
    ]


@pytest.mark.parametrize("call, name", fits())
def test_weights_and_biases_must_fit(call: Any, name: str) -> None:
    """A weight or bias that would broadcast the result to another shape is an error."""
    with pytest.raises(ut.errors.ShapeError, match=rf"{name}.*\("):
        call()


@pytest.mark.parametrize("arguments", [("",), ("cpu", -1), ("cpu", "a"), ("cpu:",), (None,)])
def test_devices_that_cannot_be(arguments: Any) -> None:
    """A device has a name, and an index of at least 0."""
    with pytest.raises(ut.errors.DeviceError, match=r"^\[device\]"):
        ut.device(*arguments)


def test_order_of_polygamma_as_a_tensor() -> None:
    """It is the number that it holds; a wrong one leaves nothing behind."""
    x = ut.tensor([1.0, 2.0])
    assert ut.equal(ut.polygamma(ut.tensor(3), x), ut.polygamma(3, x))
    with pytest.raises(ut.errors.DTypeError, match=r"^\[polygamma\] n must be an integer"):
        ut.polygamma(1.5, x)


def test_no_dims_of_any_and_all() -> None:
    """An empty tuple means no dimension here, and all of them in a sum, as in torch."""
    x = ut.tensor([[1.0, 0.0], [2.0, 3.0]])
    assert x.any(dim=()).tolist() == x.all(dim=()).tolist() == [[True, False], [True, True]]
    assert x.sum(dim=()).item() == 6


def test_dim_as_a_tensor() -> None:
    """A zero-dimensional integer tensor is a dimension number."""
    assert ut.ones(2, 3).sum(ut.tensor(1)).tolist() == [3, 3]
    with pytest.raises(IndexError, match=r"^\[sum\] dim 2"):
        ut.ones(2, 3).sum(ut.tensor(2))


def test_samples_outside_see_no_pixel() -> None:
    """A NaN in the image does not leak into samples that do not touch it."""
    image = ut.ones(1, 1, 2, 2)
    image[0, 0, 0, 0] = float("nan")
    grid = ut.tensor([[[[9.0, 9.0], [1.0, 1.0]]]])
    for padding, outside in (("zeros", 0.0), ("border", 1.0)):
        out = F.grid_sample(image, grid, padding_mode=padding, align_corners=True)
        assert out.flatten().tolist() == [outside, 1.0]


def test_quantile_of_what_is_no_number() -> None:
    """Told by its type, without NumPy's warning about the imaginary part."""
    with pytest.raises(ut.errors.DTypeError, match=r"^\[quantile\] q .* complex 1j"):
        ut.ones(3).quantile(1j)


def test_in_place_on_the_short_way() -> None:
    """Without gradients a ufunc writes directly: with the same errors, and without warnings."""
    x = ut.tensor([1.0, 2.0])
    with pytest.raises(ut.errors.DeviceError, match=r"^\[mul\] .* cpu and reference"):
        x.mul_(x.to("reference"))
    with pytest.raises(ut.errors.ArgumentError, match=r"^\[mul\] int too large"):
        x.mul_(2**2000)
    assert x.tolist() == [1.0, 2.0]
    assert x._version == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.clamp_max_(ut.tensor([1.5, 1.5])).tolist() == [1.0, 1.5]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: x.stride(4), r"^\[stride\] dim 4"),
        (lambda x: ut.tensor(1).stride(0), r"^\[stride\] "),
        (lambda x: x.to(ut.int64, ut.int32), r"^\[to\] takes at most non_blocking and copy"),
        (lambda x: setattr(x, "grad", 3), r"^\[grad\] can be set to a Tensor or None, got int"),
        (lambda x: setattr(x, "data", 3), r"^\[data\] can be set to a Tensor, got int"),
        (lambda x: x.requires_grad_().register_hook(3), r"^\[register_hook\] a hook is callable"),
        (lambda x: ut.set_printoptions(precision="a"), r"^\[set_printoptions\] precision .* 'a'"),
    ],
)
def test_methods(call: Any, message: str) -> None:
    """Methods and attributes of a tensor, and options, answer with errors of ours too."""
    with pytest.raises(ut.errors.UndertowError, match=message):
        call(ut.ones(2, 3))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(True),
        lambda x: x.max(True),
        lambda x: x.topk(1, True),
        lambda x: x.sort(True),
        lambda x: x.softmax(True),
        lambda x: x.transpose(False, True),
        lambda x: x.sum((0, True)),
        lambda x: ut.cat([x, x], True),
        lambda x: ut.tensor(1.0).sum(True),
    ],
)
def test_a_bool_is_no_dim(call: Any) -> None:
    """An argument in the wrong place, which was read as dim=1."""
    with pytest.raises(TypeError, match="must be an integer, got bool"):
        call(ut.ones(2, 3))


def test_the_number_of_threads_has_a_limit() -> None:
    """2**65 of them were accepted, and the next kernel crashed the process."""
    before = ut.get_num_threads()
    for number in (0, -1, 4097, 2**65):
        with pytest.raises(ValueError, match="expects 1 to 4096"):
            ut.set_num_threads(number)
    assert ut.get_num_threads() == before


@pytest.mark.parametrize(
    "make",
    [
        lambda: ut.zeros(10**12),
        lambda: ut.ones(10**6, 10**6),
        lambda: ut.empty(10**12),
        lambda: ut.rand(10**12),
        lambda: ut.full((10**12,), 1.0),
        lambda: ut.arange(10**13),
        lambda: ut.eye(10**6),
        lambda: ut.ones(3).new_zeros(10**12),
        lambda: ut.nn.Linear(10**6, 10**6),
    ],
)
def test_what_does_not_fit_tells_its_size_and_a_way_out(make: Any) -> None:
    told = r"^\[\w+\] a \w+ array of shape \(.*\) takes "
    with pytest.raises(ut.OutOfMemoryError, match=told) as e:
        make()
    assert str(e.value).endswith("or reduce it before it is as large")


def test_sizes_that_no_array_has_are_shown() -> None:
    with pytest.raises(ut.errors.ArgumentError, match=r"called with sizes=\(\d+, 4\)$"):
        ut.zeros(2**62, 4)
