"""The stubs: as the generator writes them, complete, true at run time, and of use to a user."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import undertow as ut

ROOT = Path(__file__).parents[2]
SOURCE = Path(ut.__file__).parent


def generator() -> Any:
    """The module tools/stubs.py."""
    spec = importlib.util.spec_from_file_location("stubs", ROOT / "tools" / "stubs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def defined(path: Path, inside: str = "") -> set[str]:
    """The names that a file, or a class in it, defines or imports."""
    body = ast.parse(path.read_text()).body
    if inside:
        (body,) = (n.body for n in body if isinstance(n, ast.ClassDef) and n.name == inside)
    found = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found |= {a.asname or a.name for a in node.names}
        elif isinstance(node, ast.Assign):
            found |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """A checker over the sources of this tree, wherever the package is installed from."""
    paths = {"MYPYPATH": str(SOURCE.parent), "PYTHONPATH": str(SOURCE.parent)}
    return subprocess.run(
        [sys.executable, "-m", *command],
        env={**os.environ, **paths},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_stubs_are_up_to_date() -> None:
    """What is checked in is what `make stubs` writes."""
    for path, make in generator().STUBS.items():
        assert path.read_text() == make(), f"{path} is out of date: run `make stubs`"


def test_every_public_name_has_a_stub() -> None:
    """Functions, methods and everything else that `dir` shows."""
    assert set(ut.__all__) <= defined(SOURCE / "__init__.pyi")
    assert set(ut.nn.functional.__all__) <= defined(SOURCE / "nn" / "functional.pyi")
    methods = defined(SOURCE / "core" / "tensor_methods.pyi", "TensorMethods")
    methods |= defined(SOURCE / "core" / "tensor.py", "Tensor")
    given = {"__doc__", "__module__", "__weakref__", "__slots__", "__annotations__", "__new__"}
    given.add("__slotnames__")  # `copyreg` keeps it in a class when one of its instances is copied
    slots = set(ut.Tensor.__slots__)
    assert set(vars(ut.Tensor)) - given - slots <= methods


def test_stubs_hide_no_source() -> None:
    """A stub beside a source file hides it from mypy: only where the file publishes names."""
    hiding = {p for p in SOURCE.rglob("*.pyi") if p.with_suffix(".py").exists()}
    names = ("fft", "linalg", "masked", "signal/windows", "special")
    spaces = {SOURCE / "compat" / name / "__init__.pyi" for name in names}
    assert hiding == {SOURCE / "__init__.pyi", SOURCE / "nn" / "functional.pyi", *spaces}
    for path in hiding:
        tree = ast.parse(path.with_suffix(".py").read_text())
        assert not [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]


# What stubtest may report: private rooms, whose sources mypy checks and which have no stubs, and
# what is as it should be, each with the reason.
PRIVATE = (
    r"undertow\.(backends|kernel|ops|compat\.(?!(ao|array_api|export|fft|fx|jit|linalg|masked|overrides|signal|special|testing)\b)|core\.(?!tensor\.Tensor\.)|dtypes\._"
    r"|(\w+\.)+_\w+(\.\w+)? (is inconsistent|variable differs))"
)
RIGHT = {
    r'Tensor\.\w+ .* "self" differs from runtime parameter "(input|tensor|[ABLb])"': "by place",
    r"(\w_|__i\w+__) .* stub does not have (\*args )?parameter": "in-place forms hand all on",
    r'(relu6?|elu|hardtanh|threshold)_ .* "input" differs from runtime parameter "self"': "same",
    r'"(size|shape|dims|repeats)" is not keyword-only': "sizes: `*sizes, size=None`",
    r'runtime does not have parameter "out"$': "what publishes a function takes it, see core/out",
    r"undertow\.(compat\.special\.)?\w+ variable differs from runtime type def": "with `out`",
    r"array_api\.elementwise\.\w+ variable differs from runtime type def": "the same, with `out`",
    r"(MaskedTensor|NestedTensor|SparseTensor|Proxy)\.\w+ is not present in stub": "of tables",
    r"(fx|nn\.parallel\.distributed)\.\w+ is not present in stub": "found when they are asked for",
    r"nn\.parallel\.distributed\.__all__ names": "the same",
    r"ReduceOp\.RedOpType is not present in stub": "the class itself, under torch's old name",
    r"(fx|pytree_specs)(\.\w+)*\.__all__ names": "of classes in functions, see the next",
    r"\.(\w+@\d+|<callable subtype of object>\d*) is not present at runtime": "made in functions",
    r"fx\.naming\.load_native is inconsistent": "remembers what it loaded",
    r"Kind\.\w+ variable differs from runtime type Literal": "members of enumerations by name",
    r'Graph\.placeholder is inconsistent, stub parameter "default_value"': "a value that is none",
    r"NestedInt is a disjoint base": "a number with slots",
    r"distributions\.\w+\.\w+\.support is not a function": "of the class, or of each instance",
    r"(\.|Tensor\.)(max|min|randint|to|type|view|where) ": "overloads, by the types of arguments",
}


@pytest.mark.slow
def test_stubs_are_true_at_run_time() -> None:
    """stubtest imports the package, and finds each name and parameter as the stubs have it."""
    done = run("mypy.stubtest", "undertow", "--concise", "--mypy-config-file=pyproject.toml")
    lines = done.stdout.splitlines()
    assert not done.stderr
    assert not [line for line in lines if not line.startswith("undertow")]  # mypy's own errors
    public = [line for line in lines if not re.match(PRIVATE, line)]
    assert [line for line in public if not any(re.search(r, line) for r in RIGHT)] == []
    for pattern, reason in RIGHT.items():
        assert any(re.search(pattern, line) for line in public), f"not needed any more: {reason}"


def expectations(path: Path) -> dict[int, list[str]]:
    """By line, what the comments of the user's program expect of mypy."""
    found = {}
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        comments = re.findall(r"# ([RE]): (.*?)(?=\s+# [RE]: |$)", line)
        if comments and not line.startswith("`"):
            found[number] = sorted(f"{kind}: {text}" for kind, text in comments)
    return found


def reports(output: str, path: Path) -> dict[int, list[str]]:
    """By line, what mypy says about a file, in the form of `expectations`."""
    found: dict[int, list[str]] = {}
    for line in output.splitlines():
        match = re.match(rf"{re.escape(str(path))}:(\d+): (error|note): (.*)", line)
        if match is None:
            continue
        number, kind, text = int(match[1]), match[2], match[3]
        if kind == "error":
            found.setdefault(number, []).append(f"E: {text.rpartition('[')[2].rstrip(']')}")
        elif text.startswith("Revealed type is"):
            shown = text.partition('"')[2].rstrip('"')
            found.setdefault(number, []).append(
                f"R: {re.sub(r'[a-z_.]+[.](?=[A-Za-z])', '', shown)}"
            )
    return {number: sorted(said) for number, said in found.items()}


@pytest.mark.slow
def test_user_program() -> None:
    """Good calls have the right types, and bad ones are errors, in mypy's strict mode."""
    path = Path("tests/programs/typed.py")
    options = "--strict --follow-imports=silent --cache-dir=.mypy_cache/typed"
    done = run("mypy", *options.split(), str(path))
    assert reports(done.stdout, path) == expectations(path), done.stdout + done.stderr
