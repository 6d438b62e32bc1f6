"""The design, guarded: import direction, one place per op, complete backends, docs, samples."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rooms
from rooms import imported, room

import undertow as ut
import undertow.sparse  # loaded on demand, with an op of its own
from op_cases import cases, flat, has_float, leaves, resolve, tensors, within
from op_samples import load
from undertow.backends.base import Backend
from undertow.backends.reference import UFUNCS, NumpyBackend
from undertow.backends.registry import backend_on, devices
from undertow.core.node import AccumulateGrad, Node
from undertow.core.op import OPS
from undertow.core.register import FUNCTIONAL, FUNCTIONS, SPACES
from undertow.core.tensor import Alias
from undertow.kernel.expr import PRIMITIVES

SOURCE = rooms.SOURCE
FILES = sorted(SOURCE.rglob("*.py"))
ROOMS = list(rooms.ROOMS)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_down(path: Path) -> None:
    """No room imports from a room above it."""
    here = room(path)
    if here == "__init__":
        return
    assert here in ROOMS, f"{path} stands in no room of the design"
    for line, there in imported(path):
        assert there in ROOMS, f"{path}:{line} imports {there}, which is no room"
        assert ROOMS.index(there) <= ROOMS.index(here), f"{path}:{line} imports {there} from {here}"


def test_the_picture_shows_the_imports() -> None:
    """`python tools/rooms.py` draws docs/rooms.svg again."""
    assert rooms.PICTURE.read_text() == rooms.picture()


def test_the_house_shows_its_plan() -> None:
    """At most 30 entries at the top, each one a room, its stub or a marker."""
    entries = {path.name for path in SOURCE.iterdir() if path.name != "__pycache__"}
    assert len(entries) <= 30
    known = {name.partition(".")[0] for name in ROOMS} | {"__init__", "py"}
    assert {name.partition(".")[0] for name in entries} <= known


# Those of the CPU's backend, in the order in which they may import each other.
CPU_ROOMS = [
    "codegen",
    "threads",
    "calls",
    "products",
    "convolution",
    "forms",
    "backend",
    "recorder",
    "table",
    "joined",
]


@pytest.mark.parametrize(
    "path", [p for p in FILES if "cpu" in p.parts and "backends" in p.parts], ids=lambda p: p.stem
)
def test_imports_go_down_in_the_cpu_backend(path: Path) -> None:
    """From a form to machine code, never back."""
    here = path.relative_to(SOURCE / "backends" / "cpu").parts[0].removesuffix(".py")
    if here == "__init__":
        return
    package = [*path.relative_to(SOURCE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            module = [*base, *(node.module.split(".") if node.module else [])]
            if module[:2] == ["backends", "cpu"] and len(module) > 2:
                above = CPU_ROOMS.index(module[2]) > CPU_ROOMS.index(here)
                assert not above, f"{path}:{node.lineno} imports {module[2]} from {here}"


def test_one_definition_per_op() -> None:
    """Every op is defined by one call in one file, and nothing imports torch."""
    names: Counter[str] = Counter()
    for path in FILES:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("Op", "elementwise_op")
                and isinstance(node.args[0], ast.Constant)
            ):
                names[str(node.args[0].value)] += 1
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                module = getattr(node, "module", None) or node.names[0].name
                assert module.partition(".")[0] not in ("torch", "jax"), f"{path} imports {module}"
    assert [n for n, count in names.items() if count > 1] == []
    assert set(names) <= set(OPS)


def test_expressions_are_traced_once() -> None:
    """A function that traces at each call would fill the kernel cache without end."""
    for path in (SOURCE / "ops").rglob("*.py"):
        for outer in ast.walk(ast.parse(path.read_text())):
            if isinstance(outer, ast.FunctionDef):
                for node in ast.walk(outer):
                    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                        where = f"{path}:{node.lineno}"
                        assert node.func.id != "trace", f"{where} traces inside {outer.name}"


def test_backends_are_complete() -> None:
    """Every device answers every form, and NumPy interprets every primitive."""
    assert set(UFUNCS) == set(PRIMITIVES)
    for device in devices():
        backend = backend_on(device)
        assert isinstance(backend, Backend)
        for form in forms():
            assert callable(getattr(backend, form))
            assert form in vars(NumpyBackend) or form in ONE_WAY, f"{form} has no definition"


def forms() -> list[str]:
    """The names of everything that the contract has."""
    return [n for n, f in vars(Backend).items() if not n.startswith("_") and callable(f)]


# Forms whose default is the definition: compositions that NumPy has no better word for.
ONE_WAY = {
    "csr_matmul",
    "lift",
    "whole",
    "ranked",
    "run",
    "prepare",
    "direct",
    "require",
    "table",
    "transfer",
    "update",
    "add_into",
    "add_product",
    "rows",
    "attention",
    "attention_backward",
    "recurrent",
    "recurrent_backward",
    "fft",
    "linalg",
    "spans",
    "convolution",
}


def test_the_contract_is_small() -> None:
    """A device must answer at most 16 forms; see Note [what a device must answer]."""
    must = Backend.__abstractmethods__
    assert len(must) <= 16
    assert f"{len(must)} forms" in (SOURCE.parents[1] / "docs" / "devices.md").read_text()


# Above the backends nobody knows what an array is --------------------------------------------
ABOVE_BACKENDS = (
    "sparse",
    "core",
    "ops",
    "autograd",
    "nn",
    "amp",
    "files",
    "models",
    "onnx",
    "func",
    "utils",
)
ABOVE = [path for path in FILES if room(path) in ABOVE_BACKENDS]
ABOVE += [*(SOURCE / "compat" / "array_api").glob("*.py")]
ABOVE += [SOURCE / "compat" / f"{name}.py" for name in ("settings", "testing")]
# The files that meet NumPy on behalf of a user: what comes in, what goes out, what is shown.
AT_THE_BORDER = {
    "core/foreign.py",  # NumPy numbers and arrays among arguments
    "core/generator.py",  # the state of a generator as bytes
    "core/printing.py",  # elements that have arrived on the host
    "core/protocol.py",  # __array__, ufuncs, DLPack, pickles
    "ops/create/from_data.py",  # tensors from lists and arrays
    "ops/index/indexing.py",  # lists and arrays in an index
    "autograd/check.py",  # finite differences on the host
    "files/elements.py",  # the bytes of files
    "models/estimators.py",  # a user's arrays of series, as scikit-learn's estimators take them
    "models/saved.py",  # series out of files, as a model needs them, and the numbers it tells
    "files/numpy_arrays.py",  # a user's arrays in checkpoints
    "utils/data/_utils/collate.py",  # samples that are arrays and NumPy numbers
    "utils/tensorboard.py",  # pictures and numbers as bytes of files
    "utils/data/_utils/worker.py",  # seeds NumPy's generator for the user's code
}


def array_attributes(path: Path) -> list[tuple[int, str]]:
    """What a file asks of `something._array`, or of what it called `array`, with line numbers."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            of = node.value
            named = isinstance(of, ast.Name) and of.id == "array"
            if named or (isinstance(of, ast.Attribute) and of.attr == "_array"):
                found.append((node.lineno, node.attr))
    return found


