"""A checkpoint that torch saved is loaded, checked and trained on.

    python examples/from_torch.py --epochs 5

`data/digits_torch.pt` was written by `torch.save` after two epochs: the state of a model and of its
Adam optimiser, and how many test digits torch read correctly with it. Nothing of torch is needed
here, and nothing that stands in the file is executed. What is learned further is saved in the same
format, which torch reads as well.
"""

import argparse
from pathlib import Path

from images import accuracy, load
from tqdm import tqdm

import undertow as ut
import undertow.nn.functional as F
from undertow import nn
from undertow.utils.data import DataLoader

CHECKPOINT = Path(__file__).parent / "data" / "digits_torch.pt"


def network() -> nn.Module:
    """The model whose state the file has."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))


def main() -> None:
    """Load, compare with what torch measured, go on, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument(
        "--output", type=Path, default=Path("digits.pt"), help="checkpoint to write"
    )
    options = parser.parse_args()
    ut.manual_seed(options.seed)
    data, test = load()
    saved = ut.load(CHECKPOINT)
    model = network()
    model.load_state_dict(saved["model"])
    optimiser = ut.optim.Adam(model.parameters())
    optimiser.load_state_dict(saved["optimizer"])
    here = accuracy(model, test)
    print(
        f"after {saved['epoch']} epochs: torch read {saved['accuracy']:.2%}, here it is {here:.2%}"
    )
    for _ in (progress := tqdm(range(options.epochs), unit="epoch")):
        model.train()
        for images, labels in DataLoader(data, batch_size=64, shuffle=True):
            optimiser.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimiser.step()
        progress.set_postfix(loss=f"{loss.item():.4f}")
    now = accuracy(model, test)
    epochs = saved["epoch"] + options.epochs
    print(f"after {epochs} epochs: {now:.2%}")
    state = {"model": model.state_dict(), "optimizer": optimiser.state_dict()}
    ut.save({**state, "epoch": epochs, "accuracy": now}, options.output)
    print(f"saved in {options.output}, for torch too")


if __name__ == "__main__":
    main()
