"""`utils.module_tracker`, sizes, tags of operators and modes of traces beside torch's."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance


def tracked(lib: Any) -> list[Any]:
    """The modules that run where a function is computed, and where its backward is."""
    tracker = import_module(f"{lib.__name__}.utils.module_tracker").ModuleTracker()
    seen: list[Any] = []

    def look(what: str) -> None:
        seen.append((what, sorted(tracker.parents), tracker.is_bw))

    class Watched(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            look("forward")
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            look("backward")
            return grad * 2

    class Block(lib.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = lib.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return Watched.apply(self.layer(x))

    net = lib.nn.Sequential(Block(), Block())
    with tracker:
        for _ in range(2):
            net(lib.ones(1, 2, requires_grad=True)).sum().backward()
            look("after")
    net(lib.ones(1, 2))
    return seen


def test_module_tracker() -> None:
    ours = tracked(ut)
    assert ours == tracked(torch)
    assert ours[1][1] == ["Global", "Sequential", "Sequential.1"]


@pytest.mark.parametrize("given", [[2.5], [True], "ab", [-1], 3, (2, 3)], ids=str)
def test_sizes(given: Any) -> None:
    try:
        expected = tuple(torch.Size(given))
    except TypeError:
        with pytest.raises(TypeError):
            ut.Size(given)
    else:
        assert ut.Size(given) == expected


def test_sizes_of_tensors() -> None:
    for lib in (torch, ut):
        assert tuple(lib.Size(lib.tensor([2, 3]))) == (2, 3)
        with pytest.raises(TypeError):
            lib.Size(lib.tensor([2.0]))
        with pytest.raises(TypeError):
            lib.Size([1]) + (2.5,)


def test_tags_and_the_library_of_a_definition() -> None:
    assert {t.name: int(t) for t in ut.Tag} == {k: int(v) for k, v in torch.Tag.__members__.items()}
    for lib in (torch, ut):
        name = f"tags_of_{lib.__name__}"
        with lib.library._scoped_library(name, "FRAGMENT") as home:
            lib.library.define(
                f"{name}::f", "(Tensor x) -> Tensor", lib=home, tags=lib.Tag.pointwise
            )
            assert lib.Tag.pointwise in getattr(lib.ops, name).f.default.tags
        with lib.library._scoped_library(name, "FRAGMENT") as home:  # it went with its library
            lib.library.define(f"{name}::f", "(Tensor x) -> Tensor", lib=home)

        g = lib.library.custom_op(
            f"{name}::g",
            lambda x: x.clone(),
            mutates_args=(),
            schema="(Tensor x) -> Tensor",
            tags=(lib.Tag.pointwise, lib.Tag.core),
        )
        assert {lib.Tag.pointwise, lib.Tag.core} <= set(g._opoverload.tags)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("training", [True, False])
def test_a_trace_keeps_the_mode_of_its_modules(training: bool) -> None:
    for lib in (torch, ut):
        model = lib.nn.Sequential(lib.nn.Linear(4, 64), lib.nn.Dropout(0.5)).train(training)
        traced = lib.jit.trace(model, lib.ones(2, 4), check_trace=False)
        for switched in (model, traced):
            switched.train(not training)
            dropped = [bool((traced(lib.ones(2, 4)) == 0).any()) for _ in range(3)]
            assert dropped == [training] * 3
            assert bool((model(lib.ones(2, 4)) == 0).any()) is not training
            assert model[1].training is not training


@pytest.mark.parametrize("keeps", [("cube",), ("cube", "two"), ()], ids=str)
def test_a_selective_checkpoint_keeps_results_of_operators(keeps: tuple[str, ...]) -> None:
    found = []
    for lib in (torch, ut):
        space = f"kept_by_{lib.__name__}_{len(keeps)}"
        runs: list[str] = []

        def cube(x: Any, runs: Any = runs) -> Any:
            runs.append("cube")
            return x**3

        def two(x: Any, runs: Any = runs) -> Any:
            runs.append("two")
            return x * 2, x * 3

        def save(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        made = lib.library.custom_op(
            f"{space}::cube", cube, mutates_args=(), schema="(Tensor x) -> Tensor"
        )
        made.register_autograd(lambda ctx, g: 3 * ctx.saved_tensors[0] ** 2 * g, setup_context=save)
        pair = lib.library.custom_op(
            f"{space}::two", two, mutates_args=(), schema="(Tensor x) -> (Tensor, Tensor)"
        )
        pair.register_autograd(lambda ctx, a, b: 2 * a + 3 * b)

        def f(x: Any, cube: Any = made, two: Any = pair) -> Any:
            a, b = two(cube(x.sin()))
            return (a.exp() * b).sum()

        checkpoint = lib.utils.checkpoint
        kept = [getattr(getattr(lib.ops, space), name).default for name in keeps]
        x = lib.tensor([0.3, 0.4], requires_grad=True)
        checkpoint.checkpoint(
            f,
            x,
            use_reentrant=False,
            context_fn=partial(checkpoint.create_selective_checkpoint_contexts, kept),
        ).backward()
        found.append((x.grad.tolist(), runs))
    (theirs, their_runs), (ours, our_runs) = found
    assert ours == pytest.approx(theirs, rel=1e-5)
    assert our_runs == their_runs
