"""Names that torch has and we lack, each with the reason, so that the gap is in plain sight.

A name that is missing and not listed fails, and so does a pattern that nothing missing matches any
more: the lists shrink with the gap.
"""

from __future__ import annotations

import inspect
import re
from types import ModuleType
from typing import Any

import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

# Reasons, and patterns of names, separated by spaces.
INTERNAL = "internal: modules that torch imports, TorchScript's types, the dispatcher"
COMPILER = "symbols of torch's compiler"
STORAGE = "a tensor's memory is no object of its own"
QUANTISED = "quantised tensors, and dtypes narrower than a byte"
FOREIGN = "entry points of libraries that are not used here"
SPARSE = "sparse and nested tensors: to come"
REMOVED = "old linear algebra that torch has removed: there it only raises"
COPIES = "odds and ends: to come"
FUNCTIONAL = (
    "the raw kernel of a function that nn.functional has, with torch's positional signature"
)
ELSEWHERE = "in work elsewhere: optimisers, files, recurrent layers"
OTHERS = "other devices and packages of torch"

TOP: dict[str, str] = {
    INTERNAL: r"""
        .*Type Script.* .*Graph.* .*Logger.* .*Benchmark.* AliasDb Argument.* CompleteArg.* Block
        BufferDict CallStack Capsule Code CompilationUnit Concrete.* DeepCopy.* Deserial.* Serial.*
        Dispatch.* ErrorReport Exclude.* ExecutionPlan FatalError FileCheck FunctionSchema Future
        Gradient IODescriptor JITException LiteScript.* ModuleDict Node OperatorInfo ParameterDict
        PyTorchFile.* StaticModule TracingState Type Use Value Tag AVG SUM PRIVATE_OPS TYPE_CHECKING
        USE_.* Disable.* AcceleratorError autocast_.*crement_nesting builtins classes classproperty
        cpp ctypes fork wait functional functools futures get_file_path glob import_ir.* importlib
        inspect init_num_threads is_vulkan_available library merge_type.* parse_.* platform
        prepare_multi.* profiler_allow.* return_types sys textwrap thread_safe_generator threading
        torch torch_version unify_type_list warnings windows monitor package quasirandom has_.*
        hash_tensor
    """,
    COMPILER: "Sym.* sym_.* cond while_loop export fx vmap",
    STORAGE: ".*Storage StorageBase storage from_file frombuffer",
    QUANTISED: r"""
        .*quantize.* fbgemm.* q_.* q?u?int\d+(x\d+)? qint32 qint8 qscheme per_.* choose_qparams.*
        int_repr quantization fused_moving.* quantized_.* bits.* bit float8_.* float4_.*
        complex32 chalf
        uint16 uint32 uint64
    """,
    FOREIGN: "cudnn_.* miopen_.* mkldnn_.* batch_norm_.* native_.* ao",
    SPARSE: r"""
        sparse.* dsmm hsmm hspmm saddmm smm spmm sspaddmm resize_as_sparse_ jagged nested
        (ccol|col|crow|row)_indices_copy indices_copy values_copy
    """,
    REMOVED: "eig lstsq matrix_rank solve symeig",
    COPIES: "slice_inverse to_dlpack get_device_module legacy_contiguous_format",
    FUNCTIONAL: r"""
        adaptive_max_pool1d affine_grid_generator (feature_)?(alpha_)?dropout_? batch_norm
        binary_cross_entropy_with_logits constant_pad_nd convolution cosine_embedding_loss ctc_loss
        embedding embedding_bag embedding_renorm_ grid_sampler.* group_norm hinge_embedding_loss
        instance_norm kl_div layer_norm margin_ranking_loss max_pool1d_with_indices poisson_nll_loss
        rms_norm triplet_margin_loss
    """,
    ELSEWHERE: "optim save load serialization gru.* lstm.* rnn_.*",
    OTHERS: "mtia Event Stream hub .*autocast_(ipu|xla).* set_autocast_gpu_dtype",
}
METHODS: dict[str, str] = {
    INTERNAL: "hash_tensor name volatile reinforce module_load grad_dtype index",
    STORAGE: "storage storage_type untyped_storage resize resize_as",
    QUANTISED: "q_.* qscheme int_repr dequantize chalf",
    SPARSE: r"""
        .*_indices indices values coalesce is_coalesced dense_dim sparse_.* smm sspaddmm to_sparse.*
        resize_as_sparse_ to_padded_tensor to_mkldnn
    """,
    REMOVED: "eig lstsq solve symeig",
    COPIES: "slice_inverse",
    OTHERS: "ipu mtia",
}
FUNCTIONS: dict[str, str] = {
    INTERNAL: r"""
        BroadcastingList.* Callable DType GRID_.* Optional ScalingType SwizzleType TYPE_CHECKING
        Tensor assert_int_or_pair boolean_dispatch dataclasses grad handle_torch_function
        has_torch.* importlib math np .*_notes torch warnings
    """,
    QUANTISED: "grouped_mm scaled_mm scaled_grouped_mm",
    ELSEWHERE: "multi_head_attention_forward",
}
MODULE = "nn.Module: methods of other devices, an internal type"
# In modules only what their `__all__` promises is compared.
MODULES: dict[str, dict[str, str]] = {
    "nn.Module": {MODULE: "ipu mtia xpu T_destination"},
    "amp": {},
    "multiprocessing": {},
    "random": {INTERNAL: "thread_safe_generator"},
    "autograd": {INTERNAL: "grad_mode NestedIOFunction enforce_grad_layout_policy"},
    "nn.parallel": {OTHERS: "replicate scatter parallel_apply gather data_parallel"},
    "func": {
        "transforms of functions: to come": r"""
            grad grad_and_value vmap replace_all_batch_norm_modules_ functionalize hessian jac.* jvp
            linearize rearrange vjp stack_module_state debug_unwrap
        """
    },
    "jit": {
        "there is no TorchScript": r"""
            Attribute CompilationUnit Error Future Script.* .*fusion.* export_opnames fork interface
            trace_module wait
        """
    },
    "version": {INTERNAL: "git_version rocm"},
    "cuda": {
        "there is no CUDA device": r"""
            .*Storage (BFloat16|Char|Short)Tensor CudaError DeferredCudaCallError ExternalStream
            StreamContext GreenContext caching_.* can_device.* check_error cuda.* current_.*_handle
            device_memory_used .*allocator.* CUDAPlugg.* get_gencode_flags .*memory_fraction
            get_stream.* .*sync_debug_mode graph.* has_.* host_.* jiterator list_gpu_processes
            make_graphed_callables .*memory_cached memory memory_snapshot
            memory_stats_as_nested_dict memory_usage MemPool use_mem_pool temperature power_draw
            clock_rate nccl profiler random reset_.*_host_.* reset_accumulated_.*
            set_stream sparse streams tunable utilization
        """
    },
}


