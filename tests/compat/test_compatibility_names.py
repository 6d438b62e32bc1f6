"""Names that programs ask for on the way: probes, settings, old constructors, wrappers."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import io
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import undertow as ut

DeviceError, ArgumentError, DTypeError = (
    ut.errors.DeviceError,
    ut.errors.ArgumentError,
    ut.errors.DTypeError,
)


# Devices that are not here ----------------------------------------------------------------------
def test_device_picking_falls_through_to_the_cpu() -> None:
    """The lines that open most programs."""
    device = ut.device(
        "cuda" if ut.cuda.is_available() else "mps" if ut.mps.is_available() else "cpu"
    )
    assert device == ut.device("cpu")
    assert not ut.backends.mps.is_available()
    assert not ut.xpu.is_available()
    assert ut.cuda.device_count() == ut.xpu.device_count() == ut.mps.device_count() == 0
    ut.manual_seed(0)
    ut.cuda.manual_seed(0)
    ut.cuda.manual_seed_all(0)
    ut.mps.manual_seed(0)
    ut.xpu.manual_seed_all(0)
    ut.cuda.empty_cache()
    ut.cuda.reset_peak_memory_stats()
    assert ut.cuda.memory_allocated() == ut.cuda.max_memory_allocated() == 0
    assert ut.cuda.get_rng_state_all() == []
    ut.cuda.set_rng_state_all([])
    assert not ut.cuda.is_bf16_supported()
    assert ut.version.cuda is None


@pytest.mark.parametrize(
    "call",
    """
    current_device() get_device_name() get_device_properties(0) get_device_capability()
    synchronize() set_device(0) Stream() Event() current_stream() mem_get_info() initial_seed()
    get_rng_state() set_rng_state_all([1]) device(0) CUDAGraph() init() FloatTensor(2)
    nvtx.range_push("a")
    """.split(),  # noqa: SIM905
)
def test_what_needs_a_cuda_device_raises(call: str) -> None:
    """An AssertionError as in torch, a RuntimeError as elsewhere; it says what to do."""
    with pytest.raises(AssertionError, match="no CUDA device") as caught:
        eval(f"ut.cuda.{call}")
    assert isinstance(caught.value, DeviceError)


def test_blocks_on_no_device() -> None:
    """As torch lets them pass. They do nothing that one could see: not to raise is the point."""
    with ut.cuda.device(-1), ut.cuda.device_of(ut.ones(1)), ut.cuda.stream(None):
        pass


def test_moving_to_an_absent_device_names_it() -> None:
    """`.cuda()` and `.to("cuda")` tell why there is none, and what to use."""
    for move in (lambda x: x.cuda(), lambda x: x.to("cuda"), lambda x: x.cuda(1)):
        with pytest.raises(DeviceError, match=r"no NVIDIA driver here .* use device='cpu'"):
            move(ut.ones(1))


def test_a_bad_seed_is_noticed() -> None:
    """Even where seeding does nothing."""
    with pytest.raises(DTypeError, match="seed must be an integer, got str 'a'"):
        ut.cuda.manual_seed_all("a")  # type: ignore[arg-type]


def test_questions_to_a_tensor() -> None:
    """Where it is and how it is stored."""
    x = ut.ones(2, 3)
    assert x.is_cpu
    assert not any((x.is_cuda, x.is_mps, x.is_xpu, x.is_meta, x.is_sparse, x.is_quantized))
    assert x.get_device() == -1
    assert x.pin_memory() is x
    assert not x.is_pinned()
    assert not x.is_shared()
    assert x.layout is ut.strided
    assert x.to_dense() is x
    assert x.t().dim_order() == (1, 0)
    assert x.is_set_to(x.view(2, 3))
    assert not x.is_set_to(x[:1])
    assert x.is_same_size(ut.zeros(2, 3))
    with pytest.raises(NotImplementedError, match="share_memory_"):
        x.share_memory_()


def test_what_is_installed_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`cuda.is_available()` took 20 milliseconds, in every step of a training that asks."""
    first = ut.cuda.is_available(), ut.accelerator.is_available()

    def read(**_: Any) -> Any:
        raise AssertionError("the packages were read again")

    monkeypatch.setattr("importlib.metadata.entry_points", read)
    assert (ut.cuda.is_available(), ut.accelerator.is_available()) == first


def test_accelerators_are_what_packages_bring(monkeypatch: pytest.MonkeyPatch) -> None:
    """None here; the first device of an installed package else."""
    monkeypatch.setattr(ut.accelerator, "packaged", list)
    assert not ut.accelerator.is_available()
    assert ut.accelerator.current_accelerator() is None
    with pytest.raises(RuntimeError, match="no device besides the CPU"):
        ut.accelerator.synchronize()
    monkeypatch.setattr(ut.accelerator, "packaged", lambda: ["abacus"])
    assert ut.accelerator.current_accelerator() == ut.device("abacus")
    assert ut.accelerator.current_device_index() == 0
    ut.accelerator.synchronize()


