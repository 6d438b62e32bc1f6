"""What the benchmarks race: each workload for any library with torch's names, on the same data."""

from __future__ import annotations

from fnmatch import fnmatch

from ._workload import Workload
from .composites import COMPOSITES
from .elementwise import ELEMENTWISE
from .indexing import INDEXING
from .reductions import REDUCTIONS
from .transformer import TRANSFORMER

WORKLOADS = (*ELEMENTWISE, *REDUCTIONS, *COMPOSITES, *INDEXING, *TRANSFORMER)


def chosen(patterns: list[str]) -> list[Workload]:
    """The workloads whose names match one of the patterns, or hold it; all without a pattern."""
    return [
        w
        for w in WORKLOADS
        if not patterns or any(fnmatch(w.name, p) or p in w.name for p in patterns)
    ]
