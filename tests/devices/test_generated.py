"""The generated backend over a runtime that records: launches, lifetimes, bindings, errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import undertow as ut
import undertow.nn.functional as F
from recording_runtime import Recording, recording
from undertow.backends import registry
from undertow.backends.generated.backend import GeneratedBackend
from undertow.kernel.expr import trace
from undertow.kernel.groups.products import Tile

SINGLE = np.dtype(np.float32)
SUM = trace(lambda a, b: a + b, 2)


@pytest.fixture
def k(monkeypatch: pytest.MonkeyPatch) -> Iterator[GeneratedBackend]:
    """The backend of `device="recording"`, which has float64."""
    backend = recording(float64=True)
    monkeypatch.setitem(registry._makers, "recording", lambda device: backend)
    yield backend
    for name in ("recording", "recording:0"):
        registry._running.pop(name, None)


def runtime(k: GeneratedBackend) -> Recording:
    assert isinstance(k.runtime, Recording)
    return k.runtime


def ones(*shape: int, dtype: Any = None) -> ut.Tensor:
    return ut.ones(*shape, dtype=dtype, device="recording")


# Launches and kernels ------------------------------------------------------------------------
def test_a_map_is_one_launch_and_its_text_is_compiled_once(k: GeneratedBackend) -> None:
    x, y = ones(4, 5), ones(4, 5)
    launches, compiles = k.stats["launches"], k.stats["compiles"]
    for _ in range(3):
        x + y
    assert k.stats["launches"] == launches + 3
    assert k.stats["compiles"] == compiles + 1
    ones(7, 3) + ones(7, 3)  # another shape, the same text
    assert k.stats["compiles"] == compiles + 1


def test_a_table_stands_once_before_its_kernel(k: GeneratedBackend) -> None:
    """Many powers share their tables; written out at each lookup, compilers took minutes."""
    ut.polygamma(2, ones(3, dtype=ut.float64))
    kernel = runtime(k).kernels[-1]
    assert kernel.text.count("__constant double") == 3
    assert kernel.text.count(f"{kernel.entry}_table0[") > 2
    assert max(map(len, kernel.text.split(kernel.entry + "(")[1].splitlines())) < 500


def test_results_and_operands_of_one_buffer_are_bound_once(k: GeneratedBackend) -> None:
    x, y = ones(6), ones(6)
    x + y
    apart = runtime(k).launches[-1]
    assert apart.kernel.bindings == (True, False, False)
    x + x
    square = runtime(k).launches[-1]
    assert square.kernel.bindings == (True, False)
    assert square.kernel.text != apart.kernel.text
    x[:3] + x[3:]
    halves = runtime(k).launches[-1]
    assert halves.kernel is square.kernel
    assert halves.params[:3] == [0, 0, 3]  # where the result and the operands begin
    x[:3].add_(x[3:])
    assert runtime(k).launches[-1].kernel.bindings == (True,)


def test_an_operand_that_overlaps_the_result_is_copied(k: GeneratedBackend) -> None:
    x = ones(6)
    before = k.stats["launches"]
    x[1:].copy_(x[:-1])
    assert k.stats["launches"] == before + 2
    before = k.stats["launches"]
    x.mul_(x)
    assert k.stats["launches"] == before + 1


def test_more_groups_than_a_dimension_holds(k: GeneratedBackend) -> None:
    small = recording(max_groups=4)
    out = small.full((10_000,), 1, SINGLE)
    assert runtime(small).launches[-1].groups == (4, 3, 1)
    assert out.shape == (10_000,)


def test_the_limits_decide_on_tiles_of_products() -> None:
    """The largest tile of which enough is used, and that fits; see Note [tiles of groups]."""
    backend = recording(tiles=(Tile(16, 16, depth=8), Tile(8, 8), Tile(4, 4)), shared_bytes=16384)

    def groups(rows: int, columns: int) -> tuple[int, int]:
        a, b = (backend.empty(shape, SINGLE) for shape in ((rows, 40), (40, columns)))
        backend.matmul(a, b)
        launch = runtime(backend).launches[-1]
        return launch.groups[0], launch.kernel.group

    assert groups(256, 300) == (2 * 3, 64)  # of 128 * 128
    assert groups(95, 300) == (2 * 5, 64)  # of 64 * 64
    assert groups(47, 300) == (2 * 10, 64)  # of 32 * 32
    assert groups(15, 300) == (-(-15 * 300 // 1024), 256)  # a thread for each
    backend = recording(tiles=(Tile(16, 8, 4, 16), Tile(4, 4)), shared_bytes=8192)
    assert groups(256, 300) == (8 * 10, 64)  # a larger one needs more memory


def test_cross_entropy_masks_rows_in_its_own_kernels(k: GeneratedBackend) -> None:
    """What labels are is not waited for: a check, the rows, their sum, a count and the quotient."""
    x, labels = ones(5, 2).requires_grad_(), ones(5, dtype=ut.int64)
    F.cross_entropy(x, labels)
    before = k.stats["launches"]
    loss = F.cross_entropy(x, labels)
    assert k.stats["launches"] == before + 5
    loss.backward()
    assert k.stats["launches"] == before + 8  # a one, its quotient, the slope of each row
    none = ones(0, 2).requires_grad_()
    F.cross_entropy(none, ones(0, dtype=ut.int64), label_smoothing=0.3).backward()


def test_nothing_is_launched_for_no_elements(k: GeneratedBackend) -> None:
    x = ones(0, 3)
    before = k.stats["launches"]
    assert (x + x).shape == (0, 3)
    assert x.sum(1).shape == (0,)
    assert (x @ ones(3, 2)).shape == (0, 2)
    assert k.stats["launches"] == before + 1  # that of `ones`


def test_many_parameters_are_updated_by_few_launches(k: GeneratedBackend) -> None:
    rows = [[k.full((5,), 1, SINGLE) for _ in range(2)] for _ in range(10)]
    before = k.stats["launches"]
    k.update((SUM,), rows, (), (0,))
    assert k.stats["launches"] == before + 3  # eight bindings are four rows


def test_a_training_step_compiles_nothing_from_the_second_on(k: GeneratedBackend) -> None:
    net = ut.nn.Sequential(
        ut.nn.Conv1d(2, 20, 3), ut.nn.BatchNorm1d(20), ut.nn.ReLU(), ut.nn.MaxPool1d(2)
    ).to("recording")
    head = ut.nn.Linear(20, 3).to("recording")
    optimizer = ut.optim.Adam([*net.parameters(), *head.parameters()])
    x, y = ones(4, 2, 20), ut.zeros(4, dtype=ut.int64, device="recording")

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(head(net(x).mean(2)), y).backward()
        optimizer.step()

    step()
    step()
    k.synchronize()  # checks of labels hold them until then
    compiles, alive = k.stats["compiles"], runtime(k).alive
    uploads, downloads = k.stats["uploads"], k.stats["downloads"]
    for _ in range(3):
        step()
    assert k.stats["compiles"] == compiles
    assert k.stats["uploads"] == uploads
    assert k.stats["downloads"] == downloads
    k.synchronize()
    assert runtime(k).alive == alive
    assert k.stats["host"] == 0


# Memory --------------------------------------------------------------------------------------
def test_memory_is_given_back_with_the_last_array(k: GeneratedBackend) -> None:
    x = ones(10)
    alive = runtime(k).alive
    view = (x + 1)[2:]
    assert runtime(k).alive == alive + 1
    del view
    assert runtime(k).alive == alive
    del x
    assert runtime(k).alive == alive - 1


def test_bytes_are_padded_to_words(k: GeneratedBackend) -> None:
    array = k.from_host(np.arange(3, dtype=np.int8))
    assert runtime(k).uploads[-1][2] == 4
    assert array.buffer.nbytes == 3
    host = k.to_host(k.slice(array, (slice(1, None),)))
    assert host.tolist() == [0, 0]


def test_an_array_beyond_the_limits_is_an_error_that_tells_them(k: GeneratedBackend) -> None:
    small = recording(max_binding=1000, max_buffer=2000)
    with pytest.raises(ut.errors.OutOfMemoryError, match=r"2400 bytes.*at most 2000"):
        small.empty((600,), SINGLE)
    assert small.empty((500,), SINGLE).size == 500


def test_an_array_beyond_a_binding_is_cut() -> None:
    """The recording runtime checks which parts of buffers are bound; see Note [large arrays]."""
    small = recording(max_binding=1000, max_buffer=4000)
    x = small.full((500,), 1, SINGLE)
    before = small.stats["launches"]
    found = small.map(SUM, (x, x), SINGLE)
    assert small.stats["launches"] == before + 3  # a part begins at a multiple of 256
    starts = [sorted(b[1] for b in launch.buffers) for launch in runtime(small).launches[-3:]]
    assert starts == [[0, 0], [768, 768], [1280, 1280]]
    small.map(SUM, (x, small.slice(x, (slice(None, None, -1),))), SINGLE, x)  # far apart
    assert small.reduce("sum", found, (0,), False).shape == ()
    assert [a.shape for a in small.sort(x, 0, False)] == [(500,), (500,)]
    image = small.reshape(x, (1, 500))
    with pytest.raises(ut.errors.OutOfMemoryError, match=r"\[window\].*2000 bytes.*\(1, 500\)"):
        small.window("max", image, (490,), (490,), ((0, 0),), (1,), (1,))


# What a device does not have -----------------------------------------------------------------
def test_float64_is_refused_where_there_is_none() -> None:
    single = recording()
    for make in (
        lambda: single.from_host(np.zeros(2)),
        lambda: single.full((2,), 0, np.dtype(np.float64)),
        lambda: single.from_host(np.zeros(2, complex)),
    ):
        with pytest.raises(ut.errors.DTypeError, match=r"float64|complex128.*float32.*allow_host"):
            make()
    single.allow_host = True
    x = single.from_host(np.zeros(2))
    single.map(SUM, (x, x), x.dtype)
    assert single.stats["host"] == 1


def test_the_error_of_a_dtype_names_the_method(monkeypatch: pytest.MonkeyPatch) -> None:
    single = recording()
    monkeypatch.setitem(registry._makers, "single", lambda device: single)
    x = ut.ones(2, device="single")
    try:
        for name, kind in (("double", "float64"), ("cfloat", "complex64")):
            with pytest.raises(ut.errors.DTypeError, match=rf"\[{name}\] no kernel .*{kind}"):
                getattr(x, name)()
    finally:
        for name in ("single", "single:0"):
            registry._running.pop(name, None)


def test_the_host_is_warned_of_once(k: GeneratedBackend) -> None:
    k.allow_host = "warn"
    z = k.from_host(np.zeros(2, complex))
    with pytest.warns(UserWarning, match=r"\[maps\] computed on the host.*complex128"):
        k.map(SUM, (z, z), z.dtype)
    k.map(SUM, (z, z), z.dtype)
    assert k.stats["host"] == 2


# Complex numbers -----------------------------------------------------------------------------
def test_complex_numbers_are_pairs_of_parts() -> None:
    """An expression is one kernel; what moves or adds elements is one launch, too."""
    k = recording(float64=True, pairs=True)
    z = k.from_host(np.zeros((3, 4), complex))
    turned = k.permute(z, (1, 0))
    rows = k.from_host(np.zeros(2, np.int64))
    other = k.copy(z)
    some = k.copy(k.slice(z, (slice(0, 2),)))
    calls: dict[str, tuple[int, Any]] = {
        "map": (1, lambda: k.map(SUM, (turned, turned), z.dtype)),
        "into": (1, lambda: k.maps((SUM, SUM), (z, z), (z.dtype, z.dtype), (z, other))),
        "sum": (1, lambda: k.reduce("sum", z, (1,), False)),
        "any": (2, lambda: k.reduce("any", z, (1,), False)),
        "scan": (1, lambda: k.scan("sum", z, 1)),
        "take": (1, lambda: k.take(z, (rows, slice(None)))),
        "put": (1, lambda: k.put("add", z, (rows, slice(None)), some, True)),
        "copy": (1, lambda: k.copy(turned)),
        "cast": (1, lambda: k.cast(z, np.dtype(np.complex64))),
    }
    for name, (count, call) in calls.items():
        before = k.stats["launches"]
        call()
        assert (name, k.stats["launches"] - before) == (name, count)
    assert k.stats["host"] == 0


@pytest.mark.parametrize("call", ["largest", "scan", "scatter"])
def test_what_complex_numbers_have_not(call: str) -> None:
    k = recording(float64=True, pairs=True)
    z = k.from_host(np.zeros(3, complex))
    rows = k.from_host(np.zeros(3, np.int64))
    forms = {
        "largest": lambda: k.reduce("max", z, (0,), False),
        "scan": lambda: k.scan("max", z, 0),
        "scatter": lambda: k.scatter("max", z, 0, rows, z),
    }
    with pytest.raises(ut.errors.DTypeError, match=r"no kernel on .* of complex numbers"):
        forms[call]()


def test_more_operands_than_bindings_are_joined() -> None:
    few = recording(max_bindings=3)
    operands = [few.full((3, 1), 1, SINGLE), *(few.full((5,), 1, SINGLE) for _ in range(3))]
    expr = trace(lambda a, b, c, d: a * b + c * d, 4)
    before = few.stats["launches"]
    assert few.map(expr, operands, SINGLE).shape == (3, 5)
    assert few.stats["launches"] == before + 3  # three operands into one buffer, and the map
    pair = few.maps((expr, SUM), operands, (SINGLE, SINGLE))
    assert [p.shape for p in pair] == [(3, 5), (3, 5)]


# Checks --------------------------------------------------------------------------------------
def test_checks_wait_until_something_is_read(k: GeneratedBackend) -> None:
    x = k.from_host(np.arange(3))
    downloads = k.stats["downloads"]
    for _ in range(5):
        assert k.require(x, 0, 10, ValueError) is None
    assert k.stats["downloads"] == downloads
    k.to_host(x)
    assert k.stats["downloads"] == downloads + 2  # all checks at once, and x
    k.to_host(x)
    assert k.stats["downloads"] == downloads + 3


def test_a_failed_check_raises_once(k: GeneratedBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    x = k.from_host(np.arange(3))
    k.require(x, 0, 10, lambda host: ValueError(str(host.shape)))
    monkeypatch.setattr(k.runtime, "download", lambda b, o, n: np.ones(n, np.uint8))
    with pytest.raises(ValueError, match=r"\(3,\)"):
        k.synchronize()
    k.synchronize()


# Threads -------------------------------------------------------------------------------------
def test_threads_share_a_backend(k: GeneratedBackend) -> None:
    x = ones(8, 8)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for i in range(20):
                (x * float(i)).softmax(1).sum()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
