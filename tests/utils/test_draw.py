"""`ut.draw`: what stands in pictures, that boxes do not overlap, and what is left out is said."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import undertow as ut

RECT = re.compile(r'<rect x="(-?\d+)" y="(-?\d+)" width="(\d+)" height="(\d+)"')


def boxes(svg: str) -> list[tuple[int, int, int, int]]:
    return [tuple(map(int, found)) for found in RECT.findall(svg)]  # type: ignore[misc]


def test_a_graph() -> None:
    """Ops, shapes, saved bytes, hooks and names; a box for each node, an arrow for each edge."""
    w = ut.ones(16, 4, requires_grad=True)
    b = ut.ones(4, requires_grad=True)
    w.register_hook(lambda g: None)
    y = (ut.ones(8, 16) @ w + b).tanh()
    picture = ut.draw(y, names={"weight": w, "bias": b})
    ElementTree.fromstring(picture.svg)
    for text in ("TanhBackward0", "MatmulBackward0", "weight", "bias", "(16, 4)", "1 hook"):
        assert f">{text}<" in picture.svg, text
    assert f"saved {8 * 4 * 4} B" in picture.svg  # of tanh: its output
    assert f"saved {8 * 16 * 4} B" in picture.svg  # of the product: its input
    nodes, edges, stack = {y.grad_fn}, 0, [y.grad_fn]
    while stack:
        for parent, _ in stack.pop().next_functions:
            if parent is not None:
                edges += 1
                if parent not in nodes:
                    nodes.add(parent)
                    stack.append(parent)
    assert len(boxes(picture.svg)) == len(nodes)
    assert picture.svg.count("<polyline") == edges
    y.sum().backward()
    assert ">freed<" in ut.draw(y).svg


def test_boxes_do_not_overlap() -> None:
    """Also where edges skip layers."""
    x = ut.ones(4, requires_grad=True)
    h = [x]
    for i in range(30):
        h.append(h[-1].sin() * h[i // 2] + h[i // 3].exp())
    found = boxes(ut.draw(h[-1]).svg)
    for i, (x1, y1, w1, h1) in enumerate(found):
        for x2, y2, w2, h2 in found[:i]:
            apart = x1 + w1 <= x2 + 1 or x2 + w2 <= x1 + 1 or y1 + h1 <= y2 or y2 + h2 <= y1
            assert apart


def test_a_large_graph_shows_the_top() -> None:
    """And says so."""
    x = ut.ones(1, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y.neg()
    picture = ut.draw(y)
    assert picture.note == "The 1000 nodes nearest to the output, of 100001."
    assert picture.note in picture.svg
    assert len(boxes(picture.svg)) == 1000
    assert len(picture.html) < 1 << 20


def test_a_function_that_is_compiled_inside_of_autocast() -> None:
    double = ut.compile(lambda x: x * 2)
    with ut.autocast("cpu"):
        for _ in range(6):
            double(ut.ones(4))
    assert "map" in ut.draw(double).svg


def test_a_compiled_function() -> None:
    """Its launches, fed by arguments and by tensors from outside under their names."""
    layer = ut.nn.Linear(3, 5)

    @ut.compile
    def f(x: ut.Tensor) -> ut.Tensor:
        return layer(x).tanh().sum(1)

    with pytest.raises(ut.errors.ArgumentError, match="no program yet"):
        ut.draw(f)
    with ut.no_grad():
        for _ in range(6):
            f(ut.ones(4, 3))
        picture = ut.draw(f, names=layer)
    ElementTree.fromstring(picture.svg)
    for text in ("argument 0", "weight", "bias", "(4, 3)", "(4, 5)", "(4,)"):
        assert f">{text}<" in picture.svg, text
    steps = ["gemm", "map", "reduce"]  # in a row, fed by an argument and two tensors
    for name in steps:
        assert re.search(f">{name}[^<]*<", picture.svg), name
    assert len(boxes(picture.svg)) == len(steps) + 3
    assert picture.svg.count("<polyline") == len(steps) - 1 + 3


def test_models(tmp_path: Path) -> None:
    """Modules as boxes that open and close; with an input, the graph with its parameters' names."""
    model = ut.nn.Sequential(ut.nn.Linear(3, 4), ut.nn.Sequential(ut.nn.ReLU(), ut.nn.Linear(4, 2)))
    picture = ut.draw(model)
    ElementTree.fromstring(picture.svg)
    assert len(boxes(picture.svg)) == 5
    assert picture.html.count("<details open>") == 2
    assert "0: Linear(in_features=3, out_features=4, bias=True), 16 parameters" in picture.html
    graph = ut.draw(model, ut.ones(2, 3))
    for name in ("0.weight", "1.1.bias"):
        assert f">{name}<" in graph.svg
    for name in ("a.svg", "a.html"):
        graph.save(tmp_path / name)
        text = (tmp_path / name).read_text()
        assert "LinearBackward0" in text
        assert "https:" not in text
        assert "src=" not in text


def test_bad_input(tmp_path: Path) -> None:
    """Each with a sentence."""
    x = ut.ones(2, requires_grad=True)
    with pytest.raises(ut.errors.ArgumentError, match="nothing is recorded"):
        ut.draw(ut.ones(2))
    with pytest.raises(ut.errors.ArgumentError, match="a tensor, a module or"):
        ut.draw(3)
    with pytest.raises(ut.errors.ArgumentError, match="cannot write"):
        ut.draw(x * 2).save(tmp_path / "absent" / "a.svg")
    with pytest.raises(ut.errors.ArgumentError, match=r"\.svg or \.html"):
        ut.draw(x * 2).save(tmp_path / "a.png")
