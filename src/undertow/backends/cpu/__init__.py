"""The CPU's own kernels, generated with LLVM; NumPy remains for small arrays and as the oracle."""

import time

IMPORTED = time.time()  # the generators that this process runs are older than this
