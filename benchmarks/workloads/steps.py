"""Whole training steps of models, written once for every library that has torch's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._workload import Run, Workload, normal, positions


def fill(module: Any, model: Any, seed: int = 0) -> Any:
    """The same weights for every library: what torch would draw, drawn by NumPy."""
    with module.no_grad():
        for i, p in enumerate(model.parameters()):
            scale = (p.numel() // p.shape[0]) ** -0.5 if p.ndim > 1 else 0.02
            value = normal(*p.shape, seed=seed + i) * scale + (p.ndim == 1 and 0.5)
            p.copy_(module.from_numpy(value.astype("float32")))
    return model


def steps(model: Any, optimiser: Any, loss: Callable[[], Any]) -> Run:
    """One step of training; its result is the loss before it."""

    def run() -> tuple[Any, ...]:
        optimiser.zero_grad()
        value = loss()
        value.backward()
        optimiser.step()
        return (value.detach(),)

    return run


# MLP ----------------------------------------------------------------------------------------------
def _mlp(module: Any) -> Run:
    nn = module.nn
    layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)]
    model = fill(module, nn.Sequential(*layers))
    x = module.from_numpy(normal(128, 784, seed=50))
    y = module.from_numpy(positions(128, below=10, seed=51))
    optimiser = module.optim.Adam(model.parameters(), lr=1e-3)
    return steps(model, optimiser, lambda: nn.functional.cross_entropy(model(x), y))


# FCN on series as long and as many as those of OSULeaf --------------------------------------------
SERIES, LENGTH, CLASSES = 200, 427, 6


def fcn(module: Any, classes: int = CLASSES) -> Any:
    """Three convolutions, each with batch norm and ReLU, and the mean over time."""
    nn = module.nn
    layers: list[Any] = []
    for before, after, width in ((1, 128, 8), (128, 256, 5), (256, 128, 3)):
        layers += [
            nn.Conv1d(before, after, width, padding="same"),
            nn.BatchNorm1d(after),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(128, classes))


def _fcn_epoch(module: Any) -> Run:
    model = fill(module, fcn(module))
    x = module.from_numpy(normal(SERIES, 1, LENGTH, seed=60))
    y = module.from_numpy(positions(SERIES, below=CLASSES, seed=61))
    optimiser = module.optim.Adam(model.parameters(), lr=1e-3)

    def run() -> tuple[Any, ...]:
        losses = []
        for i in range(0, SERIES, 16):
            optimiser.zero_grad()
            value = module.nn.functional.cross_entropy(model(x[i : i + 16]), y[i : i + 16])
            value.backward()
            optimiser.step()
            losses.append(value.detach())
        return (losses[0],)  # rounding errors of the steps grow from one to the next

    return run


# Characters ---------------------------------------------------------------------------------------
LAYERS, WIDTH, HEADS, TOKENS, BATCH, SYMBOLS = 4, 128, 4, 64, 32, 65


def characters(module: Any) -> Any:
    """A transformer that tells the next character, as programs write it by hand."""
    nn = module.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.to_heads = nn.Linear(WIDTH, 3 * WIDTH)
            self.from_heads = nn.Linear(WIDTH, WIDTH)
            self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            batch, tokens, width = x.shape
            heads = self.to_heads(self.norm1(x)).view(batch, tokens, 3, HEADS, width // HEADS)
            q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.from_heads(mixed.transpose(1, 2).reshape(batch, tokens, width))
            return x + self.narrow(nn.functional.gelu(self.widen(self.norm2(x))))

    class Characters(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.symbols, self.places = nn.Embedding(SYMBOLS, WIDTH), nn.Embedding(TOKENS, WIDTH)
            self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, SYMBOLS)

        def forward(self, index: Any) -> Any:
            places = module.arange(index.shape[1])
            return self.head(self.norm(self.blocks(self.symbols(index) + self.places(places))))

    return Characters()


def _characters(module: Any) -> Run:
    model = fill(module, characters(module))
    x = module.from_numpy(positions(BATCH, TOKENS, below=SYMBOLS, seed=70))
    y = module.from_numpy(positions(BATCH, TOKENS, below=SYMBOLS, seed=71))
    optimiser = module.optim.AdamW(model.parameters(), lr=3e-4)
    cross_entropy = module.nn.functional.cross_entropy
    return steps(model, optimiser, lambda: cross_entropy(model(x).view(-1, SYMBOLS), y.view(-1)))


# Images -------------------------------------------------------------------------------------------
def resnet(module: Any) -> Any:
    """A residual network of 18 layers for images of 32 × 32."""
    nn = module.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
            self.norm1 = nn.BatchNorm2d(after)
            self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(after)
            self.shortcut = nn.Identity()
            if stride > 1 or before != after:
                conv = nn.Conv2d(before, after, 1, stride, bias=False)
                self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(after))

        def forward(self, x: Any) -> Any:
            h = nn.functional.relu(self.norm1(self.conv1(x)))
            return nn.functional.relu(self.norm2(self.conv2(h)) + self.shortcut(x))

    layers: list[Any] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    before = 64
    for after, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(before, after, stride), Block(after, after, 1)]
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def _resnet(module: Any) -> Run:
    model = fill(module, resnet(module))
    x = module.from_numpy(normal(32, 3, 32, 32, seed=80))
    y = module.from_numpy(positions(32, below=10, seed=81))
    optimiser = module.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return steps(model, optimiser, lambda: module.nn.functional.cross_entropy(model(x), y))


STEPS = (
    Workload("MLP 784-512-256-10, batch 128, Adam", _mlp, 0.9, 0.7),
    Workload("FCN on OSULeaf, one epoch, batch 16, Adam", _fcn_epoch, 0.8, 0.6),
    Workload("character transformer, AdamW", _characters, 1.0, 0.8),
    Workload("ResNet-18 on 32x32, batch 32, SGD", _resnet, 1.0, 0.8),
)
