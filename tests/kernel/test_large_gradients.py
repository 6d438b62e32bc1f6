"""Short cuts of a backward pass on large arrays: they change no result and nobody's memory."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
from undertow.autograd import executors
from undertow.backends.cpu.calls import launch
from undertow.backends.cpu.products import added_products as products
from undertow.backends.cpu.products import gemm, gemm_tiles
from undertow.backends.cpu.products.added_products import run_add_product
from undertow.backends.registry import CPU, backend_on

SMALL, LARGE = 4 << 10, 256 << 10  # bytes of a first cache, in which k is cut or is not
RNG = np.random.default_rng(0)


def _normal(*shape, dtype=np.float32):
    return RNG.normal(size=shape).astype(dtype)


@pytest.fixture(autouse=True)
def pooled_always(monkeypatch):
    """Whoever asks for workers gets them."""
    monkeypatch.setattr(executors, "worth_pooling", lambda task: True)


@pytest.fixture
def caches(monkeypatch):
    """A function that makes products be planned for a machine with other caches, or vectors."""

    def change(level1, vector=None):
        target = gemm_tiles.host()
        target = target._replace(vector=vector or target.vector)
        for module in (gemm, products):
            monkeypatch.setattr(module, "cache_sizes", lambda: (level1, 16 * level1))
            monkeypatch.setattr(module, "host", lambda: target)
        monkeypatch.setattr(launch, "PLANS", launch.Plans())

    return change


@pytest.fixture
def added(monkeypatch, caches):
    """The answers of `add_product`, on a machine whose caches leave the products here whole."""
    caches(LARGE)
    answers = []
    real = CPU.add_product

    def spy(out, a, b):
        answers.append(real(out, a, b))
        return answers[-1]

    monkeypatch.setattr(CPU, "add_product", spy)
    return answers


# Products that are added to what is there --------------------------------------------------------
@pytest.mark.parametrize("k", [7, 128, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("level1", [None, SMALL, LARGE])
def test_an_added_product_has_the_bits_of_a_sum(k, dtype, turned, level1, caches):
    """On any machine: whether k is cut depends on its vectors and caches."""
    if level1:
        caches(level1, vector=16)
    a, b, there = _normal(130, k, dtype=dtype), _normal(k, 90, dtype=dtype), _normal(130, 90)
    there = there.astype(dtype)
    if turned[0]:
        a = np.asfortranarray(a)
    if turned[1]:
        b = np.asfortranarray(b)
    out = there.copy()
    done = run_add_product(out, a, b)
    expected = there + gemm.gemm(a, b) if done else there
    np.testing.assert_array_equal(out, expected)
    assert done or k > 16  # so many steps are never cut
    if level1 == SMALL:
        assert done == (k == 7)
    elif level1 == LARGE:
        assert done or k == 5000


@pytest.mark.parametrize("shape", [(100, 400, 400), (64, 1000, 300), (300, 1000, 8), (1, 700, 900)])
def test_an_added_product_has_these_bits_also_in_columns(shape):
    """Where the sum lies in memory by columns, a product alone may be computed in another way."""
    m, k, n = shape
    a, b = np.asfortranarray(_normal(m, k)), _normal(k, n)
    there = np.asfortranarray(_normal(m, n))
    out = there.copy(order="F")
    done = run_add_product(out, a, b)
    np.testing.assert_array_equal(out, there + gemm.gemm(a, b) if done else there)


def _twice(x, w):
    return ((x @ w).tanh() @ w).square().sum() + (x @ w).sum()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_weight_that_is_used_several_times(workers, added):
    x, w = _normal(100, 256), _normal(256, 256) / 16
    wt = ut.tensor(w, requires_grad=True)
    _twice(ut.tensor(x), wt).backward(workers=workers)
    assert any(added) == (workers == 1)
    leaf = ut.tensor(w.astype(np.float64), requires_grad=True)
    _twice(ut.tensor(x.astype(np.float64)), leaf).backward()
    np.testing.assert_allclose(wt.grad.numpy(), leaf.grad.numpy(), rtol=1e-3, atol=1e-3)


def test_serial_and_pooled_passes_agree_to_the_bit(added):
    found = []
    for workers in (1, 2, 3):
        ut.manual_seed(1)
        w = (ut.randn(200, 200) / 14).requires_grad_()
        x = ut.randn(150, 200).requires_grad_()
        out = sum((_twice(x * (i + 1), w) for i in range(4)), start=ut.tensor(0.0))
        out.backward(workers=workers)
        found.append((w.grad.numpy(), x.grad.numpy()))
    assert any(added)
    for w, x in found[1:]:
        np.testing.assert_array_equal(w, found[0][0])
        np.testing.assert_array_equal(x, found[0][1])


class _Keeping(ut.autograd.Function):
    """The identity, which keeps what it returns as a gradient."""

    kept: ut.Tensor

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        _Keeping.kept = g.clone()
        return _Keeping.kept


def test_a_gradient_that_somebody_holds_is_not_added_to(added):
    x = ut.tensor(np.abs(_normal(128, 200)))  # sums of which none comes out near zero
    w = ut.tensor(_normal(200, 200), requires_grad=True)
    first = x @ w
    (first.sum() + (x @ _Keeping.apply(w)).sum()).backward()
    once = _Keeping.kept.numpy().copy()
    np.testing.assert_allclose(once, (x.numpy().T @ np.ones((128, 200), np.float32)), rtol=1e-4)
    np.testing.assert_allclose(w.grad.numpy(), 2 * once, rtol=1e-4)
    assert not any(added)


def test_a_changed_operand_is_still_noticed():
    x, w = ut.tensor(_normal(128, 200)), ut.tensor(_normal(200, 200), requires_grad=True)
    y = x * 1.0
    out = (x @ w).sum() + (y @ w).sum()
    y.add_(1.0)
    with pytest.raises(ut.errors.VersionError):
        out.backward()


def test_sums_of_gradients_do_not_touch_a_seed():
    x = ut.tensor(_normal(300, 300), requires_grad=True)
    seed = ut.tensor(_normal(300, 300))
    before = seed.numpy().copy()
    y = x + x.tanh() + x
    y.backward(seed)
    np.testing.assert_array_equal(seed.numpy(), before)
    expected = before * (3 - np.tanh(x.detach().numpy()) ** 2)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_an_array_is_owned_by_its_only_holder(device):
    """Sums in place and gradients that leaves keep rest on this answer."""
    k = backend_on(device)
    held = [k.full((3,), 1, np.dtype(np.float32))]
    assert k.owned(held, 0)
    assert [k.owned(list_, 0) for list_ in [held]] == [True]  # however deep the call
    other = held[0]
    assert not k.owned(held, 0)
    del other
    assert k.owned(held, 0)
    view = k.slice(held[0], (slice(1, None),))
    assert not k.owned(held, 0)
    assert not k.owned([view], 0)
    del view
    assert k.owned(held, 0)
    assert not k.owned([held[0], held[0]], 0)


# A tensor that is both operands ------------------------------------------------------------------
@pytest.mark.parametrize("size", [10, 300])
@pytest.mark.parametrize("workers", [1, 2])
def test_both_operands(size, workers):
    data = RNG.uniform(1, 2, (size, size))
    cases = [
        (lambda x: x * x, lambda x: 2 * x),
        (lambda x: x / x, lambda x: 0 * x),
        (lambda x: x * x + x, lambda x: 2 * x + 1),
        (lambda x: (x * 1.0) * (x * 1.0), lambda x: 2 * x),
    ]
    for function, slope in cases:
        x = ut.tensor(data, requires_grad=True)
        function(x).sum().backward(workers=workers)
        np.testing.assert_allclose(x.grad.numpy(), slope(data), atol=1e-12)
        y = x * 2.0
        seen = []
        y.register_hook(lambda g, seen=seen: seen.append(g.numpy().copy()))
        (g,) = ut.autograd.grad(function(y).sum(), x)
        np.testing.assert_allclose(g.numpy(), 2 * slope(2 * data), atol=1e-12)
        np.testing.assert_allclose(seen, [slope(2 * data)], atol=1e-12)


def test_three_operands_of_which_two_are_one():
    x, t = (ut.tensor(_normal(300, 300), requires_grad=True) for _ in range(2))
    ut.addcmul(t, x, x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.detach().numpy(), rtol=1e-6)
    np.testing.assert_array_equal(t.grad.numpy(), np.ones((300, 300), np.float32))


# A row beside a matrix ---------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(4, 6), (300, 256), (3, 40, 500)])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize("needs", [(True, True), (True, False), (False, True)])
def test_rows(shape, name, needs):
    x, b = RNG.uniform(1, 2, shape), RNG.uniform(1, 2, shape[-1:])
    xt, bt = ut.tensor(x, requires_grad=needs[0]), ut.tensor(b, requires_grad=needs[1])
    out = getattr(ut, name)(xt, bt)
    function = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name]
    np.testing.assert_allclose(out.detach().numpy(), function(x, b))
    assert out.shape == shape
    lead = tuple(range(len(shape) - 1))
    by_x, by_b = {
        "add": (np.ones(shape), np.ones(shape)),
        "sub": (np.ones(shape), -np.ones(shape)),
        "mul": (np.broadcast_to(b, shape), x),
        "div": (1 / np.broadcast_to(b, shape), -x / b**2),
    }[name]
    out.sum().backward()
    if needs[0]:
        np.testing.assert_allclose(xt.grad.numpy(), by_x)
    if needs[1]:
        np.testing.assert_allclose(bt.grad.numpy(), by_b.sum(lead))


@pytest.mark.parametrize("shape", [(4, 6), (300, 256)])
def test_the_graph_of_a_bias_is_that_of_an_expanded_one(shape):
    b = ut.zeros(shape[-1], requires_grad=True)
    x = ut.ones(shape)
    for _ in range(2):
        node, _ = (x + b).grad_fn.next_functions[1]
        assert node.name() == "ExpandBackward0"
        assert node.next_functions == ((b.grad_fn or node.next_functions[0][0], 0),)
        assert node.metas[0][0] == shape
    view = ut.zeros(2, shape[-1], requires_grad=True)
    (x + view[1]).sum().backward()
    np.testing.assert_array_equal(view.grad.numpy()[:, 0], [0, shape[0]])


@pytest.mark.parametrize("shape", [(4, 6), (300, 256)])
def test_a_bias_may_change_after_it_was_added(shape):
    b = ut.zeros(shape[-1], requires_grad=True)
    x = ut.ones(shape, requires_grad=True)
    out = (x + b).sum()
    with ut.no_grad():
        b.add_(1.0)
    out.backward()
    np.testing.assert_array_equal(b.grad.numpy(), np.full(shape[-1], shape[0], np.float32))


@pytest.mark.parametrize("shape", [(4, 6), (300, 256)])
def test_a_bias_in_the_modes(shape):
    b = ut.ones(shape[-1], requires_grad=True)
    x = ut.ones(shape, requires_grad=True)
    with ut.no_grad():
        assert not (x + b).requires_grad
    with ut.inference_mode():
        assert (x + b).is_inference()
    with ut.autograd.detect_anomaly():
        out = x + b
    assert out.grad_fn.site
    assert out.grad_fn.next_functions[1][0].site
    packed = []
    with ut.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        (x + b).sum().backward()
    np.testing.assert_array_equal(b.grad.numpy(), np.full(shape[-1], shape[0], np.float32))


def test_the_gradient_of_a_bias_is_not_a_view():
    b = ut.zeros(256, requires_grad=True)
    (ut.ones(300, 256) + b).sum().backward()
    assert b.grad._array.base is None


def test_a_bias_to_the_second_order():
    x = ut.tensor(RNG.normal(size=(5, 3)), requires_grad=True)
    b = ut.tensor(RNG.normal(size=3), requires_grad=True)
    assert ut.autograd.gradcheck(lambda x, b: (x + b).tanh(), (x, b))
    assert ut.autograd.gradgradcheck(lambda x, b: (x + b).tanh(), (x, b))
