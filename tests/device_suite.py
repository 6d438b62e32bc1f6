"""What every device must do, for any registered one: `pytest tests/device_suite.py --device npu`.

The op table against the CPU, forward and to second order; forms; memory, views and in-place
changes; hooks and accumulation; random numbers; printing; and what a training step costs in
launches, copies and synchronisations.

A device without float64 is given every sample in float32, and held against the CPU's float32; what
it cannot compute is skipped, with the reason, and the counts of reasons are printed in the end.
`--part 3/40` takes every fortieth sample, from the third on.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import pickle
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import undertow as ut
import undertow.nn.functional as F
from op_cases import cases, flat, host, leaves, seed_of, tensors, within
from op_samples import Const, OpInfo, Sample
from undertow.backends.base import Backend
from undertow.backends.cpu.calls import choice
from undertow.backends.registry import backend_of, backend_on
from undertow.core.dispatch import transfer
from undertow.core.tensor import wrap

# Forms that bring data to the host, or from there; the others start work on the device.
SYNCHRONISES = {"to_host", "nonzero"}
UPLOADS = {"from_host"}
COPIES = {"copy", "cast", "assign", "concat", "transfer"}
VIEWS = {
    "as_strided",
    "reshape",
    "permute",
    "expand",
    "slice",
    "part",
    "bits",
    "storage_offset",
    "storage_size",
}
QUESTIONS = {
    "all_plain",
    "contiguous",
    "writable",
    "memory",
    "owned",
    "address",
    "prepare",
    "begin",
    "end",
    "run",
    "table",
    "within",
}


@contextlib.contextmanager
def counted(backend: Backend) -> Iterator[Counter[str]]:
    """Count the forms that are called from outside of the backend while this lasts."""
    counts: Counter[str] = Counter()
    inside = threading.local()
    names = [n for n in dir(Backend) if not n.startswith("_") and callable(getattr(Backend, n))]

    def counting(name: str, form: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            depth = getattr(inside, "depth", 0)
            if not depth:
                counts[name] += 1
            inside.depth = depth + 1
            try:
                return form(*args, **kwargs)
            finally:
                inside.depth = depth

        return call

    for name in names:
        if name not in QUESTIONS:
            setattr(backend, name, counting(name, getattr(backend, name)))
    try:
        yield counts
    finally:
        for name in names:
            vars(backend).pop(name, None)


def launches(counts: Counter[str]) -> int:
    quiet = VIEWS | UPLOADS | SYNCHRONISES | {"empty", "require"}
    return sum(n for form, n in counts.items() if form not in quiet)


# How far results, first and second gradients may be from the CPU's, as parts of the largest
# element, by the size of a float in bytes.
TOLERANCES = {8: (1e-12, 1e-12, 1e-12), 4: (2e-5, 1e-4, 5e-4), 2: (1e-2, 1e-2, 1e-2)}


def close(found: ut.Tensor, expected: ut.Tensor) -> None:
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.requires_grad == expected.requires_grad
    if found.dtype.is_floating_point or found.is_complex():
        size = found.element_size() // (1 + found.is_complex())
        exact = {8: 1e-12, 4: 1e-5, 2: 1e-2}[size]
        np.testing.assert_allclose(host(found), host(expected), rtol=exact, atol=exact / 10)
    else:
        np.testing.assert_array_equal(host(found), host(expected))


def near(found: ut.Tensor, expected: ut.Tensor, order: int) -> None:
    """`close` for float32, whose errors grow with each order."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.requires_grad == expected.requires_grad
    if not found.dtype.is_floating_point and not found.is_complex():
        np.testing.assert_array_equal(host(found), host(expected))
        return
    wide = np.complex128 if found.is_complex() else np.float64
    values = host(expected).astype(wide)
    finite = np.abs(values[np.isfinite(values)])
    exact = TOLERANCES[found.element_size() // (1 + found.is_complex())][order]
    bound = exact * max(1.0, finite.max(initial=0.0))
    np.testing.assert_allclose(host(found).astype(wide), values, rtol=exact, atol=bound)


# The op table --------------------------------------------------------------------------------
def has_double(device: str) -> bool:
    """Whether a device computes in float64, so that the op table needs no conversion."""
    limits = getattr(backend_on(device), "limits", None)
    return limits is None or limits.float64


def reason(error: Exception) -> str:
    """Why a device cannot compute something, of an error that says so; others are raised again."""
    _, found, why = str(error).partition("no kernel on ")
    if not found:
        raise error
    return why.split(";")[0]


def is_complex(value: Any) -> bool:
    """Whether a sample's values hold complex numbers."""
    if isinstance(value, Const):
        return is_complex(value.array)
    if isinstance(value, (list, tuple, dict)):
        return any(map(is_complex, value.values() if isinstance(value, dict) else value))
    if isinstance(value, ut.dtype):
        return value.is_complex
    return isinstance(value, complex) or (isinstance(value, np.ndarray) and value.dtype.kind == "c")


def single(value: Any) -> Any:
    """A sample's value in single precision."""
    if isinstance(value, np.ndarray):
        kinds = {"float64": np.float32, "complex128": np.complex64}
        with np.errstate(over="ignore"):
            return value.astype(kinds.get(value.dtype.name, value.dtype), order="K")
    if isinstance(value, Const):
        return Const(single(value.array))
    if isinstance(value, (list, tuple)):
        return type(value)(single(v) for v in value)
    if isinstance(value, dict):
        return {k: single(v) for k, v in value.items()}
    return ut.float32 if value is ut.float64 else value


def differentiated(info: OpInfo, sample: Sample, device: str, double: bool = True) -> Any:
    """The results of a sample, its gradients, and the gradients of those, with their orders."""
    make = tensors if double else singles
    args, kwargs = (make(v, info.grad, device) for v in (sample.args, sample.kwargs))
    out = flat(within(info)(*args, **kwargs))
    results = [t for t in out if isinstance(t, ut.Tensor)]
    orders = [0] * len(results)
    inputs = leaves(args, kwargs)
    roots = [t for t in results if t.requires_grad]
    random = np.random.default_rng(3)

    def seeds(tensors: list[ut.Tensor]) -> list[ut.Tensor]:
        found = [seed_of(random, t) for t in tensors]
        return [transfer(wrap(a if double else single(a)), device) for a in found]

    how: dict[str, Any] = {"materialize_grads": True, "retain_graph": True}
    if inputs and roots:
        first = ut.autograd.grad(roots, inputs, seeds(roots), **how)
        results += [t.detach() for t in first]
        orders += [1] * len(first)
        if info.gradgrad:
            again = ut.autograd.grad(roots, inputs, seeds(roots), create_graph=True, **how)
            roots = [t for t in again if t.requires_grad]
            if roots:
                results += ut.autograd.grad(roots, inputs, seeds(roots), **how)
    return results, orders + [2] * (len(results) - len(orders))


def singles(value: Any, grad: bool, device: str) -> Any:
    """`tensors` in single precision, whose floats still require gradients."""
    if isinstance(value, (Const, np.ndarray)):
        array = value.array if isinstance(value, Const) else value
        narrow = single(array)
        t = transfer(wrap(narrow.copy(order="K") if narrow.size else narrow.copy()), device)
        wanted = grad and array.dtype == np.float64 and not isinstance(value, Const)
        return t.requires_grad_() if wanted else t
    if isinstance(value, (list, tuple)):
        return type(value)(singles(v, grad, device) for v in value)
    if isinstance(value, dict):
        return {k: singles(v, grad, device) for k, v in value.items()}
    return single(value)


@pytest.mark.parametrize("info, sample", cases())
def test_sample(device: str, info: OpInfo, sample: Sample) -> None:
    """The device gives the CPU's results, and its first and second gradients."""
    double = has_double(device)
    try:
        found, orders = differentiated(info, sample, device, double)
    except ut.errors.DTypeError as error:
        given = "complex sample" if is_complex((sample.args, sample.kwargs)) else "real sample"
        pytest.skip(f"{given}: {reason(error)}")
    expected, _ = differentiated(info, sample, "cpu", double)
    for f, e, order in zip(found, expected, orders, strict=True):
        if double:
            close(f, e)
        else:
            near(f, e, order)


# Forms ---------------------------------------------------------------------------------------
def arrays(device: str, *hosts: Any) -> list[Any]:
    """Arrays on the device, in single precision where that is all it has."""
    given = [np.asarray(a) if has_double(device) else single(np.asarray(a)) for a in hosts]
    return [backend_on(device).from_host(a) for a in given]


def test_arrays_have_what_the_contract_has(device: str) -> None:
    k = backend_on(device)
    (x,) = arrays(device, np.arange(6.0).reshape(2, 3))
    real = np.dtype(KINDS[has_double(device)][0])
    assert x.shape == (2, 3)
    assert x.strides == (3 * real.itemsize, real.itemsize)
    assert x.size == 6
    assert x.dtype == real
    assert backend_of(x) is k
    assert isinstance(k, Backend)
    assert k.device.type == ut.device(device).type


def test_views_share_memory_and_copies_do_not(device: str) -> None:
    k = backend_on(device)
    real, narrow, whole = KINDS[has_double(device)]
    data = np.arange(24, dtype=real).reshape(2, 3, 4)
    (x,) = arrays(device, data)
    views = {
        "permute": (k.permute(x, (2, 0, 1)), data.transpose(2, 0, 1)),
        "slice": (k.slice(x, (1, slice(None, None, -2), None)), data[1, ::-2, None]),
        "ellipsis": (k.slice(x, (..., 3)), data[..., 3]),
        "reshape": (k.reshape(x, (4, 6)), data.reshape(4, 6)),
        "expand": (k.expand(k.slice(x, (0, 0)), (5, 4)), np.broadcast_to(data[0, 0], (5, 4))),
        "as_strided": (k.as_strided(x, (2, 2), (12, 1), 5), data.reshape(-1)[[[5, 6], [17, 18]]]),
        "bits": (k.bits(x, np.dtype(whole)), data.view(whole)),
    }
    for name, (view, expected) in views.items():
        np.testing.assert_array_equal(k.to_host(view), expected, err_msg=name)
        assert k.memory(view) == k.memory(x), name
    assert k.reshape(k.permute(x, (2, 1, 0)), (24,)) is None
    assert k.storage_offset(k.slice(x, (1, 1))) == 16
    assert k.storage_size(x) >= 24
    for fresh in (k.copy(x), k.cast(x, np.dtype(narrow)), k.map(NEGATIVE, (x,), x.dtype)):
        assert k.memory(fresh) != k.memory(x)
    k.assign(k.slice(x, (0, slice(None), slice(0, 2))), k.full((), 7, x.dtype))
    assert k.to_host(x)[0, :, :2].tolist() == [[7, 7]] * 3


# By whether there is float64: a floating dtype, a narrower one, and integers as long as the first.
KINDS = {True: (np.float64, np.float32, np.int64), False: (np.float32, np.float16, np.int32)}
NEGATIVE = ut.core.op.OPS["neg"].expr


def test_complex_parts_are_views(device: str) -> None:
    k = backend_on(device)
    try:
        (z,) = arrays(device, np.array([1 + 2j, 3 + 4j]))
    except ut.errors.DTypeError as error:
        pytest.skip(reason(error))
    np.testing.assert_array_equal(k.to_host(k.part(z, "imag")), [2, 4])
    k.assign(k.part(z, "real"), k.full((), 9, np.dtype(np.float64)))
    np.testing.assert_array_equal(k.to_host(z), [9 + 2j, 9 + 4j])


def test_assign_casts_broadcasts_and_overlaps(device: str) -> None:
    k = backend_on(device)
    real = KINDS[has_double(device)][0]
    (x,) = arrays(device, np.arange(5, dtype=real))
    k.assign(k.slice(x, (slice(1, None),)), k.slice(x, (slice(None, -1),)))
    np.testing.assert_array_equal(k.to_host(x), [0, 0, 1, 2, 3])
    given = np.array([1.9, -1.9, 300.0], real)
    (target, source) = arrays(device, np.zeros((2, 3), np.int8), given)
    k.assign(target, source)
    np.testing.assert_array_equal(k.to_host(target), [[1, -1, 44]] * 2)


def test_an_array_is_owned_by_its_only_holder(device: str) -> None:
    k = backend_on(device)
    held = arrays(device, np.zeros(3))
    assert k.owned(held, 0)
    other = held[0]
    assert not k.owned(held, 0)
    del other
    view = k.slice(held[0], (slice(1, None),))
    assert not k.owned(held, 0)
    del view
    assert k.owned(held, 0)
    held[0] = k.expand(k.slice(held[0], (slice(0, 1),)), (4,))  # of which one is four
    assert not k.owned(held, 0)


def test_require(device: str) -> None:
    k = backend_on(device)
    (x,) = arrays(device, np.array([0, 3, 2]))
    assert k.require(x, 0, 4, ValueError) in (0, None)

    def look() -> None:
        k.require(x, 0, 3, lambda host: ValueError(str(host.max())))
        k.to_host(x)  # by now a device that looks later has looked

    with pytest.raises(ValueError, match="3"):
        look()
    k.require(arrays(device, np.zeros(0))[0], 0, 1, ValueError)


# Sizes ---------------------------------------------------------------------------------------
# The op table's arrays are small. These are large enough for every way in which kernels divide
# their work: groups, pieces of long rows, tiles, and more groups than one.
LARGE: dict[str, tuple[Any, Any]] = {
    "sum of rows": ((70, 300), lambda x: x.sum(1)),
    "sum of columns": ((700, 90), lambda x: x.sum(0)),
    "sum of everything": ((30_000,), lambda x: x.sum()),
    "squares": ((3, 9000), lambda x: x.var(1)),
    "largest of many": ((20_000,), lambda x: x.argmax()),
    "short rows": ((5000, 20), lambda x: x.amax(1)),
    "softmax": ((40, 200), lambda x: x.softmax(1)),
    "softmax of columns": ((200, 40), lambda x: x.softmax(0)),
    "layer norm": ((9, 500), lambda x: F.layer_norm(x, (500,))),
    "cross entropy": ((50, 100), lambda x: F.cross_entropy(x, x.argmin(1))),
    "batch norm": ((20, 5, 60), lambda x: F.batch_norm(x, None, None, training=True)),
    "scan": ((2, 5000), lambda x: x.cumsum(1)),
    "running maximum": ((3000,), lambda x: x.cummax(0)[1]),
    "sort": ((3, 700), lambda x: x.sort(1)[0]),
    "topk": ((2500,), lambda x: x.topk(10)[0]),
    "topk of equals": ((2, 900), lambda x: (x * 3).round().topk(40, 1, False)[1]),
    "nonzero": ((5000,), lambda x: (x > 0).nonzero().sum()),
    "product": ((100, 90), lambda x: x @ x.t()),
    "batched product": ((3, 70, 40), lambda x: x @ x.transpose(1, 2)),
    "product of many terms": ((40, 4500), lambda x: x @ x.t() / 4500),
    "product with few results": ((2, 5000), lambda x: x @ x.t() / 5000),
    "convolution": ((4, 20, 50), lambda x: F.conv1d(x, x[:, :, :3].repeat(8, 1, 1))),
    "index_add": ((3000,), lambda x: ut.zeros_like(x[:40]).index_add(0, (x * 9).long() + 9, x)),
}


@pytest.mark.parametrize("name", LARGE)
def test_large(device: str, name: str) -> None:
    """Results and gradients of arrays that one group of threads does not do alone."""
    shape, function = LARGE[name]
    data = np.random.default_rng(len(name)).uniform(-1, 1, shape).astype(np.float32)
    found: list[Any] = []
    for where in (device, "cpu"):
        x = ut.tensor(data).to(where).requires_grad_()
        y = function(x)
        results = [y.detach()]
        if y.requires_grad:
            results += ut.autograd.grad((y * y).sum(), x)
        found.append([host(r) for r in results])
    for mine, expected in zip(*found, strict=True):
        bound = 1e-4 * max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=bound)


