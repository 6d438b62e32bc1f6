"""docs/coverage.md says which names of torch are here, and why others are not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def tool() -> Any:
    """tools/coverage.py as a module; by its path, since a package has that name, too."""
    path = Path(__file__).parents[2] / "tools" / "coverage.py"
    spec = importlib.util.spec_from_file_location("coverage_of_torch", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


coverage = tool()


def test_the_page_is_up_to_date() -> None:
    """What is checked in is what `make coverage` writes."""
    assert coverage.PAGE.read_text() == coverage.page(), "run `make coverage`"


def test_what_is_missing_has_a_reason() -> None:
    """Nothing is missing without one, and no reason is left over."""
    lacking = coverage.missing(coverage.read_names()[1])
    reasons = coverage.read_reasons()
    unexplained = {p: w[""] for p, w in coverage.explained(lacking, reasons).items() if "" in w}
    assert unexplained == {}, "say why in tools/torch_missing.toml"
    assert coverage.pruned(lacking, reasons) == {
        path: {reason: " ".join(patterns.split()) for reason, patterns in listed.items()}
        for path, listed in reasons.items()
    }, "run `make coverage`"


def test_differences_are_found() -> None:
    """Sentences and rows of compatibility.md, by the names in them."""
    told = coverage.differences()
    assert any("cdist" in names and sentence.startswith("`cdist`") for names, sentence in told)
    assert any("compile" in names and ": functions and" in sentence for names, sentence in told)