# Settings that change nothing ---------------------------------------------------------------------
def test_backend_settings_are_kept() -> None:
    """What is set reads back; what is asked for answers."""
    cudnn, cuda = ut.backends.cudnn, ut.backends.cuda
    assert importlib.import_module("undertow.backends.cudnn") is cudnn
    before = cudnn.benchmark, cuda.matmul.allow_tf32
    cudnn.benchmark = cuda.matmul.allow_tf32 = True
    assert cudnn.benchmark
    assert cuda.matmul.allow_tf32
    cudnn.benchmark, cuda.matmul.allow_tf32 = before
    with cudnn.flags(enabled=False, deterministic=True):
        assert cudnn.deterministic
    assert not cudnn.deterministic
    assert cudnn.enabled
    assert cudnn.version() is None
    assert not cudnn.is_available()
    assert cuda.preferred_linalg_library("magma") == cuda.preferred_linalg_library() == "magma"
    cuda.preferred_linalg_library("default")
    with pytest.raises(RuntimeError, match="cublas"):
        cuda.preferred_blas_library("unknown")
    with cuda.sdp_kernel(enable_flash=False):
        assert not cuda.flash_sdp_enabled()
    assert cuda.flash_sdp_enabled()
    cuda.enable_math_sdp(False)
    assert not cuda.math_sdp_enabled()
    cuda.enable_math_sdp(True)
    for name in ("mkl", "mkldnn", "openmp", "opt_einsum"):
        assert not getattr(ut.backends, name).is_available()
    assert ut.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    assert not ut.backends.flags_frozen()
    found = ut.cpu.get_capabilities()
    assert {"architecture", "num_logical_cores"} < set(found)
    kind = ut.backends.cpu.get_cpu_capability()
    assert ut.cpu._is_avx2_supported() is found.get("avx2", False) is (kind != "DEFAULT")
    assert ut.cpu._is_avx512_supported() is (kind == "AVX512")
    with pytest.raises(AttributeError, match=r"undertow\.backends.*'tpu'"):
        _ = ut.backends.tpu  # type: ignore[attr-defined]


def test_settings_read_back() -> None:
    """And a wrong value is an error although it has no effect."""
    ut.set_float32_matmul_precision("medium")
    assert ut.get_float32_matmul_precision() == "medium"
    ut.set_float32_matmul_precision("highest")
    with pytest.raises(ValueError, match=r"expects one of .*'low'"):
        ut.set_float32_matmul_precision("low")
    ut.use_deterministic_algorithms(True, warn_only=True)
    assert ut.is_deterministic_algorithms_warn_only_enabled()
    with pytest.raises(TypeError, match="expects True or False, got 1"):
        ut.use_deterministic_algorithms(False, warn_only=1)  # type: ignore[arg-type]
    assert ut.get_deterministic_debug_mode() == 1
    ut.set_deterministic_debug_mode("error")
    assert ut.are_deterministic_algorithms_enabled()
    ut.set_deterministic_debug_mode(0)
    assert not ut.are_deterministic_algorithms_enabled()
    ut.use_deterministic_algorithms(False, warn_only=True)
    assert ut.is_deterministic_algorithms_warn_only_enabled()
    assert ut.get_deterministic_debug_mode() == 0
    ut.use_deterministic_algorithms(False)
    with pytest.raises(ValueError, match="got 'loud'"):
        ut.set_deterministic_debug_mode("loud")
    with pytest.raises(TypeError, match="True or False"):
        ut.use_deterministic_algorithms(1)  # type: ignore[arg-type]
    ut.set_num_interop_threads(3)
    assert ut.get_num_interop_threads() == 3
    with pytest.raises(ValueError, match="positive"):
        ut.set_num_interop_threads(0)
    ut.set_num_interop_threads(1)


def test_compile_as_a_decorator() -> None:
    """As a call, and as a decorator with and without arguments; programs: test_compile.py."""

    def double(x: Any) -> Any:
        return x * 2

    assert ut.compile(double)(3) == 6
    assert ut.compile(mode="max-autotune", fullgraph=True)(double)(3) == 6
    layer = ut.nn.Linear(2, 2)
    assert ut.compile(layer, backend="inductor", dynamic=False)._orig_mod is layer
    assert ut.compiler.disable(double)(3) == 6
    assert ut.compiler.disable()(double)(3) == 6
    assert not ut.compiler.is_compiling()
    with pytest.raises(TypeError, match="expects a function or a module, got int"):
        ut.compile(3)


