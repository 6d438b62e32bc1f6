"""`report.html`: a training on one page, which needs no other file and no network."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .findings import Findings
from .info import gathered

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
  color: #222; background: #fff }
h1, h2 { line-height: 1.2 } img { max-width: 100%; height: auto }
.wide { overflow-x: auto } table { border-collapse: collapse }
td, th { border: 1px solid #ccc; padding: .2rem .6rem; text-align: left }
pre { background: #f4f4f4; padding: .8rem; overflow-x: auto } .good { background: #e3f0e0 }
"""
_ROWS = 200  # of the table of answers
_ALT = {
    "learning_curve.png": "Learning curves",
    "confusion_matrix.png": "Confusion matrix",
    "activation_maps.png": "Class activation maps",
    "predictions.png": "Predictions",
}


def page(
    results: Mapping[str, Any],
    found: Findings,
    rows: Sequence[Sequence[object]],
    images: Mapping[str, bytes],
    command: str,
) -> str:
    """The page as text."""
    about = found.description
    title = f"{about.data}: {about.task} by {about.model}"
    figures = {k: v for k, v in results.items() if k != "settings"}
    parts = [f"<h1>{escape(title)}</h1>", f"<p>{escape(found.sentence)}.</p>"]
    for name, image in images.items():
        data = base64.b64encode(image).decode()
        parts.append(f"<h2>{_ALT[name]}</h2>")
        parts.append(f'<img alt="{_ALT[name]}" src="data:image/png;base64,{data}">')
    parts += ["<h2>Results</h2>", _pairs(figures)]
    parts += ["<h2>Answers to the test series</h2>", _table(rows, found.confusion is not None)]
    if len(rows) > _ROWS:
        parts.append(f"<p>The first {_ROWS} rows of {len(rows)}; all are in predictions.csv.</p>")
    parts += ["<h2>Settings</h2>", _pairs(results["settings"])]
    parts += ["<h2>To repeat it</h2>", f"<pre>{escape(command)}</pre>"]
    parts += ["<h2>Environment</h2>", _pairs(gathered())]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # A server would be asked for an icon otherwise.
        f'<title>{escape(title)}</title><link rel="icon" href="data:,">'
        f"<style>{_STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _pairs(values: Mapping[str, Any]) -> str:
    def shown(value: Any) -> str:
        if isinstance(value, float):
            return f"{value:.6g}"
        if isinstance(value, dict):
            return ", ".join(f"{k}={v}" for k, v in value.items())
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

    cells = (
        f"<tr><th>{escape(name.replace('_', ' '))}</th><td>{escape(shown(value))}</td></tr>"
        for name, value in values.items()
    )
    return f'<div class="wide"><table>{"".join(cells)}</table></div>'


def _table(rows: Sequence[Sequence[object]], square: bool) -> str:
    """The first row and, of a confusion matrix, the first column are heads."""
    lines = []
    for i, row in enumerate(rows[: _ROWS + 1]):
        cells = []
        for j, cell in enumerate(row):
            tag = "th" if i == 0 or (square and j == 0) else "td"
            good = ' class="good"' if square and i == j and i else ""
            cells.append(f"<{tag}{good}>{escape(str(cell))}</{tag}>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="wide"><table>{"".join(lines)}</table></div>'
