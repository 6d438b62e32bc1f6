"""Write the pages that the library writes, for the test in a browser.

    python tools/site/pages.py FOLDER

Pictures of a graph, a model and a compiled program, a profile, and the report of a training.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import undertow as ut
from undertow import nn
from undertow.cli import main as undertow


def pictures(folder: Path) -> None:
    """A network and a step of it, drawn and profiled; and a graph that is too large to draw."""
    net = nn.Sequential(
        nn.Conv1d(1, 8, 5), nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten(), nn.Linear(224, 2)
    )
    optimiser = ut.optim.Adam(net.parameters())
    x, y = ut.randn(4, 1, 32), ut.tensor([0, 1, 1, 0])

    @ut.compile
    def step(x: ut.Tensor) -> ut.Tensor:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimiser.step()
        return loss

    for _ in range(6):
        step(x)
    ut.draw(step, names=net).save(folder / "program.html")
    ut.draw(net).save(folder / "model.html")
    loss = nn.functional.cross_entropy(net(x), y)
    ut.draw(loss, names=net).save(folder / "graph.html")
    with ut.profiler.profile(profile_memory=True) as prof:
        loss.backward()
    prof.export_html(str(folder / "profile.html"))
    deep = ut.ones(1, requires_grad=True)
    for _ in range(100_000):
        deep = deep + 1
    ut.draw(deep).save(folder / "deep.html")


def report(folder: Path) -> None:
    """What `undertow train` writes beside a model."""
    with tempfile.TemporaryDirectory() as place:
        words = ["train", "--data", "GunPoint", "--epochs", "4", "--out", place, "--overwrite"]
        if undertow([*words, "--quiet"]):
            raise SystemExit(1)
        (folder / "report.html").write_bytes((Path(place) / "report.html").read_bytes())


def main() -> None:
    """Write them all."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    pictures(folder)
    report(folder)


if __name__ == "__main__":
    main()
