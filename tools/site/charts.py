"""Draw benchmarks/RESULTS.md: each table with ratios becomes a chart, losses included.

python tools/site/charts.py          write docs/figures.svg, the chart of the README
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
README_CHART = ROOT / "docs" / "figures.svg"
WON, LOST = "#2a7f9e", "#c0504d"
# The six of the README: the beginning of a row's name in RESULTS.md, and what it is called there.
SIX = {
    "Chain of 100 multiplies of 4×4, forward + backward, both factors": "100 small multiplies",
    "conv1d 8x256x1024 depthwise k7": "depthwise conv1d, all gradients",
    "conv2d 8x64x56x56 to 64 k3x3": "conv2d 3×3, all gradients",
    "MLP 784-512-256-10": "MLP, a step with Adam",
    "resnet50": "ResNet-50, a step",
    "LSTM, 2 layers": "LSTM, forward + backward",
}


class Row(NamedTuple):
    """A workload and its time relative to the better rival; below 1 is faster."""

    name: str
    ratio: float


class Chart(NamedTuple):
    """The rows of one table, under the heading that it stands below."""

    title: str
    rows: list[Row]


def _number(cell: str) -> float | None:
    """The largest ratio in a cell of several; what stands in brackets is older."""
    found = re.findall(r"\d+\.\d+", re.sub(r"\(.*?\)", "", cell))
    return max(map(float, found)) if found else None


def _rows(table: list[list[str]]) -> list[Row]:
    """The rows of a table that has a column of ratios."""
    heads = [h.strip().lower() for h in table[0]]
    column = next((i for i, h in enumerate(heads) if h in ("ratio", "now")), None)
    if column is None:
        return []
    found = []
    for cells in table[1:]:
        ratio = _number(cells[column]) if column < len(cells) else None
        if ratio is not None:
            found.append(Row(cells[0].strip("* "), ratio))
    return found


def _tables(block: str) -> list[list[list[str]]]:
    """Tables of Markdown, and printed ones inside of fences, as cells."""
    marked = re.findall(r"(?:^\|.*\n)+", block, re.M)
    found = [
        [line.strip("|").split("|") for line in t.splitlines() if "---" not in line] for t in marked
    ]
    for fence in re.findall(r"^```\n(.*?)^```", block, re.M | re.S):
        lines = [re.split(r"\s{2,}", line.strip()) for line in fence.splitlines()]
        start = next((i for i, cells in enumerate(lines) if "ratio" in cells), None)
        if start is not None:
            end = next((i for i in range(start, len(lines)) if lines[i] == [""]), len(lines))
            found.append(lines[start:end])
    return found


def charts(text: str) -> list[Chart]:
    """Every table of ratios in the results, in their order."""
    found = []
    for part in re.split(r"^##+ ", text, flags=re.M):
        title, _, block = part.removeprefix("# ").partition("\n")
        rows = [rows for table in _tables(block) if (rows := _rows(table))]
        name = re.sub(r" \(.*\)|`", "", title)
        found += [Chart(f"{name}, {n}" if n > 1 else name, r) for n, r in enumerate(rows, 1)]
    return found


def six(found: list[Chart]) -> Chart:
    """The README's rows: the worst of those measured on AVX2, which most machines have."""
    every = [row for chart in found for row in chart.rows]
    chosen = [
        Row(label, next(r.ratio for r in every if r.name.startswith(start)))
        for start, label in SIX.items()
    ]
    return Chart("Time relative to PyTorch", chosen)


def svg(chart: Chart) -> str:
    """Bars as long as the ratios, with a line at 1, where both take the same time."""
    left, width, step = 330, 330, 22
    scale = width / max(1.25, *(row.ratio for row in chart.rows))
    height = step * len(chart.rows) + 34
    one = left + scale
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 60} {height}" '
        f'width="{left + width + 60}" height="{height}" font-family="sans-serif" font-size="13" '
        f'role="img"><title>{escape(chart.title)}</title>'
        '<rect width="100%" height="100%" fill="#fff"/>'
    ]
    for i, row in enumerate(chart.rows):
        y = i * step + 4
        name = row.name.replace("`", "")
        name = name if len(name) <= 42 else name[:41] + "…"
        colour = WON if row.ratio <= 1 else LOST
        parts.append(
            f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{left}" y="{y}" width="{row.ratio * scale:.1f}" height="{step - 5}" '
            f'fill="{colour}"/>'
            f'<text x="{left + row.ratio * scale + 5:.1f}" y="{y + 14}">{row.ratio:g}</text>'
        )
    parts.append(
        f'<line x1="{one:.1f}" x2="{one:.1f}" y1="0" y2="{height - 26}" stroke="#333" '
        f'stroke-dasharray="3 3"/><text x="{one:.1f}" y="{height - 8}" text-anchor="middle">'
        "1: as fast as the rival; shorter is faster</text></svg>\n"
    )
    return "".join(parts)


def on_avx2(text: str) -> list[Chart]:
    """The charts from the heading of libraries on, all of them measured with AVX2."""
    return charts("## Models" + text.partition("## Models")[2].partition("## Generated")[0])


if __name__ == "__main__":
    README_CHART.write_text(svg(six(on_avx2(RESULTS.read_text()))))