def test_jit_marks_and_refuses() -> None:
    """Marks leave a function alone; a script that nobody makes is an error at once."""

    def one() -> int:
        return 1

    for mark in (ut.jit.ignore, ut.jit.unused, ut.jit.export, ut.jit.script_if_tracing):
        assert mark(one) is one
    assert ut.jit.ignore(drop=True)(one) is one
    assert not ut.jit.is_scripting()
    assert not ut.jit.is_tracing()
    assert ut.jit.script(one) is one  # what a program writes above a small function
    layer = ut.nn.Linear(1, 1).eval()
    assert ut.jit.script(layer) is layer
    assert ut.jit.freeze(layer) is layer
    x = ut.ones(2, 1)
    assert ut.equal(ut.jit.trace(layer, x)(x), layer(x))
    with pytest.raises(NotImplementedError, match=r"\[jit\.load\] there is no TorchScript"):
        ut.jit.load("model.pt")


def test_functions_are_pickled_by_name() -> None:
    """Whatever a module holds as its activation can be sent to another process."""
    for space in (ut, ut.nn.functional, ut.linalg, ut.fft, ut.special):
        for name in space.__all__ if space is ut else dir(space):
            found = getattr(space, name)
            if callable(found) and not name.endswith("_"):
                assert pickle.loads(pickle.dumps(found)) is found, name


def test_names_that_programs_ask_for() -> None:
    """What annotations and checks of programs name is there, and is the thing itself."""
    handle = ut.ones(1, requires_grad=True).register_hook(lambda g: g)
    assert isinstance(handle, ut.utils.hooks.RemovableHandle)
    assert sys.getsizeof(ut.zeros(48).untyped_storage()) > 192
    assert ut._C._get_tracing_state() is None
    assert not ut._C._is_tracing()
    assert ut.utils.model_zoo.load_url is ut.hub.load_state_dict_from_url
    ut._assert(True, "no error")
    with pytest.raises(AssertionError, match="a message"):
        ut._assert(False, "a message")
    seen = []

    class Asks(ut.nn.Module):
        def forward(self, x: ut.Tensor) -> ut.Tensor:
            seen.append(ut.onnx.is_in_onnx_export())
            return x + 1

    ut.onnx.export(Asks(), ut.ones(2), io.BytesIO())
    assert set(seen) == {True}
    assert not ut.onnx.is_in_onnx_export()


