"""Functions of machine code that Python calls by itself: what they take, give, refuse and hold."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends.cpu.calls import native, prepared
from undertow.backends.cpu.calls.launch import described
from undertow.backends.cpu.calls.prepared import OFTEN
from undertow.backends.cpu.codegen.jit import load
from undertow.backends.cpu.products import gemm
from undertow.backends.reference import UFUNCS

pytestmark = pytest.mark.skipif(not native.possible(), reason="no compiled functions here")

DTYPES = tuple(np.dtype(d) for d in (np.float32, np.float64, np.int64))
STORE = """
define void @store(ptr %packed) {
  %at1 = getelementptr i64, ptr %packed, i64 1
  %x = load ptr, ptr %at1
  %at2 = getelementptr i64, ptr %packed, i64 2
  %place = load i64, ptr %at2
  %at3 = getelementptr i64, ptr %packed, i64 3
  %value = load float, ptr %at3
  %to = getelementptr float, ptr %x, i64 %place
  store float %value, ptr %to
  ret void
}
"""


def often(function: Any, *given: Any) -> None:
    """Call a door until it is one of machine code."""
    for _ in range(OFTEN + 2):
        function(*given)


def test_other_layouts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not where it is looked for is named, and nothing behind it is read."""
    told = native.refusal.__wrapped__
    assert told() == ""
    fields = list(native._fields())
    for i, (name, found, _) in enumerate(fields):
        wrong = [*fields[:i], (name, found, "another"), *fields[i + 1 :]]
        monkeypatch.setattr(native, "_fields", lambda wrong=wrong: wrong)
        assert told() == f"objects have another layout: {name}"
    monkeypatch.setattr(native, "_HEAD", 32)
    assert told() == "the head of an object has 32 bytes, not 16"
    monkeypatch.setattr(native.sys, "implementation", SimpleNamespace(name="pypy"))
    assert told() == "pypy lays objects out in another way than CPython"


def test_another_table_of_numpy_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(native.quick(UFUNCS)) == set(native.ARITHMETIC)
    monkeypatch.setattr(native, "_NUMPY", 0x03000000)
    assert native.quick(UFUNCS) == {}


def test_guard_takes_small_arrays_of_one_dtype() -> None:
    multiply = native.guard(np.multiply, (True, True), DTYPES, 1024)
    for dtype in DTYPES:
        x = np.arange(6, dtype=dtype).reshape(2, 3)
        np.testing.assert_array_equal(multiply(x, x[:1]), x * x[:1])
        assert multiply(x, x).dtype is x.dtype
        whole = multiply(x[0, 1, ...], x[1, 2, ...])
        assert type(whole) is np.ndarray
        assert whole == 5
    x = np.ones(3, np.float32)
    strange: list[Any] = [
        x.astype(np.float64),
        x.astype(">f4"),
        x.astype(np.float16),
        np.ones(1024, np.float32),
        np.float32(1),
        1.0,
        None,
        [1.0] * 3,
        np.ma.masked_array(x),
    ]
    for y in strange:
        assert multiply(x, y) is None
        assert multiply(y, x) is None
    assert multiply(x) is None
    assert multiply(x, x, x) is None
    assert multiply() is None


def test_guard_leaves_what_is_broadcast_to_many() -> None:
    """Two small arrays may have a large product; NumPy is slow at those with short rows."""
    multiply = native.guard(np.multiply, (True, True), DTYPES, 1024)
    x = np.ones((40, 1, 2), np.float32)
    for y in (x[:, 0], x.reshape(1, 40, 2), np.ones((1, 13, 1), np.float32)):
        assert multiply(x, y) is None
        assert multiply(y, x) is None
    for y in (x, x[:1], x[0, 0, :1], x[0, 0, 0, ...], np.ones((12, 1), np.float32)):
        np.testing.assert_array_equal(multiply(x, y), x * y)
        np.testing.assert_array_equal(multiply(y, x), y * x)


def test_guard_takes_numbers() -> None:
    multiply = native.guard(np.multiply, (True, False), DTYPES, 1024)
    x, n = np.ones(3, np.float32), np.arange(3)
    np.testing.assert_array_equal(multiply(x, 2.5), x * 2.5)
    np.testing.assert_array_equal(multiply(n, 2), n * 2)
    assert multiply(x, 2.5).dtype == np.float32
    assert multiply(n, 2.5) is None
    assert multiply(n, True) is None


def test_guard_passes_errors_on_and_holds_nothing() -> None:
    multiply = native.guard(np.multiply, (True, True), DTYPES, 1024)
    x, y, r = np.ones(3), np.ones(4), np.ones(())
    with pytest.raises(ValueError, match="broadcast"):
        multiply(x, y)
    before = [sys.getrefcount(o) for o in (x, y, r, None)]
    for _ in range(1000):
        multiply(x, x)
        multiply(r, r)
        multiply(x, None)
        with pytest.raises(ValueError, match="broadcast"):
            multiply(x, y)
    after = [sys.getrefcount(o) for o in (x, y, r, None)]
    assert after[:3] == before[:3]
    assert abs(after[3] - before[3]) < 500
    results = [multiply(x, x), multiply(r, r), np.ones(3)]
    assert len({sys.getrefcount(results[i]) for i in range(3)}) == 1  # as of what NumPy made


