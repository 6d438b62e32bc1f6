"""What the benchmarks race: each workload for any library with torch's names, on the same data."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch

from ._workload import Workload
from .complex_numbers import COMPLEX
from .composites import COMPOSITES
from .convolution import LAYERS
from .elementwise import ELEMENTWISE
from .files import FILES
from .indexing import INDEXING
from .linear_algebra import LINEAR_ALGEBRA
from .reductions import REDUCTIONS
from .sorting import SORTING
from .sparse import SPARSE
from .spectra import SPECTRA
from .transformer import TRANSFORMER

__all__ = ["MATHEMATICS", "CONVOLUTION", "FILES", "LAYERS", "WORKLOADS", "Workload", "chosen"]

WORKLOADS = (*ELEMENTWISE, *REDUCTIONS, *COMPOSITES, *INDEXING, *SORTING, *TRANSFORMER)
MATHEMATICS = (*COMPLEX, *LINEAR_ALGEBRA, *SPECTRA, *SPARSE)
CONVOLUTION = tuple(layer.workload for layer in LAYERS)


def chosen(patterns: list[str], among: Sequence[Workload] = WORKLOADS) -> list[Workload]:
    """The workloads whose names match one of the patterns, or hold it; all without a pattern."""
    return [
        w for w in among if not patterns or any(fnmatch(w.name, p) or p in w.name for p in patterns)
    ]