# Old constructors -----------------------------------------------------------------------------
def test_tensor_is_called() -> None:
    """Sizes make memory, data is copied into the default dtype, a tensor is shared."""
    assert ut.Tensor(2, 3).shape == (2, 3)
    assert ut.Tensor().shape == (0,)
    assert ut.Tensor([1, 2]).dtype is ut.float32
    assert ut.Tensor(np.array([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert ut.Tensor((2, 3)).tolist() == [2.0, 3.0]
    assert ut.Tensor(ut.ones(4, 5).shape).shape == (4, 5)
    x = ut.ones(2)
    ut.Tensor(x)[0] = 5
    assert x.tolist() == [5.0, 1.0]
    with pytest.raises(TypeError, match=r"sizes or one sequence.*3\.5"):
        ut.Tensor(3.5)
    with pytest.raises(TypeError, match=r"shares the memory of a tensor of undertow\.float32"):
        ut.FloatTensor(ut.ones(2, dtype=ut.int64))
    with pytest.raises(ValueError, match="makes tensors of the CPU"):
        ut.Tensor(2, device="reference")


def test_a_subclass_is_called() -> None:
    """As Tensor is, and its __init__ runs; `as_subclass` keeps the history."""

    class Named(ut.Tensor):
        def __init__(self, data: Any) -> None:
            self.name = "made"

    class Bare(ut.Tensor):
        pass

    x = ut.zeros(2)
    named = Named(x)
    named.add_(1)
    assert (type(named), named.name, x.tolist()) == (Named, "made", [1.0, 1.0])
    assert Bare(2, 3).shape == (2, 3)
    assert type(Bare([1, 2])) is Bare
    leaf = ut.ones(2, requires_grad=True)
    doubled = leaf * 2
    other = doubled.as_subclass(Bare)
    assert type(other) is Bare
    other.mul_(3)
    (other * doubled).sum().backward()
    assert leaf.grad.tolist() == [72.0, 72.0]


def test_a_subclass_makes_its_instances_by_make_subclass() -> None:
    class Scaled(ut.Tensor):
        def __new__(cls, data: ut.Tensor, scale: float, requires_grad: bool = False) -> Any:
            made = ut.Tensor._make_subclass(cls, data, requires_grad)
            made.scale = scale
            return made

    x = ut.ones(2, requires_grad=True) * 3
    scaled = Scaled(x, 0.5, True)
    assert (type(scaled), scaled.scale, scaled.is_leaf) == (Scaled, 0.5, True)
    assert scaled.data_ptr() == x.data_ptr()
    (scaled * scaled.scale).sum().backward()
    assert scaled.grad.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    "name, dtype",
    {
        "FloatTensor": ut.float32,
        "DoubleTensor": ut.float64,
        "HalfTensor": ut.float16,
        "BFloat16Tensor": ut.bfloat16,
        "LongTensor": ut.int64,
        "IntTensor": ut.int32,
        "ShortTensor": ut.int16,
        "CharTensor": ut.int8,
        "ByteTensor": ut.uint8,
        "BoolTensor": ut.bool,
    }.items(),
)
def test_typed_constructors(name: str, dtype: Any) -> None:
    """They make, check and convert."""
    kind = getattr(ut, name)
    assert kind(2, 3).shape == (2, 3)
    x = kind([1, 0])
    assert x.dtype is dtype
    assert type(x) is ut.Tensor
    assert isinstance(x, kind)
    assert not isinstance(x.to("reference"), kind)
    assert not isinstance([1], kind)
    assert ut.ones(2).type(kind).dtype is dtype
    assert ut.ones(2).type(f"torch.{name}").dtype is dtype
    assert x.type() == f"undertow.{name}"
    assert ut.typename(x) == f"undertow.{name}"
    assert not isinstance(x, ut.cuda.FloatTensor)


def test_default_tensor_type() -> None:
    """The old way to set the default dtype."""
    ut.set_default_tensor_type("torch.DoubleTensor")
    assert ut.ones(1).dtype is ut.float64
    ut.set_default_tensor_type(ut.FloatTensor)
    assert ut.ones(1).dtype is ut.float32
    for wrong in ("torch.cuda.FloatTensor", 3):
        with pytest.raises(TypeError, match="expects a type such as"):
            ut.set_default_tensor_type(wrong)


def test_variable() -> None:
    """A tensor; every tensor is one."""
    x = ut.autograd.Variable(ut.ones(2), requires_grad=True)
    assert x.requires_grad
    assert isinstance(ut.ones(1), ut.autograd.Variable)
    assert not isinstance(3, ut.autograd.Variable)
    with pytest.raises(TypeError, match="wraps a Tensor, got list"):
        ut.autograd.Variable([1.0])  # type: ignore[arg-type]


def test_old_methods() -> None:
    """new, apply_, map_, resize_ and their kin."""
    x = ut.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.new(2, 1).shape == (2, 1)
    assert x.new(size=(2, 1)).shape == (2, 1)
    assert (x.sparse_dim(), x.dense_dim()) == (0, 2)
    assert x.long().type(ut.Tensor).dtype is ut.float32
    assert x.dim_order(ambiguity_check=True) == (0, 1)
    for several in (x[:1], x.expand(3, 2, 2)):
        with pytest.raises(RuntimeError, match="has several orders"):
            several.dim_order(ambiguity_check=True)
    assert x.long().new([1.5]).tolist() == [1]
    assert x.clone().apply_(lambda v: v * v).tolist() == [[1.0, 4.0], [9.0, 16.0]]
    assert x.clone().map_(ut.tensor([10.0, 20.0]), lambda a, b: a + b).tolist() == [
        [11.0, 22.0],
        [13.0, 24.0],
    ]
    assert x.clone().map2_(x, x, lambda a, b, c: a + b * c).tolist() == [[2.0, 6.0], [12.0, 20.0]]
    with pytest.raises(RuntimeError, match=r"\[apply_\] a Python function has no gradient"):
        ut.ones(2, requires_grad=True).apply_(lambda v: v)
    with pytest.raises(RuntimeError, match=r"\[map2_\] a Python function has no gradient"):
        x.map2_(x, ut.ones(2, requires_grad=True), lambda a, b, c: a)
    y = x.clone()
    assert y.resize_(3).tolist() == [1.0, 2.0, 3.0]
    assert y.resize_(2, 4).shape == (2, 4)
    assert y.flatten()[:3].tolist() == [1.0, 2.0, 3.0]
    assert y.resize_as_(x).shape == x.shape
    with pytest.raises(RuntimeError, match="resize a tensor that requires gradients"):
        ut.ones(2, requires_grad=True).resize_(3)
    assert ut.zeros(2, 3).fill_diagonal_(7).tolist() == [[7.0, 0.0, 0.0], [0.0, 7.0, 0.0]]
    tall = ut.zeros(5, 2)
    assert tall.fill_diagonal_(1, wrap=True).tolist() == np.eye(5, 2).tolist()[:2] + [
        [0.0, 0.0],
        [1.0, 0.0],
        [0.0, 1.0],
    ]
    cube = ut.zeros(2, 2, 2).fill_diagonal_(1)
    assert cube.sum() == 2
    assert cube[1, 1, 1] == 1
    with pytest.raises(ValueError, match="two dimensions"):
        ut.ones(2).fill_diagonal_(1)


# Sizes, layouts, default devices ------------------------------------------------------------------
def test_size() -> None:
    """A tuple in every respect, with a number of elements."""
    shape = ut.ones(2, 3).shape
    assert isinstance(shape, ut.Size)
    assert isinstance(ut.ones(2).size(), ut.Size)
    assert isinstance(shape, tuple)
    assert shape == (2, 3) == ut.Size([2, 3])
    assert hash(shape) == hash((2, 3))
    assert shape.numel() == 6
    assert ut.Size().numel() == 1
    assert isinstance(shape + (4,), ut.Size)
    assert shape + (4,) == (2, 3, 4)
    assert shape[1:] == (3,)
    assert (shape[0], shape[-1], shape[ut.tensor(1)]) == (2, 3, 3)
    for made in (shape[:-1], shape[::-1], shape[5:], (4,) + shape, shape * 2, 2 * shape):
        assert isinstance(made, ut.Size)
    assert ut.ones(2, 3, 4).shape[:-1].numel() == 6
    assert ((4,) + shape, 2 * shape) == ((4, 2, 3), (2, 3, 2, 3))
    with pytest.raises(TypeError):
        [4] + shape  # type: ignore[operator]
    assert repr(shape) == "(2, 3)"
    assert isinstance(pickle.loads(pickle.dumps(shape)), ut.Size)
    assert copy.deepcopy(shape) == shape
    assert ut.Size(ut.tensor([2, 3])) == ut.Size(np.array([2, 3])) == shape
    assert all(type(size) is int for size in ut.Size(np.array([2, 3])))
    for wrong in (ut.ones(3), [1.5], "ab", [None]):
        with pytest.raises(TypeError):
            ut.Size(wrong)


def test_many_shapes_are_forgotten() -> None:
    """The table of sizes does not grow without end."""
    from undertow.shapes import SIZES

    for n in range(5000):
        _ = SIZES[(n, 1)]
    assert len(SIZES) <= 4098


def test_layouts_and_formats() -> None:
    """Accepted where torch accepts them; values are right, memory is row-major."""
    x = ut.arange(24.0).reshape(1, 2, 3, 4)
    for out in (
        x.to(memory_format=ut.channels_last),
        x.contiguous(memory_format=ut.channels_last),
        x.clone(memory_format=ut.preserve_format),
        ut.empty_like(x, memory_format=ut.contiguous_format).copy_(x),
        x.float(memory_format=ut.preserve_format),
    ):
        assert ut.equal(out, x)
    assert x.is_contiguous(memory_format=ut.contiguous_format)
    assert not x.is_contiguous(memory_format=ut.channels_last)
    assert x.permute(0, 3, 1, 2).is_contiguous(memory_format=ut.channels_last)
    assert not ut.ones(2).is_contiguous(memory_format=ut.channels_last)
    assert ut.zeros(2, layout=ut.strided, pin_memory=True).tolist() == [0.0, 0.0]
    assert ut.rand(2, pin_memory=False).shape == (2,)
    assert x.new_ones(2, layout=ut.strided).tolist() == [1.0, 1.0]
    assert repr(ut.strided) == "undertow.strided"
    assert pickle.loads(pickle.dumps(ut.channels_last)) is ut.channels_last
    with pytest.raises(
        ValueError, match=r"\[zeros\] every tensor is ut\.strided, got layout 'sparse'"
    ):
        ut.zeros(2, layout="sparse")  # type: ignore[call-overload]


def test_default_device() -> None:
    """Set, or for a block; each thread has its own."""
    assert ut.get_default_device() == ut.device("cpu")
    with ut.device("reference"):
        assert ut.ones(2).device.type == "reference"
        assert ut.tensor([1.0]).device.type == "reference"
        with ut.device("cpu"):
            assert ut.rand(2).device.type == "cpu"
        seen: list[Any] = []
        thread = threading.Thread(target=lambda: seen.append(ut.ones(1).device.type))
        thread.start()
        thread.join()
        assert seen == ["cpu"]
    ut.set_default_device("reference")
    assert ut.nn.Linear(2, 2).weight.device.type == "reference"
    ut.set_default_device(None)
    assert ut.ones(1).device.type == "cpu"


def test_functions_that_are_methods() -> None:
    """`ut.exp_(x)` is `x.exp_()`."""
    x = ut.zeros(2)
    assert ut.exp_(x) is x
    assert x.tolist() == [1.0, 1.0]
    assert not ut.detach(ut.ones(1, requires_grad=True) * 2).requires_grad


# Random state, processes, wrappers ----------------------------------------------------------------
def test_fork_rng() -> None:
    """The generator stands where it stood, whatever happened in between."""
    ut.manual_seed(3)
    first: list[ut.Tensor] = []

    def fail() -> None:
        with ut.random.fork_rng(devices=[]):
            first.append(ut.rand(2))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert ut.equal(ut.rand(2), first[0])
    with ut.random.fork_rng(enabled=False):
        second = ut.rand(2)
    assert not ut.equal(ut.rand(2), second)


PROGRAM = """
import sys
import undertow as ut
import undertow.multiprocessing as mp

def work(rank, queue, fail):
    if fail:
        raise KeyError("told to")
    queue.put((rank, ut.ones(2) * rank))

if __name__ == "__main__":
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(work, args=(queue, False), nprocs=2)
    print(sorted((rank, t.tolist()) for rank, t in (queue.get(), queue.get())))
    try:
        mp.spawn(work, args=(queue, True), nprocs=1)
    except mp.ProcessRaisedException as error:
        print("told to" in str(error), error.error_index)
"""


def test_spawn(tmp_path: Any) -> None:
    """Processes run, tensors come back, and an error in one is raised with its traceback."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.splitlines() == ["[(0, [0.0, 0.0]), (1, [1.0, 1.0])]", "True 0"], done.stderr


def test_multiprocessing_is_pythons() -> None:
    """With torch's sharing strategies, which are kept."""
    import multiprocessing

    mp = ut.multiprocessing
    assert mp.cpu_count() == multiprocessing.cpu_count()
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    mp.set_sharing_strategy(mp.get_sharing_strategy())
    with pytest.raises(ValueError, match="got 'telepathy'"):
        mp.set_sharing_strategy("telepathy")


def test_a_group_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """It exists if a program insists; more processes are an error."""
    dist = ut.distributed
    assert dist.is_available() == (importlib.util.find_spec("mpi4py") is not None)
    assert not dist.is_initialized()
    for ask in (dist.get_rank, dist.get_world_size, dist.barrier, dist.destroy_process_group):
        with pytest.raises(ValueError, match="there is no process group"):
            ask()
    with pytest.raises(NotImplementedError, match="world_size is 2"):
        dist.init_process_group("nccl", rank=0, world_size=2)
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(NotImplementedError, match="world_size is 4"):
        dist.init_process_group("gloo")
    monkeypatch.setenv("WORLD_SIZE", "1")
    dist.init_process_group("gloo")
    try:
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
        with pytest.raises(ValueError, match="already"):
            dist.init_process_group("gloo")
        x = ut.tensor([1.0, 2.0])
        dist.all_reduce(x, op=dist.ReduceOp.SUM)
        dist.broadcast(x, 0)
        dist.barrier()
        found = [ut.zeros(2)]
        dist.all_gather(found, x)
        assert found[0].tolist() == x.tolist() == [1.0, 2.0]
        objects: list[Any] = [None]
        dist.all_gather_object(objects, "a")
        assert objects == ["a"]
        out = ut.zeros(1, 2)
        dist.all_gather_into_tensor(out, x)
        dist.scatter(x, [ut.zeros(2)])
        assert (out.tolist(), x.tolist()) == ([[1.0, 2.0]], [0.0, 0.0])
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()


@pytest.mark.parametrize("kind", ["DataParallel", "DistributedDataParallel"])
def test_wrappers_of_modules(kind: str) -> None:
    """They call the module, which is found under `module`, also in the state."""
    layer = ut.nn.Linear(3, 2)
    wrapped = getattr(ut.nn.parallel, kind)(layer)
    x = ut.ones(4, 3)
    assert wrapped.module is layer
    assert ut.equal(wrapped(x), layer(x))
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    wrapped(x).sum().backward()
    assert layer.weight.grad is not None
    wrapped.eval()
    assert not layer.training
    with pytest.raises(TypeError, match=rf"\[{kind}\] wraps a Module, got int"):
        getattr(ut.nn.parallel, kind)(3)
    with pytest.raises(ValueError, match=r"one device here, got device_ids \[0, 1\]"):
        getattr(ut.nn.parallel, kind)(layer, device_ids=[0, 1])


def test_distributed_data_parallel() -> None:
    """no_sync is a block, and a module without gradients has nothing to bring together."""
    wrapped = ut.nn.parallel.DistributedDataParallel(ut.nn.Linear(2, 1))
    with wrapped.no_sync():
        assert not wrapped.require_backward_grad_sync
    assert wrapped.require_backward_grad_sync
    with wrapped.join():
        pass
    with pytest.raises(ValueError, match="no parameter of the module requires a gradient"):
        ut.nn.parallel.DistributedDataParallel(ut.nn.Identity())


def test_conversion_of_parameters() -> None:
    """A conversion keeps the parameters, unless it is told to put new ones in their place."""
    future = ut.__future__
    layer = ut.nn.Linear(2, 1)
    layer(ut.ones(2)).sum().backward()
    kept = layer.weight
    future.set_swap_module_params_on_conversion(True)
    assert layer.double().weight is kept
    future.set_overwrite_module_params_on_conversion(True)
    try:
        assert layer.float().weight is kept  # swapping comes first
        future.set_swap_module_params_on_conversion(False)
        assert layer.double().weight is not kept
        assert isinstance(layer.weight, ut.nn.Parameter)
        assert layer.weight.grad.dtype is layer.weight.dtype is ut.float64
        assert kept.dtype is ut.float32
    finally:
        future.set_overwrite_module_params_on_conversion(False)
    assert not future.get_overwrite_module_params_on_conversion()
    assert not future.get_swap_module_params_on_conversion()
    assert ut.utils.deterministic.fill_uninitialized_memory is True


@pytest.mark.parametrize(
    "name, error",
    [
        ("_check", RuntimeError),
        ("_check_index", IndexError),
        ("_check_value", ValueError),
        ("_check_type", TypeError),
        ("_check_not_implemented", NotImplementedError),
    ],
)
def test_checks(name: str, error: type[Exception]) -> None:
    """They raise what their name says, and make the message when it is needed."""
    check = getattr(ut, name)
    check(True, lambda: pytest.fail("nobody needs it"))
    with pytest.raises(error, match="three"):
        check(False, lambda: "three")
    with pytest.raises(error, match="Expected cond to be True"):
        check(False)
    with pytest.raises(TypeError, match="True or False, got Tensor"):
        check(ut.tensor(True))
    with pytest.raises(TypeError, match="booleans, got"):
        ut._check_tensor_all(ut.ones(1))


# Functions of modules, tests of tensors -----------------------------------------------------------
def test_functional_call() -> None:
    """Other parameters for one call, with gradients, ties and errors."""
    call = ut.func.functional_call
    model = ut.nn.Sequential(ut.nn.Linear(2, 2), ut.nn.Linear(2, 1, bias=False))
    kept = {n: p.detach().clone() for n, p in model.named_parameters()}
    x = ut.ones(1, 2)
    new = {n: ut.ones_like(p).requires_grad_() for n, p in model.named_parameters()}
    y = call(model, new, (x,))
    assert y.tolist() == [[6.0]]
    grads = ut.autograd.grad(y.sum(), list(new.values()))
    assert [g.tolist() for g in grads] == [[[1.0, 1.0], [1.0, 1.0]], [1.0, 1.0], [[3.0, 3.0]]]
    for n, p in model.named_parameters():
        assert ut.equal(p, kept[n])
    with pytest.raises(RuntimeError):
        call(model, {"0.weight": ut.ones(3, 3)}, x)
    assert ut.equal(model[0].weight, kept["0.weight"])
    with pytest.raises(AttributeError, match="2"):
        call(model, {"2.weight": x}, x)
    with pytest.raises(ValueError, match="'0' is a module of Sequential"):
        call(model, {"0": x}, x)
    with pytest.raises(ValueError, match="strict=True"):
        call(model, {"0.bias": ut.ones(2)}, x, strict=True)
    with pytest.raises(ValueError, match=r"'0\.bias' is given twice"):
        call(model, ({"0.bias": ut.ones(2)}, {"0.bias": ut.ones(2)}), x)
    tied = ut.nn.Sequential(ut.nn.Linear(2, 2, bias=False), ut.nn.Linear(2, 2, bias=False))
    tied[1].weight = tied[0].weight
    assert call(tied, {"0.weight": ut.ones(2, 2)}, x).tolist() == [[4.0, 4.0]]


def test_functional_call_beyond_parameters() -> None:
    """Plain attributes, names that there are not yet, None, and a module that holds itself."""
    call = ut.func.functional_call

    class Scaled(ut.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = ut.ones(2)

        def forward(self, x: ut.Tensor) -> ut.Tensor:
            return x * self.scale + getattr(self, "shift", 0.0)

    model = Scaled()
    x = ut.ones(2)
    assert call(model, {"scale": x * 3, "shift": x}, x).tolist() == [4.0, 4.0]
    assert model.scale.tolist() == [1.0, 1.0]
    assert not hasattr(model, "shift")
    with pytest.raises(ValueError, match=r"strict=True, Scaled has no \['shift'\]"):
        call(model, {"shift": x}, x, strict=True)
    layer = ut.nn.Linear(2, 1)
    assert call(layer, {"weight": ut.ones(1, 2), "bias": None}, x).tolist() == [2.0]
    assert layer.bias is not None
    outer = ut.nn.Sequential(layer)
    layer.whole = outer
    new = {"0.whole.0.weight": ut.ones(1, 2), "0.bias": ut.zeros(1)}
    assert call(outer, new, x, tie_weights=False).tolist() == [2.0]


def test_assert_close() -> None:
    """Equal within the dtype's tolerance, or an error that says where it is not."""
    close = ut.testing.assert_close
    close(ut.tensor([1.0]), ut.tensor([1.0 + 1e-6]))
    close({"a": [1, ut.ones(2)]}, {"a": [1, ut.ones(2)]})
    close(ut.tensor([1, 2]), ut.tensor([1, 2]))
    close(ut.tensor([True]), ut.tensor([True]))
    close(ut.tensor([float("nan")]), ut.tensor([float("nan")]), equal_nan=True)
    close(ut.ones(2), ut.ones(2).double(), check_dtype=False)
    close(None, None)
    for actual, expected, message in (
        (ut.ones(2, 2), ut.tensor([[1.0, 1.0], [1.0, 3.0]]), r"1 of 4 .* by 2 at \(1, 1\)"),
        (ut.ones(2), ut.ones(3), r"the shapes differ: \(2,\) and \(3,\)"),
        (ut.ones(2), ut.ones(2).double(), "the dtypes differ"),
        (ut.ones(2), ut.ones(2).to("reference"), "the devices differ"),
        (1, 2, "expected 2 but got 1"),
        (1, 1.0, "the types differ: int and float"),
        ([1, 2], [1], "the lengths differ: 2 and 1"),
        ({"a": 1}, {"b": 1}, r"keys differ by \['a', 'b'\]"),
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.5]}, r"at \['a'\]\[1\]"),
        (ut.tensor([float("nan")]), ut.tensor([float("nan")]), "1 of 1"),
        (ut.tensor(True), ut.tensor(False), "1 of 1"),
        ("a", "b", "'a' is not 'b'"),
    ):
        with pytest.raises(AssertionError, match=message):
            close(actual, expected)
    with pytest.raises(AssertionError, match="mine: tensors are"):
        close(ut.ones(1), ut.zeros(1), msg=lambda text: f"mine: {text}")
    close(1.0, 1.1, rtol=0.0, atol=0.2)
    with pytest.raises(ValueError, match="both rtol and atol or neither"):
        close(1.0, 1.0, rtol=0.1)


