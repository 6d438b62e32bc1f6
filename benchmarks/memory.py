"""Peak memory of every workload, undertow's beside torch's.

    python benchmarks/memory.py [NAME...] [--isa avx2]

NAME is a pattern or a part of the names, as for kernels.py and convolution.py. How it is measured:
see _memory.py.
"""

from __future__ import annotations

from _isa import limit, options
from _memory import compare
from workloads import CONVOLUTION, WORKLOADS, chosen


def main() -> None:
    """Measure what the command line asks for."""
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="pattern or part of a name")
    names = parser.parse_args().names
    if limit():
        print(f"# limited to {limit()}")
    compare(chosen(names, (*WORKLOADS, *CONVOLUTION)))


if __name__ == "__main__":
    main()
