"""Write docs/ecosystem_names.md: the names of torch that the packages touch, and which are here.

    python tools/ecosystem/names.py              after a change of public names
    python tools/ecosystem/names.py --scan FOLDER ...

The first form needs neither torch nor the packages: the names stand in touched.toml. The second
reads the sources of the packages anew, from the folders where they are installed or unpacked, with
a genuine torch (its names decide what counts: a name that torch itself does not have is another
version's, behind a guard).
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import inspect
import sys
import textwrap
import tomllib
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TOUCHED = HERE / "touched.toml"
EXCUSED = HERE / "excused.toml"
PAGE = HERE.parent.parent / "docs" / "ecosystem_names.md"
# The packages of the suite, by the folder that holds their sources.
PACKAGES = {
    "transformers": "transformers",
    "timm": "timm",
    "torchvision": "torchvision",
    "Time-Series-Library": "Time-Series-Library",
    "vit-pytorch": "vit_pytorch",
    "torch_geometric": "torch_geometric",
    "kornia": "kornia",
    "captum": "captum",
    "gpytorch": "gpytorch",
    "linear_operator": "linear_operator",
    "pyro-ppl": "pyro",
    "e3nn": "e3nn",
    "denoising-diffusion-pytorch": "denoising_diffusion_pytorch",
    "openai-whisper": "whisper",
    "mamba-minimal": "mamba-minimal",
    "LLMs-from-scratch": "LLMs-from-scratch",
    "normflows": "normflows",
    "x-transformers": "x_transformers",
}
HEAD = """\
# Names of torch that the packages touch

For who wants to know what a package would miss. After this page you know every name of torch
{version} that the sources of the packages in [ecosystem.md](ecosystem.md) mention, and whether it
is here. `python tools/ecosystem/names.py` writes this page. *Real* does
what torch's does, within what [compatibility.md](compatibility.md) says; *refused* can be imported
and passed around, and says when it is called why it cannot work here; *missing* is not there.

| Package | Names | Real | Refused | Missing |
|---|---|---|---|---|
"""


# What a source touches -----------------------------------------------------------------------
class Touched(ast.NodeVisitor):
    """Collects the dotted names below torch that a file mentions."""

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.partition(".")[0] == "torch":
                self.names.add(alias.name)
                self.aliases[alias.asname or "torch"] = alias.name if alias.asname else "torch"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or (node.module or "").partition(".")[0] != "torch":
            return
        for alias in node.names:
            full = f"{node.module}.{alias.name}" if alias.name != "*" else str(node.module)
            self.names.add(full)
            self.aliases[alias.asname or alias.name] = full

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.attributes.add(node.attr)
        chain: list[str] = []
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            chain.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in self.aliases:
            self.names.add(".".join([self.aliases[inner.id], *reversed(chain)]))
        else:
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr"),
                args=[ast.Name(id=name), ast.Constant(value=str(attribute)), *_],
            ) if name in self.aliases:
                self.names.add(f"{self.aliases[name]}.{attribute}")
        self.generic_visit(node)


def sources(folder: Path) -> Iterator[ast.Module]:
    """The parsed files of a package, without its tests."""
    for path in sorted(folder.rglob("*.py")):
        if {"tests", "test"} & set(path.relative_to(folder).parts):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield ast.parse(path.read_text("utf-8", errors="replace"))
            except SyntaxError:
                continue


def touched(folder: Path) -> tuple[set[str], set[str]]:
    """The names below torch that a package mentions, and every attribute of anything."""
    names: set[str] = set()
    attributes: set[str] = set()
    for tree in sources(folder):
        visitor = Touched()
        visitor.generic_visit(_imports_first(tree))
        if visitor.aliases:
            names |= visitor.names
            attributes |= visitor.attributes
    return names, attributes


def _imports_first(tree: ast.Module) -> ast.Module:
    """Imports anywhere in a file bind their names for all of it, which is enough here."""
    found = [n for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]
    tree.body = [*found, *tree.body]
    return tree


# What a library has --------------------------------------------------------------------------
def reach(library: str, name: str) -> tuple[int, Any]:
    """How many parts of a dotted name exist in a library, and the last thing reached."""
    parts = name.split(".")[1:]
    here, path = importlib.import_module(library), library
    for i, part in enumerate(parts):
        try:
            here = getattr(here, part)
        except AttributeError:
            here = _module(f"{path}.{part}")
            if here is None:
                return i, None
        except Exception:  # a name that exists and cannot be read here
            return len(parts), None
        path = f"{path}.{part}"
    return len(parts), here


def _module(path: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(path)
    except ModuleNotFoundError as error:
        # A module that is there and needs another package is there.
        return sys if error.name and not path.startswith(error.name.partition(".")[0]) else None
    except Exception:
        return sys


def genuine(name: str) -> str | None:
    """The part of a name that torch has as a path of modules, classes and their members."""
    known, _ = reach("torch", name)
    parts = name.split(".")
    if known < len(parts) - 1:
        parts = parts[: known + 1] if _opaque(parts[: known + 1]) else []
    return ".".join(_short(parts)) or None


def _opaque(parts: list[str]) -> bool:
    """Whether a path ends at a value, whose attributes are its own affair."""
    _, value = reach("torch", ".".join(parts))
    return value is not None and not inspect.ismodule(value) and len(parts) > 1


def _short(parts: list[str]) -> list[str]:
    """A path that goes no deeper than a member of a class."""
    for i in range(2, len(parts)):
        _, value = reach("torch", ".".join(parts[:i]))
        if not inspect.ismodule(value):
            return parts[: i + 1] if inspect.isclass(value) else parts[:i]
    return parts


def scan(folders: list[Path]) -> str:
    """The text of touched.toml, out of the packages in some folders and the torch installed."""
    import torch

    text = (
        "# Names of torch that the packages mention; written by tools/ecosystem/names.py --scan.\n"
        f'version = "{torch.__version__.split("+")[0]}"\n\n[names]\n'
    )
    methods = {n for n in dir(torch.Tensor) if not n.startswith("__")}
    for package, folder in PACKAGES.items():
        found = next((f / folder for f in folders if (f / folder).is_dir()), None)
        if found is None:
            sys.exit(f"{package}: no folder {folder} in {' '.join(map(str, folders))}")
        names, attributes = touched(found)
        kept = {full for n in names if (full := genuine(n)) and full != "torch"}
        kept |= {f"torch.Tensor.{a}" for a in attributes & methods}
        lines = textwrap.wrap(" ".join(sorted(n.removeprefix("torch.") for n in kept)), 98)
        text += f"{package} = '''\n" + "\n".join(lines) + "\n'''\n"
    return text


# What is here --------------------------------------------------------------------------------
def state(name: str) -> str:
    """Whether a name is real, refused or missing."""
    known, value = reach("undertow", f"torch.{name}")
    parts = name.split(".")
    if known < len(parts):  # a member of a class that refuses is refused with it
        _, owner = reach("undertow", ".".join(["torch", *parts[:known]]))
        return "refused" if inspect.isclass(owner) and refuses(owner) else "missing"
    return "refused" if refuses(value) else "real"


def refuses(value: Any) -> bool:
    """Whether a function, or making an object of a class, does nothing but raise."""
    if getattr(value, "__refused__", None):
        return True
    if inspect.isclass(value):
        own = [vars(value)[n] for n in ("__new__", "__init__") if n in vars(value)]
        return any(refuses(getattr(f, "__func__", f)) for f in own)
    if not inspect.isfunction(value):
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(value)))
    except (OSError, SyntaxError, TypeError):
        return False
    body = getattr(tree.body[0], "body", [])
    if not isinstance(body, list):
        return False
    body = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return bool(body) and isinstance(body[0], ast.Raise)


def read() -> tuple[str, dict[str, list[str]]]:
    """Torch's version, and the names that each package touches."""
    data = tomllib.loads(TOUCHED.read_text())
    return data["version"], {k: v.split() for k, v in data["names"].items()}


