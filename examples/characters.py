"""A character-level transformer that learns to write like Python's own documentation.

    python examples/characters.py --steps 600

It reads the help texts that come with every Python (`pydoc_data.topics`), learns to tell the next
character from those before it, and then writes on its own from a beginning.
"""

import argparse
import math
import re
from pydoc_data.topics import topics

from tqdm import tqdm

import undertow as ut
import undertow.nn.functional as F
from undertow import nn

CONTEXT = 64  # characters that the model sees


class Writer(nn.Module):
    """Embeddings of characters and places, layers of masked attention, one score per character."""

    def __init__(self, symbols: int, width: int, layers: int) -> None:
        super().__init__()
        self.symbols = nn.Embedding(symbols, width)
        self.places = nn.Embedding(CONTEXT, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width))
        self.head = nn.Linear(width, symbols)
        self.register_buffer(
            "mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT), persistent=False
        )

    def forward(self, index: ut.Tensor) -> ut.Tensor:
        """Scores of the character after each of those in `index`."""
        length = index.shape[1]
        x = self.symbols(index) + self.places(ut.arange(length))
        return self.head(self.layers(x, mask=self.mask[:length, :length], is_causal=True))


def read() -> tuple[ut.Tensor, list[str]]:
    """The text as numbers, and the character that each number stands for."""
    text = re.sub(r"\s+", " ", " ".join(topics[name] for name in sorted(topics)))
    text = re.sub(r"[^ -~]", "", text)
    symbols = sorted(set(text))
    number = {symbol: i for i, symbol in enumerate(symbols)}
    return ut.tensor([number[c] for c in text]), symbols


def batch(text: ut.Tensor, size: int) -> tuple[ut.Tensor, ut.Tensor]:
    """Random pieces of the text, and the same pieces one character later."""
    starts = ut.randint(len(text) - CONTEXT - 1, (size, 1))
    where = starts + ut.arange(CONTEXT)
    return text[where], text[where + 1]


@ut.no_grad()
def write(model: Writer, symbols: list[str], beginning: str, length: int) -> str:
    """Go on from a beginning, one likely character at a time."""
    written = [symbols.index(c) for c in beginning]
    for _ in range(length):
        scores = model(ut.tensor([written[-CONTEXT:]]))[0, -1]
        likely = F.softmax(scores / 0.7, dim=0)
        written.append(int(ut.multinomial(likely, 1).item()))
    return "".join(symbols[i] for i in written)


def main() -> None:
    """Train, measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600, help="default: %(default)s")
    parser.add_argument("--width", type=int, default=128, help="default: %(default)s")
    parser.add_argument("--layers", type=int, default=4, help="default: %(default)s")
    parser.add_argument("--length", type=int, default=300, help="characters to write")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    options = parser.parse_args()
    ut.manual_seed(options.seed)
    text, symbols = read()
    held = len(text) // 10
    train, test = text[:-held], text[-held:]
    model = Writer(len(symbols), options.width, options.layers)
    optimiser = ut.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = ut.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=options.steps)
    for _ in (progress := tqdm(range(options.steps), unit="step")):
        index, following = batch(train, 32)
        loss = F.cross_entropy(model(index).flatten(0, 1), following.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        progress.set_postfix(loss=f"{loss.item():.3f}")
    model.eval()
    with ut.no_grad():
        index, following = batch(test, 64)
        loss = F.cross_entropy(model(index).flatten(0, 1), following.flatten())
    bits = loss.item() / math.log(2)
    print(
        f"{bits:.2f} bits per character of unseen text, of {math.log2(len(symbols)):.2f} at first"
    )
    print(write(model, symbols, "The statement ", options.length))


if __name__ == "__main__":
    main()
