"""Awkward operands of generated kernels: what small arrays get by NumPy, large ones get as well."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

import undertow as ut

F = ut.nn.functional
SIZES = (5, 100_000)


@pytest.mark.parametrize("rows", [2, 512])
@pytest.mark.parametrize("dtype", [ut.float32, ut.float64, ut.float16])
def test_linear_with_a_bias_in_any_layout(rows: int, dtype: Any) -> None:
    x, w = ut.zeros(rows, 64, dtype=dtype), ut.zeros(512, 64, dtype=dtype)
    long = ut.arange(1024).to(dtype)
    for bias in (long[::2], long[:512].flip(0), long[3:4].expand(512), long[:512]):
        assert F.linear(x, w, bias)[0].tolist() == bias.tolist()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16])
def test_numbers_beside_halves(dtype: Any, size: int) -> None:
    """Compared in the array's precision, computed with in single."""
    x = ut.full((size,), 0.1, dtype=dtype)
    assert (x == 0.1).all()
    assert (x >= 0.1).all()
    assert not (x != 0.1).any()
    small = ut.full((size,), 0.001, dtype=dtype)
    assert (small * 1e6 - 1000).abs().max() < 10
    assert (ut.full((size,), 1000.0, dtype=dtype) / 70000 > 0).all()
    changed = small.clone()
    changed.mul_(1e6)
    assert (changed == small * 1e6).all()


@pytest.mark.parametrize("size", SIZES)
def test_in_place_outside_the_domain(size: int) -> None:
    with pytest.raises(ut.errors.DTypeError, match="bitwise_and"):
        ut.ones(size).bitwise_and_(ut.ones(size))


def test_attention_on_rows_at_odd_bytes() -> None:
    """Rows that are not a whole number of elements apart."""
    rng = np.random.default_rng(0)
    records = np.zeros((1, 2, 300), dtype=[("a", "f4", (64,)), ("b", "i1")])
    records["a"] = rng.standard_normal((1, 2, 300, 64))
    odd = ut.from_numpy(records["a"])
    whole = odd.clone()
    mask = np.zeros((1, 2, 300), dtype=[("a", "f4", (300,)), ("b", "i1")])
    mask["a"] = rng.standard_normal((1, 2, 300, 300))
    given = ut.from_numpy(mask["a"])
    found = F.scaled_dot_product_attention(odd, odd, odd, attn_mask=given)
    expected = F.scaled_dot_product_attention(whole, whole, whole, attn_mask=given.clone())
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


def run(script: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_number_of_threads_may_change_during_a_kernel() -> None:
    """Scratch memory is for the threads that run, whatever another thread sets meanwhile."""
    script = """
        import faulthandler, sys, threading, time
        faulthandler.enable()
        import undertow as ut
        F = ut.nn.functional
        q, x = ut.randn(1, 4, 300, 32), ut.randn(600, 900)
        expected = F.scaled_dot_product_attention(q, q, q), F.softmax(x, -1), (x @ x.T)
        sys.setswitchinterval(1e-6)
        stop = False
        def toggle():
            while not stop:
                ut.set_num_threads(1)
                ut.set_num_threads(8)
        other = threading.Thread(target=toggle)
        other.start()
        end = time.monotonic() + 4
        while time.monotonic() < end:
            found = F.scaled_dot_product_attention(q, q, q), F.softmax(x, -1), (x @ x.T)
            assert all((a == b).all() for a, b in zip(found, expected))
            x.t().contiguous()
        stop = True
        other.join()
        print("fine")
    """
    assert run(script) == "fine"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_cores_are_shared_has_them_all() -> None:
    script = """
        import os, threading
        import undertow as ut
        from undertow.backends import threads
        ut.set_num_threads(4)
        inside, leave = threading.Event(), threading.Event()
        def share():
            with threads.shared_between(4):
                inside.set()
                leave.wait()
        other = threading.Thread(target=share)
        other.start()
        inside.wait()
        child = os.fork()
        if not child:
            os._exit(0 if threads.current_limit() == 4 else 1)
        status = os.waitpid(child, 0)[1]
        leave.set()
        other.join()
        print(os.waitstatus_to_exitcode(status))
    """
    assert run(script) == "0"


def test_without_llvmlite() -> None:
    """Everything works by NumPy, and a warning says so."""
    script = """
        import sys, warnings
        sys.modules["llvmlite"] = None
        import importlib.util
        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *a: None if name == "llvmlite" else find(name, *a)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import undertow as ut
        assert any("llvmlite" in str(w.message) for w in caught), caught
        x = ut.ones(300, 300, requires_grad=True)
        (x @ x).exp().softmax(-1).sum().backward()
        print(x.grad.shape)
    """
    assert run(script, UNDERTOW_KERNELS="auto") == "(300, 300)"
