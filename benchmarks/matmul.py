"""Matrix products against torch, as fractions of the machine's multiply-adds.

    python benchmarks/matmul.py [NAME...] [--quick] [--threads N] [--float64] [--kernel]

NAME is a part of the names of workloads. Both libraries get the same data, and their results are
compared before they are timed; times are the best of interleaved blocks. `--kernel` also times the
generated product by itself and NumPy's BLAS, between which `matmul` chooses by the shape. On a busy
machine `--threads 1` tells more: it counts only the time that this thread had a processor.
`--isa avx2` limits every library to these instructions.
"""

from __future__ import annotations

import math
import time
from argparse import RawDescriptionHelpFormatter
from collections.abc import Callable
from typing import Any, NamedTuple

from _isa import options
from _limits import _multiply_adds
from _race import header, race

import undertow as ut

import numpy as np  # isort: skip
from undertow.backends.cpu.products.gemm import gemm

BAR, AIM = 1.0, 0.9
REPEAT, SECONDS = 300, 6.0
WAKE = 0.02  # seconds


class Product(NamedTuple):
    """One workload: `a @ b`, either of them transposed in memory."""

    name: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    turned: str = ""  # "a" or "b"

    @property
    def flops(self) -> float:
        """Multiplications and additions."""
        return (
            2.0
            * math.prod(np.broadcast_shapes(self.a[:-2], self.b[:-2]))
            * math.prod((*self.a[-2:], self.b[-1]))
        )

    def operands(self, dtype: str) -> list[Any]:
        """The arrays."""
        generator = np.random.default_rng(0)
        made = []
        for name, shape in (("a", self.a), ("b", self.b)):
            turned = name in self.turned
            given = (*shape[:-2], shape[-1], shape[-2]) if turned else shape
            x = generator.standard_normal(given).astype(dtype)
            made.append(x.swapaxes(-1, -2) if turned else x)
        return made


def square(n: int) -> Product:
    """n by n by n."""
    return Product(f"{n}", (n, n), (n, n))


PRODUCTS = [
    *map(square, (64, 256, 512, 1024, 2048)),
    Product("64 × (64×64)", (64, 64, 64), (64, 64, 64)),
    Product("layer (128×784)@(784×512)", (128, 784), (784, 512)),
    Product("layer, weight transposed", (128, 784), (784, 512), "b"),
    Product("layer, gradient of weight", (784, 128), (128, 512), "a"),
    Product("layer, gradient of input", (128, 512), (512, 784), "b"),
    Product("scores 64 × (256×64)@(64×256)", (64, 256, 64), (64, 64, 256), "b"),
    Product("attended 64 × (256×256)@(256×64)", (64, 256, 256), (64, 256, 64)),
    Product("attended, gradient of values", (64, 256, 256), (64, 256, 64), "a"),
    Product("head (4096×256)@(256×10)", (4096, 256), (256, 10)),
    Product("head, gradient of weight", (256, 4096), (4096, 10), "a"),
    Product("head, gradient of input", (4096, 10), (10, 256), "b"),
    Product("few rows (8×784)@(784×512)", (8, 784), (784, 512)),
    Product("matrix by vector, 2048", (2048, 2048), (2048, 1)),
    Product("vector by matrix, 2048", (1, 2048), (2048, 2048)),
    Product("uneven (333×777)@(777×555)", (333, 777), (777, 555)),
    Product("shared 64 × (64×64)@(64×64)", (64, 64, 64), (1, 64, 64)),
    *map(square, (16, 32, 100, 1000)),
]


def awake(run: Callable[[], Any]) -> tuple[Callable[[], None], Callable[[None], Any]]:
    """A runner for `race` that works for a while, untimed, if it has paused.

    Threads that have gone to sleep can take milliseconds to come back, far longer than a product.
    """
    last = -math.inf

    def wake() -> None:
        end = time.perf_counter() + WAKE
        while last < end - 2 * WAKE and time.perf_counter() < end:
            run()

    def timed(_: None) -> None:
        nonlocal last
        run()
        last = time.perf_counter()

    return wake, timed


def runners(product: Product, dtype: str, torch: Any, kernel: bool) -> dict[str, Any]:
    """What is raced; raises if the results differ."""
    a, b = product.operands(dtype)
    ours, theirs = (ut.from_numpy(a), ut.from_numpy(b)), (torch.from_numpy(a), torch.from_numpy(b))
    found = {"ours": lambda: ut.matmul(*ours), "torch": lambda: torch.matmul(*theirs)}
    if kernel:
        found |= {"kernel": lambda: gemm(a, b), "blas": lambda: np.matmul(a, b)}
    want = np.matmul(a.astype(np.float64), b.astype(np.float64))
    bound = 4 * a.shape[-1] * np.finfo(dtype).eps * np.abs(want).max()
    for name, run in found.items():
        assert np.abs(np.asarray(run()) - want).max() <= bound, name
    return found


def main() -> None:
    """Race what the command line asks for."""
    parser = options(__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="part of a name")
    parser.add_argument("--quick", action="store_true", help="fewer runs, less exact")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="of each library")
    parser.add_argument("--float64", action="store_true", help="instead of float32")
    parser.add_argument("--kernel", action="store_true", help="time kernel and BLAS as well")
    asked = parser.parse_args()
    import torch

    torch.set_num_threads(asked.threads)
    ut.set_num_threads(asked.threads)
    header(torch, threads=asked.threads)
    dtype = "float64" if asked.float64 else "float32"
    peak = max(_multiply_adds(0.1)[0 if asked.threads > 1 else 1] for _ in range(3))
    peak /= 2 if asked.float64 else 1
    print(f"# {dtype}, multiply-adds: {peak / 1e9:.0f} GFLOP/s")
    extra = f" {'kernel µs':>10} {'BLAS µs':>10}" if asked.kernel else ""
    print(
        f"{'product':<34} {'undertow µs':>11} {'torch µs':>10} {'ratio':>6} {'GFLOP/s':>8} "
        f"{'of peak':>7}{extra}"
    )
    share = 0.2 if asked.quick else 1.0
    missed = []
    for product in PRODUCTS:
        if asked.names and not any(name in product.name for name in asked.names):
            continue
        raced = runners(product, dtype, torch, asked.kernel)
        if asked.threads > 1:
            raced = {name: awake(run) for name, run in raced.items()}
        times = race(raced, int(REPEAT * share), SECONDS * share, asked.threads)
        ratio = times["ours"] / times["torch"]
        speed = product.flops / times["ours"]
        line = (
            f"{product.name:<34} {1e6 * times['ours']:>11.1f} {1e6 * times['torch']:>10.1f} "
            f"{ratio:>6.2f} {speed / 1e9:>8.1f} {speed / peak:>7.0%}"
        )
        if asked.kernel:
            line += f" {1e6 * times['kernel']:>10.1f} {1e6 * times['blas']:>10.1f}"
        mark = "aim" if ratio <= AIM else "ok" if ratio <= BAR else "MISSED"
        missed += [product.name] if mark == "MISSED" else []
        print(f"{line}  {mark}", flush=True)
    print(f"\nslower than torch: {', '.join(missed) or 'none'}")


if __name__ == "__main__":
    main()
