"""The rooms of the library, what each imports, and docs/rooms.svg, the picture of it.

    python tools/rooms.py       writes the picture again

Imports go down the list of rooms, never up. tests/house/test_architecture.py holds the sources
against the list, and the picture against the imports.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "undertow"
PICTURE = ROOT / "docs" / "rooms.svg"
# From the bottom to the top, with what each does.
ROOMS = {
    "compat.on_demand": "names that are loaded late",
    "compat.stand_in": "modules under torch's name",
    "errors": "vocabulary",
    "dtypes": "vocabulary",
    "devices": "vocabulary",
    "shapes": "vocabulary",
    "layouts": "vocabulary",
    "kernel": "what to compute: expressions, loops",
    "backends": "how a device runs it",
    "core": "Tensor, Op, Node, the door",
    "ops": "every op, defined once",
    "autograd": "the backward pass",
    "sparse": "tensors of few elements",
    "nn": "modules and their functions",
    "optim": "optimisers and schedules",
    "amp": "mixed precision",
    "files": "checkpoints, safetensors",
    "distributed": "several processes",
    "utils": "data loading, checkpointing",
    "func": "functions of functions",
    "onnx": "models as ONNX files",
    "timeseries": "series out of files",
    "models": "classifiers of series",
    "distributions": "random variables",
    "nested": "batches of uneven tensors",
    "compiled": "functions as programs",
    "compat": "torch's other names, other standards",
    "cli": "the command `undertow`",
    "__main__": "python -m undertow",
}
_BELOW_ALL = "errors · dtypes · devices · shapes · layouts"  # one box


def room_of(module: Sequence[str]) -> str:
    """The room of a module by the parts of its path; two of `compat` are below all others."""
    both = ".".join(module[:2])
    return both if both in ROOMS else module[0]


def room(path: Path) -> str:
    """The room of a file: its folder, or its own name for the vocabulary files."""
    return room_of(path.relative_to(SOURCE).with_suffix("").parts)


def imported(path: Path) -> list[tuple[int, str]]:
    """The rooms that a file imports from, with line numbers."""
    package = ["undertow", *path.relative_to(SOURCE).parts[:-1]]
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                base = package[: len(package) - node.level + 1]
                module = [*base, *(node.module.split(".") if node.module else [])]
            else:
                module = (node.module or "").split(".")
            if module[0] == "undertow":
                full = [[*module[1:], alias.name] for alias in node.names]
                found += [(node.lineno, room_of(parts)) for parts in full]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                if parts[0] == "undertow" and len(parts) > 1:
                    found.append((node.lineno, room_of(parts[1:])))
    return found


# The picture --------------------------------------------------------------------------------------
def _box(name: str) -> str:
    """The box of a room: the vocabulary has one together."""
    return _BELOW_ALL if ROOMS.get(name) == "vocabulary" else name


def graph() -> dict[str, set[str]]:
    """The boxes, in the order of the list, and which of them each needs."""
    needs: dict[str, set[str]] = {_box(name): set() for name in ROOMS if "." not in name}
    del needs["__main__"]
    for path in sorted(SOURCE.rglob("*.py")):
        here = _box(room(path))
        if here in needs:
            there = {_box(name) for _, name in imported(path)}
            needs[here] |= (there & set(needs)) - {here}
    return needs


def _reached(needs: dict[str, set[str]], name: str) -> set[str]:
    """Everything below a box."""
    below = set(needs[name])
    for other in needs[name]:
        below |= _reached(needs, other)
    return below


def _direct(needs: dict[str, set[str]]) -> dict[str, set[str]]:
    """The needs that follow from no others."""
    return {
        name: {t for t in there if not any(t in _reached(needs, o) for o in there - {t})}
        for name, there in needs.items()
    }


WIDTH, HEIGHT, ACROSS, DOWN = 246, 46, 16, 34


def picture() -> str:
    """The rooms as boxes, each above those that it imports; lines for the nearest of them."""
    needs = graph()
    level: dict[str, int] = {}
    for name in needs:  # what it needs comes before it in the list
        level[name] = 1 + max((level[t] for t in needs[name]), default=-1)
    rows = [[n for n in needs if level[n] == k] for k in range(max(level.values()) + 1)]
    wide = max(len(row) for row in rows) * (WIDTH + ACROSS) + ACROSS
    high = len(rows) * (HEIGHT + DOWN)
    place = {}
    for k, row in enumerate(rows):
        left = (wide - len(row) * (WIDTH + ACROSS) + ACROSS) / 2
        for i, name in enumerate(row):
            place[name] = (left + i * (WIDTH + ACROSS), high - (k + 1) * (HEIGHT + DOWN) + DOWN / 2)
    lines, boxes = [], []
    for name, there in _direct(needs).items():
        x, y = place[name][0] + WIDTH / 2, place[name][1] + HEIGHT
        for other in sorted(there):
            u, v = place[other][0] + WIDTH / 2, place[other][1]
            bend = (v - y) / 2
            curve = f"M{x:g} {y:g}C{x:g} {y + bend:g} {u:g} {v - bend:g} {u:g} {v:g}"
            lines.append(f'<path d="{curve}"/>')
    for name, (x, y) in place.items():
        about = "vocabulary" if name == _BELOW_ALL else ROOMS[name]
        title = name if name == _BELOW_ALL else f"{name}/"
        size = 10 if name == _BELOW_ALL else 15
        middle = x + WIDTH / 2
        boxes.append(f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>')
        boxes.append(
            f'<text x="{middle:g}" y="{y + 19:g}" font-size="{size}" font-weight="bold">'
            f"{escape(title)}</text>"
        )
        boxes.append(f'<text x="{middle:g}" y="{y + 37:g}" font-size="11">{escape(about)}</text>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" '
            'font-family="sans-serif" text-anchor="middle" role="img">',
            "<title>The rooms of Undertow: each imports only from rooms below it</title>",
            f'<rect width="{wide:g}" height="{high:g}" fill="#ffffff"/>',
            '<g fill="none" stroke="#7d93a8" stroke-width="1.3">',
            *lines,
            "</g>",
            '<g fill="#eaf2f8" stroke="#2c5d83">',
            *[b for b in boxes if b.startswith("<rect")],
            "</g>",
            '<g fill="#12293b">',
            *[b for b in boxes if b.startswith("<text")],
            "</g>",
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(picture())
    print(f"wrote {PICTURE}")
