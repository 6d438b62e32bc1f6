"""Teach a small network to read handwritten digits, twice, and draw what it learned.

Two networks of the same form start from the same weights and see the same batches:

* the *plain* one minimises the usual cross-entropy;
* the *smooth* one also keeps the gradient of that loss with respect to its input images small.
  A loss that contains a gradient needs the gradient of a gradient to train: the second order.

The picture shows both training curves, the smooth network's answers on digits that it never saw,
and the pixels that its answers hang on. Run it with
`python examples/digits.py --epochs 20 --output digits.png`.
"""

import argparse
import math
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from numpy.typing import NDArray
from tqdm import tqdm

import undertow as ut
import undertow.nn.functional as F

DATA = Path(__file__).parent / "data" / "digits.npz"
SIDE, CLASSES = 8, 10  # images are 8x8 pixels, of the digits 0 to 9
TEST_SIZE = 360  # the last images of the file, which no training step sees
HIDDEN = 64
BATCH_SIZE = 64
LEARNING_RATE = 0.05
MOMENTUM = 0.9
SMOOTHNESS = 0.1  # weight of the input-gradient penalty of the smooth network
SEED = 0

BLUE, ORANGE, RED, GREY = "#2a6f97", "#e07a1f", "#c1121f", "#6c757d"


@dataclass
class Digits:
    """Flattened images with values in [0, 1], and the digit that each one shows."""

    images: ut.Tensor
    labels: ut.Tensor

    def __len__(self) -> int:
        return len(self.labels)


class Network:
    """Two layers: pixels -> HIDDEN tanh units -> one score per digit."""

    def __init__(self) -> None:
        self.w1 = ut.randn(SIDE * SIDE, HIDDEN) / SIDE
        self.b1 = ut.zeros(HIDDEN)
        self.w2 = ut.randn(HIDDEN, CLASSES) / math.sqrt(HIDDEN)
        self.b2 = ut.zeros(CLASSES)
        for parameter in self.parameters():
            parameter.requires_grad_()

    def parameters(self) -> list[ut.Tensor]:
        """Return everything that training changes."""
        return [self.w1, self.b1, self.w2, self.b2]

    def __call__(self, images: ut.Tensor) -> ut.Tensor:
        hidden = ut.tanh(images @ self.w1 + self.b1)
        return hidden @ self.w2 + self.b2


@dataclass
class Run:
    """A trained network, and how it got there: one number per epoch."""

    network: Network
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)


def load_digits() -> tuple[Digits, Digits]:
    """Read the data file and split it into a training and a test part."""
    with np.load(DATA) as file:
        images = ut.tensor(file["images"].reshape(-1, SIDE * SIDE) / 16, dtype=ut.float32)
        labels = ut.tensor(file["labels"].astype(np.int64))
    train = Digits(images[:-TEST_SIZE], labels[:-TEST_SIZE])
    test = Digits(images[-TEST_SIZE:], labels[-TEST_SIZE:])
    return train, test


def batch_loss(
    network: Network, images: ut.Tensor, labels: ut.Tensor, smoothness: float
) -> tuple[ut.Tensor, ut.Tensor]:
    """Return the cross-entropy of a batch, and the objective to minimise.

    The objective adds `smoothness` times the mean squared norm of each image's own gradient.
    `create_graph=True` records that gradient's computation, so that `backward` can go through it.
    """
    if not smoothness:
        loss = F.cross_entropy(network(images), labels)
        return loss, loss
    images.requires_grad_()
    total = F.cross_entropy(network(images), labels, reduction="sum")
    (slopes,) = ut.autograd.grad(total, images, create_graph=True)
    loss = total / len(labels)
    return loss, loss + smoothness * (slopes**2).sum() / len(labels)


def train(digits: Digits, test: Digits, epochs: int, name: str, smoothness: float = 0.0) -> Run:
    """Train a new network by stochastic gradient descent with momentum."""
    ut.manual_seed(SEED)
    run = Run(Network())
    parameters = run.network.parameters()
    velocities = [ut.zeros_like(parameter) for parameter in parameters]

    progress = tqdm(range(epochs), desc=f"{name:>6}", unit="epoch")
    for _ in progress:
        epoch_loss = 0.0
        order = ut.randperm(len(digits))
        for start in range(0, len(digits), BATCH_SIZE):
            batch = order[start : start + BATCH_SIZE]
            loss, objective = batch_loss(
                run.network, digits.images[batch], digits.labels[batch], smoothness
            )
            objective.backward()
            with ut.no_grad():
                for parameter, velocity in zip(parameters, velocities, strict=True):
                    assert parameter.grad is not None  # backward has set it
                    velocity.mul_(MOMENTUM).add_(parameter.grad)
                    parameter.sub_(LEARNING_RATE * velocity)
                    parameter.grad = None
            epoch_loss += loss.item() * len(batch)

        run.losses.append(epoch_loss / len(digits))
        run.accuracies.append(accuracy(run.network, test))
        progress.set_postfix(loss=f"{run.losses[-1]:.4f}", test=f"{run.accuracies[-1]:.1%}")
    return run


def predict(network: Network, images: ut.Tensor) -> ut.Tensor:
    """Return the most likely digit of each image."""
    with ut.no_grad():
        return network(images).argmax(dim=1)


def accuracy(network: Network, digits: Digits) -> float:
    """Return the share of digits that the network reads correctly."""
    hits = predict(network, digits.images) == digits.labels
    return hits.sum().item() / len(digits)


