"""What the documentation site is made of; `make docs` builds it, and checks its links."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))


def tool(name: str) -> Any:
    """A module of tools/site."""
    path = ROOT / "tools" / "site" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"site_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme_is_short() -> None:
    """What is longer belongs on the site."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_essay_is_short() -> None:
    """The engine of the essay fits in 400 lines of code, and links to the files of the real one."""
    text = (ROOT / "docs" / "essay.md").read_text()
    assert len(re.findall(r"^(?:>>>|\.\.\.) ", text, re.M)) <= 400
    parts = re.split(r"^## ", text, flags=re.M)[1:-1]
    assert [part.partition("\n")[0] for part in parts if "](../src/undertow/" not in part] == []


@pytest.mark.parametrize("path", DOCS, ids=lambda p: p.stem)
def test_first_paragraph_says_for_whom(path: Path) -> None:
    """A reader sees at once whether a page is for them."""
    first = path.read_text().split("\n\n")[1]
    assert first.startswith(("For who ", "For everybody "))


def test_every_page_is_in_the_navigation() -> None:
    """A page that nobody can reach is lost."""
    listed = set((ROOT / "docs" / "index.md").read_text().split()) | {"index"}
    assert {str(p.relative_to(ROOT / "docs").with_suffix("")) for p in DOCS} <= listed


def test_links_lead_somewhere() -> None:
    """Links of the pages and of the README, as files of the repository."""
    dead = []
    for path in [*DOCS, ROOT / "README.md"]:
        prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#\s:`]+)[^)\s]*\)", prose):
            if target != "https" and not (path.parent / target).exists():
                dead.append(f"{path.name}: {target}")
    assert dead == []


def test_chart_of_the_readme_is_up_to_date() -> None:
    """It shows what stands in benchmarks/RESULTS.md."""
    charts = tool("charts")
    drawn = charts.svg(charts.six(charts.on_avx2(charts.RESULTS.read_text())))
    assert charts.README_CHART.read_text() == drawn, "run python tools/site/charts.py"


def test_picture_of_the_readme_is_up_to_date() -> None:
    """It is what `ut.draw` draws today."""
    graph = tool("graph")
    assert graph.PICTURE.read_text() == graph.picture(), "run python tools/site/graph.py"


def test_charts_show_losses() -> None:
    """Rows above 1 are drawn, and in another colour."""
    charts = tool("charts")
    head = "## Race\n\n| Workload | Ratio |\n|---|---|\n"
    (chart,) = charts.charts(head + "| won | 0.5 |\n| lost | **1.07**, 1.2 (3.0) |\n")
    assert chart.rows == [("won", 0.5), ("lost", 1.2)]
    assert charts.svg(chart).count(charts.LOST) == 1


def test_reference_has_a_page_for_every_name() -> None:
    """Each function and class that a namespace shows, and no two on one file."""
    reference = tool("reference")
    found = reference.entries()
    names = {name for entry in found for name in entry.names}
    assert {"conv1d", "Tensor.backward", "nn.Conv1d", "optim.Adam", "linalg.svd"} <= names
    files = [entry.page for entry in found]
    assert len(set(files)) == len(files)
    assert reference.lacking(found) == [], "every public name has an example in its docstring"


def test_dead_links_of_a_site_are_found(tmp_path: Path) -> None:
    """The check that `make docs` ends with can fail."""
    check = tool("check")
    (tmp_path / "index.html").write_text('<a href="a.html#here">a</a><a href="https://x.y">x</a>')
    (tmp_path / "a.html").write_text('<p id="here"></p><a href="index.html">b</a>')
    assert check.wrong(tmp_path) == []
    (tmp_path / "a.html").write_text(
        '<a href="b.html">b</a><script src="https://x.y/z.js"></script>'
    )
    assert len(check.wrong(tmp_path)) == 3
