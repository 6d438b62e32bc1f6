"""Write the stubs from which type checkers and editors know what the ops publish at run time.

`ut.ones`, `F.gelu` and `x.exp()` exist once `undertow.ops` is imported, so no checker finds them in
the sources. `make stubs` writes them down from the registry, with the annotations, overloads and
docstring summaries of the functions themselves:

    undertow/__init__.pyi              the package
    undertow/nn/functional.pyi         `F`
    undertow/compat/linalg/__init__.pyi  and other packages of published functions
    undertow/core/tensor_methods.pyi   the methods of Tensor, as a base class of it

All but the last stand in for a source file, each a few lines that publish names. Tensor itself
stays in `core/tensor.py`, which inherits the methods where types are checked, so that mypy holds
the sources of the library against the same signatures as a user's program.

The signature of a function is what it is annotated with, except that
- a function with `@overload`s has those;
- `*sizes: Ints, size: Ints | None` is called with integers or with one sequence;
- of a result `Tensor | tuple[…]`, flags (`return_…`, `as_tuple`) or `dim` tell which it is;
- an in-place method `name_` takes what `name` takes;
- an operator takes a tensor or a number;
- a function of the list in `core/out` takes `out`, a tensor for each result.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import inspect
import itertools
import subprocess
import sys
import types
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import undertow as ut
from undertow.core.out import takes_out
from undertow.core.register import FUNCTIONAL, FUNCTIONS, SPACES

PACKAGE = Path(ut.__file__).parent
LAZY_SPACES = ("fft", "special")  # published when first asked for
HEAD = '# Written by tools/stubs.py: run `make stubs` instead of editing it.\n"""{}"""\n\n'
OPERATORS = """
add sub mul truediv floordiv mod pow and or xor lshift rshift lt le gt ge eq ne
""".split()  # noqa: SIM905
INDEX = """\
Index: TypeAlias = (
    builtins.int | slice | EllipsisType | Tensor | NDArray[Any] | list[Any] | tuple[Any, ...] | None
)
"""
# Python's own protocols, whose methods take more than can be said of them.
PROTOCOL = {
    "__getitem__": "(self, key: Index) -> Tensor",
    "__setitem__": "(self, key: Index, value: Tensor | Number | NDArray[Any]) -> None",
    "__matmul__": "(self, other: Tensor) -> Tensor",
    "__rmatmul__": "(self, other: Tensor) -> Tensor",
    **{
        f"__{side}{name}__": "(self, other: Tensor | Number) -> Tensor"
        for name in OPERATORS
        for side in ("", "r", "i")
    },
}

Parameter = inspect.Parameter
Signature = inspect.Signature


# Where names come from -------------------------------------------------------------------------
def module_of(path: Path) -> str:
    """`undertow.ops.reduce.scan` for its file."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.Module, module: str, package: bool) -> Iterable[tuple[str, str, str]]:
    """What a module imports by name: (name here, module, name there)."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            up = node.level - package
            base = module.split(".")[: -up or None] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield alias.asname or alias.name, source, alias.name


def known_names() -> dict[str, tuple[str, str]]:
    """Each name that an annotation may use, with the module and the name to import it by."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted((PACKAGE / "ops").rglob("*.py")):
        module = module_of(path)
        tree = ast.parse(path.read_text())
        for name, source, original in imported(tree, module, path.stem == "__init__"):
            found.setdefault(name, (source, original))
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name] = (module, node.name)
    for module in (ut.dtypes, sys.modules["undertow.devices"], sys.modules["undertow.shapes"]):
        for name in ("DType", "DTypeLike", "Number", "Device", "DeviceLike", "Ints", "Shape"):
            if name in vars(module):
                found[name] = (module.__name__, name)
    for name, source in (
        ("Iterator", "collections.abc"),
        ("Sequence", "collections.abc"),
        ("EllipsisType", "types"),
        ("NDArray", "numpy.typing"),
        ("Any", "typing"),
        ("Literal", "typing"),
        ("TypeAlias", "typing"),
        ("overload", "typing"),
        ("RemovableHandle", "undertow.core.node"),
        ("TypedStorage", "undertow.core.storage"),
        ("UntypedStorage", "undertow.core.storage"),
    ):
        found[name] = (source, name)
    return found


NAMES = known_names()


