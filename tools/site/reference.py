"""Pages of the reference: one for each public function or class, from the library itself.

Names of the same object (`ut.abs`, `Tensor.abs`, `ut.absolute` …) share a page. A page has the
signature, the docstring with its example, the derivatives, and what differs from torch.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import undertow as ut
from undertow.compat.refusals import is_refusal
from undertow.core.op import OPS

ROOT = Path(__file__).parents[2]
# Title of each namespace's page.
NAMESPACES = {
    "": "undertow",
    "Tensor": "Tensor",
    "nn": "nn: layers",
    "nn.functional": "nn.functional",
    "nn.init": "nn.init",
    "nn.utils": "nn.utils",
    "optim": "optim",
    "optim.lr_scheduler": "optim.lr_scheduler",
    "autograd": "autograd",
    "func": "func: transforms",
    "linalg": "linalg",
    "fft": "fft",
    "special": "special",
    "masked": "masked",
    "signal.windows": "signal.windows",
    "sparse": "sparse",
    "distributions": "distributions",
    "amp": "amp",
    "utils.data": "utils.data",
    "models": "models",
    "timeseries": "timeseries",
    "profiler": "profiler",
}


class Entry(NamedTuple):
    """An object that has a page, and every public name of it; the first one is the page's."""

    thing: Any
    names: list[str]

    @property
    def page(self) -> str:
        """The page's file name; small and capital letters differ on every file system."""
        return re.sub(r"[A-Z]", lambda m: f"-{m[0].lower()}", self.names[0].replace(".", "_"))

    @property
    def example(self) -> bool:
        """Whether its docstring shows a run."""
        return ">>>" in (inspect.getdoc(self.thing) or "")


def namespace(path: str) -> Any:
    """The module or class of a path below `undertow`."""
    if path == "Tensor":
        return ut.Tensor
    return importlib.import_module(f"undertow.{path}") if path else ut


def public(path: str) -> list[str]:
    """The names that a namespace shows."""
    where = namespace(path)
    listed = getattr(where, "__all__", None) or dir(where)
    return sorted(n for n in listed if not n.startswith("_"))


def entries() -> list[Entry]:
    """Everything that can be called and has a docstring of its own here, once."""
    found: dict[int, Entry] = {}
    for path in NAMESPACES:
        where = namespace(path)
        for name in public(path):
            thing = getattr(where, name, None)
            ours = str(getattr(thing, "__module__", "undertow") or "undertow")
            if isinstance(thing, ModuleType) or not callable(thing) or is_refusal(thing):
                continue
            if not ours.startswith("undertow"):
                continue
            whole = f"{path}.{name}" if path else name
            found.setdefault(id(thing), Entry(thing, [])).names.append(whole)
    return list(found.values())


def lacking(found: list[Entry]) -> list[str]:
    """The names whose docstring shows no example."""
    return sorted(entry.names[0] for entry in found if not entry.example)


def _prose(line: str) -> str:
    """A line of a docstring as Markdown that means what it says."""
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(
        p if i % 2 else re.sub(r"([*_\[\]<>|#$\\])", r"\\\1", p) for i, p in enumerate(parts)
    )


def _body(text: str) -> str:
    """A docstring: prose as prose; examples, and what is indented, as they are."""
    made: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        at = next((i for i, line in enumerate(lines) if line.lstrip().startswith(">>>")), None)
        deep = next((i for i, line in enumerate(lines) if line.startswith("    ")), None)
        cut = min((i for i in (at, deep) if i is not None), default=len(lines))
        made += ["\n".join(_prose(line) for line in lines[:cut])]
        if lines[cut:]:
            kind = "pycon" if at is not None else "text"
            made += [f"````{kind}\n" + inspect.cleandoc("\n".join(["", *lines[cut:]])) + "\n````"]
    return "\n\n".join(filter(None, made))


def _signature(entry: Entry) -> str:
    """The call, with a line for each parameter where one line is too long."""
    try:
        signature = inspect.signature(entry.thing)
    except (TypeError, ValueError):
        return f"undertow.{entry.names[0]}(…)"
    # Annotations are strings, which would be shown in quotes; defaults may have addresses.
    shown = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(signature))
    shown = re.sub(r"<[^<>]* at 0x[0-9a-f]+>", "…", shown)
    whole = f"undertow.{entry.names[0]}{shown}"
    if len(whole) <= 80 or not signature.parameters:
        return whole
    inside, _, after = shown[1:].rpartition(")")
    lines = re.split(r", (?=[*/\w]+(?:[:=,]|$))", inside)
    return f"undertow.{entry.names[0]}(\n" + "".join(f"    {x},\n" for x in lines) + f"){after}"


def _derivatives(entry: Entry) -> str:
    """What the registry says of the op of this name."""
    op = OPS.get(entry.names[0].rpartition(".")[2])
    if inspect.isclass(entry.thing):
        return ""
    if op is None:
        return "Those of the ops that it calls: no op has this name."
    if op.rules or op.joint:
        return "Any order: its rule is written in ops that have rules themselves."
    return "None: its results carry no gradient."


def _differences() -> list[tuple[set[str], str]]:
    """The sentences of compatibility.md, by the names in them (from tools/coverage.py)."""
    spec = importlib.util.spec_from_file_location("coverage_of_torch", ROOT / "tools/coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.differences()


def page(entry: Entry, told: list[tuple[set[str], str]]) -> str:
    """The Markdown of one page."""
    first = entry.names[0]
    short = {n.rpartition(".")[2] for n in entry.names} | set(entry.names)
    text = [f"---\norphan: true\n---\n# {_prose(first)}", f"```python\n{_signature(entry)}\n```"]
    text.append(_body(inspect.getdoc(entry.thing) or "No description yet."))
    rows = {
        "Also as": ", ".join(f"`{n}`" for n in entry.names[1:]),
        "Derivatives": _derivatives(entry),
        "Devices": ""
        if inspect.isclass(entry.thing)
        else "All, by the same definition; a device that lacks a dtype says so.",
    }
    facts = [f"| {name} | {value} |" for name, value in rows.items() if value]
    if facts:
        text.append("\n".join(["| | |", "|---|---|", *facts]))
    differ = [s.replace("\\|", "|") for names, s in told if names & short]
    if differ:
        unlinked = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", s) for s in differ]
        text.append("## What differs from torch\n\n" + "\n".join(f"- {s}" for s in unlinked))
    return "\n\n".join(text) + "\n"


def write(folder: Path) -> list[Entry]:
    """Write all pages, and one with a table for each namespace."""
    folder.mkdir(parents=True, exist_ok=True)
    found, told = entries(), _differences()
    home = {name: entry for entry in found for name in entry.names}
    for entry in found:
        (folder / f"{entry.page}.md").write_text(page(entry, told))
    for path, title in NAMESPACES.items():
        prefix = f"{path}." if path else ""
        rows = []
        for name in public(path):
            if entry := home.get(prefix + name):
                doc = (inspect.getdoc(entry.thing) or "").partition("\n")[0]
                summary = re.sub(r"^[\w.]+\([^)]*\)( ->.*?)?:? ", "", doc)
                rows.append(f"| [`{name}`]({entry.page}.md) | {_prose(summary)} |")
        text = f"# {title}\n\nFor who looks up a name in `undertow{'.' + path if path else ''}`. "
        text += "Each has a page with its signature, and most have an example.\n\n"
        text += "| Name | |\n|---|---|\n"
        (folder / f"in-{path.lower().replace('.', '-') or 'undertow'}.md").write_text(
            text + "\n".join(rows) + "\n"
        )
    return found
