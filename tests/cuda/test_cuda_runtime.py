"""The runtime of `device="cuda"` on the fake driver, each test in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from cuda.fake_driver import missing, prepare
from undertow.backends.generated.allocator import size_class

pytestmark = pytest.mark.cuda
START = "import ctypes, os\nimport numpy as np\nimport undertow as ut\n" + textwrap.dedent("""
    fake = ctypes.CDLL(os.environ["UNDERTOW_LIBCUDA"])
    fake.fake_message.restype = ctypes.c_char_p
    cu = ut.cuda
""")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    if missing():
        pytest.skip(missing())
    return {**os.environ, **prepare(tmp_path_factory.mktemp("cuda"))}


@pytest.fixture
def run(environment: dict[str, str]) -> Any:
    def call(code: str, **more: str) -> str:
        env = {**environment, "UNDERTOW_CUDA_ALLOCATOR": "", **more}
        command = [sys.executable, "-c", START + textwrap.dedent(code)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_questions(run: Any) -> None:
    run(
        """
        assert cu.is_available() and cu.device_count() == 2 and cu.current_device() == 0
        assert cu.get_device_name(1) == "Fake card 1"
        assert cu.get_device_capability() == (7, 5)
        assert ut.ones(2).cuda().device == ut.device("cuda", 0)
        x = ut.ones(2, device="cuda:1") * 2
        y = x.to("cuda:0") + 1
        assert y.tolist() == [3, 3] and (x + x).tolist() == [4, 4]
        with np.testing.assert_raises(ut.errors.UnsupportedError):
            cu.set_device(1)
        """,
        FAKE_CUDA_DEVICES="2",
    )


def test_memory_is_reused_and_given_back(run: Any) -> None:
    run(
        """
        x = ut.ones(1000, device="cuda")
        before = fake.fake_live()
        for _ in range(20):
            y = x * 2
        assert fake.fake_live() <= before + 2, fake.fake_live()
        assert cu.memory_allocated() == 2 * 4096, cu.memory_allocated()
        assert cu.max_memory_allocated() >= cu.memory_allocated()
        del x, y
        assert cu.memory_allocated() == 0
        assert cu.memory_reserved() > 0
        cu.empty_cache()
        assert cu.memory_reserved() == 0 and fake.fake_live() == 0
        """
    )


def test_out_of_memory(run: Any) -> None:
    run(
        """
        held = [ut.ones(1 << 20, device="cuda") for _ in range(2)]
        try:
            held += [ut.ones(1 << 20, device="cuda") for _ in range(20)]
        except cu.OutOfMemoryError as error:
            assert "in use" in str(error)
        else:
            raise AssertionError("no error")
        del held
        assert float(ut.ones(1 << 20, device="cuda").sum()) == 1 << 20
        """,
        FAKE_CUDA_MEMORY=str(32 << 20),
    )


def test_use_after_free_is_an_error(run: Any) -> None:
    run(
        """
        x = ut.ones(100, device="cuda")
        from undertow.backends.registry import backend_on
        k = backend_on("cuda").runtime
        k.synchronize()
        k.driver.call("cuMemFree_v2", x._array.buffer.memory.handle)
        try:
            (x * 2).tolist()
        except ut.errors.DeviceError as error:
            assert "ILLEGAL_ADDRESS" in str(error), error
            assert b"illegal address" in fake.fake_message(), fake.fake_message()
        else:
            raise AssertionError("no error")
        os._exit(0)
        """
    )


def test_streams_have_an_order_only_by_events(run: Any) -> None:
    run(
        """
        x = ut.ones(100, device="cuda")
        cu.synchronize()
        s = cu.Stream()
        begin, end = cu.Event(enable_timing=True), cu.Event(enable_timing=True)
        begin.record()
        x.mul_(3)
        assert not begin.query()
        with cu.stream(s):
            early = x + 0  # nobody waits for the product
            assert early.tolist() == [1] * 100
            s.wait_stream(cu.default_stream())
            late = x + 0
            assert late.tolist() == [3] * 100
        end.record()
        end.synchronize()
        assert begin.query() and begin.elapsed_time(end) >= 0
        """
    )


def test_threads(run: Any) -> None:
    run(
        """
        import threading
        wrong = []
        def work(n):
            for _ in range(30):
                x = ut.full((300,), n, device="cuda")
                if (x * x + 1).sum().item() != 300 * (n * n + 1):
                    wrong.append(n)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not wrong
        """
    )


def test_a_child_of_a_fork_is_refused(run: Any) -> None:
    run(
        """
        import warnings
        warnings.simplefilter("ignore")
        x = ut.ones(3, device="cuda")
        child = os.fork()
        if not child:
            try:
                x + 1
            except ut.errors.DeviceError as error:
                os._exit(0 if "spawn" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (x + 1).tolist() == [2, 2, 2]
        """
    )


WRITE, WAIT = "s[threadIdx.x] = x[threadIdx.x];", "__syncthreads();"
READ = "x[threadIdx.x] = s[255 - threadIdx.x];"
# Of a kernel with `float s[256]` for 256 threads and 256 elements: what is wrong, how it is told.
FAULTS = {
    "a missing barrier": (f"s[threadIdx.x] = 0; {WAIT} {WRITE} {READ}", "race"),
    "beyond shared memory": (f"s[threadIdx.x + 1] = 1; {WAIT} x[threadIdx.x] = s[1];", "bounds"),
    "nobody wrote": (READ, "uninitialised"),
    "beyond a buffer": ("x[threadIdx.x + 1] = 1;", "illegal address"),
    "different barriers": (f"if (threadIdx.x < 9) {WAIT} else x[0] = 1; x[1] = 2;", "barriers"),
    "nothing": (f"{WRITE} {WAIT} {READ}", ""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_fake_card_finds(run: Any, fault: str) -> None:
    """Kernels that are wrong, whatever the order of threads."""
    body, expected = FAULTS[fault]
    run(
        f"""
        from undertow.backends.nvidia.runtime import CudaRuntime
        k = CudaRuntime(0)
        text = 'extern "C" __global__ void f(float* x) {{ __shared__ float s[256]; {body} }}'
        f = k.compile(text, "f", (True,), 256, 0)
        x = k.alloc(1024)
        k.upload(x, 0, np.arange(256, dtype=np.float32).view(np.uint8))
        k.launch(f, [x], b"", (1, 1, 1))
        try:
            k.synchronize()
            assert not {expected!r}
            assert k.download(x, 0, 1024).view(np.float32)[0] == 255
        except ut.errors.DeviceError:
            told = fake.fake_message().decode()
            assert {expected!r} and {expected!r} in told, told
        os._exit(0)
        """,
        UNDERTOW_CUDA_ALLOCATOR="direct",
    )


def test_the_fake_driver_finds_wrong_calls(run: Any) -> None:
    """Each is a call that the runtime never makes: what the other tests lean on does bite."""
    run(
        """
        import threading, warnings
        from undertow.backends.nvidia.runtime import CudaRuntime
        warnings.simplefilter("ignore")
        k = CudaRuntime(0)
        def told(*call):
            try:
                return k.driver.made(*call)
            except ut.errors.DeviceError as error:
                return str(error)
        # Leaks: what is not given back is counted.
        before = fake.fake_live()
        x = k.alloc(1024)
        assert fake.fake_live() == before + 1
        # Poison: what nobody wrote is 0xCB.
        assert (k.download(x, 0, 1024) == 0xCB).all()
        # Copies beyond a buffer, and of one that is gone.
        out = np.empty(2048, np.uint8)
        to = ctypes.c_void_p(out.ctypes.data)
        copy = k.driver.raw["cuMemcpyDtoHAsync_v2"]
        assert copy(to, x.handle, 1025, 0) == 1 and copy(to, x.handle, 1024, 0) == 0
        k.synchronize()
        k.free(x), k.memory.allocated
        assert fake.fake_live() == before
        assert copy(to, x.handle, 1024, 0) == 1
        assert k.driver.raw["cuMemFree_v2"](x.handle) == 1  # twice
        # A thread without a context, which the runtime gives to each.
        found = []
        def work():
            found.append(told("cuMemAlloc_v2", ctypes.c_void_p, 64))
            found.append(k.download(k.alloc(8), 0, 8)[0])
        thread = threading.Thread(target=work)
        thread.start(), thread.join()
        assert "INVALID_CONTEXT" in found[0] and found[1] == 0xCB, found
        # A child of a fork, where the driver was never started.
        child = os.fork()
        if not child:
            code = k.driver.raw["cuCtxSetCurrent"](k._context)
            os._exit(0 if code == 3 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        # Arguments that are too few, and too many threads.
        f = k.compile('extern "C" __global__ void f(char* x, long long n) { x[n] = 1; }',
                      "f", (True,), 256, 2)
        f.extra[1].value = 12
        assert k._launch(f.at, f.function, None, f.extra[0]) == 1
        f.extra[1].value, f.config.groups[:], f.config.threads[0] = 16, (1, 1, 1), 1025
        assert k._launch(f.at, f.function, None, f.extra[0]) == 701
        os._exit(0)
        """,
        UNDERTOW_CUDA_ALLOCATOR="direct",
    )


@pytest.mark.parametrize(
    "order, first, second", [("forward", 7, 255), ("reverse", 0, 0), ("shuffle", -1, -1)]
)
def test_orders_of_groups_and_threads(run: Any, order: str, first: int, second: int) -> None:
    """A kernel that depends on the order, as no kernel may, gives other results in each."""
    told = run(
        """
        from undertow.backends.nvidia.runtime import CudaRuntime
        k = CudaRuntime(0)
        text = 'extern "C" __global__ void f(int* x) { x[0] = blockIdx.x; x[1] = threadIdx.x; }'
        f = k.compile(text, "f", (True,), 256, 0)
        x = k.alloc(8)
        k.launch(f, [x], b"", (8, 1, 1))
        print(*k.download(x, 0, 8).view(np.int32))
        """,
        FAKE_CUDA_ORDER=order,
    )
    found = tuple(map(int, told.split()))
    if order == "shuffle":
        assert found not in ((7, 255), (0, 0))
    else:
        assert found == (first, second)


def test_a_launch_has_its_own_arguments_groups_and_stream(run: Any) -> None:
    """One block of arguments serves all launches of a kernel, whose work may wait meanwhile."""
    run(
        """
        from undertow.backends.nvidia.runtime import CudaRuntime
        k = CudaRuntime(0)
        text = ('struct W { unsigned n[1]; }; extern "C" __global__ void f(unsigned* x, W w)'
                ' { x[blockIdx.x] = w.n[0]; }')
        f = k.compile(text, "f", (True,), 1, 1)
        x, y = k.alloc(512), k.alloc(512)
        same = (5).to_bytes(4, "little")
        k.launch(f, [x], same, (4, 1, 1))
        k.launch(f, [y], same, (2, 1, 1))
        k.launch(f, [(x, 256, 256)], (6).to_bytes(4, "little"), (3, 1, 1))
        k.launch(f, [(y, 256, 256)], same, (1, 1, 1))
        assert k.download(x, 0, 12).view(np.uint32).tolist() == [5, 5, 5]
        assert k.download(x, 256, 16).view(np.uint32).tolist() == [6, 6, 6, 0xCBCBCBCB]
        assert k.download(y, 0, 12).view(np.uint32).tolist() == [5, 5, 0xCBCBCBCB]
        assert k.download(y, 256, 8).view(np.uint32).tolist() == [5, 0xCBCBCBCB]
        other = k.driver.made("cuStreamCreateWithPriority", ctypes.c_void_p, 1, 0)
        k.stream = other
        k.launch(f, [x], (9).to_bytes(4, "little"), (1, 1, 1))
        k.stream = 0
        assert k.download(x, 0, 4).view(np.uint32)[0] == 5  # nobody waited for the other stream
        k.synchronize()
        assert k.download(x, 0, 4).view(np.uint32)[0] == 9
        """
    )


def test_check_device(run: Any) -> None:
    told = run(
        """
        from undertow.cli import main
        assert main(["check-device", "cuda", "--only", "broadcast"]) == 0
        """
    )
    assert "Fake card 0, sm_75, 4 processors, 1.1 GB" in told
    assert "2 of 2 right" in told


def test_peaks_are_the_cards_own_numbers(run: Any) -> None:
    run(
        """
        from undertow.backends.registry import backend_on
        peaks = backend_on("cuda").runtime.peaks()
        assert peaks["bandwidth"] == 2 * 5e9 * 8  # 5 GHz, 64 bits
        assert peaks["float32"] == 2 * 64 * 4 * 1e9  # sm_75 has 64 lanes
        assert peaks["float64"] == peaks["float32"] / 32
        """
    )


def test_size_classes() -> None:
    for n in (1, 511, 513, 100_000, 12_345_678):
        assert n <= size_class(n) <= max(n * 1.13, n + 512)


def test_without_a_driver(tmp_path: Path) -> None:
    code = """
    import undertow as ut
    assert not ut.cuda.is_available() and ut.cuda.device_count() == 0
    for ask in (lambda: ut.ones(2, device="cuda"), ut.cuda.current_device, ut.cuda.Stream):
        try:
            ask()
        except ut.errors.DeviceError as error:
            assert "no" in str(error)
        else:
            raise AssertionError(ask)
    """
    env = {**os.environ, "UNDERTOW_LIBCUDA": str(tmp_path / "none.so")}
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=env, check=True, timeout=60)
