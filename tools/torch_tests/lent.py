"""Lend private names of torch to its test files, with Undertow under the name `torch`.

The fixtures of torch (`torch.testing._internal`) import hundreds of private names that most tests
never use. A name that Undertow does not have becomes a `Lent` here: it can be imported, called,
entered and inherited from, and it notes that it was. A test that fails after such a use is counted
as one about a private name.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

USED: list[str] = []  # the lent names that were called since the last look

# Modules of torch that are taken as they are, from its own source, by the beginning of the name.
GENUINE = ("torch.testing._internal", "torch.testing._comparison", "torch.testing._utils",
           "torch._functorch.make_functional", "torch._functorch.batch_norm_replacement",
           "torch._functorch.functional_call", "torch.nn.utils._named_member_accessor")  # fmt: skip
# Modules of ours that are asked for private names.
_PRIVATE = """
    _C _C._functorch _dynamo _dynamo.config _inductor _logging _subclasses _utils _ops jit
    onnx cuda backends _prims_common library _higher_order_ops nn.utils ao ao.quantization
    ao.nn.quantized utils fx export _jit_internal utils._pytree overrides autograd
    distributed autograd.gradcheck autograd.functional autograd.graph testing
    utils.checkpoint autograd.forward_ad nn.modules nn.parallel types nn.parameter
    serialization storage sparse fft linalg special return_types func nested nn.functional
    nn.init random package masked multiprocessing profiler futures hub optim amp
    _dynamo.utils _dynamo.testing _C._autograd autograd.profiler autograd.function
    _C._profiler
""".split()  # noqa: SIM905
# What fixtures compute with.
_VALUES = {
    "_C._get_privateuse1_backend_name": lambda: "privateuseone",
    "_C._get_cpu_capability": lambda: "AVX2",
    "_C._is_torch_function_enabled": lambda: True,
    "_C._has_storage": lambda x: True,
    "autograd.kineto_available": lambda: False,
    "_dynamo.config.compiled_autograd": False,
    "_C._debug_only_are_vmap_fallback_warnings_enabled": lambda: True,
    "_C._debug_only_display_vmap_fallback_warnings": lambda shown: None,
    "_C._functorch._set_vmap_fallback_enabled": lambda enabled: None,
    "_C._functorch._is_vmap_fallback_enabled": lambda: True,
    "_C._functorch._set_vmap_fallback_warning_enabled": lambda enabled: None,
    "_C._functorch._is_vmap_fallback_warning_enabled": lambda: True,
    "_C.has_lapack": True,
    "_C.has_mkl": False,
    "_C._has_mkldnn": False,
    "_C.has_openmp": True,
    "_C._dispatch_has_kernel": lambda name: True,
    "_C._llvm_enabled": lambda: False,
    "_logging.scribe.open_source_signpost": lambda **told: None,
    "_utils._is_privateuse1_backend_available": lambda: False,
}


class Lent:
    """A private name of torch: whatever is done with it works and means nothing."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        USED.append(self._path)
        if len(args) == 1 and not kwargs and isinstance(args[0], (FunctionType, type)):
            return args[0]  # a decorator
        return Lent(f"{self._path}()")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = Lent(f"{self._path}.{name}")
        self.__dict__[name] = found
        return found

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (type("Lent", (), {}),)

    def __instancecheck__(self, value: Any) -> bool:
        return False

    __subclasscheck__ = __instancecheck__

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def __iter__(self) -> Any:
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __len__(self) -> int:
        return 0

    def __contains__(self, value: Any) -> bool:
        return False

    def __int__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Any:
        return Lent(f"{self._path}[]")

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __and__ = __or__

    def __lt__(self, other: Any) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __repr__(self) -> str:
        return f"<lent torch.{self._path}>"


class _Modules(MetaPathFinder, Loader):
    """Finds modules of torch that Undertow has not: genuine fixtures, or lent names."""

    def __init__(self, source: Path) -> None:
        self.source = source

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        room, _, rest = fullname.partition(".")
        if room not in ("torch", "undertow", "functorch", "torchgen"):
            return None
        private = any(part.startswith("_") for part in rest.split("."))
        if room == "undertow" and not private:
            return None
        if room == "torch" and fullname.startswith(GENUINE):
            file = self.source.joinpath(*fullname.split("."))
            if (file / "__init__.py").is_file():
                return importlib.util.spec_from_file_location(
                    fullname, file / "__init__.py", submodule_search_locations=[str(file)]
                )
            if file.with_suffix(".py").is_file():
                return importlib.util.spec_from_file_location(fullname, file.with_suffix(".py"))
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        _open(module, module.__name__.partition(".")[2].removeprefix("compat."))


class _First(_Modules):
    """Finds genuine modules before anybody looks for one of ours."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        return super().find_spec(fullname, path) if fullname.startswith(GENUINE) else None


def _open(module: ModuleType, path: str) -> None:
    """Let a module lend private names that it does not have."""
    before = module.__dict__.get("__getattr__")

    def __getattr__(name: str) -> Any:
        inner = f"{path}.{name}".removeprefix(".")
        if inner in _VALUES:
            return _VALUES[inner]
        try:
            if before is not None:
                return before(name)
        except (AttributeError, ImportError):
            pass
        private = inner.startswith("ao.") or any(p.startswith("_") for p in inner.split("."))
        # Fixtures ask which of the functions on lists there are.
        if name.startswith(("__", "_foreach_")) or not private:
            raise AttributeError(f"module 'torch.{path}' has no attribute {name!r}")
        module.__dict__[name] = Lent(inner)
        return module.__dict__[name]

    module.__getattr__ = __getattr__  # type: ignore[method-assign]


def lend(source: Path) -> None:
    """Put Undertow in torch's place, with torch's own fixtures from a folder with its source."""
    import undertow

    sys.modules["torch"] = undertow
    sys.meta_path.insert(0, _First(source))
    sys.meta_path.append(_Modules(source))
    testing = importlib.import_module("torch.testing")
    testing.__path__ = [str(source / "torch" / "testing")]
    _open(undertow, "")
    for path in _PRIVATE:
        _open(importlib.import_module(f"torch.{path}"), path)
    _lend_functorch(undertow)
    operator = importlib.import_module("torch._ops").HigherOrderOperator
    operator.py_impl = lambda self, *keys: lambda rule: rule


def _lend_functorch(ut: Any) -> None:
    """The package `functorch`, whose names are those of `torch.func` and a few older ones."""
    functorch, experimental = map(importlib.import_module, ("functorch", "functorch.experimental"))
    vars(functorch).update({n: getattr(ut.func, n) for n in ut.func.__all__})
    older = importlib.import_module("torch._functorch.make_functional")
    for name in ("make_functional", "make_functional_with_buffers", "combine_state_for_ensemble"):
        vars(functorch)[name] = getattr(older, name)
    norms = importlib.import_module("torch._functorch.batch_norm_replacement")
    vars(experimental).update(
        {n: f for n, f in vars(norms).items() if n.startswith("replace_all")},
        chunk_vmap=lambda f, in_dims=0, out_dims=0, randomness="error", chunks=2: ut.func.vmap(
            f, in_dims, out_dims, randomness, chunk_size=chunks
        ),
    )