# Tensors -------------------------------------------------------------------------------------
def test_making_and_moving(device: str) -> None:
    real = ut.float64 if has_double(device) else ut.float32
    x = ut.arange(6, dtype=real, device=device).reshape(2, 3)
    assert x.device.type == ut.device(device).type
    assert x.cpu().device.type == "cpu"
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x[1, 2].item() == 5
    assert ut.zeros_like(x).device == x.device == ut.ones(2, device=device).device
    y = ut.tensor([1.0, 2.0]).to(device)
    assert (y + 1).to("cpu").tolist() == [2, 3]
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert again.device == x.device
        assert again.tolist() == x.tolist()


def test_printing(device: str) -> None:
    x = ut.tensor([[1.5, float("nan")], [float("inf"), -2.0]], device=device)
    name = str(x.device)
    assert repr(x).replace(f", device='{name}'", "") == repr(x.cpu())
    large = ut.arange(10**4, device=device).reshape(100, 100)
    assert repr(large).replace(f", device='{name}'", "") == repr(large.cpu())


def test_mixed_devices_are_an_error_that_names_both(device: str) -> None:
    x, y = ut.ones(2, device=device), ut.ones(2)
    for a, b in ((x, y), (y, x)):
        with pytest.raises(ut.errors.DeviceError) as caught:
            a * b
        assert str(x.device) in str(caught.value)
        assert "cpu" in str(caught.value)
    with pytest.raises(ut.errors.DeviceError):
        y.unsqueeze(0) @ x.unsqueeze(1)
    assert (x * ut.tensor(3.0)).tolist() == [3, 3]  # a number follows