@pytest.mark.parametrize("release", [False, True])
def test_launch(release: bool) -> None:
    store = native.launcher(load("store", STORE), 1, [2], ["f32"], release)
    x = np.zeros(4, np.float32)
    for given, stored in ((1.5, 1.5), (7, 7.0), (1e300, np.inf), (-1.0, -1.0)):
        assert store(0, x, given) is None
        assert x.tolist() == [0, 0, stored, 0]
    with pytest.raises(TypeError):
        store(0, x, "1")
    before = sys.getrefcount(x)
    for _ in range(1000):
        store(0, x, 0.5)
    assert sys.getrefcount(x) == before


def test_doors_that_are_used_often() -> None:
    """What a door of machine code does not take goes the same ways as before."""
    x = ut.arange(1.0, 5).reshape(2, 2)
    for function in (ut.mul, ut.sub, ut.lt):
        often(function, x, x)
        often(function, x, 2.0)
    often(ut.exp, x)
    n = ut.arange(3)
    assert (n * n).tolist() == [0, 1, 4]
    assert (n * 2).dtype is ut.int64
    assert (n * 2.0).dtype is ut.float32
    assert (x * n[1]).dtype is ut.float32
    assert (x.half() * x.half()).dtype is ut.float16
    assert (x * x.double()).dtype is ut.float64
    assert (x < 2).tolist() == [[True, False], [False, False]]
    assert (2.0 - x).tolist() == [[1, 0], [-1, -2]]
    assert (x * True).tolist() == x.tolist()
    large = ut.ones(3000)
    assert (large * large).sum().item() == 3000
    far = ut.ones(2, 2, device="reference")
    assert (far * far).device == far.device
    with pytest.raises(ut.errors.DeviceError):
        far * x
    with pytest.raises(ut.errors.UndertowError):
        x * ut.ones(3)
    with pytest.raises(TypeError):
        x * "2"
    scalar = ut.tensor(2.0)
    assert (scalar * scalar).shape == ()
    assert ut.exp(ut.tensor(0.0)).item() == 1