class Stub:
    """The text of one stub, and the imports that its annotations turn out to need."""

    def __init__(self, module: str, shadowed: Iterable[str]) -> None:
        self.module = module
        self.shadowed = {name for name in shadowed if hasattr(builtins, name)}
        self.needed: set[tuple[str, str]] = set()
        self.uses_builtins = False
        self.lines: list[str] = []

    def annotation(self, text: str) -> str:
        """An annotation as it reads in the stub, where `int` may be a dtype or a method."""
        stub = self

        class Rename(ast.NodeTransformer):
            def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # shapes.Shape
                return self.visit_Name(ast.Name(node.attr))

            def visit_Name(self, node: ast.Name) -> ast.AST:
                if node.id in stub.shadowed:
                    stub.uses_builtins = True
                    return ast.Attribute(ast.Name("builtins"), node.id)
                stub.need(node.id)
                return ast.Name(node.id)

        return ast.unparse(Rename().visit(ast.parse(text, mode="eval").body))

    def need(self, name: str) -> None:
        """Import a name, unless Python or the stub itself has it."""
        if name in NAMES:
            self.needed.add((NAMES[name][0], name))
        elif not hasattr(builtins, name) and name != "Index":
            raise LookupError(f"{self.module}: no import is known for the annotation {name}")

    def signature(self, signature: Signature) -> str:
        """`(input: Tensor, dim: int = 0) -> Tensor`."""
        parts = []
        kinds = [p.kind for p in signature.parameters.values()]
        for i, p in enumerate(signature.parameters.values()):
            if p.kind is p.KEYWORD_ONLY and (
                i == 0 or kinds[i - 1] not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
            ):
                parts.append("*")
            stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            text = stars + p.name
            if p.annotation is not p.empty:
                text += f": {self.annotation(p.annotation)}"
            if p.default is not p.empty:
                text += f" = {default(p.default)}"
            parts.append(text)
            if p.kind is p.POSITIONAL_ONLY and p.kind not in kinds[i + 1 :]:
                parts.append("/")
        return f"({', '.join(parts)}) -> {self.annotation(signature.return_annotation)}"

    def define(self, name: str, cases: list[str], doc: str, indent: str = "") -> None:
        """A function, with an overload for each case if there are several."""
        for case in cases:
            if len(cases) > 1:
                self.need("overload")
                self.lines.append(f"{indent}@overload")
            ignore = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
            body = f'\n{indent}    """{doc}"""' if doc else " ..."
            self.lines.append(f"{indent}def {name}{case}:{body}{ignore}")

    def write(self, doc: str, extra: Iterable[str] = ()) -> str:
        """The whole text, as the formatter leaves it."""
        by_module: dict[str, list[str]] = {}
        for module, name in sorted(self.needed):
            by_module.setdefault(relative(module, self.module), []).append(
                shown(NAMES[name][1], name)
            )
        imports = ["import builtins"] if self.uses_builtins else []
        imports += [f"from {m} import {', '.join(names)}" for m, names in by_module.items()]
        text = HEAD.format(doc) + "\n".join([*imports, *extra, "", *self.lines]) + "\n"
        for command in ("check --fix-only --select=I,F401", "format"):
            text = subprocess.run(
                [sys.executable, "-m", "ruff", *command.split(), "--quiet"]
                + [f"--stdin-filename=src/{self.module.replace('.', '/')}.pyi", "-"],
                input=text,
                text=True,
                capture_output=True,
                check=True,
                cwd=Path(__file__).parent.parent,
            ).stdout
        return text


def shown(original: str, name: str) -> str:
    """An imported name: `DType as dtype`."""
    return name if original == name else f"{original} as {name}"


def relative(module: str, to: str) -> str:
    """`..shapes` for `undertow.shapes` seen from `undertow.core.tensor_methods`."""
    parts, here = module.split("."), to.split(".")[:-1]
    if parts[0] != "undertow":
        return module
    common = len(
        list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(parts, here, strict=False)))
    )
    return "." * (len(here) - common + 1) + ".".join(parts[common:])


def default(value: Any) -> str:
    """A default as it reads in a signature; `...` if it has no short text."""
    plain = isinstance(value, (bool, int, float, str, tuple, type(None)))
    return repr(value) if plain and value == value and abs_finite(value) else "..."


def abs_finite(value: Any) -> bool:
    """Whether `repr` of a value can be read back: not of infinities."""
    return not isinstance(value, float) or abs(value) != float("inf")


def summary(thing: Any) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0].replace('"', "'")


# Signatures --------------------------------------------------------------------------------------
def signatures(fn: Callable[..., Any]) -> list[Signature]:
    """The signatures of a published function: its overloads, or those that its own one means."""
    source = inspect.unwrap(fn)
    home = types.SimpleNamespace(
        __module__=source.__globals__["__name__"], __qualname__=source.__code__.co_qualname
    )
    overloads = typing.get_overloads(typing.cast(Any, home))
    if overloads:
        return [inspect.signature(o) for o in overloads]
    signature = inspect.signature(fn)
    return by_sizes(signature) or by_result(signature) or [signature]


