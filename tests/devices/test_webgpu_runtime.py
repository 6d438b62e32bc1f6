"""WebGPU's runtime, by kernels written by hand: memory, batches, what is kept, what goes wrong."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends.webgpu import raw
from undertow.backends.webgpu.memory import Allocator, size_class

pytestmark = pytest.mark.webgpu

TIMES = """
struct Words { at: array<vec4<u32>, 1> };
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<uniform> words: Words;
@compute @workgroup_size(64)
fn times(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < words.at[0].x) { y[id.x] = x[id.x] * bitcast<f32>(words.at[0].y); }
}
"""


@pytest.fixture(scope="module")
def runtime() -> Any:
    pytest.importorskip("wgpu")
    if not ut.webgpu.is_available():
        pytest.skip("there is no WebGPU adapter here")
    from undertow.backends.webgpu.runtime import WebGpuRuntime

    return WebGpuRuntime(0)


def times(runtime: Any, x: Any, y: Any, n: int, factor: float) -> None:
    kernel = runtime.compile(TIMES, "times", (True, False), 64, 4)
    params = np.array([n, 0, 0, 0], np.uint32)
    params[1:2] = np.array([factor], np.float32).view(np.uint32)
    runtime.launch(kernel, [y, x], params.tobytes(), (-(-n // 64), 1, 1))


def filled(runtime: Any, data: Any) -> Any:
    data = np.ascontiguousarray(data)
    buffer = runtime.alloc(max(data.nbytes, 8))
    runtime.upload(buffer, 0, data.reshape(-1).view(np.uint8))
    return buffer


def floats(runtime: Any, buffer: Any, n: int) -> Any:
    return runtime.download(buffer, 0, 4 * n).view(np.float32)


def test_a_batch_runs_in_order_and_is_sent_once(runtime: Any) -> None:
    x = np.arange(1000, dtype=np.float32)
    a, b = filled(runtime, x), runtime.alloc(4000)
    before = runtime.stats()
    for _ in range(10):
        times(runtime, a, b, 1000, 2.0)
        times(runtime, b, a, 1000, 4.0)
    np.testing.assert_array_equal(floats(runtime, a, 1000), x * np.float32(8) ** 10)
    runtime.synchronize()
    after = runtime.stats()
    assert after["launches"] - before["launches"] == 20
    assert after["submissions"] - before["submissions"] == 2
    assert after["bind_groups"] - before["bind_groups"] == 2


def test_parameters_of_many_launches_do_not_mix(runtime: Any) -> None:
    x = filled(runtime, np.ones(4, np.float32))
    outs = [runtime.alloc(16) for _ in range(1500)]
    for i, out in enumerate(outs):
        times(runtime, x, out, 4, float(i))
    found = [floats(runtime, out, 4).tolist() for out in outs[::100]]
    assert found == [[float(i)] * 4 for i in range(0, 1500, 100)]


def test_an_upload_overtakes_nothing(runtime: Any) -> None:
    x, y = filled(runtime, np.full(8, 3, np.float32)), runtime.alloc(32)
    times(runtime, x, y, 8, 2.0)
    runtime.upload(x, 0, np.full(8, 5, np.float32).view(np.uint8))
    assert floats(runtime, y, 8).tolist() == [6] * 8
    times(runtime, x, y, 8, 2.0)
    assert floats(runtime, y, 8).tolist() == [10] * 8


def test_bytes_within_words(runtime: Any) -> None:
    buffer = filled(runtime, np.arange(16, dtype=np.uint8))
    runtime.upload(buffer, 5, np.array([77, 78], np.uint8))
    expected = np.arange(16)
    expected[5:7] = 77, 78
    assert runtime.download(buffer, 0, 16).tolist() == expected.tolist()
    assert runtime.download(buffer, 3, 6).tolist() == expected[3:9].tolist()


def test_freed_buffers_and_kept_objects_are_used_again(runtime: Any) -> None:
    def step() -> Any:
        x, y = filled(runtime, np.ones(300, np.float32)), runtime.alloc(1200)
        times(runtime, x, y, 300, 2.0)
        found = floats(runtime, y, 300)
        runtime.free(x)
        runtime.free(y)
        return found

    step()
    step()
    before = runtime.stats()
    for _ in range(5):
        assert step().tolist() == [2] * 300
    after = runtime.stats()
    created = ("buffers", "bind_groups", "pipelines")
    assert [after[n] for n in created] == [before[n] for n in created]


def test_empty_cache(runtime: Any) -> None:
    x = filled(runtime, np.ones(5000, np.float32))
    y = runtime.alloc(20000)
    times(runtime, x, y, 5000, 2.0)
    runtime.free(x)
    reserved = runtime.memory.reserved
    runtime.memory.empty()
    assert runtime.memory.reserved <= reserved - 20000
    assert runtime.memory.allocated == runtime.memory.reserved
    assert floats(runtime, y, 5000).tolist() == [2] * 5000


def test_the_budget_and_the_largest_buffer(runtime: Any) -> None:
    with pytest.raises(ut.errors.OutOfMemoryError, match="UNDERTOW_WEBGPU_LIMITS"):
        runtime.alloc(runtime.memory.largest + 8)
    budget = runtime.memory.budget
    runtime.memory.budget = runtime.memory.reserved + (8 << 20)
    try:
        held = [runtime.alloc(4 << 20), runtime.alloc(4 << 20)]
        with pytest.raises(ut.errors.OutOfMemoryError, match="set_memory_budget"):
            runtime.alloc(4 << 20)
        while held:
            runtime.free(held.pop())
        runtime.free(runtime.alloc(5 << 20))  # for which those of 4 make room
    finally:
        runtime.memory.budget = budget


def test_size_classes_waste_little() -> None:
    for n in [*range(1, 3000, 7), 10**6 + 1, 12345678]:
        assert n <= size_class(n) < max(1.25 * n + 8, 257)
        assert size_class(size_class(n)) == size_class(n)


def test_an_allocator_is_free_of_leaks() -> None:
    made: list[int] = []
    allocator = Allocator(lambda n: made.append(n) or n, lambda gone: None, 1 << 20)
    for _ in range(3):
        held = [allocator.alloc(n) for n in (8, 300, 300, 70000)]
        assert allocator.allocated == sum(b.nbytes for b in held)
        for buffer in held:
            allocator.free(buffer)
    assert len(made) == 4
    assert allocator.allocated == 0
    allocator.empty()
    assert allocator.reserved == 0


def test_memory_outlives_cycles_of_references(runtime: Any) -> None:
    """A tensor that goes in a cycle gives its buffer back, which the collector must not end."""
    from undertow.backends.generated.memory import block

    cycle: list[Any] = [block(runtime, 1 << 18)]
    number = cycle[0].memory.number
    cycle.append(cycle)
    del cycle
    gc.collect()
    x = runtime.alloc(1 << 18)
    assert x.number == number
    runtime.upload(x, 0, np.ones(64, np.float32).view(np.uint8))
    y = runtime.alloc(256)
    times(runtime, x, y, 64, 3.0)
    assert floats(runtime, y, 64).tolist() == [3] * 64
    runtime.free(x)
    runtime.free(y)


def test_threads_share_a_device(runtime: Any) -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        for i in range(30):
            value = float(seed * 100 + i)
            x, y = filled(runtime, np.full(64, value, np.float32)), runtime.alloc(256)
            times(runtime, x, y, 64, 2.0)
            if floats(runtime, y, 64).tolist() != [2 * value] * 64:
                wrong.append((seed, i))
            runtime.free(x)
            runtime.free(y)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_what_is_wrong_is_named(runtime: Any) -> None:
    with pytest.raises(ut.errors.DeviceError, match=r"(?s)\[webgpu\] broken failed.*unknown"):
        runtime.compile("fn broken() { unknown(); }", "broken", (), 64, 4)
    kernel = runtime.compile(TIMES, "times", (True, False), 64, 4)
    x = runtime.alloc(8)
    with pytest.raises(ut.errors.DeviceError, match=r"times wants .* at most 65535"):
        runtime.launch(kernel, [x, runtime.alloc(8)], bytes(16), (70000, 1, 1))
    test_a_batch_runs_in_order_and_is_sent_once(runtime)  # it is usable afterwards


def test_the_public_way_does_the_same(runtime: Any) -> None:
    """Versions of wgpu that the raw calls were not tested with take the public ones."""
    assert not raw.recorder((99, 0)).raw
    from undertow.backends.webgpu.runtime import WebGpuRuntime

    other = WebGpuRuntime(0)
    other._recorder = raw.Recorder()
    test_a_batch_runs_in_order_and_is_sent_once(other)


def test_a_lost_device_is_a_clear_error(runtime: Any) -> None:
    from undertow.backends.webgpu.runtime import WebGpuRuntime

    other = WebGpuRuntime(0)
    x = filled(other, np.ones(4, np.float32))
    other.device.destroy()
    for _ in range(2):
        with pytest.raises(ut.errors.DeviceError, match="the device is lost"):
            other.download(x, 0, 16)
    with pytest.raises(ut.errors.DeviceError, match="the device is lost"):
        other.alloc(1 << 22)
    other.free(x)
    gc.collect()
    test_a_batch_runs_in_order_and_is_sent_once(runtime)  # others are not concerned


FORK = """
import os, numpy as np, undertow as ut
from undertow.backends.webgpu.runtime import WebGpuRuntime
runtime = WebGpuRuntime(0)
x = runtime.alloc(16)
child = os.fork()
if child == 0:
    for call in (lambda: runtime.download(x, 0, 16), lambda: WebGpuRuntime(0)):
        try:
            call()
        except ut.errors.DeviceError as error:
            print(error, flush=True)
    print(ut.ones(2).sum().item(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(runtime.download(x, 0, 16).nbytes)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_is_a_clear_error(runtime: Any) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    lines = done.stdout.splitlines()
    assert "before a fork" in lines[0]
    assert "spawn" in lines[1]
    assert lines[2:] == ["2.0", "16"]
