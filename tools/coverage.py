"""Write docs/coverage.md: every public name of torch's tensor API, and whether it is here.

    make coverage                            after a change of public names
    python tools/coverage.py --names         read torch's names anew, from the torch installed

Torch's names stand in tools/torch_names.toml, so that no torch is needed; the conformance tests
hold them against torch. Why a name is missing stands in tools/torch_missing.toml, as patterns of
names under a reason. Patterns that match nothing any more are dropped by this command; a name that
is missing without a reason is an error.
"""

from __future__ import annotations

import importlib
import re
import sys
import textwrap
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import undertow as ut
from undertow.compat.refusals import is_refusal

TOOLS = Path(__file__).parent
NAMES = TOOLS / "torch_names.toml"
MISSING = TOOLS / "torch_missing.toml"
PAGE = TOOLS.parent / "docs" / "coverage.md"
DIFFERENCES = TOOLS.parent / "docs" / "compatibility.md"
# The namespaces, by their paths in torch; "" is torch itself.
SECTIONS = """
Tensor nn nn.Module nn.functional nn.init nn.utils nn.utils.rnn nn.parallel optim optim.lr_scheduler
autograd autograd.functional func linalg fft special masked signal.windows sparse distributions amp
random cuda jit multiprocessing version
""".split()  # noqa: SIM905
SECTIONS.insert(0, "")
Reasons = dict[str, dict[str, str]]

HEAD = """\
# Coverage of PyTorch's API

For who wants to know whether a name of torch is here. After this page you know it for every public
name of torch {version}'s tensor API. Where behaviour differs on purpose, the sentence of
[compatibility.md](compatibility.md) that speaks of a name stands below it. `make coverage` writes
this page, and a test holds it against the library.

| Namespace | Names | Here | Missing | Internal to torch |
|---|---|---|---|---|
"""


# What torch has ------------------------------------------------------------------------------
def attribute(library: Any, path: str) -> Any:
    """`torch.nn.utils` for "nn.utils"; None where it does not exist."""
    found = library
    for part in filter(None, path.split(".")):
        try:
            found = getattr(found, part, None) or importlib.import_module(
                f"{found.__name__}.{part}"
            )
        except (ImportError, AttributeError):
            return None
    return found


def public(namespace: Any) -> list[str]:
    """What a namespace promises in its `__all__`, or all of its names.

    Not modules: which of them can be reached depends on what has been imported. The `__all__` of
    torch itself and of its fft leave out some functions.
    """
    whole = namespace.__name__ in ("torch", "torch.fft")
    listed = dir(namespace) if whole else getattr(namespace, "__all__", dir(namespace))
    return sorted(
        n
        for n in listed
        if not n.startswith("_") and not isinstance(getattr(namespace, n, None), ModuleType)
    )


def torch_names(torch: Any) -> dict[str, list[str]]:
    """The names of every section, out of torch itself."""
    return {path: public(attribute(torch, path)) for path in SECTIONS}


# The two lists -------------------------------------------------------------------------------
def wrapped(words: list[str]) -> str:
    lines = textwrap.wrap(" ".join(words), 96, break_long_words=False, break_on_hyphens=False)
    return "'''\n" + "".join(f"    {line}\n" for line in lines) + "'''"


def read_names() -> tuple[str, dict[str, list[str]]]:
    """Torch's version, and its names by section."""
    data = tomllib.loads(NAMES.read_text())
    return data["version"], {path: names.split() for path, names in data["names"].items()}


def names_text(version: str, names: dict[str, list[str]]) -> str:
    head = "# Public names of torch, by namespace; written by `python tools/coverage.py --names`.\n"
    listed = [f'"{path}" = {wrapped(found)}\n' for path, found in names.items()]
    return f'{head}version = "{version}"\n\n[names]\n' + "".join(listed)


def read_reasons() -> Reasons:
    """Why names are missing: patterns by section and reason."""
    return tomllib.loads(MISSING.read_text())


def reasons_text(reasons: Reasons) -> str:
    text = (
        "# Why names of torch are missing: patterns (regular expressions of whole names) under a "
        "reason.\n# `make coverage` drops those that nothing missing matches any more.\n"
    )
    for path, listed in reasons.items():
        text += f'\n["{path}"]\n'
        text += "".join(f'"{reason}" = {wrapped(p.split())}\n' for reason, p in listed.items())
    return text


# What is here --------------------------------------------------------------------------------
def missing(names: dict[str, list[str]]) -> dict[str, list[str]]:
    """The names of each section that the library does not have."""
    lacking = {}
    for path, listed in names.items():
        ours = attribute(ut, path)
        lacking[path] = [n for n in listed if ours is None or not is_here(ours, n)]
    return lacking


