"""Second order: the gradient penalty of a 784-512-256-10 tanh network, batch 128.

    python benchmarks/gradient_penalty.py [--repeat N] [--isa avx2]

The loss is the squared norm of the gradient with respect to the input, so its backward goes
through the backward. Milliseconds and the ratio to torch, interleaved, best of several.
"""

from __future__ import annotations

from itertools import pairwise

from _isa import options
from _race import header, race

import undertow as ut

SIZES = (784, 512, 256, 10)
BATCH = 128


def penalty(module, weights, biases, x):
    """The mean squared norm of the input gradient; its backward is second order."""
    h = x
    for i, (w, b) in enumerate(zip(weights, biases, strict=True)):
        h = h @ w + b
        if i < len(weights) - 1:
            h = h.tanh()
    (g,) = module.autograd.grad(h.sum(), x, create_graph=True)
    return (g * g).sum() / BATCH


def runner(module):
    """One full evaluation: forward, gradient, and gradient of the penalty."""
    module.manual_seed(0)
    weights = [(module.randn(a, b) * a**-0.5).requires_grad_() for a, b in pairwise(SIZES)]
    biases = [module.zeros(b).requires_grad_() for b in SIZES[1:]]
    x = module.randn(BATCH, SIZES[0]).requires_grad_()

    def run():
        for p in (*weights, *biases, x):
            p.grad = None
        penalty(module, weights, biases, x).backward()

    return run


def main() -> None:
    """Race it."""
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=60)
    repeat = parser.parse_args().repeat
    import torch

    torch.set_num_threads(2)
    ut.set_num_threads(2)
    header(torch)
    times = race({"ours": runner(ut), "torch": runner(torch)}, repeat)
    ours, theirs = (1e3 * times[k] for k in ("ours", "torch"))
    print(
        f"gradient penalty: undertow {ours:.2f} ms, torch {theirs:.2f} ms, "
        f"ratio {ours / theirs:.2f}"
    )


if __name__ == "__main__":
    main()
