"""A multilayer perceptron and a small convolutional network read handwritten digits.

    python examples/images.py --epochs 15 --output images.png

Both are trained with Adam on the same batches. The picture shows their learning curves and the
digits that the convolutional network still misreads.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

import undertow as ut
import undertow.nn.functional as F
from undertow import nn
from undertow.utils.data import DataLoader, TensorDataset

DATA = Path(__file__).parent / "data" / "digits.npz"
TEST_SIZE = 360  # the last images of the file, which no training step sees


def load() -> tuple[TensorDataset, TensorDataset]:
    """The digits to learn from, and those to test on: images (1, 8, 8) and labels."""
    with np.load(DATA) as file:
        images = ut.tensor(file["images"][:, None] / 16, dtype=ut.float32)
        labels = ut.tensor(file["labels"].astype(np.int64))
    train = TensorDataset(images[:-TEST_SIZE], labels[:-TEST_SIZE])
    return train, TensorDataset(images[-TEST_SIZE:], labels[-TEST_SIZE:])


def perceptron() -> nn.Module:
    """Pixels, 64 hidden units, ten scores."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def convolutional() -> nn.Module:
    """Two convolutions with batch norm, halved in size between them, and ten scores."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def train(model: nn.Module, data: TensorDataset, test: TensorDataset, epochs: int) -> list[float]:
    """Train a model; the share of test digits that it reads correctly after each epoch."""
    optimiser = ut.optim.Adam(model.parameters(), lr=5e-3)
    batches = DataLoader(data, batch_size=64, shuffle=True)
    found = []
    for _ in (progress := tqdm(range(epochs), unit="epoch")):
        model.train()
        for images, labels in batches:
            optimiser.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimiser.step()
        found.append(accuracy(model, test))
        progress.set_postfix(loss=f"{loss.item():.4f}", test=f"{found[-1]:.1%}")
    return found


def accuracy(model: nn.Module, digits: TensorDataset) -> float:
    """The share of digits that a model reads correctly."""
    images, labels = digits.tensors
    model.eval()
    with ut.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def draw(curves: dict[str, list[float]], model: nn.Module, test: TensorDataset) -> Figure:
    """Draw the learning curves, and the first digits that a model misreads."""
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subfigures(1, 2, squeeze=False)[0]
    axes = left.subplots()
    for name, shares in curves.items():
        axes.plot(range(1, len(shares) + 1), [100 * (1 - s) for s in shares], label=name)
    axes.set(xlabel="epoch", title="test digits misread, %")
    axes.legend(frameon=False)
    images, labels = test.tensors
    with ut.no_grad():
        answers = model(images).argmax(1)
    wrong = (answers != labels).nonzero().flatten().tolist()
    grid = right.subplots(2, 5)
    for place in grid.flat:
        place.axis("off")
    for place, i in zip(grid.flat, wrong, strict=False):
        place.imshow(images[i, 0].numpy(), cmap="gray_r")
        place.set_title(f"{answers[i].item()}, is {labels[i].item()}", fontsize=9)
    right.suptitle(f"{len(wrong)} of {len(labels)} misread by the convolutional network")
    return figure


def main() -> None:
    """Train both networks, and draw what they learned."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--output", type=Path, default=Path("images.png"), help="picture to write")
    options = parser.parse_args()
    ut.manual_seed(options.seed)
    data, test = load()
    models = {"perceptron": perceptron(), "convolutional": convolutional()}
    curves = {}
    for name, model in models.items():
        curves[name] = train(model, data, test, options.epochs)
        size = sum(p.numel() for p in model.parameters())
        print(f"{name}: {size} parameters, {curves[name][-1]:.1%} of the test digits read")
    draw(curves, models["convolutional"], test).savefig(options.output, dpi=110)
    print(f"the picture is in {options.output}")


if __name__ == "__main__":
    main()
