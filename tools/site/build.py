"""Build the documentation site: `make docs`.

    python tools/site/build.py [build/site]

The pages of docs/ are copied beside generated ones (reference, figures, files that pages link to)
and given to Sphinx, whose warnings are errors. Nothing is read from the network.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import charts
import reference
from sphinx.cmd.build import main as sphinx

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[\w-]*)?\))")
LANGUAGES = {".py": "python", ".toml": "toml", ".md": "markdown", ".svg": "xml"}


def shown(target: Path, source: Path) -> Path:
    """A page that shows a file or folder of the repository; pages link to it instead."""
    name = str(target.relative_to(ROOT)).replace("/", "-")
    page = source / "files" / f"{name}.md"
    if page.exists():
        return page
    page.parent.mkdir(exist_ok=True)
    title = target.relative_to(ROOT)
    if target.is_dir():
        listed = [p for p in sorted(target.iterdir()) if p.suffix == ".py"]
        text = "\n".join(f"- [{p.name}]({shown(p, source).name})" for p in listed)
    else:
        language = LANGUAGES.get(target.suffix, "text")
        text = f"`````{language}\n{target.read_text()}\n`````"
    page.write_text(f"---\norphan: true\n---\n# {title}\n\n{text}\n")
    return page


def relinked(text: str, original: Path, copy: Path, source: Path) -> str:
    """A page whose links out of docs/ lead to pages of the site."""

    def replace(match: re.Match[str]) -> str:
        target = (original.parent / match[2]).resolve()
        if not target.is_relative_to(ROOT) or not target.exists():
            return match[0]
        if target.is_relative_to(ROOT / "docs") and target.is_file():
            to = source / target.relative_to(ROOT / "docs")
        elif target.parent == ROOT and target.suffix == ".md":
            to = source / "project" / target.name.lower()
        elif target == charts.RESULTS:
            to = source / "project" / "results.md"
        else:
            to = shown(target, source)
        anchor = match[3] if to.suffix == ".md" and "files" not in to.parts else ")"
        return match[1] + os.path.relpath(to, copy.parent) + anchor

    return LINK.sub(replace, text)


def figures(source: Path) -> None:
    """A chart for each table of the results."""
    folder = source / "charts"
    folder.mkdir()
    text = (source / "figures.md").read_text()
    for number, chart in enumerate(charts.charts(charts.RESULTS.read_text())):
        (folder / f"{number}.svg").write_text(charts.svg(chart))
        text += f"\n## {chart.title}\n\n![{chart.title}](charts/{number}.svg)\n"
    (source / "figures.md").write_text(text)


def main() -> int:
    """Lay out the sources, and run Sphinx over them."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site")
    source = out.with_name(out.name + "-source")
    for folder in (out, source):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", source)
    project = source / "project"
    project.mkdir()
    pages = {
        path: source / path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")
    }
    for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY", "README"):
        pages[ROOT / f"{name}.md"] = project / f"{name.lower()}.md"
    pages[charts.RESULTS] = project / "results.md"
    for original, copy in pages.items():
        copy.write_text(relinked(original.read_text(), original, copy, source))
    figures(source)
    found = reference.write(source / "reference")
    lacking = reference.lacking(found)
    print(f"{len(found)} reference pages, {len(lacking)} without an example")
    options = ["-b", "html", "-W", "--keep-going", "-q", "-j", "2", "-c", str(HERE)]
    return sphinx([*options, "-d", str(source / "_build"), str(source), str(out)])


if __name__ == "__main__":
    raise SystemExit(main())