def test_views_and_changes_in_place(device: str) -> None:
    x = ut.zeros(3, 4, device=device)
    x[1].add_(2)
    x.t()[0] = 5
    x[:, 1:].mul_(3)
    assert x.tolist() == [[5, 0, 0, 0], [5, 6, 6, 6], [5, 0, 0, 0]]
    assert x._version == 3
    assert x[1]._base is x
    with pytest.raises(ut.errors.InplaceError, match="share one memory location"):
        ut.ones(1, device=device).expand(3).add_(1)


def test_a_changed_saved_value_is_an_error(device: str) -> None:
    x = ut.ones(2, requires_grad=True, device=device)
    h = x * 2
    loss = (h * h).sum()
    h.add_(1)
    with pytest.raises(ut.errors.VersionError):
        loss.backward()


def test_in_place_history(device: str) -> None:
    x = ut.tensor([1.0, 2.0, 3.0], requires_grad=True, device=device)
    y = x * 2
    y[1:].mul_(x[:2])
    y.sum().backward()
    assert x.grad.tolist() == [2 + 4, 2 + 6, 4]


def test_hooks(device: str) -> None:
    x = ut.ones(3, requires_grad=True, device=device)
    y = x * 2
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(g.device) or g * 10)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    y.sum().backward()
    assert seen == [x.device, [20, 20, 20]]


