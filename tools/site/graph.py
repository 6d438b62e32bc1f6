"""Draw docs/graph.svg, the picture of the README: the graph behind the loss of a small network.

python tools/site/graph.py
"""

from __future__ import annotations

from pathlib import Path

import undertow as ut
from undertow import nn

PICTURE = Path(__file__).parents[2] / "docs" / "graph.svg"


def picture() -> str:
    """What `ut.draw` makes of it."""
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    loss = nn.functional.mse_loss(model(ut.ones(8, 2)), ut.ones(8, 1))
    return ut.draw(loss, names=model).svg


if __name__ == "__main__":
    PICTURE.write_text(picture())
