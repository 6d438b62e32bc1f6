"""`undertow.export`: programs of calls, sizes that vary, what is refused; and `undertow.jit`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import undertow as ut
from undertow.errors import UnsupportedError
from undertow.export import Dim, dims, export
from undertow.export.graph_signature import InputKind


class Scaled(ut.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = ut.nn.Linear(3, 4)
        self.register_buffer("shift", ut.ones(4))
        self.constant = ut.full((4,), 2.0)

    def forward(self, x: ut.Tensor, more: Any = None, *, factor: float = 1.0) -> Any:
        y = self.lin(x) * self.constant + self.shift
        if more is not None:
            y = y + more["bias"]
        return {"out": y * factor, "sizes": (y.sum(0), 3)}


def same(a: Any, b: Any) -> bool:
    leaves = ut.utils._pytree.tree_leaves
    return all(
        ut.allclose(x, y, atol=1e-6) if isinstance(x, ut.Tensor) else x == y
        for x, y in zip(leaves(a), leaves(b), strict=True)
    )


def test_a_program_with_containers_and_keywords() -> None:
    model = Scaled()
    args, kwargs = (ut.rand(2, 3), {"bias": ut.rand(4)}), {"factor": 2.0}
    program = export(model, args, kwargs)
    assert same(program.module()(*args, **kwargs), model(*args, **kwargs))
    signature = program.graph_signature
    assert signature.parameters == ("lin.weight", "lin.bias")
    assert signature.buffers == ("shift",)
    assert signature.user_inputs == ("x", "more_bias", 2.0)
    assert [s.kind for s in signature.input_specs].count(InputKind.CONSTANT_TENSOR) == 1
    assert dict(program.named_parameters())["lin.weight"] is model.lin.weight
    program.module()(*args, **kwargs)["out"].sum().backward()
    assert model.lin.weight.grad is not None
    assert "Graph signature" in str(program)
    with pytest.raises(RuntimeError, match=r"module\(\)"):
        program(*args)


def test_fixed_sizes_are_guarded() -> None:
    module = export(Scaled(), (ut.rand(2, 3),)).module()
    with pytest.raises(AssertionError, match=r"x.size\(\)\[0\] == 2, got 5"):
        module(ut.rand(5, 3))
    with pytest.raises(AssertionError, match="Guard failed"):
        module(ut.rand(2, 3, dtype=ut.float64))
    with pytest.raises(ValueError, match="was exported for"):
        module(ut.rand(2, 3), {"bias": ut.ones(4)})


class Sequences(ut.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = ut.nn.MultiheadAttention(8, 2, batch_first=True)
        self.conv = ut.nn.Conv1d(8, 4, 3, padding=1)

    def forward(self, x: ut.Tensor) -> Any:
        y, _ = self.attention(x, x, x, need_weights=False)
        z = self.conv(y.transpose(1, 2))
        last = z[:, :, -1]
        return z.reshape(x.shape[0] * 2, -1), last, y.flatten(1), z.unfold(2, 2, 1)


def test_sizes_that_vary() -> None:
    batch, time = dims("batch", "time", min=2)
    model = Sequences().eval()
    program = export(model, (ut.rand(2, 5, 8),), dynamic_shapes={"x": {0: batch, 1: time}})
    for sizes in ((3, 7), (2, 2), (9, 4)):
        x = ut.rand(*sizes, 8)
        assert same(program.module()(x), model(x))
    with pytest.raises(AssertionError, match="does not fit batch"):
        program.module()(ut.rand(1, 5, 8))
    assert program.range_constraints["batch"][0] == 2


@pytest.mark.parametrize("said", [Dim.AUTO, Dim.DYNAMIC])
def test_sizes_without_a_name(said: Any) -> None:
    model = ut.nn.Sequential(ut.nn.Flatten(), ut.nn.Linear(6, 2))
    program = export(model, (ut.rand(4, 2, 3),), dynamic_shapes=({0: said, 1: Dim.STATIC},))
    assert program.module()(ut.rand(7, 2, 3)).shape == (7, 2)


def test_sizes_that_follow_another() -> None:
    class Pairs(ut.nn.Module):
        def forward(self, x: ut.Tensor, y: ut.Tensor) -> ut.Tensor:
            return x + y.reshape(-1, 2).sum(1)

    n = Dim("n")
    program = export(Pairs(), (ut.rand(3), ut.rand(6)), dynamic_shapes=({0: n}, {0: 2 * n}))
    assert program.module()(ut.rand(5), ut.rand(10)).shape == (5,)
    with pytest.raises(AssertionError, match="does not fit n"):
        program.module()(ut.rand(5), ut.rand(8))


class Frozen(ut.nn.Module):
    def __init__(self, f: Any) -> None:
        super().__init__()
        self.f = f

    def forward(self, x: ut.Tensor) -> Any:
        return self.f(x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 2 if x.shape[0] > 5 else x,
        lambda x: x / x.shape[0] ** 0.5,
        lambda x: x[x.shape[0] // 2],
        lambda x: x + ut.tensor([float(x.shape[0])]),
    ],
    ids=["branch", "root", "half", "constant"],
)
def test_what_does_not_follow_a_size_is_refused(f: Any) -> None:
    with pytest.raises(NotImplementedError, match="make that size fixed"):
        export(Frozen(f), (ut.rand(3, 2),), dynamic_shapes=({0: Dim("n")},))
    x = ut.rand(3, 2)
    assert same(export(Frozen(f), (x,)).module()(x), f(x))
    automatic = export(Frozen(f), (x,), dynamic_shapes=({0: Dim.AUTO},))
    assert automatic.range_constraints == {}


def test_what_is_refused() -> None:
    x = ut.rand(4, 3)
    norm = ut.nn.BatchNorm1d(3)
    kept = norm.running_mean.clone()
    with pytest.raises(NotImplementedError, match=r"buffer 'running_mean'.*eval\(\)"):
        export(norm, (x,))
    assert ut.equal(norm.running_mean, kept)
    assert export(norm.eval(), (x,)).module()(x).shape == (4, 3)
    with pytest.raises(ValueError, match="an instance of"):
        export(lambda x: x, (x,))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="arg names"):
        export(ut.nn.Linear(3, 1), (x,), dynamic_shapes={"y": {0: Dim("n")}})
    program = export(ut.nn.Linear(3, 1), (x,))
    with pytest.raises(NotImplementedError, match=r"onnx\.export"):
        ut.export.save(program, "file")
    with pytest.raises(NotImplementedError, match="state_dict"):
        ut.export.load("file")
    with pytest.raises(NotImplementedError, match="does not keep the modules"):
        ut.export.unflatten(program)


def test_branches_on_values_warn() -> None:
    model = Frozen(lambda x: x if bool(x.sum() > 0) else -x)
    with pytest.warns(UserWarning, match=r"\[export\].*frozen"):
        program = export(model, (ut.ones(2),))
    assert program.module()(-ut.ones(2)).tolist() == [-1.0, -1.0]


def test_the_bounds_of_a_size_are_tried() -> None:
    """A branch on a size between the example and the bound that was declared."""
    for function in (lambda x: x[: min(x.shape[0], 40)], lambda x: x if x.shape[0] > 3 else -x):
        model = Frozen(function)
        time = Dim("time", min=2, max=64)
        with pytest.raises(UnsupportedError, match="the program"):
            export(model, (ut.rand(9, 2),), dynamic_shapes=({0: time},))
        time = Dim("time", min=4, max=40)
        program = export(model, (ut.rand(9, 2),), dynamic_shapes=({0: time},))
        assert program.module()(ut.rand(31, 2)).shape == (31, 2)


def test_what_becomes_a_constant_warns() -> None:
    """Elements that are found, numbers that are read within functions, random numbers."""
    x = ut.tensor([1, 0, 2])
    functions: list[Callable[[Any], Any]] = [
        lambda x: x[x > 0],
        lambda x: ut.where(x > 0)[0],
        lambda x: x.unique(),
        lambda x: x.repeat_interleave(x),
        lambda x: ut.nn.functional.one_hot(x),
        lambda x: x if ut.equal(x, x * 2) else -x,
        lambda x: x[x[0]],
        lambda x: ut.tensor(x) + 1,
        lambda x: x + ut.rand(3),
        lambda x: ut.nn.functional.dropout(x * 1.0, 0.5),
    ]
    for function in functions:
        with pytest.warns(UserWarning, match=r"\[export\].*constant") as told:
            export(Frozen(function), (x,))
        assert any(w.filename == __file__ for w in told)


def test_dataclasses_as_containers() -> None:
    @dataclass
    class Both:
        a: Any
        b: Any

    ut.export.register_dataclass(Both)
    model = Frozen(lambda pair: Both(pair.a + pair.b, 1))
    program = export(model, (Both(ut.ones(2), ut.ones(2)),))
    out = program.module()(Both(ut.ones(2), ut.zeros(2)))
    assert isinstance(out, Both)
    assert out.a.tolist() == [1.0, 1.0]


# jit ----------------------------------------------------------------------------------------------
def test_scripted_modules_are_themselves() -> None:
    model = Scaled()
    assert ut.jit.script(model) is model
    assert isinstance(model, ut.jit.ScriptModule)
    assert not isinstance(Scaled(), ut.jit.ScriptModule)
    assert model.original_name == "Scaled"
    assert ut.jit.freeze(model.eval()) is model
    assert ut.jit.optimize_for_inference(model) is model
    with pytest.raises(RuntimeError, match="eval mode"):
        ut.jit.freeze(model.train())
    with pytest.raises(NotImplementedError, match="TorchScript"):
        ut.jit.save(model, "file")
    with pytest.raises(NotImplementedError, match="TorchScript"):
        ut.jit.load("file")


def test_traced_modules_share_parameters() -> None:
    model = ut.nn.Sequential(ut.nn.Linear(3, 2), ut.nn.Dropout())
    seen = []
    model[0].register_forward_hook(lambda *_: seen.append(ut.jit.is_tracing()))
    traced = ut.jit.trace(model, ut.ones(4, 3))
    assert seen == [True]
    assert isinstance(traced, ut.jit.ScriptModule)
    assert [p is q for p, q in zip(traced.parameters(), model.parameters(), strict=True)] == [
        True
    ] * 2
    assert traced(ut.ones(9, 3)).shape == (9, 2)
    assert not model.eval().training
    assert not traced.eval().training
    assert "linear" in ut.jit.trace(model, ut.ones(4, 3)).code
    assert traced.original_name == "Sequential"
    with pytest.raises(NotImplementedError, match="save"):
        traced.save("file")
    function = ut.jit.trace(lambda x: x * 2, (ut.ones(2),))
    assert isinstance(function, ut.jit.ScriptFunction)
    assert function(ut.ones(3)).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="Only tensors"):
        ut.jit.trace(lambda x: 3, (ut.ones(2),))


def test_marks_leave_functions() -> None:
    def f(x: int) -> int:
        return x

    for mark in ("export", "unused", "ignore", "_overload", "_overload_method", "script_method"):
        assert getattr(ut.jit, mark)(f) is f
    assert ut.jit.ignore(drop=True)(f) is f
    assert ut.jit.annotate(int, 3) == 3
    assert ut.jit.Attribute(3, int).value == 3
    assert ut.jit.interface(Scaled) is Scaled
    with warnings.catch_warnings():
        warnings.simplefilter("error", ut.jit.TracerWarning)
    from undertow.jit.annotations import BroadcastingList2
    from undertow.jit.frontend import NotSupportedError

    assert BroadcastingList2[int] is None
    assert issubclass(NotSupportedError, Exception)