def test_the_seed_is_nobodys_gradient(device: str) -> None:
    x = ut.ones(2, 2, requires_grad=True, device=device)
    seed = ut.ones(4, device=device)
    (g,) = ut.autograd.grad(x.reshape(4), x, seed)
    g.add_(1)
    assert seed.tolist() == [1, 1, 1, 1]


def test_gradients_meet_from_two_devices(device: str) -> None:
    x = ut.tensor([1.0, 2.0], requires_grad=True)
    there = x.to(device)
    (there * there + (x * 3).to(device)).sum().backward()
    assert x.grad.device.type == "cpu"
    assert x.grad.tolist() == [5, 7]
    (g,) = ut.autograd.grad((x.to(device) ** 3).sum(), x, create_graph=True)
    assert ut.autograd.grad(g.sum(), x)[0].tolist() == [6, 12]


@pytest.mark.parametrize("workers", [1, 2])
def test_accumulation_is_in_place(device: str, workers: int) -> None:
    """The second backward adds to the memory of the first, which is that of the gradient itself."""
    k = backend_on(device)
    w = ut.ones(5, 4, requires_grad=True, device=device)
    x = ut.ones(3, 5, device=device)

    def step() -> None:
        (x @ w).tanh().sum().backward(workers=workers)

    step()
    before = k.memory(w.grad._array)
    first = w.grad.tolist()
    with counted(k) as counts:
        step()
    assert k.memory(w.grad._array) == before
    np.testing.assert_allclose(w.grad.tolist(), 2 * np.array(first))
    assert not counts["copy"]
    assert not counts["clone"]


