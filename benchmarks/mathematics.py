"""Complex numbers and what scientists do with them, against torch; options as in kernels.py.

python benchmarks/mathematics.py [NAME...] [--quick] [--memory] [--threads N] [--json FILE]
"""

from __future__ import annotations

from kernels import main
from workloads import MATHEMATICS

if __name__ == "__main__":
    main(__doc__, MATHEMATICS)
