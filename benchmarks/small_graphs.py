"""Overhead: a chain of 100 multiplies of 4×4, where arithmetic costs next to nothing.

    python benchmarks/small_graphs.py [--repeat N] [--isa avx2]

Forward and backward with gradients for one and for both factors, and the forward alone under
no_grad; microseconds per multiply and the ratio to torch, interleaved, best of several.
"""

from __future__ import annotations

from _isa import options
from _race import header, race

import undertow as ut

LENGTH = 100


def chain(module, x, w):
    """`x` multiplied by `w` a hundred times."""
    y = x
    for _ in range(LENGTH):
        y = y * w
    return y.sum()


def runners(module, both):
    """The workloads for one library."""
    x = (module.ones(4, 4) * 1.01).requires_grad_()
    w = (module.ones(4, 4) * 0.99).requires_grad_(both)

    def training():
        x.grad = None
        w.grad = None
        chain(module, x, w).backward()

    def inference():
        with module.no_grad():
            chain(module, x, w)

    return training, inference


def main() -> None:
    """Race the workloads."""
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=300)
    repeat = parser.parse_args().repeat
    import torch

    torch.set_num_threads(2)
    ut.set_num_threads(2)
    header(torch)
    print(f"{'workload':<44} {'undertow µs':>11} {'torch µs':>9} {'ratio':>6}")
    rows = [
        ("forward + backward, both factors need gradients", True, 0),
        ("forward + backward, one factor needs gradients", False, 0),
        ("forward under no_grad", True, 1),
    ]
    for name, both, which in rows:
        times = race(
            {"ours": runners(ut, both)[which], "torch": runners(torch, both)[which]}, repeat
        )
        ours, theirs = (1e6 / LENGTH * times[k] for k in ("ours", "torch"))
        print(f"{name:<48} {ours:>7.2f} {theirs:>9.2f} {ours / theirs:>6.2f}")


if __name__ == "__main__":
    main()