def by_sizes(signature: Signature) -> list[Signature]:
    """Two ways to give several integers: as arguments, or as one sequence."""
    listed = list(signature.parameters.values())
    for i, p in enumerate(listed[:-1]):
        after = listed[i + 1]
        if p.kind is p.VAR_POSITIONAL and (p.annotation, after.annotation) == (
            "Ints",
            "Ints | None",
        ):
            several = [*listed[:i], p.replace(annotation="int"), *listed[i + 2 :]]
            one = after.replace(
                kind=p.POSITIONAL_OR_KEYWORD, annotation="Sequence[int]", default=p.empty
            )
            return [
                signature.replace(parameters=several),
                signature.replace(parameters=[*listed[:i], one, *listed[i + 2 :]]),
            ]
    return []


def by_result(signature: Signature) -> list[Signature]:
    """A result that is one tensor or several, for each value of what decides about it."""
    plain, _, several = signature.return_annotation.partition(" | ")
    if plain != "Tensor" or not several:
        return []
    flags = [
        p.name
        for p in signature.parameters.values()
        if p.annotation == "bool" and (p.name.startswith("return_") or p.name == "as_tuple")
    ]
    cases = []
    for values in itertools.product((False, True), repeat=len(flags)):
        kinds = dict(zip(flags, (f"Literal[{v}]" for v in values), strict=True))
        count = sum(values)
        found = (
            f"tuple[{', '.join(['Tensor'] * (count + 1))}]" if "as_tuple" not in flags else several
        )
        cases.append(having(signature, kinds, found if count else plain))
    if flags:
        return [*cases, signature]
    if signature.parameters["dim"].annotation == "int | None":
        none = having(signature, {"dim": "None"}, plain)
        return [none, having(signature, {"dim": "int"}, several)]
    raise ValueError(f"nothing tells which result {signature} has")


def having(signature: Signature, kinds: dict[str, str], result: str) -> Signature:
    """The signature with other annotations; what must be given has no default any more."""
    changed = []
    by_name = False
    for p in signature.parameters.values():
        kind = kinds.get(p.name)
        if kind is not None:
            given = kind in ("Literal[True]", "int")
            # After a parameter with a default, one without has to be named.
            by_name |= kind == "Literal[True]" and p.kind is p.POSITIONAL_OR_KEYWORD
            p = p.replace(annotation=kind, default=p.empty if given else p.default)
        if by_name and p.kind is p.POSITIONAL_OR_KEYWORD:
            p = p.replace(kind=p.KEYWORD_ONLY)
        changed.append(p)
    return signature.replace(parameters=changed, return_annotation=result)


def is_vague(fn: Callable[..., Any]) -> bool:
    """Whether a function takes anything: the in-place methods, which hand it on."""
    parameters = inspect.signature(fn).parameters
    return any(
        p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.annotation == "Any"
        for p in parameters.values()
    )


def changing(name: str, fn: Callable[..., Any]) -> list[Signature]:
    """The signatures of an in-place function: those of the one whose value it writes."""
    plain = name.removesuffix("_")
    twin = vars(ut.Tensor).get(plain) or FUNCTIONAL.get(plain) or FUNCTIONS.get(plain)
    if plain == name or twin is None or not is_vague(fn):
        return signatures(fn)
    found = signatures(FUNCTIONAL.get(plain, twin))
    return [
        s.replace(
            parameters=[p for p in s.parameters.values() if p.name != "inplace"],
            return_annotation="Tensor",
        )
        for s in found
    ]


def as_method(signature: Signature) -> Signature:
    """The signature of a function whose first argument is the tensor."""
    first, *others = signature.parameters.values()
    bare = first.replace(name="self", annotation=first.empty, default=first.empty)
    return signature.replace(parameters=[bare, *others])


def accepting(name: str, cases: list[Signature], space: str) -> list[Signature]:
    """The signatures with `out`, of a function that takes it."""
    if not takes_out(name, space):
        return cases
    found = []
    for s in cases:
        result = s.return_annotation
        kind = result if result in ("Tensor", "Any") else "tuple[Tensor, ...] | list[Tensor]"
        out = Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation=f"{kind} | None")
        listed = list(s.parameters.values())
        last = len(listed) - any(p.kind is p.VAR_KEYWORD for p in listed)
        found.append(s.replace(parameters=[*listed[:last], out, *listed[last:]]))
    return found


# The three stubs -------------------------------------------------------------------------------
def functions(stub: Stub, table: dict[str, Callable[..., Any]], space: str = "") -> None:
    """Published functions; one that has several names is defined under the first of them."""
    first: dict[int, str] = {}
    for name, fn in table.items():
        if id(fn) in first:
            stub.lines.append(f"{name} = {first[id(fn)]}")
        else:
            first[id(fn)] = name
            cases = [stub.signature(s) for s in accepting(name, changing(name, fn), space)]
            stub.define(name, cases, summary(fn))