def missing(theirs: Any, ours: Any) -> list[str]:
    names = getattr(theirs, "__all__", None) if isinstance(theirs, ModuleType) else None
    listed = dir(theirs) if names is None or theirs in (torch, torch.nn.functional) else names
    return sorted(n for n in listed if not n.startswith("_") and not hasattr(ours, n))


def attribute(thing: Any, path: str) -> Any:
    for part in path.split("."):
        thing = getattr(thing, part)
    return thing


@pytest.mark.parametrize(
    "theirs, ours, reasons",
    [
        pytest.param(torch, ut, TOP, id="torch"),
        pytest.param(torch.Tensor, ut.Tensor, METHODS, id="Tensor"),
        pytest.param(torch.nn.functional, ut.nn.functional, FUNCTIONS, id="nn.functional"),
        *(
            pytest.param(attribute(torch, name), attribute(ut, name), reasons, id=name)
            for name, reasons in MODULES.items()
        ),
    ],
)
def test_what_is_missing_is_listed(theirs: Any, ours: Any, reasons: dict[str, str]) -> None:
    """Nothing is missing without a reason, and no reason is left over."""
    lacking = missing(theirs, ours)
    patterns = [pattern for listed in reasons.values() for pattern in listed.split()]
    unlisted = [n for n in lacking if not any(re.fullmatch(p, n) for p in patterns)]
    assert unlisted == []
    waiting = reasons.get(ELSEWHERE, "").split()  # these come and go with other work
    gone = [p for p in patterns if not any(re.fullmatch(p, n) for n in lacking)]
    assert [p for p in gone if p not in waiting] == []


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