def test_doors_that_are_used_often_in_every_mode() -> None:
    x = ut.ones(2, 2, requires_grad=True)
    often(ut.mul, x, x)
    with ut.inference_mode():
        assert (x * x).is_inference()
    with ut.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
        (x * x * x).sum().backward()
    assert x.grad.tolist() == [[3, 3], [3, 3]]
    with ut.autograd.detect_anomaly(check_nan=False):
        assert (x * x).grad_fn.site
    row = ut.ones(2, requires_grad=True)
    (x.detach() * row).sum().backward()
    assert row.grad.tolist() == [2, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (ut.full((2,), 1e38) * ut.full((2,), 1e38)).tolist() == [float("inf")] * 2


def test_doors_from_several_threads() -> None:
    x = ut.full((4, 4), 3.0)
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(3000):
            if (x / x)[0, 0].item() != 1:
                wrong.append(x)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_of_doors_are_freed() -> None:
    x = ut.ones(3)
    often(ut.mul, x, x)
    gc.collect()
    array, alone = (x * x)._array, np.ones(3)
    held = sys.getrefcount(array)
    assert held == sys.getrefcount(alone)  # 2, or 1 where the question borrows the variable's


@pytest.mark.parametrize("size", [4, 3000])
def test_in_place_changes_that_are_made_often(size: int) -> None:
    x, count = ut.zeros(size), ut.tensor(0)
    for _ in range(OFTEN + 5):
        x.add_(1.0)
        count.add_(1)
    assert x.tolist() == [OFTEN + 5] * size
    assert count.item() == OFTEN + 5
    assert x._version == count._version == OFTEN + 5
    array = x._array
    x.mul_(ut.full((size,), 2.0))
    assert x._array is array
    square = ut.arange(4.0).reshape(2, 2)
    square.add_(square.t())
    assert square.tolist() == [[0, 3], [3, 6]]
    assert ut.arange(3).add_(2**40).tolist() == [2**40, 2**40 + 1, 2**40 + 2]
    with pytest.raises(ut.errors.UndertowError):
        count.mul_(0.5)


def test_running_statistics_are_stored() -> None:
    mean, variance = ut.zeros(2), ut.ones(2)
    x = ut.tensor([[1.0, 2.0], [3.0, 6.0]], requires_grad=True)
    ut.nn.functional.batch_norm(x, mean, variance, training=True)
    assert mean.tolist() == pytest.approx([0.2, 0.4])
    assert mean._version == variance._version == 1
    assert not mean.requires_grad
    with ut.inference_mode():
        inside = ut.zeros(2)
    with pytest.raises(ut.errors.InplaceError, match="inference"):
        ut.nn.functional.batch_norm(x, inside, variance, training=True)


def test_a_reshaped_gradient_is_kept_as_it_is() -> None:
    from undertow.backends.memory import owns

    whole = np.ones((2, 3))
    view = whole.reshape(6)
    assert not owns(view)  # `whole` has it, too
    del whole
    assert owns(view)
    assert not owns(view[1:])


def test_layout_tells_apart_what_plans_do() -> None:
    layout = native.layout()
    x = np.ones((3, 4), np.float32)
    alike: list[Any] = [x.copy(), x + 1, np.ones((6, 4), np.float32)[:3]]
    assert {layout(a) for a in alike} == {layout(x)}
    others: list[Any] = [
        x.T,
        x[:, ::-1],
        x[:, :3],
        x.reshape(4, 3),
        x.reshape(3, 4, 1),
        x.astype(np.float64),
        x.astype(np.int32),
        x.astype(">f4"),
        x.astype(np.float16),
        x.astype(np.int16),
        x.astype(ut.bfloat16.numpy),
        np.float32(1.0),
        1.0,
        1,
        1j,
        None,
    ]
    found = [layout(a) or described(a) for a in [x, *others]]
    assert len(set(found)) == len(found)
    assert layout(x, None) != layout(None, x)
    assert layout(True) is None  # what it does not know is described by Python
    assert described(True, x) == (bool, (x.shape, x.strides, x.dtype))


def samples() -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = ((), (1,), (4, 4), (2, 3, 5), (0,), (3, 0, 2), (1023,), (1024,))
    every = [
        (rng.standard_normal(shape) * 10).astype(dtype)
        for dtype in (np.float32, np.float64, np.int64, np.float16)
        for shape in shapes
    ]
    turned = [rng.standard_normal((4, 4)).T, rng.standard_normal((4, 8))[:, ::2]]
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
    return [*every, *turned, special, np.float32(2), 2.0, 3, 0.0, -0.0, 1e300, np.nan, None, True]


@pytest.mark.parametrize("name", native.ARITHMETIC)
def test_quick_arithmetic_is_the_ufunc(name: str) -> None:
    ufunc, quick = UFUNCS[name], native.quick(UFUNCS)[name]

    def outcome(function: Any, *given: Any) -> Any:
        try:
            found = function(*given)
        except Exception as error:
            return type(error), str(error)
        array = np.asarray(found)
        return array.dtype, array.shape, array.strides, array.tobytes()

    given = samples()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for a in given:
            for b in given:
                assert outcome(quick, a, b) == outcome(ufunc, a, b), (a, b)
    with pytest.raises(TypeError):
        quick()


def test_quick_arithmetic_into_memory_that_overlaps() -> None:
    add = native.quick(UFUNCS)["add"]
    fixed = np.zeros(8)
    fixed.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        add(np.ones(8), np.ones(8), fixed)
    places = [slice(start, start + 8) for start in range(6)]
    for a in places:
        for b in places:
            for c in places:
                x, y = np.arange(20.0), np.arange(20.0)
                out = y[c]
                assert add(y[a], y[b], out) is out
                np.add(x[a], x[b], x[c])
                np.testing.assert_array_equal(x, y)


def test_quick_arithmetic_holds_nothing() -> None:
    multiply = native.quick(UFUNCS)["mul"]
    x, y, out = np.ones((4, 4), np.float32), np.ones((4, 4), np.float32), np.ones((4, 4))
    number = 1.5 + len(x)
    before = [sys.getrefcount(o) for o in (x, y, out, number)]
    for _ in range(100):
        multiply(x, y)
        multiply(x, number)
        multiply(out, out, out)
    assert [sys.getrefcount(o) for o in (x, y, out, number)] == before


def test_prepared_functions_become_quick() -> None:
    x = ut.full((3,), 2.0, requires_grad=True)
    often(lambda: x * 3.0)
    assert prepared.quickest["mul"] is not np.multiply
    (x * x * 0.5).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_what_code_knows_by_its_address_is_never_freed(monkeypatch):
    """Two threads that come at once make it twice; a cache keeps one, both are in use."""
    made = native._method.__wrapped__("guard")
    assert any(kept is made for kept in native._alive)

    class Late(dict):
        def get(self, key):
            return None  # another thread has put it there since

    monkeypatch.setattr(gemm, "_tables", Late())
    assert gemm._table("stem", 1) is gemm._table("stem", 1)


def test_threads_that_begin_at_once():
    """The first calls make native functions, tables of tiles and plans; all threads need them."""
    code = """
import threading, undertow as ut
begin = threading.Barrier(4)
x, w = ut.ones(120, 64), ut.ones(64, 64).requires_grad_()
found = []
def busy():
    begin.wait()
    for _ in range(8):
        y = ut.softmax(ut.tanh(x @ w) * 0.5, -1)
        found.append(ut.autograd.grad((y * y).sum(), w)[0].sum().item())
threads = [threading.Thread(target=busy) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
assert len(found) == 32 and len(set(found)) == 1, found
"""
    for _ in range(3):
        subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