def excused() -> dict[str, str]:
    """Why a name need not be here."""
    if not EXCUSED.exists():
        return {}
    found = tomllib.loads(EXCUSED.read_text())
    return {name: reason for reason, names in found.items() for name in names.split()}


def page() -> tuple[str, list[str]]:
    """The text of the page, and the names that are missing without an excuse."""
    version, packages = read()
    excuses = excused()
    users: dict[str, list[str]] = defaultdict(list)
    for package, names in packages.items():
        for name in names:
            users[name].append(package)
    states = {n: "excused" if n in excuses else state(n) for n in sorted(users)}
    text = HEAD.format(version=version)
    for package, names in [*packages.items(), ("**all**", sorted(users))]:
        counts = [sum(states[n] == s for n in names) for s in ("real", "refused", "missing")]
        text += f"| {package} | {sum(counts)} | {' | '.join(map(str, counts))} |\n"
    for title, which in (("Missing", "missing"), ("Refused", "refused"), ("Real", "real")):
        listed = [n for n in users if states[n] == which]
        text += f"\n## {title}: {len(listed)}\n\n" + ("" if listed else "None.\n")
        if which == "real":
            text += textwrap.fill(" ".join(f"`{n}`" for n in sorted(listed)), 120) + "\n"
        elif listed:
            text += "| Name | Who mentions it |\n|---|---|\n"
            text += "".join(f"| `{n}` | {', '.join(users[n])} |\n" for n in sorted(listed))
    if excuses:
        text += "\n## Not counted\n\n| Name | Why |\n|---|---|\n"
        text += "".join(f"| `{n}` | {why} |\n" for n, why in sorted(excuses.items()))
    return text, sorted(n for n in users if states[n] == "missing")


def main() -> int:
    """Write the names, or the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scan", nargs="+", type=Path, help="folders that hold the packages")
    parser.add_argument("--missing", action="store_true", help="print the missing names only")
    asked = parser.parse_args()
    if asked.scan:
        TOUCHED.write_text(scan(asked.scan))
        return 0
    text, missing = page()
    if asked.missing:
        print("\n".join(missing))
        return 0
    PAGE.write_text(text)
    print(f"{len(missing)} names are missing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