@pytest.mark.parametrize("path", ABOVE, ids=lambda p: str(p.relative_to(SOURCE)))
def test_nobody_above_the_backends_knows_what_an_array_is(path: Path) -> None:
    """No NumPy, no particular device, and of an array only what the contract promises."""
    name = str(path.relative_to(SOURCE))
    border = name in AT_THE_BORDER
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
            assert border or "numpy" not in modules, f"{path}:{node.lineno} imports NumPy"
        if isinstance(node, ast.ImportFrom) and "backends" in (node.module or ""):
            names = {alias.name for alias in node.names}
            assert "CPU" not in names, f"{path}:{node.lineno} wants one particular device"
            assert ".cpu" not in (node.module or ""), f"{path}:{node.lineno} wants the CPU's own"
    promised = {"shape", "strides", "dtype", "size", "backend", "__class__"}
    for line, attribute in array_attributes(path):
        assert border or attribute in promised, f"{path}:{line} asks an array for {attribute!r}"


def test_one_place_makes_tensors_and_nodes() -> None:
    """`wrap` makes tensors, `new_node` the nodes of ops; nobody fills them field by field."""
    made = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            of = node.args[0].id if node.args and isinstance(node.args[0], ast.Name) else ""
            name = getattr(node.func, "id", "")  # ONNX has a Node of its own, which takes arguments
            by_new = name == "_new" or getattr(node.func, "attr", "") == "__new__"
            if (by_new and of in ("Tensor", "Node")) or (name == "_new" and of == "kind"):
                made.add((path.relative_to(SOURCE).as_posix(), "_new"))
            if name == "_blank" or (name == "Node" and not node.args and not node.keywords):
                made.add((path.relative_to(SOURCE).as_posix(), name))
    tensors = {("core/tensor.py", "_blank"), ("core/tensor.py", "_new")}  # _new: of a subclass
    assert made == {*tensors, ("core/node.py", "Node")}


# Elementwise ops whose first-order backward is no single kernel, each with its reason.
_MIXED = "its rule has real and complex arguments, an expression has one dtype"
NOT_FUSED = dict.fromkeys(
    ["complex_abs", "complex_angle", "complex_sign", "complex_softsign"], _MIXED
)


def test_rules_that_do_not_fuse_are_known() -> None:
    """A rule that cannot be traced runs op by op, on every device; see Note [fused rules]."""
    found = {
        name
        for name, op in list(OPS.items())
        if op.scalar is not None
        and op.rules
        and any(
            op.plan(op.arity, 1 << i).fused is None
            for i, given in enumerate(op.inputs)
            if given in op.rules
        )
    }
    assert found == set(NOT_FUSED)


