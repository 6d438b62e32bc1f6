"""Torch's names: the list of them is true, and what is here answers as torch does."""

from __future__ import annotations

import inspect
from typing import Any

import coverage
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance


def attribute(thing: Any, path: str) -> Any:
    for part in path.split("."):
        thing = getattr(thing, part)
    return thing


def test_the_list_of_names_is_torchs() -> None:
    """What docs/coverage.md is written from; `python tools/coverage.py --names` reads it anew."""
    version, listed = coverage.read_names()
    assert torch.__version__.startswith(version)
    found = coverage.torch_names(torch)
    for path, names in listed.items():
        assert found[path] == names, f"torch.{path}"
    assert [*listed] == coverage.SECTIONS


@pytest.mark.parametrize(
    "name",
    """
    cuda.is_available cuda.device_count cuda.is_initialized cuda.memory_allocated
    cuda.max_memory_allocated cuda.memory_reserved cuda.get_rng_state_all cuda.is_bf16_supported
    cuda.empty_cache cuda.get_arch_list cuda.seed_all mps.is_available xpu.is_available
    xpu.device_count accelerator.is_available accelerator.device_count
    accelerator.current_accelerator backends.cuda.is_built backends.cudnn.version
    backends.cudnn.is_available backends.mps.is_available backends.mps.is_built cpu.is_available
    cpu.device_count cpu.synchronize jit.is_scripting jit.is_tracing distributed.is_initialized
    compiler.is_compiling get_float32_matmul_precision are_deterministic_algorithms_enabled
    get_deterministic_debug_mode is_warn_always_enabled is_autocast_enabled
    is_autocast_cache_enabled is_anomaly_enabled is_anomaly_check_nan_enabled
    """.split(),  # noqa: SIM905
)
def test_probes_answer_as_torch_does_on_a_cpu(name: str) -> None:
    """Where torch has no device either."""
    if torch.version.cuda is not None and "cud" in name:
        pytest.skip("torch was built for CUDA, which these probes tell")
    assert attribute(ut, name)() == attribute(torch, name)()


@pytest.mark.parametrize("path", ["backends.cudnn", "backends.cuda.matmul"])
def test_settings_have_torchs_defaults(path: str) -> None:
    """What a program reads before it sets anything."""
    ours, theirs = attribute(ut, path), attribute(torch, path)
    names = ["allow_tf32"]
    if path.endswith("cudnn"):
        names += ["enabled", "benchmark", "deterministic"]
    assert [getattr(ours, n) for n in names] == [getattr(theirs, n) for n in names]


@pytest.mark.parametrize(
    "name",
    """
    amp.autocast amp.GradScaler cuda.amp.autocast cuda.amp.GradScaler nn.parallel.DataParallel
    func.functional_call testing.assert_close random.fork_rng use_deterministic_algorithms
    set_float32_matmul_precision nn.functional.rrelu nn.functional.upsample
    """.split(),  # noqa: SIM905
)
def test_parameters_have_torchs_names(name: str) -> None:
    """Positions and names of arguments."""
    ours, theirs = (
        [
            n
            for n in inspect.signature(attribute(lib, name)).parameters
            if n not in ("args", "kwargs")
        ]
        for lib in (ut, torch)
    )
    assert ours[: len(theirs)] == theirs[: len(ours)]


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: lib.Tensor([[1, 2], [3, 4]]),
        lambda lib: lib.Tensor(lib.ones(2).long()),
        lambda lib: lib.FloatTensor([1, 2]),
        lambda lib: lib.LongTensor([1, 2]),
        lambda lib: lib.ByteTensor([1, 2]),
        lambda lib: lib.Tensor([1.5, 2]).type(lib.LongTensor),
        lambda lib: lib.ones(3).type("torch.DoubleTensor"),
        lambda lib: lib.ones(2, 3).new([1, 2]),
        lambda lib: lib.zeros(4, 2).fill_diagonal_(3, wrap=True),
        lambda lib: lib.zeros(2, 5).fill_diagonal_(3),
        lambda lib: lib.zeros(7, 2).fill_diagonal_(3, wrap=True),
        lambda lib: lib.arange(6.0).resize_(2, 2),
        lambda lib: lib.ones(2, 3, 4).sum_to_size(3, 1),
        lambda lib: lib.arange(4.0).apply_(lambda x: x * x),
        lambda lib: lib.arange(4.0).map_(lib.ones(4), lambda a, b: a - b),
        lambda lib: lib.empty(0).new_tensor([3.0]),
        lambda lib: lib.autograd.Variable(lib.ones(2)),
    ],
)
def test_old_names_give_the_same(make: Any) -> None:
    """Values, shapes and dtypes."""
    ours, theirs = make(ut), make(torch)
    assert ours.tolist() == theirs.tolist()
    assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
    assert ours.shape.numel() == theirs.shape.numel()


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: lib.Tensor(1.5),
        lambda lib: lib.FloatTensor(lib.ones(2).long()),
        lambda lib: lib.LongTensor(lib.ones(2)),
        lambda lib: lib.ones(2).fill_diagonal_(1),
        lambda lib: lib.ones(2, requires_grad=True).resize_(3),
        lambda lib: lib.ones(2, requires_grad=True).apply_(lambda x: x),
        lambda lib: lib.ones(2, 3).sum_to_size(3, 3),
        lambda lib: lib.cuda.current_device(),
        lambda lib: lib.cuda.synchronize(),
        lambda lib: lib.cuda.get_device_name(),
        lambda lib: lib.ones(2).cuda(),
        lambda lib: lib.distributed.get_rank(),
        lambda lib: lib.exp(lib.zeros(3), out=lib.zeros(3, dtype=lib.int64)),
        lambda lib: lib.exp(lib.zeros(3), out=3),
        lambda lib: lib.exp(lib.zeros(3, requires_grad=True), out=lib.zeros(3)),
        lambda lib: lib.exp(lib.zeros(3), out=lib.zeros(3, requires_grad=True)),
        lambda lib: lib.zeros(3).exp(out=lib.zeros(3)),
        lambda lib: lib.ones(2, dtype=lib.float32, out=lib.zeros(2, dtype=lib.int64)),
        lambda lib: lib.max(lib.ones(3), 0, out=lib.zeros(())),
        lambda lib: lib.exp(lib.zeros(3), out=lib.zeros(1).expand(3)),
    ],
)
def test_both_refuse(make: Any) -> None:
    """With an error of the same family."""
    with pytest.raises((RuntimeError, TypeError, AssertionError, ValueError)):
        make(torch)
    with pytest.raises((RuntimeError, TypeError, AssertionError, ValueError)):
        make(ut)