def is_here(namespace: Any, name: str) -> bool:
    """Whether a name is there and is more than a refusal."""
    return hasattr(namespace, name) and not is_refusal(getattr(namespace, name))


def explained(lacking: dict[str, list[str]], reasons: Reasons) -> dict[str, dict[str, list[str]]]:
    """The missing names of each section by reason; "" is no reason."""
    found: dict[str, dict[str, list[str]]] = {}
    for path, names in lacking.items():
        for name in names:
            why = next(
                (
                    reason
                    for reason, patterns in reasons.get(path, {}).items()
                    if any(re.fullmatch(p, name) for p in patterns.split())
                ),
                "",
            )
            found.setdefault(path, {}).setdefault(why, []).append(name)
    return found


def pruned(lacking: dict[str, list[str]], reasons: Reasons) -> Reasons:
    """Reasons without the patterns that match nothing that is missing."""
    kept: Reasons = {}
    for path, listed in reasons.items():
        for reason, patterns in listed.items():
            used = [
                p
                for p in patterns.split()
                if any(re.fullmatch(p, n) for n in lacking.get(path, []))
            ]
            if used:
                kept.setdefault(path, {})[reason] = " ".join(used)
    return kept


def differences() -> list[tuple[set[str], str]]:
    """The sentences of compatibility.md, with the names in backticks that each speaks of."""
    text = DIFFERENCES.read_text().partition("## What is not there")[0]
    found = []
    for block in re.split(r"\n(?=- |\n|\| )", text):
        sentence = " ".join(block.strip().removeprefix("- ").split())
        if block.startswith(("- ", "| `")):
            speaks_of = {n.strip("()") for n in re.findall(r"`([\w.]+(?:\(\))?)`", sentence)}
            if sentence.startswith("|"):
                name, _, here = sentence.strip("| ").partition(" | ")
                sentence = f"{name}: {here}"
            found.append((speaks_of, sentence.replace("|", "\\|")))
    return found


# The page ------------------------------------------------------------------------------------
def shown(names: list[str]) -> str:
    line = " ".join(f"`{n}`" for n in names)
    return "\n".join(textwrap.wrap(line, 120, break_long_words=False, break_on_hyphens=False))


def page() -> str:
    """The text of docs/coverage.md."""
    version, names = read_names()
    lacking = missing(names)
    why = explained(lacking, read_reasons())
    text = HEAD.format(version=version)
    for path, listed in names.items():
        title = f"torch.{path}".rstrip(".")
        inside = sum(len(n) for r, n in why.get(path, {}).items() if r.startswith("internal"))
        gone = len(lacking[path])
        counts = [len(listed), len(listed) - gone, gone - inside, inside]
        text += f"| [{title}](#{title.lower().replace('.', '')}) | "
        text += " | ".join(map(str, counts)) + " |\n"
    notes = differences()
    for path, listed in names.items():
        text += f"\n## {f'torch.{path}'.rstrip('.')}\n\n"
        here = [n for n in listed if n not in set(lacking[path])]
        text += f"**Here**\n\n{shown(here)}\n" if here else "Nothing of it is here yet.\n"
        ours = {n: f"{path}.{n}".removeprefix(".").removeprefix("Tensor.") for n in here}
        told = [
            (shown([n for n in here if n in of or ours[n] in of]), sentence)
            for of, sentence in notes
            if path != "Tensor" and any(n in of or ours[n] in of for n in here)
        ]
        if told:
            text += "\n**What differs**\n\n| Names | How |\n|---|---|\n"
            text += "".join(f"| {' '.join(n.split())} | {how} |\n" for n, how in told)
        for reason, absent in why.get(path, {}).items():
            text += f"\n**Missing**: {reason}\n\n{shown(absent)}\n"
    return text


def main() -> None:
    """Write the page, or with --names the list of torch's names first."""
    if "--names" in sys.argv[1:]:
        torch = importlib.import_module("torch")
        NAMES.write_text(names_text(".".join(torch.__version__.split(".")[:2]), torch_names(torch)))
    lacking = missing(read_names()[1])
    reasons = pruned(lacking, read_reasons())
    MISSING.write_text(reasons_text(reasons))
    unexplained = {p: w[""] for p, w in explained(lacking, reasons).items() if "" in w}
    if unexplained:
        listed = "\n".join(f"  torch.{p}: {' '.join(n)}" for p, n in unexplained.items())
        sys.exit(f"missing without a reason (see tools/torch_missing.toml):\n{listed}")
    PAGE.write_text(page())
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