def public() -> list[Any]:
    """Every published function, once."""
    return [pytest.param(name, function, id=name) for name, function in sorted(published().items())]


def published() -> dict[str, Any]:
    """Every published function by the name under which a user finds it."""
    assert [ut.fft.__all__, ut.special.__all__]  # published when first asked for
    spaces = {f"{space}.{n}": f for space, table in SPACES.items() for n, f in table.items()}
    return {**{f"nn.functional.{n}": f for n, f in FUNCTIONAL.items()}, **spaces, **FUNCTIONS}


@pytest.mark.parametrize("name, function", public())
def test_public_functions_are_documented(name: str, function: Any) -> None:
    """A docstring with a runnable example."""
    assert function.__doc__, f"{name} has no docstring"
    assert ">>>" in function.__doc__, f"the docstring of {name} has no example"


def test_public_methods_are_documented() -> None:
    """Every public method and property of Tensor has a docstring."""
    bare = [
        name
        for name, value in vars(ut.Tensor).items()
        if not name.startswith("_") and not getattr(value, "__doc__", None)
    ]
    assert bare == []


def test_every_function_has_samples() -> None:
    """An op without samples fails the suite."""
    table = load()
    named = {id(resolve(name)) for name in table}
    assert [name for name, function in published().items() if id(function) not in named] == []


# Ops that are written somewhere: tests make others, as derivatives of some order.
WITH_RULES = {name for name, op in OPS.items() if op.rules}


def test_every_rule_is_exercised() -> None:
    """Each op that has a derivative occurs in the graph of some sample that is gradchecked."""
    seen: set[str] = set()

    def walk(outputs: Any) -> None:
        stack = [t.grad_fn for t in outputs if isinstance(t, ut.Tensor)]
        visited = set()
        while stack:
            node = stack.pop()
            if node is not None and node not in visited and hasattr(node, "plan"):
                visited.add(node)
                seen.add(node.plan.op.name)
                stack += node.parents

    for case in cases(has_float):
        info, sample = case.values
        args, kwargs = tensors(sample.args, grad=True), tensors(sample.kwargs, grad=True)
        outputs = [
            t
            for t in flat(within(info)(*args, **kwargs))
            if isinstance(t, ut.Tensor) and t.requires_grad
        ]
        walk(outputs)
        inputs = leaves(args, kwargs)
        if outputs and inputs:
            seeds = [ut.ones_like(o, requires_grad=True) for o in outputs]
            how = {"create_graph": True, "materialize_grads": True}
            walk(ut.autograd.grad(outputs, inputs, seeds, **how))
    # Met only where tensors change in place, in dtype or in device, or are sparse:
    # test_views.py, test_dtypes.py, test_autograd.py, test_sparse.py.
    elsewhere = {"view_write", "overwrite", "laid_out", "cast", "transfer", "csr_matmul"}
    elsewhere |= {"second_cofactors"}  # in third derivatives: tests/ops/test_linalg.py
    # tests/func/test_vmap.py:
    elsewhere |= {"into_batch", "out_of_batch", "view_out_of_batch", "lift", "sum_over_batch"}
    assert sorted(WITH_RULES - seen - elsewhere) == []


def test_numpy_warnings_do_not_leak() -> None:
    """Infinities and NaN raise no NumPy warning, even where warnings are errors."""
    x = ut.tensor([0.0, 1e38, -1.0])
    with np.errstate(all="raise"):
        assert (x / 0).isinf().any()
        assert (x * 1e10).isinf().any()
        assert (x - x / 0 + x / 0).isnan().any()


@pytest.mark.parametrize("kind", [ut.Tensor, Node, AccumulateGrad, Alias])
def test_attributes_of_hot_classes_are_plain(kind: type) -> None:
    """Python does not specialise attributes of a class with a `__getattr__`: 10 % of a backward."""
    for name in ("__getattr__", "__getattribute__", "__setattr__"):
        assert getattr(kind, name, None) in (None, getattr(object, name, None))


@pytest.mark.parametrize("room", ["func", "optim", "load", "distributions"])
def test_two_threads_may_import_at_once(room: str) -> None:
    """See Note [imports of threads]: each room beside `nn`, of which it imports parts."""
    script = f"""
import sys, threading
import undertow as ut
sys.setswitchinterval(1e-5)
together, failed = threading.Barrier(2), []
def load(name):
    together.wait()
    try:
        getattr(ut, name)
    except ImportError as error:
        failed.append(error)
threads = [threading.Thread(target=load, args=(name,)) for name in ({room!r}, "nn")]
for t in threads: t.start()
for t in threads: t.join()
assert not failed, failed
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)
