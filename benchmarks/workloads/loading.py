"""Batches from two worker processes: 32 images of 3×224×224 floats each, as tensors."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

BATCH, SHAPE = 32, (3, 224, 224)
IMAGES = 64  # different ones; a sample is one of them, so that making it costs nothing


class Images:
    """Ready tensors of any library: a loader has only to batch and to deliver them."""

    def __init__(self, module: Any, batches: int) -> None:
        self.images = [module.full(SHAPE, float(i)) for i in range(IMAGES)]
        self.batches = batches

    def __len__(self) -> int:
        return BATCH * self.batches

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.images[index % IMAGES], index


def loader(module: Any, batches: int, workers: int = 2) -> Any:
    """A library's loader; its workers stay, so that a pass does not start processes."""
    data = module.utils.data
    how = {"batch_size": BATCH, "num_workers": workers, "persistent_workers": workers > 0}
    return data.DataLoader(Images(module, batches), **how)


def one_pass(batches: Any) -> float:
    """Seconds per batch of a pass, with one element of every image looked at."""
    begin, count = time.perf_counter(), 0
    for images, numbers in batches:
        assert images.shape[1:] == SHAPE
        assert images[:, 0, 0, 0].tolist() == [n % IMAGES for n in numbers.tolist()]
        count += 1
    return (time.perf_counter() - begin) / count


def race(rival: Any, batches: int = 40, repeat: int = 5) -> dict[str, float]:
    """The best seconds per batch of undertow and of a rival, interleaved."""
    import undertow as ut

    libraries: dict[str, Any] = {"undertow": ut, rival.__name__: rival}
    loaders: dict[str, Callable[[], Any] | Any] = {
        n: loader(m, batches) for n, m in libraries.items()
    }
    for batch in loaders.values():
        one_pass(batch)  # starts the workers
    best = dict.fromkeys(loaders, float("inf"))
    for _ in range(repeat):
        for name, batch in loaders.items():
            best[name] = min(best[name], one_pass(batch))
    return best


if __name__ == "__main__":
    import torch

    found = race(torch)
    for name, seconds in found.items():
        print(f"{name}: {seconds * 1e3:.2f} ms per batch")
    print(f"ratio {found['undertow'] / found['torch']:.2f}")
