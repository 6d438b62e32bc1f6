"""Write src/undertow/compat/names.txt: every public module of torch, and what it has.

    python tools/torch_modules.py            with torch, of which only names are kept

A module's names are those of its `__all__` and the public ones that it defines. What torch has at
several paths stands at the shortest, and the others refer to it. A line says what its names are:

    [nn.utils.fusion]
    function nn.utils: fuse_conv_bn_eval        it stands in nn.utils
    function: fuse_linear_bn_weights            it stands here
    class error enum                            classes, exceptions, enumerations (with members)
    value: MAX=3                                a literal; `object` is what has no literal
"""

from __future__ import annotations

import ast
import contextlib
import enum
import importlib
import io
import itertools
import pkgutil
import re
import sys
import textwrap
import warnings
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

TABLE = Path(__file__).parents[1] / "src" / "undertow" / "compat" / "names.txt"
PRIVATE = """
_C.Graph _C.Value _inductor.runtime.cache_dir_utils.cache_dir
distributed._composable.fsdp.FSDPModule distributed._composable.fsdp.fully_shard
distributed._functional_collectives.all_to_all_single_autograd
distributed._functional_collectives.wait_tensor distributed._tensor.DTensor
distributed._tensor.experimental.implicit_replication
distributed.algorithms._checkpoint.checkpoint_wrapper.CheckpointImpl
distributed.algorithms._checkpoint.checkpoint_wrapper.CheckpointWrapper
distributed.algorithms._checkpoint.checkpoint_wrapper.apply_activation_checkpointing
distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper
distributed.checkpoint._consolidate_hf_safetensors.consolidate_safetensors_files
distributed.tensor._utils.compute_local_shape_and_global_offset
distributed.tensor.experimental._attention.set_rotate_method
distributed.tensor.placement_types._StridedShard export._trace._export
_library.custom_ops.CustomOpDef
utils._sympy.numbers.IntInfinity utils._sympy.value_ranges.ValueRanges
""".split()  # noqa: SIM905
WRAPPED: Any = {"subsequent_indent": "  ", "break_long_words": False, "break_on_hyphens": False}


def public_modules(name: str, found: dict[str, ModuleType]) -> dict[str, ModuleType]:
    """The module of that name and all below it that can be imported and have no underscore."""
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            module = importlib.import_module(name)
    except Exception:  # it needs a package that is not installed
        return found
    found[name.partition(".")[2]] = module
    for entry in pkgutil.iter_modules(getattr(module, "__path__", [])):
        if not entry.name.startswith("_"):
            public_modules(f"{name}.{entry.name}", found)
    return found


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module: promised ones, and those that it defines."""
    promised = set(getattr(module, "__all__", ()))
    open_ended = not promised or module.__name__ == "torch"
    for name, value in vars(module).items():
        if name.startswith("_") or isinstance(value, (ModuleType, TypeVar, ParamSpec)):
            continue
        home = getattr(value, "__module__", None)
        named = isinstance(value, type) or callable(value)
        if home == module.__name__ or (
            open_ended and (str(home).startswith("torch") if named else literal(value) is not None)
        ):
            promised.add(name)
    return sorted(n for n in promised if not isinstance(getattr(module, n, module), ModuleType))


def literal(value: Any) -> str | None:
    """The text of a small number, string or None; None for everything else."""
    if value is not None and type(value) not in (int, float, bool, str):
        return None
    text = repr(value)
    with contextlib.suppress(ValueError, SyntaxError):
        if len(text) < 40 and not re.search(r"[\s/]", text) and ast.literal_eval(text) == value:
            return text
    return None


def kind_of(value: Any) -> str:
    """What the names of a line are."""
    if isinstance(value, type):
        if issubclass(value, enum.Enum):
            return "enum"
        return "error" if issubclass(value, Exception) else "class"
    return "function" if callable(value) else "value" if literal(value) is not None else "object"


def names_below(modules: dict[str, ModuleType]) -> dict[str, list[str]]:
    """Names behind an underscore that libraries import, by module; their modules are added."""
    found = defaultdict(list)
    for dotted in PRIVATE:
        path, _, name = dotted.rpartition(".")
        modules[path] = importlib.import_module(f"torch.{path}")
        found[path].append(name)
        for parent in itertools.accumulate(path.split(".")[:-1], "{}.{}".format):
            modules.setdefault(parent, ModuleType(parent))
            found.setdefault(parent, [])
    return found


def operators() -> list[str]:
    """The names of torch's own operators on tensors."""
    schemas = [str(s) for s in importlib.import_module("torch")._C._jit_get_all_schemas()]
    aten = [s.removeprefix("aten::") for s in schemas if s.startswith("aten::") and "Tensor" in s]
    return sorted({re.split(r"[.(]", s)[0] for s in aten} - {""})


def wrapped(head: str, names: list[str]) -> list[str]:
    """The lines that list names."""
    return textwrap.wrap(f"{head}: {' '.join(names)}", 100, **WRAPPED)


def main() -> None:
    """Write the table."""
    warnings.simplefilter("ignore")
    modules = public_modules("torch", {})
    listed = {path: names_of(module) for path, module in modules.items()}
    for path, names in names_below(modules).items():
        listed[path] = sorted({*listed.get(path, []), *names})
    homes: dict[int, tuple[str, str]] = {}
    for path in sorted(listed, key=lambda p: (p.count("."), len(p)) if p else (-1, 0)):
        for name in listed[path]:
            value = getattr(modules[path], name)
            if kind_of(value) not in ("value", "object"):
                homes.setdefault(id(value), (path, name))
    text = []
    for path in sorted(listed):
        lines = defaultdict(list)
        for name in listed[path]:
            value = getattr(modules[path], name)
            kind = kind_of(value)
            home, first = homes.get(id(value), (path, name))
            where = "" if (home, first) == (path, name) else f" {home or 'torch'}"
            entry = name if first == name else f"{name}={first}"
            if kind == "value":
                entry = f"{name}={literal(value)}"
            if kind == "enum" and not where:
                entry = f"{name}({','.join(value.__members__)})"
            lines[kind + where].append(entry)
        text.append(f"[{path or 'torch'}]")
        for head, names in sorted(lines.items()):
            text += wrapped(head, names)
    text += ["[ops.aten]", *wrapped("function", operators())]
    TABLE.write_text("\n".join(text) + "\n")
    sys.stdout.write(f"{len(listed)} modules, {sum(map(len, listed.values()))} names\n")


if __name__ == "__main__":
    main()
