"""`ut.draw`: the recorded graph of a tensor, or the modules of a model, as a picture.

The layout is our own: layers from the output down, ordered so that few edges cross. That is some
hundred lines. Others call a program that must be installed (graphviz) or are compiled (igraph).
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..compiled.function import Compiled
from ..core.node import AccumulateGrad, Node
from ..core.tensor import Tensor, node_of
from ..errors import ArgumentError
from ..nn import Module
from .drawn_program import boxes
from .profiler.events import amount

__all__ = ["Drawing", "draw"]
MOST = 1000  # nodes of a picture; the nearest to the output
_CHAR, _LINE, _GAP, _DOWN, _PAD = 6.2, 14, 18, 34, 8
_COLOURS = {"op": "#eaf2f8", "leaf": "#e6f4e1", "hook": "#fdebd0", "root": "#d6e4f0"}


class Drawing:
    """A picture: `svg` and `html` are its texts, `save` writes a file, notebooks show it."""

    def __init__(self, svg: str, body: str, note: str) -> None:
        self.svg = svg
        self.note = note  # what was left out, if anything was
        self._body = body

    @property
    def html(self) -> str:
        """One page that needs nothing else."""
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<title>Undertow graph</title><link rel="icon" href="data:,"><style>{_STYLE}</style>'
            f"</head><body>{note}{self._body}</body></html>\n"
        )

    def save(self, path: Any) -> None:
        """Write an SVG file, or a page if the name ends in .html."""
        name = str(path)
        if not name.endswith((".svg", ".html")):
            raise ArgumentError(f"[draw] a file ends in .svg or .html, got {name!r}")
        try:
            Path(path).write_text(self.html if name.endswith(".html") else self.svg, "utf-8")
        except OSError as error:
            raise ArgumentError(f"[draw] cannot write {name!r}: {error.strerror}") from error

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Drawing of {len(self.svg)} characters of SVG; save('graph.html') writes it>"


_STYLE = (
    "body{font:14px sans-serif}details,.leaf{border:1px solid #2c5d83;border-radius:6px;"
    "padding:.3em .6em;margin:.3em;background:#eaf2f855}summary{cursor:pointer}"
    ".wide{overflow-x:auto}"
)


def draw(what: Any, *inputs: Any, names: Any = None) -> Drawing:
    """A picture of what is recorded behind a tensor, of a model's modules, or of a program.

    Of a tensor: operations with the shapes of their outputs, the bytes that they saved, hooks, and
    leaves, by the names of parameters if `names` is a module or a dict of tensors. Of a model:
    its modules as boxes, which open and close in a page; with inputs, the graph of its output.
    Of a function of `ut.compile`: the launches of the program that runs most, from its arguments
    down.

    >>> import undertow as ut
    >>> w = ut.ones(3, requires_grad=True)
    >>> picture = ut.draw((w * 2).sum(), names={"w": w})
    >>> "MulBackward0" in picture.svg, "w" in picture.svg
    (True, True)
    """
    if isinstance(what, Compiled) and not inputs:
        return _of_program(what, names)
    if isinstance(what, Module):
        if not inputs:
            return _of_model(what)
        what, names = what(*inputs), what if names is None else names
    elif inputs:
        raise ArgumentError("[draw] takes inputs only with a model")
    if isinstance(what, (tuple, list)) and what and isinstance(what[0], Tensor):
        what = what[0]
    if not isinstance(what, Tensor):
        raise ArgumentError(
            "[draw] expects a tensor, a module or a function of ut.compile, got "
            f"{type(what).__name__}"
        )
    root = node_of(what)
    if root is None:
        raise ArgumentError("[draw] nothing is recorded behind this tensor: it needs no gradient")
    if isinstance(names, Module):
        names = dict(names.named_parameters())
    called = {id(t): name for name, t in (names or {}).items()}
    return _of_graph(root, called)


def _reached(root: Node) -> tuple[list[Node], int]:
    """The nodes nearest to the root, and how many there are in all."""
    seen, order, shown = {root}, [root], MOST
    for node in order:  # grows as it goes
        for parent in node.parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                order.append(parent)
    return order[:shown], len(order)


def _of_graph(root: Node, called: dict[int, str]) -> Drawing:
    nodes, total = _reached(root)
    number = {node: i for i, node in enumerate(nodes)}
    edges = sorted(
        {
            (i, number[p])
            for i, node in enumerate(nodes)
            for p in node.parents
            if p is not None and p in number
        }
    )
    texts = [_lines(node, called) for node in nodes]
    kinds = [
        "leaf" if isinstance(n, AccumulateGrad) else "hook" if _hooks(n) else "op" for n in nodes
    ]
    kinds[0] = "root" if kinds[0] == "op" else kinds[0]
    note = ""
    if total > len(nodes):
        note = f"The {len(nodes)} nodes nearest to the output, of {total}."
    return _picture(f"The graph of {root.name()}", texts, kinds, edges, note)


def _of_program(compiled: Compiled, names: Any) -> Drawing:
    """What a compiled function runs: launches from the arguments down."""
    recordings = compiled.recordings()
    if not recordings:
        raise ArgumentError(
            "[draw] this function has no program yet: call it a few times, and ask explain() if "
            "that does not help"
        )
    called = dict(names.named_parameters()) if isinstance(names, Module) else names or {}
    texts, kinds, edges, total = boxes(recordings[0], called, MOST)
    notes = []
    if len(recordings) > 1:
        notes.append(f"The program that ran most, of {len(recordings)}.")
    if total > MOST:
        notes.append(f"The first {MOST} steps, of {total}.")
    return _picture("A compiled program", texts, kinds, edges, " ".join(notes))


def _picture(
    title: str, texts: list[list[str]], kinds: list[str], edges: list[tuple[int, int]], note: str
) -> Drawing:
    """Boxes of text and arrows between them."""
    sizes = [(max(map(len, t)) * _CHAR + 2 * _PAD, len(t) * _LINE + 2 * _PAD - 4) for t in texts]
    places, paths, wide, high = _layout(sizes, edges)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{high:.0f}" '
        f'viewBox="0 0 {wide:.0f} {high:.0f}" font-family="monospace" font-size="10" '
        'text-anchor="middle" role="img">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
        'markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="#7d93a8"/></marker></defs>',
        '<g fill="none" stroke="#7d93a8" marker-end="url(#to)">',
    ]
    for path in paths:
        line = " ".join([f"{x:.0f},{y:.0f}" for x, y in path])
        parts.append(f'<polyline points="{line}" marker-end="url(#to)"/>')
    parts.append("</g>")
    for (x, y), (w, h), lines, kind in zip(places, sizes, texts, kinds, strict=True):
        parts.append(
            f'<rect x="{x - w / 2:.0f}" y="{y:.0f}" width="{w:.0f}" height="{h:.0f}" rx="5" '
            f'fill="{_COLOURS[kind]}" stroke="#2c5d83"/>'
        )
        for k, text in enumerate(lines):
            weight = ' font-weight="bold"' if not k else ""
            parts.append(
                f'<text x="{x:.0f}" y="{y + _PAD + 8 + k * _LINE:.0f}"{weight}>'
                f"{escape(text)}</text>"
            )
    if note:
        parts.append(f'<text x="{wide / 2:.0f}" y="{high - 6:.0f}">{escape(note)}</text>')
    svg = "\n".join([*parts, "</svg>", ""])
    return Drawing(svg, f'<div class="wide">{svg}</div>', note)


def _lines(node: Node, called: dict[int, str]) -> list[str]:
    """What the box of a node says."""
    shapes = ", ".join([str(tuple(shape)) for shape, _ in node.metas])
    if isinstance(node, AccumulateGrad):
        leaf = node.variable
        lines = [called.get(id(leaf), "leaf"), shapes]
    else:
        lines = [node.name(), shapes]
        saved = _saved_bytes(node)
        if saved:
            lines.append(f"saved {amount(saved, 'B', 1024)}")
        elif node.saved is None:
            lines.append("freed")
    hooks = _hooks(node)
    if hooks:
        lines.append(f"{hooks} hook{'s' if hooks > 1 else ''}")
    return lines


def _saved_bytes(node: Node) -> int:
    """Of the tensors that a node holds for its derivative, each counted once."""
    saved = node.saved if isinstance(node.saved, (tuple, list)) else ()
    arrays = {}
    for value in saved:
        tensor = value if isinstance(value, Tensor) else getattr(value, "value", None)
        if isinstance(tensor, Tensor):
            arrays[id(tensor._array)] = tensor.numel() * tensor.element_size()
    return sum(arrays.values())


def _hooks(node: Node) -> int:
    found = node.hooks
    count = 0
    if found is not None:
        count = len(found.pre) + len(found.post) + len(found.capture)
        count += sum([len(hooks) for hooks in found.tensor.values()])
    if isinstance(node, AccumulateGrad):
        count += len(node.post_accumulate or ())
    return count


def _layout(
    sizes: Sequence[tuple[float, float]], edges: list[tuple[int, int]]
) -> tuple[list[tuple[float, float]], list[list[tuple[float, float]]], float, float]:
    """Where boxes are (middle of the upper edge), the lines of edges, width and height.

    Edges go down. One over several layers bends in each, at a place of its own.
    """
    count = len(sizes)
    level = _levels(count, edges)
    boxes: list[tuple[float, float]] = list(sizes)
    levels = list(level)
    short: list[tuple[int, int]] = []
    chains = []
    for a, b in edges:
        chain = [a]
        for k in range(level[a] + 1, level[b]):
            boxes.append((4.0, 0.0))
            levels.append(k)
            chain.append(len(boxes) - 1)
        chain.append(b)
        chains.append(chain)
        short += pairwise(chain)
    rows: list[list[int]] = [[] for _ in range(max(levels) + 1)]
    for i, k in enumerate(levels):
        rows[k].append(i)
    above: list[list[int]] = [[] for _ in boxes]
    below: list[list[int]] = [[] for _ in boxes]
    for a, b in short:
        above[b].append(a)
        below[a].append(b)
    x = [0.0] * len(boxes)
    for row in rows:
        _spread(row, boxes, x, None)
    for turn in range(6 if len(boxes) < 20 * MOST else 2):
        downward = turn % 2 == 0
        near = above if downward else below
        for row in rows if downward else rows[::-1]:
            wish = {i: sum(x[j] for j in near[i]) / len(near[i]) if near[i] else x[i] for i in row}
            row.sort(key=lambda i: wish[i])
            _spread(row, boxes, x, wish)
    left = min(x[i] - boxes[i][0] / 2 for i in range(len(boxes))) - _GAP
    y, tops = float(_GAP), [0.0] * len(boxes)
    for row in rows:
        high = max(boxes[i][1] for i in row)
        for i in row:
            tops[i] = y
        y += high + _DOWN
    wide = max(x[i] + boxes[i][0] / 2 for i in range(len(boxes))) - left + _GAP
    paths = []
    for chain in chains:
        path = [(x[chain[0]] - left, tops[chain[0]] + boxes[chain[0]][1])]
        path += [(x[i] - left, tops[i]) for i in chain[1:]]
        paths.append(path)
    return [(x[i] - left, tops[i]) for i in range(count)], paths, wide, y


def _levels(count: int, edges: list[tuple[int, int]]) -> list[int]:
    """For each node the length of the longest way to it."""
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for a, b in edges:
        after[a].append(b)
        waiting[b] += 1
    level = [0] * count
    ready = [i for i in range(count) if not waiting[i]]
    while ready:
        i = ready.pop()
        for j in after[i]:
            level[j] = max(level[j], level[i] + 1)
            waiting[j] -= 1
            if not waiting[j]:
                ready.append(j)
    return level


def _spread(row: list[int], boxes: Any, x: list[float], wish: dict[int, float] | None) -> None:
    """Put the boxes of a row side by side, near to where they wish to be."""
    if wish is None:
        at = 0.0
        for i in row:
            x[i] = at + boxes[i][0] / 2
            at += boxes[i][0] + _GAP
        return
    ends = []
    for order, sign in ((row, 1.0), (row[::-1], -1.0)):
        edge, found = float("-inf"), {}
        for i in order:
            found[i] = max(sign * wish[i], edge + boxes[i][0] / 2)
            edge = found[i] + boxes[i][0] / 2 + _GAP
        ends.append({i: sign * v for i, v in found.items()})
    for i in row:
        x[i] = (ends[0][i] + ends[1][i]) / 2


def _of_model(model: Module) -> Drawing:
    shown, total = _taken(model)
    note = f"The first {len(shown)} modules, of {total}." if total > len(shown) else ""
    parts: list[str] = []
    wide, high = _box(model, "", shown, 10.0, 10.0, parts)
    svg = "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide + 20:.0f}" '
            f'height="{high + 20:.0f}" font-family="monospace" font-size="11" role="img">',
            f"<title>The modules of {escape(type(model).__name__)}</title>",
            *parts,
            "</svg>",
            "",
        ]
    )
    return Drawing(svg, _details(model, "", shown), note)


def _taken(model: Module) -> tuple[set[Module], int]:
    """The first modules, level by level, and how many there are."""
    order, seen = [model], {model}
    for module in order:
        for child in module.children():
            if child not in seen:
                seen.add(child)
                order.append(child)
    return set(order[:MOST]), len(order)


def _label(module: Module, name: str) -> str:
    own = sum([p.numel() for p in module.parameters()])
    extra = module.extra_repr()
    head = f"{name}: " if name else ""
    held = f", {own:,} parameters" if own else ""
    return f"{head}{type(module).__name__}({extra}){held}"


def _inside(module: Module, shown: set[Module]) -> list[tuple[str, Module]]:
    return [(n, m) for n, m in module._modules.items() if m is not None and m in shown]


def _box(
    module: Module, name: str, shown: set[Module], x: float, y: float, parts: list[str]
) -> tuple[float, float]:
    """The box of a module with those inside, and its size."""
    label = _label(module, name)
    place = len(parts)
    parts.append("")
    wide, down = len(label) * 6.8 + 16, 24.0
    for child, inner in _inside(module, shown):
        w, h = _box(inner, child, shown, x + 12, y + down, parts)
        wide, down = max(wide, w + 24), down + h + 6
    parts[place] = (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{down:.0f}" rx="5" '
        f'fill="#eaf2f8" stroke="#2c5d83"/><text x="{x + 8:.0f}" y="{y + 16:.0f}">'
        f"{escape(label)}</text>"
    )
    return wide, down


def _details(module: Module, name: str, shown: set[Module]) -> str:
    label = escape(_label(module, name))
    inside = _inside(module, shown)
    if not inside:
        return f'<div class="leaf">{label}</div>'
    body = "".join([_details(inner, child, shown) for child, inner in inside])
    return f"<details open><summary>{label}</summary>{body}</details>"