def test_rrelu_draws_slopes() -> None:
    """In training each element below zero has a slope of its own, which its gradient has, too."""
    ut.manual_seed(0)
    x = ut.full((1000,), -1.0, requires_grad=True)
    y = ut.nn.functional.rrelu(x, 0.2, 0.6, training=True)
    slopes = -y.detach()
    assert 0.2 <= slopes.min() < 0.22
    assert 0.58 < slopes.max() < 0.6
    assert abs(slopes.mean().item() - 0.4) < 0.02
    y.sum().backward()
    assert x.grad is not None
    assert ut.equal(x.grad, slopes)
    z = ut.ones(3) * -1
    assert ut.nn.functional.rrelu(z, training=True, inplace=True) is z


def test_rrelu_between_numbers() -> None:
    with pytest.raises(ut.errors.ArgumentError, match=r"\[rrelu\].*finite"):
        ut.nn.functional.rrelu(ut.ones(2), 0.1, float("inf"))


def test_profilers_marks() -> None:
    """A mark is a block or a decorator; what is watched is tests/utils/test_profiler.py's."""
    with ut.profiler.record_function("name"):
        pass
    assert ut.profiler.record_function("name")(lambda: 3)() == 3
    assert not ut.profiler.kineto_available()


def test_nothing_of_this_is_imported_at_once() -> None:
    """The rooms are loaded when they are asked for."""
    rooms = "amp cuda distributed func jit multiprocessing nn profiler testing version".split()  # noqa: SIM905
    code = f"import sys, undertow; print([n for n in {rooms!r} if 'undertow.' + n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