def sensitivity(network: Network, digits: Digits) -> float:
    """Return the mean length of the loss's gradient with respect to an image."""
    images = digits.images.clone().requires_grad_()
    total = F.cross_entropy(network(images), digits.labels, reduction="sum")
    (slopes,) = ut.autograd.grad(total, images)
    return (slopes**2).sum(dim=1).sqrt().mean().item()


def saliency(network: Network, images: ut.Tensor, labels: ut.Tensor) -> NDArray[np.float32]:
    """Return how the score of the true digit changes with each pixel, as one map per image."""
    images = images.clone().requires_grad_()
    scores = network(images)
    true_scores = scores[ut.arange(len(labels)), labels]
    (slopes,) = ut.autograd.grad(true_scores.sum(), images)
    return slopes.numpy().reshape(-1, SIDE, SIDE)


def draw(plain: Run, smooth: Run, test: Digits) -> Figure:
    """Draw both training curves, and the smooth network's saliency maps and answers."""
    figure = Figure(figsize=(13, 7.6), layout="constrained")
    left, right = figure.subfigures(1, 2, False, width_ratios=[1, 1.12], wspace=0.04)[0]
    top, bottom = left.subfigures(2, 1, height_ratios=[1, 1.6], hspace=0.04)
    draw_curves(top, plain, smooth)
    draw_saliency(bottom, smooth.network, test)
    draw_answers(right, smooth.network, test)
    return figure


def draw_curves(panel: SubFigure, plain: Run, smooth: Run) -> None:
    """Draw the loss on the training digits and the error on the test digits by epoch."""
    loss_axes, error_axes = panel.subplots(1, 2)
    for run, name, color in ((plain, "plain", BLUE), (smooth, "smooth", ORANGE)):
        epochs = np.arange(1, len(run.losses) + 1)
        errors = [100 * (1 - share) for share in run.accuracies]
        loss_axes.plot(epochs, run.losses, color=color, lw=2, label=name)
        error_axes.plot(epochs, errors, color=color, lw=2, label=name)
    loss_axes.set(title="Training loss", xlabel="epoch", yscale="log")
    error_axes.set(title="Test digits misread, %", xlabel="epoch")
    error_axes.set_ylim(bottom=0)
    for axes in (loss_axes, error_axes):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)


def draw_saliency(panel: SubFigure, network: Network, test: Digits) -> None:
    """Draw the first test image of every digit, with the network's saliency map below it."""
    labels = test.labels.numpy()
    chosen = ut.tensor([int(np.argmax(labels == digit)) for digit in range(CLASSES)])
    images = test.images[chosen]
    maps = saliency(network, images, test.labels[chosen])
    limit = float(np.abs(maps).max())

    columns = CLASSES // 2
    grid = panel.subplots(4, columns)
    for digit, image in enumerate(images.numpy()):
        row, column = 2 * (digit // columns), digit % columns
        show_digit(grid[row, column], image)
        grid[row + 1, column].imshow(maps[digit], cmap="RdBu_r", vmin=-limit, vmax=limit)
        hide_ticks(grid[row + 1, column])
    panel.suptitle("Where more ink speaks for (red) or against (blue) the true digit")


def draw_answers(panel: SubFigure, network: Network, test: Digits) -> None:
    """Draw a grid of test digits with the network's answers, its mistakes first and in red."""
    rows, columns = 7, 8
    answers = predict(network, test.images).numpy()
    labels = test.labels.numpy()
    images = test.images.numpy()
    mistakes = int((answers != labels).sum())
    order = np.argsort(answers == labels, kind="stable")

    grid = panel.subplots(rows, columns)
    for axes, index in zip(grid.flat, order, strict=False):
        right = answers[index] == labels[index]
        caption = f"{answers[index]}" if right else f"{answers[index]}, is {labels[index]}"
        show_digit(axes, images[index])
        axes.set_title(caption, fontsize=10, pad=3, color=GREY if right else RED)
        if not right:
            for spine in axes.spines.values():
                spine.set(color=RED, linewidth=2.5)
    panel.suptitle(
        f"Smooth network: {len(test) - mistakes} of {len(test)} test digits read correctly, "
        f"{mistakes} mistakes first"
    )


def show_digit(axes: Axes, image: NDArray[np.float32]) -> None:
    """Show one image as ink on paper."""
    axes.imshow(image.reshape(SIDE, SIDE), cmap="gray_r", vmin=0, vmax=1)
    hide_ticks(axes)


def hide_ticks(axes: Axes) -> None:
    """Remove the pixel coordinates and soften the frame."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color("#ced4da")


def positive_int(text: str) -> int:
    """Parse a command-line number that must be at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def main() -> None:
    """Train both networks, print the results and save the picture."""
    parser = argparse.ArgumentParser(description="Learn to read handwritten digits.")
    parser.add_argument("--epochs", type=positive_int, default=40, help="default: %(default)s")
    parser.add_argument("--output", type=Path, default=Path("digits.png"), help="picture to write")
    options = parser.parse_args()

    digits, test = load_digits()
    print(f"{len(digits)} handwritten digits to learn from, {len(test)} others to test on")
    started = time.perf_counter()
    plain = train(digits, test, options.epochs, "plain")
    smooth = train(digits, test, options.epochs, "smooth", SMOOTHNESS)
    seconds = time.perf_counter() - started

    print("         training loss   test accuracy   sensitivity to the test image")
    for name, run in (("plain", plain), ("smooth", smooth)):
        slope = sensitivity(run.network, test)
        print(f"{name:>6} {run.losses[-1]:15.4f} {run.accuracies[-1]:15.1%} {slope:15.3f}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    draw(plain, smooth, test).savefig(options.output, dpi=110)
    print(f"trained in {seconds:.1f} s; the picture is in {options.output}")


if __name__ == "__main__":
    main()
