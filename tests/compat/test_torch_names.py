"""Names that only torch has: found at torch's paths, honest when they are called."""

from __future__ import annotations

import enum
import importlib
import subprocess
import sys

import pytest

import undertow as ut
from undertow.compat import refusals
from undertow.errors import UnsupportedError


def test_every_public_name_of_torch_exists() -> None:
    """Every module can be imported and has what torch's has."""
    lacking = []
    for path, names in refusals.table().items():
        if path == "ops.aten":
            continue
        module = importlib.import_module(f"undertow.{path}".rstrip("."))
        lacking += [f"{path}.{name}" for name in names if not hasattr(module, name)]
    assert lacking == []


def test_what_a_name_is() -> None:
    from undertow.distributed import fsdp
    from undertow.distributed.fsdp import fully_sharded_data_parallel as inner

    with pytest.raises(UnsupportedError, match=r"\[distributed\.fsdp\.share_comm_ctx\] "):
        fsdp.share_comm_ctx([ut.nn.Linear(2, 2)])
    with pytest.raises(UnsupportedError, match="FullyShardedDataParallel"):
        fsdp.FullyShardedDataParallel(ut.nn.Linear(2, 2))
    assert not isinstance(ut.nn.Linear(2, 2), fsdp.FullyShardedDataParallel)
    assert fsdp.FullyShardedDataParallel is inner.FullyShardedDataParallel  # one object
    assert issubclass(fsdp.ShardingStrategy, enum.Enum)
    assert fsdp.ShardingStrategy.FULL_SHARD.name == "FULL_SHARD"
    assert issubclass(ut.distributed.DistBackendError, RuntimeError)

    class Own(fsdp.FullyShardedDataParallel):  # type: ignore[misc]
        pass

    with pytest.raises(UnsupportedError):
        Own()


def test_a_module_does_not_hide_the_function_of_its_name() -> None:
    """torch has both: `nn.parallel.replicate` is a function, in a module of that name."""
    module = importlib.import_module("undertow.nn.parallel.replicate")
    with pytest.raises(UnsupportedError, match=r"\[nn\.parallel\.replicate\] "):
        module.replicate(ut.nn.Linear(2, 2), [0])
    with pytest.raises(UnsupportedError, match=r"\[nn\.parallel\.replicate\] "):
        ut.nn.parallel.replicate(ut.nn.Linear(2, 2), [0])
    assert refusals.is_refusal(ut.nn.parallel.replicate)


def test_what_there_is_stands_at_torchs_paths() -> None:
    assert importlib.import_module("undertow.nn.modules.conv").LazyConv1d is ut.nn.LazyConv1d
    assert importlib.import_module("undertow._tensor").Tensor is ut.Tensor
    assert importlib.import_module("undertow.mps") is ut.mps
    assert ut.torch is ut  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        ut.nn.functional.no_such_name  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("undertow.nn.no_such_module")


def test_the_list_is_read_when_it_is_needed() -> None:
    """`import undertow` and its own modules do without."""
    code = (
        "import sys, undertow, undertow.nn, undertow.optim, undertow.utils.data\n"
        "assert 'undertow.compat.refusals' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_compiler_names() -> None:
    assert ut._dynamo.is_compiling() is False
    f = ut._dynamo.disable(lambda x: x + 1)
    assert f(1) == 2
    with ut._dynamo.config.patch({"verbose": True}):
        assert ut._dynamo.config.verbose
    assert not ut._dynamo.config.verbose
    with ut.compiler.set_stance("force_eager"):
        pass
    with pytest.raises(OSError, match="load_library"):
        ut.ops.load_library("extension.so")


def test_modules_are_attributes_before_they_are_imported() -> None:
    """`torch.utils._python_dispatch` is loaded with torch, and programs rely on that."""
    code = (
        "import undertow as ut\n"
        "ut.utils._python_dispatch.TorchDispatchMode, ut._C._nn.gelu, ut.distributed.rpc\n"
        "ut.fx.passes.infra.pass_base.PassBase"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_devices_that_are_not_here_are_not_in_use() -> None:
    assert ut.xpu.is_initialized() is False


def test_layouts_of_blocks_can_be_compared_with() -> None:
    assert ut.ones(2).layout not in {ut.sparse_bsr, ut.sparse_bsc}
    assert isinstance(ut.sparse_bsr, ut.layout)


@pytest.mark.parametrize(
    "path", ["mtia", "backends.cusparselt", "backends.kleidiai", "backends.nnpack", "cuda.nccl"]
)
def test_what_refuses_says_that_it_is_not_available(path: str) -> None:
    """A library asks before it calls."""
    module = importlib.import_module(f"undertow.{path}")
    assert module.is_available() is False
