"""`device="opencl"` on a driver, here PoCL; run by `make test-opencl`."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends.opencl.runtime import OpenClRuntime
from undertow.backends.registry import backend_on
from undertow.cli import main
from undertow.errors import DeviceError, OutOfMemoryError

pytestmark = pytest.mark.opencl


@pytest.fixture(autouse=True)
def runtime() -> Any:
    if not ut.opencl.is_available():
        pytest.skip("there is no OpenCL device; Debian's pocl-opencl-icd brings one")
    k: Any = backend_on("opencl")
    return k.runtime


def test_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    found = ut.opencl.devices()
    assert ut.opencl.device_count() == len(found) >= 1
    assert found[0].name
    assert found[0].memory > 1 << 20
    assert ut.ones(2, device="opencl").device == found[0].device
    with pytest.raises(DeviceError, match=f"there is no OpenCL device {len(found)}; there are"):
        ut.ones(2, device=f"opencl:{len(found)}")
    assert main(["info"]) == 0
    assert found[0].name in capsys.readouterr().out


def test_memory_is_reused_and_given_back(runtime: Any) -> None:
    x = ut.ones(1000, device="opencl")
    y = x * 2
    gc.collect()
    before, reserved = ut.opencl.memory_allocated(), ut.opencl.memory_reserved()
    for _ in range(20):
        y = x * 2
    assert ut.opencl.memory_allocated() == before
    assert ut.opencl.memory_reserved() <= reserved + 4096
    del y
    assert ut.opencl.memory_allocated() == before - 4096
    ut.opencl.empty_cache()
    assert ut.opencl.memory_reserved() == ut.opencl.memory_allocated()
    assert (x + 1).sum().item() == 2000


def test_work_that_waits_keeps_what_it_reads(runtime: Any) -> None:
    """Memory that is free again is written only after the launches that read it."""
    for n in range(5):
        x = ut.full((300,), n, device="opencl")
        y = x * 10  # waits
        del x
        z = ut.tensor(np.full(300, 7.0, np.float32)).to("opencl")  # into the memory of x
        assert y.tolist() == [10 * n] * 300
        assert z.tolist() == [7] * 300
    y = ut.ones(1 << 16, device="opencl") * 3
    ut.opencl.empty_cache()  # also of what waits
    assert y.sum().item() == 3 << 16


def test_out_of_memory(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(nbytes: int) -> Any:
        raise OutOfMemoryError("[opencl] no more")

    with pytest.raises(OutOfMemoryError, match="a buffer here has at most"):
        ut.empty(runtime.limits.max_buffer // 4 + 1, device="opencl")
    monkeypatch.setattr(runtime.memory, "_create", refuse)
    with pytest.raises(OutOfMemoryError, match="in use; free tensors, or use smaller batches"):
        ut.empty(123_457, device="opencl")
    monkeypatch.undo()
    assert ut.ones(3, device="opencl").tolist() == [1, 1, 1]


def test_with_the_options_that_users_have() -> None:
    """The suite switches PoCL's optimisations off, which hid that its groups destroyed memory."""
    program = """
        import numpy as np, undertow as ut
        x = ut.randn(40, 200)
        right = x.log_softmax(0).numpy()
        for _ in range(10):
            found = x.to("opencl").log_softmax(0).cpu().numpy()
            np.testing.assert_allclose(found, right, 1e-5, 1e-6)
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYOPENCL_BUILD_OPTIONS"}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    subprocess.run(command, check=True, timeout=300, env=environment)


def test_an_interrupt_loses_no_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    own = OpenClRuntime(0)
    own.launch(own.compile("__kernel void f(int p) {}", "f", (), 1, 0), [], b"", (1, 1, 1))
    build = OpenClRuntime._build

    def interrupted(self: Any, new: Any) -> None:
        monkeypatch.setattr(OpenClRuntime, "_build", build)
        raise KeyboardInterrupt

    monkeypatch.setattr(OpenClRuntime, "_build", interrupted)
    with pytest.raises(KeyboardInterrupt):
        own.flush()
    assert len(own._waiting) == 1
    own.synchronize()
    assert not own._waiting


def test_a_text_that_does_not_compile() -> None:
    runtime = OpenClRuntime(0)  # its reads wait for this kernel for ever
    kernel = runtime.compile("__kernel void f(", "f", (), 1, 0)
    runtime.launch(kernel, [], b"", (1, 1, 1))
    with pytest.raises(DeviceError, match="the compiler, on f, failed"):
        runtime.flush()
    with pytest.raises(DeviceError, match="bytes of arguments"):
        runtime.compile("", "f", (True,), 1, 1 << 20)
    assert ut.ones(3, device="opencl").tolist() == [1, 1, 1]


def test_threads(runtime: Any) -> None:
    wrong: list[int] = []

    def work(n: int) -> None:
        for _ in range(20):
            x = ut.full((300,), n, device="opencl")
            if (x * x + 1).sum().item() != 300 * (n * n + 1):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


FUNCTIONS = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh"),
    *("cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh"),
)


def test_functions_of_complex_numbers(runtime: Any) -> None:
    """As NumPy's, also far from and near to zero, and on both sides of every branch cut."""
    if not runtime.limits.float64:
        pytest.skip("this device has no float64")
    random = np.random.default_rng(0)
    near = 10 ** random.uniform(-8, 2, 500) * np.exp(1j * random.uniform(-4, 4, 500))
    zeros = [complex(x, y) for x in (1.5, -1.5, 0.3, 25, -25) for y in (0.0, -0.0)]
    cuts = [*zeros, *[complex(y, x) for x in (1.5, -1.5, 0.3) for y in (0.0, -0.0)]]
    z = np.concatenate([near, cuts])
    x = ut.tensor(z, device="opencl")
    for name in FUNCTIONS:
        expected = getattr(ut, name)(ut.tensor(z)).numpy()
        found = getattr(ut, name)(x).cpu().numpy()
        np.testing.assert_allclose(found, expected, rtol=5e-13, atol=1e-300, err_msg=name)
    for power in (2.5, -1, 1j, 0):
        expected = (ut.tensor(z) ** power).numpy()
        np.testing.assert_allclose((x**power).cpu().numpy(), expected, rtol=5e-13)
    zero = ut.zeros(3, dtype=ut.complex128, device="opencl")
    powers = ut.tensor([0, 2, 1j], device="opencl").to(zero.dtype)
    found = (zero**powers).cpu().numpy()
    np.testing.assert_array_equal(found, [1, 0, complex("nan+nanj")])


def test_a_child_of_a_fork_is_refused() -> None:
    code = """
    import os, warnings
    import undertow as ut
    warnings.simplefilter("ignore")
    x = ut.ones(3, device="opencl")
    assert x.tolist() == [1, 1, 1]
    child = os.fork()
    if not child:
        try:
            (x + 1).tolist()
        except ut.errors.DeviceError as error:
            os._exit(0 if "spawn" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (x + 1).tolist() == [2, 2, 2]
    os._exit(0)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=120)