def exports(names: Iterable[str]) -> str:
    return f"__all__ = {sorted(names)!r}\n"


def functional() -> str:
    """The stub of `undertow.nn.functional`."""
    stub = Stub("undertow.nn.functional", FUNCTIONAL)
    functions(stub, FUNCTIONAL)
    stub.lines.append(exports(FUNCTIONAL))
    return stub.write("Activations, losses and the rest of torch's `nn.functional`.")


def place(name: str) -> Path:
    """The folder of `undertow.<name>`."""
    return PACKAGE.joinpath("compat", *name.split("."))


def space(name: str) -> str:
    """The stub of `undertow.<name>`, a package of published functions."""
    module = importlib.import_module(f"undertow.{name}")
    stub = Stub(f"undertow.compat.{name}.__init__", module.__all__)
    functions(stub, SPACES[name], name)
    tree = ast.parse((place(name) / "__init__.py").read_text())
    extra = [
        f"from {relative(home, stub.module)} import {original} as {here}"
        for here, home, original in imported(tree, f"undertow.compat.{name}", True)
        if here in module.__all__
    ]
    stub.lines.append(exports(module.__all__))
    return stub.write(summary(module), extra)


def package() -> str:
    """The stub of `undertow`: what `__init__.py` imports, and the published functions."""
    stub = Stub("undertow.__init__", ut.__all__)
    public = set(ut.__all__)
    extra = []
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    for name, module, original in imported(tree, "undertow", True):
        if original == "*":
            extra.append(f"from .dtypes import {', '.join(ut.dtypes.__all__)}")
            public -= set(ut.dtypes.__all__)
        elif name in public:
            extra.append(f"from {relative(module, stub.module)} import {shown(original, name)}")
            public.discard(name)
    for name, room in sorted(ut._LAZY.items()):
        top = "" if any(PACKAGE.glob(f"{room.partition('.')[0]}*")) else ".compat"
        home = (top or ".") if name == room else f"{top}.{room}"
        extra.append(f"from {home} import {name} as {name}")
        public.discard(name)
    functions(stub, FUNCTIONS)
    for name in ["__version__", *sorted(public - set(FUNCTIONS))]:
        if getattr(ut, name) is getattr(ut.Tensor, name, stub):
            stub.lines.append(f"{name} = Tensor.{name}")
            continue
        kind = type(getattr(ut, name)).__name__
        stub.lines.append(f"{name}: {stub.annotation('None' if kind == 'NoneType' else kind)}")
    stub.lines.append(exports(ut.__all__))
    stub.needed = {(m, n) for m, n in stub.needed if n not in ut.__all__}
    return stub.write(summary(ut), extra)


def tensor_methods() -> str:
    """The stub of what ops attach to Tensor, which is not in its class statement."""
    tree = ast.parse((PACKAGE / "core" / "tensor.py").read_text())
    (body,) = (n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    own = {n.name for n in body if isinstance(n, ast.FunctionDef)}
    own |= {t.id for n in body if isinstance(n, ast.Assign) for t in n.targets if hasattr(t, "id")}
    attached = {
        name: value
        for name, value in vars(ut.Tensor).items()
        if name not in own and isinstance(value, (types.FunctionType, property))
    }
    stub = Stub("undertow.core.tensor_methods", attached)
    stub.uses_builtins = True
    for name in ("Tensor", "Number", "NDArray", "Any", "EllipsisType", "TypeAlias"):
        stub.need(name)
    stub.lines += [INDEX, "class TensorMethods:"]
    for name, value in attached.items():
        if name in PROTOCOL:
            stub.define(name, [PROTOCOL[name]], "", "    ")
            continue
        if isinstance(value, property):
            stub.lines.append("    @property")
            value = value.fget
        cases = [stub.signature(as_method(s)) for s in changing(name, value)]
        stub.define(name, cases, "" if name.startswith("__") else summary(value), "    ")
    return stub.write("The methods that ops attach to Tensor.")


STUBS = {
    PACKAGE / "__init__.pyi": package,
    PACKAGE / "nn" / "functional.pyi": functional,
    PACKAGE / "core" / "tensor_methods.pyi": tensor_methods,
    **{
        place(name) / "__init__.pyi": functools.partial(space, name)
        for name in sorted({*SPACES, *LAZY_SPACES})
    },
}


def main() -> None:
    """Write the stubs that are out of date."""
    for path, make in STUBS.items():
        text = make()
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