def test_random_numbers_are_the_cpus(device: str) -> None:
    real = ut.float64 if has_double(device) else ut.float32
    for draw in (
        lambda where: ut.rand(1000, device=where),
        lambda where: ut.randn(1000, dtype=real, device=where),
        lambda where: ut.randint(0, 10, (1000,), device=where),
        lambda where: ut.randperm(100, device=where),
        lambda where: F.dropout(ut.ones(1000, device=where), 0.3),
    ):
        ut.manual_seed(5)
        expected = draw("cpu")
        ut.manual_seed(5)
        np.testing.assert_allclose(host(draw(device)), host(expected), rtol=1e-6)


def test_parallel_backward_has_the_same_bits(device: str) -> None:
    def gradients(workers: int) -> list[Any]:
        ut.manual_seed(1)
        leaves = [ut.randn(6, 6, device=device).requires_grad_() for _ in range(4)]
        heads = [(leaf @ leaves[0]).tanh() for leaf in leaves]
        total = heads[0]
        for head in heads[1:]:
            total = total * head + head.exp()
        total.sum().backward(workers=workers)
        return [host(leaf.grad) for leaf in leaves]

    for one, two in zip(gradients(1), gradients(2), strict=True):
        np.testing.assert_array_equal(one, two)


# What a training step costs ------------------------------------------------------------------
class Step:
    """A network of three layers, its loss, its gradients, and a change of its weights."""

    def __init__(self, device: str) -> None:
        ut.manual_seed(0)
        sizes = (8, 16, 16, 4)
        self.weights = [
            (ut.randn(n, m) / n**0.5).to(device).requires_grad_()
            for n, m in itertools.pairwise(sizes)
        ]
        self.biases = [ut.zeros(m).to(device).requires_grad_() for m in sizes[1:]]
        self.x = ut.randn(32, 8).to(device)
        self.y = ut.randint(0, 4, (32,)).to(device)

    def __call__(self) -> ut.Tensor:
        h = self.x
        for i, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = h @ w + b
            if i < 2:
                h = F.gelu(h)
        loss = F.cross_entropy(h, self.y)
        loss.backward()
        with ut.no_grad():
            for p in (*self.weights, *self.biases):
                p.sub_(p.grad * 0.1)
                p.grad = None
        return loss


