"""The CPU's own kernels, generated with LLVM; NumPy remains for small arrays and as the oracle."""

import time

IMPORTED = time.time()  # the generators that this process runs are older than this

# Whether float32 convolutions may use fewer products than a plain sum has: "exact", never; "auto",
# where the rounding error is at most twice that of the sum; "fast", always. docs/convolution.md
fast_convolution = "auto"


def get_cpu_capability() -> str:
    """The vector instructions that kernels use: "AVX512", "AVX2" or "DEFAULT".

    >>> import undertow as ut
    >>> ut.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    True
    """
    from .codegen.jit import features

    found = features()
    return "AVX512" if "avx512f" in found else "AVX2" if "avx2" in found else "DEFAULT"