def test_a_training_step_stays_on_the_device(device: str) -> None:
    """No upload nor read-back but for the check of labels, no copy, and a launch or so per op."""
    step = Step(device)
    losses = [step().item()]
    with counted(backend_on(device)) as counts:
        loss = step()
    assert sum(counts[form] for form in UPLOADS) == 0
    assert sum(counts[form] for form in SYNCHRONISES) == 0
    assert sum(counts[form] for form in COPIES - {"cast"}) <= len(step.biases), counts
    assert launches(counts) <= 48, counts
    losses += [loss.item(), *(step().item() for _ in range(40))]
    assert losses[-1] < losses[0]
    other = Step("cpu")
    np.testing.assert_allclose(losses[:2], [other().item() for _ in range(2)], rtol=1e-5)


def test_a_fused_rule_is_one_launch(device: str) -> None:
    """The gradient of gelu is one kernel on every device; see Note [fused rules]."""
    x = ut.ones(4, requires_grad=True, device=device)
    y = F.gelu(x)
    seed = ut.ones(4, device=device)
    with counted(backend_on(device)) as counts:
        y.backward(seed)
    assert launches(counts) <= 2, counts  # the rule, and perhaps a copy for the leaf
    assert counts["maps"] + counts["map"] <= 1 or choice.MODE == "always", counts


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Rprop", "NAdam"])
def test_an_optimiser_changes_all_parameters_at_once(device: str, name: str) -> None:
    """One form of the device, whose results are the CPU's; nothing is brought to the host."""
    steps = [Step(device), Step("cpu")]
    for step in steps:
        params = [*step.weights, *step.biases]
        optimizer = getattr(ut.optim, name)(params, lr=0.01)
        for _ in range(3):
            for i, p in enumerate(params):
                p.grad = ut.sin(p.detach() * 3 + i)
            with counted(backend_on(device)) as counts:
                optimizer.step()
        if step is steps[0] and device != "cpu":  # where the numbers of steps are kept
            assert counts == {"update": 1}, counts
    for mine, other in zip(steps[0].weights, steps[1].weights, strict=True):
        close(mine.to("cpu"), other)


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q"]))
