"""`undertow.library` and `undertow.ops`: operators of one's own, their schemas, aten's names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.compat.schemas import infer_schema, parse
from undertow.errors import ArgumentError, GradientError, UnsupportedError
from undertow.utils._python_dispatch import TorchDispatchMode


@pytest.fixture
def lib() -> Iterator[Any]:
    """A library that is gone after the test."""
    made = ut.library.Library("tested", "FRAGMENT")
    yield made
    made._destroy()


def numpy_sin() -> Any:
    """sin by NumPy, so that nothing of it is recorded by itself."""

    @ut.library.custom_op("tested_custom::sin", mutates_args=())
    def sin(x: ut.Tensor, scale: float = 1.0) -> ut.Tensor:
        return ut.tensor(np.sin(x.detach().numpy()) * scale)

    return sin


# Schemas --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text, names, defaults",
    [
        ("f(Tensor x, float eps=1e-5, *, int[2] k=3) -> Tensor", "x eps k", [1e-5, [3, 3]]),
        ("f(Tensor(a!) x, str s='a, b', Device? d=None) -> ()", "x s d", ["a, b", None]),
        ("f.out(Tensor[] xs, ScalarType t=long, *, Tensor(a!) out) -> Tensor(a!)", "xs t out", []),
        ("f(bool a=True, int[] b=[1, 2], Scalar c=2) -> (Tensor, int)", "a b c", [True, [1, 2], 2]),
    ],
)
def test_schemas_are_read(text: str, names: str, defaults: list[Any]) -> None:
    schema = parse(f"lib::{text}")
    assert [a.name for a in schema.arguments] == names.split()
    if defaults:
        assert [a.default_value for a in schema.arguments if a.has_default] == defaults
    assert schema.is_mutable == ("!" in text)
    assert str(schema) == f"lib::{text}"


def test_schemas_are_inferred() -> None:
    def f(
        x: ut.Tensor,
        ys: list[ut.Tensor],
        n: int | None = None,
        *,
        name: str = "a",
        flag: bool = False,
    ) -> tuple[ut.Tensor, ut.Tensor]: ...  # type: ignore[empty-body]

    assert infer_schema(f, mutates_args=["x"], op_name="f") == (
        'f(Tensor(a0!) x, Tensor[] ys, SymInt? n=None, *, str name="a", bool flag=False) '
        "-> (Tensor, Tensor)"
    )

    def scaled(x: ut.Tensor, factor: ut.types.Number) -> ut.Tensor:
        return x * factor

    assert "Scalar factor" in infer_schema(scaled, mutates_args=())
    with pytest.raises(ArgumentError, match="needs a type annotation"):
        infer_schema(lambda x: x, mutates_args=())
    with pytest.raises(ArgumentError, match="mutates_args names"):
        infer_schema(f, mutates_args=["z"])


def test_arguments_are_bound() -> None:
    schema = parse("lib::f(Tensor x, int n=2, *, float eps=0.5) -> Tensor")
    assert schema.bind((1,), {"eps": 3.0}) == ([1, 2], {"eps": 3.0})
    for args, kwargs in [((), {}), ((1, 2, 3), {}), ((1,), {"x": 2}), ((1,), {"z": 2})]:
        with pytest.raises(ArgumentError, match="lib::f"):
            schema.bind(args, kwargs)


# Custom operators -----------------------------------------------------------------------------
def test_a_custom_op_without_a_rule_refuses_backward() -> None:
    """A derivative that is missing is an error, never silently zero."""
    sin, x = numpy_sin(), ut.tensor([0.5], requires_grad=True)
    y = sin(x, scale=2.0)
    assert y.requires_grad
    assert y.item() == pytest.approx(2 * np.sin(0.5))
    with pytest.raises(GradientError, match=r"\[tested_custom::sin\] has no derivative"):
        y.backward()
    assert not sin(x.detach()).requires_grad


def test_a_custom_op_takes_part_in_autograd_to_any_order() -> None:
    sin = numpy_sin()

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    def backward(ctx: Any, grad: ut.Tensor) -> Any:
        return grad * ctx.saved_tensors[0].cos() * ctx.scale, None

    sin.register_autograd(backward, setup_context=setup)
    x = ut.tensor([0.3, 1.2], dtype=ut.float64, requires_grad=True)
    assert ut.autograd.gradcheck(lambda x: sin(x, 3.0), (x,))
    assert ut.autograd.gradgradcheck(lambda x: ut.ops.tested_custom.sin(x, 3.0), (x,))
    with pytest.warns(UserWarning, match="once for every element"):  # it has no rule for vmap
        rows = ut.func.vmap(lambda v: sin(v))(x)
    assert ut.allclose(rows, x.sin())


def test_lists_of_tensors_have_gradients() -> None:
    @ut.library.custom_op("tested_custom::total", mutates_args=())
    def total(xs: list[ut.Tensor], by: float) -> ut.Tensor:
        return ut.from_numpy(sum(x.detach().numpy() for x in xs) * by)

    total.register_autograd(
        lambda ctx, g: ([g * ctx.by for _ in range(ctx.n)], None),
        setup_context=lambda ctx, inputs, output: ctx.__dict__.update(
            n=len(inputs[0]), by=inputs[1]
        ),
    )
    a, b = ut.ones(2, requires_grad=True), ut.ones(2, requires_grad=True)
    total([a, b], 3.0).sum().backward()
    assert a.grad is not None
    assert b.grad is not None
    assert a.grad.tolist() == b.grad.tolist() == [3.0, 3.0]


def test_changed_arguments_are_known() -> None:
    @ut.library.custom_op("tested_custom::double_", mutates_args={"x"})
    def double_(x: ut.Tensor) -> None:
        array = x.numpy()
        array *= 2

    x = ut.ones(2)
    before = x._version
    double_(x)
    assert x.tolist() == [2.0, 2.0]
    assert x._version > before
    with pytest.raises(ArgumentError, match="changes its arguments"):
        double_.register_autograd(lambda ctx, g: g)


def test_results_are_not_arguments() -> None:
    @ut.library.custom_op("tested_custom::same", mutates_args=())
    def same(x: ut.Tensor) -> ut.Tensor:
        return x

    with pytest.raises(ArgumentError, match="returns an argument"):
        same(ut.ones(2))


def test_devices_and_shapes() -> None:
    sin = numpy_sin()
    meta = ut.empty(3, device="meta")
    with pytest.raises(UnsupportedError, match="register_fake"):
        sin(meta)
    sin.register_fake(lambda x, scale=1.0: x.new_empty(x.shape))
    assert sin(meta).shape == (3,)
    assert ut.library.opcheck(sin, (ut.ones(2),)) == dict.fromkeys(
        (
            "test_schema",
            "test_autograd_registration",
            "test_faketensor",
            "test_aot_dispatch_dynamic",
        ),
        "SUCCESS",
    )

    @ut.library.custom_op("tested_custom::on_cuda", mutates_args=(), device_types="cuda")
    def on_cuda(x: ut.Tensor) -> ut.Tensor:
        return x + 1

    with pytest.raises(UnsupportedError, match="no kernel for the device 'cpu'"):
        on_cuda(ut.ones(2))
    on_cuda.register_kernel("cpu")(lambda x: x - 1)
    assert on_cuda(ut.ones(2)).tolist() == [0.0, 0.0]


# Libraries ------------------------------------------------------------------------------------
def test_a_library(lib: Any) -> None:
    lib.define("f(Tensor x, int n=2) -> Tensor")
    lib.define("f.scalar(Tensor x, float n, str s) -> Tensor")
    lib.impl("f", lambda x, n: x * n, "CPU")
    lib.impl("f.scalar", lambda x, n, s: x + n, "CompositeImplicitAutograd")
    assert ut.ops.tested.f.overloads() == ["default", "scalar"]
    assert ut.ops.tested.f(ut.ones(1)).item() == 2
    assert ut.ops.tested.f(ut.ones(1), 5.0, "a").item() == 6
    assert ut.ops.tested.f.scalar._schema.arguments[2].type == "str"
    assert str(ut.ops.tested.f.default) == "tested.f.default"
    x = ut.ones(1, requires_grad=True)
    ut.ops.tested.f.scalar(x, 2.0, "").backward()  # what is composed has its derivative
    ut.ops.tested.f(x).backward()  # and so has a kernel of ops, as in torch
    assert x.grad is not None
    assert x.grad.item() == 3
    with pytest.raises(ArgumentError, match="defined already"):
        lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(AttributeError, match="nothing"):
        ut.ops.tested.nothing  # noqa: B018


def test_a_kernel_before_its_operator(lib: Any) -> None:
    """Libraries register shapes of operators that a compiled extension would have defined."""

    @ut.library.register_fake("tested::late")
    def fake(x: ut.Tensor) -> ut.Tensor:
        return x.new_empty(7)

    lib.define("late(Tensor x) -> Tensor")
    assert ut.ops.tested.late(ut.empty(1, device="meta")).shape == (7,)


def test_an_autograd_kernel(lib: Any) -> None:
    lib.define("g(Tensor x) -> Tensor")
    lib.impl("g", lambda x: x * 2, "CPU")

    class Rule(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: ut.Tensor) -> ut.Tensor:
            with ut._C._AutoDispatchBelowAutograd():
                return ut.ops.tested.g(x)  # type: ignore[no-any-return]

        @staticmethod
        def backward(ctx: Any, g: ut.Tensor) -> ut.Tensor:  # type: ignore[override]
            return g * 20

    lib.impl("g", Rule.apply, "Autograd")
    x = ut.ones(1, requires_grad=True)
    ut.ops.tested.g(x).backward()
    assert x.grad is not None
    assert x.grad.item() == 20


def test_autocast_of_an_operator(lib: Any) -> None:
    lib.define("h(Tensor x) -> Tensor")
    lib.impl("h", lambda x: x.clone(), "CompositeImplicitAutograd")
    ut.library.register_autocast("tested::h", "cpu", ut.bfloat16)
    with ut.autocast("cpu"):
        assert ut.ops.tested.h(ut.ones(1)).dtype is ut.bfloat16
    assert ut.ops.tested.h(ut.ones(1)).dtype is ut.float32


# aten -----------------------------------------------------------------------------------------
def test_aten() -> None:
    aten, x = ut.ops.aten, ut.arange(6.0).reshape(2, 3)
    assert aten.add.Tensor(x, x, alpha=2).tolist() == (3 * x).tolist()
    assert aten.add.Tensor is aten.add.Tensor
    assert aten.slice.Tensor(x, 1, 1, 3).tolist() == x[:, 1:3].tolist()
    assert aten.index.Tensor(x, [None, ut.tensor([0])]).tolist() == x[:, [0]].tolist()
    assert aten.sum.dim_IntList(x, [1], True).tolist() == x.sum(1, True).tolist()
    assert aten._softmax.default(x, -1, False).tolist() == x.softmax(-1).tolist()
    assert aten.zeros.default([2], layout=ut.strided, pin_memory=False).tolist() == [0.0, 0.0]
    weight = ut.ones(1, 1, 2)
    found = aten.convolution(x[None, :1], weight, None, [1], [0], [1], False, [0], 1)
    assert found.tolist() == ut.conv1d(x[None, :1], weight).tolist()
    assert aten.mm.default.name() == "aten::mm"
    assert str(aten.add.Tensor) == "aten.add.Tensor"
    with pytest.raises(UnsupportedError, match="_cudnn_ctc_loss"):
        aten._cudnn_ctc_loss(x)
    with pytest.raises(AttributeError, match="no_such_operator"):
        aten.no_such_operator  # noqa: B018


# What a rule is told -------------------------------------------------------------------------
def test_a_rule_is_told_which_gradients_are_wanted() -> None:
    """`needs_input_grad` has a place for each argument, and a list for a list of tensors."""
    seen: list[Any] = []

    @ut.library.custom_op("wanted_lib::weighted", mutates_args=())
    def weighted(x: ut.Tensor, others: list[ut.Tensor], dims: list[int]) -> ut.Tensor:
        return x * others[0] * others[1]

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        seen.append(ctx.needs_input_grad)
        ctx.save_for_backward(inputs[0], *inputs[1])

    def backward(ctx: Any, grad: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        x, a, b = ctx.saved_tensors
        first, (second, third), _ = ctx.needs_input_grad
        more = [grad * x * b if second else None, grad * x * a if third else None]
        return grad * a * b if first else None, more, None

    weighted.register_autograd(backward, setup_context=setup)
    x, a, b = ut.tensor([2.0], requires_grad=True), ut.tensor([3.0]), ut.tensor([5.0])
    weighted(x, [a, b], [0, 1]).sum().backward()
    assert x.grad is not None
    assert x.grad.item() == 15
    a.requires_grad_()
    weighted(x.detach(), [a, b], [0, 1]).sum().backward()
    assert a.grad is not None
    assert a.grad.item() == 10
    assert seen == [(True, [False, False], False)] * 2 + [(False, [True, False], False)] * 2


def test_a_rule_is_told_of_arguments_by_name() -> None:
    """`setup_context` is called with names, as in torch: in any order."""
    ut.library.define("named_lib::scale", "(Tensor x, *, float factor=2.0) -> Tensor")
    ut.library.impl("named_lib::scale", "cpu", lambda x, *, factor: x * factor)

    def setup(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        ctx.factor = keyword_only_inputs["factor"]

    ut.library.register_autograd(
        "named_lib::scale", lambda ctx, grad: grad * ctx.factor, setup_context=setup
    )
    x = ut.tensor([1.0], requires_grad=True)
    ut.ops.named_lib.scale(x).backward()
    ut.ops.named_lib.scale(x, factor=5.0).backward()
    assert x.grad is not None
    assert x.grad.item() == 7


def test_gradients_come_in_the_lists_of_the_results() -> None:
    ut.library.define("mixed_lib::powers", "(Tensor x) -> (Tensor, Tensor[])")
    ut.library.impl("mixed_lib::powers", "default", lambda x: (x * 1, [x * 2, x * 3]))
    ut.library.register_autograd(
        "mixed_lib::powers", lambda ctx, one, more: one + 2 * more[0] + 3 * more[1]
    )
    x = ut.ones(2, requires_grad=True)
    first, (_, last) = ut.ops.mixed_lib.powers(x)
    (first + last).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [4, 4]


@pytest.mark.parametrize("key", ["CPU", "CompositeExplicitAutograd"])
def test_a_kernel_of_a_library_is_differentiated_through(key: str) -> None:
    """Without a rule a backward goes through its ops; what came another way is an error there."""
    lib = ut.library.Library(f"through_{key.lower()}", "DEF")
    lib.define("double(Tensor x) -> Tensor")
    lib.impl("double", lambda x: x * 2, key)
    lib.define("numpy_double(Tensor x) -> Tensor")
    lib.impl("numpy_double", lambda x: ut.from_numpy(x.detach().numpy() * 2), key)
    lib.define("double_(Tensor(a!) x) -> Tensor(a!)")
    lib.impl("double_", lambda x: x.mul_(2), key)
    ops = getattr(ut.ops, lib.ns)
    x = ut.ones(2, requires_grad=True)
    y = x * 1
    assert ops.double_(y) is y
    (ops.double(x) + y).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [4, 4]
    lost = ops.numpy_double(x)
    assert lost.requires_grad
    with pytest.raises(GradientError, match="has no derivative"):
        lost.sum().backward()


# Who answers in an operator's place ------------------------------------------------------------
def test_subclasses_and_modes_are_asked_for_operators() -> None:
    @ut.library.custom_op("asked_lib::double", mutates_args=())
    def double(x: ut.Tensor) -> ut.Tensor:
        return x * 2

    seen: list[str] = []

    class Own(ut.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return super().__torch_function__(func, types, args, kwargs)

    class Functions(ut.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(f"mode {func}")
            return func(*args, **(kwargs or {}))

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(f"dispatch {func}")
            return func(*args, **(kwargs or {}))

    x = ut.ones(2)
    own = x.as_subclass(Own)
    seen.clear()
    assert type(double(own)) is Own
    assert seen == ["asked_lib.double.default"]
    seen.clear()
    with Functions():
        double(x)
    with Operators():
        double(x)
    assert seen == ["mode asked_lib.double.default", "dispatch asked_lib.double.default"]

    @double.register_torch_dispatch(Operators)
    def _(mode: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        assert isinstance(mode, Operators)
        return func(*args) * 100

    with Operators():
        assert double(x).tolist() == [200, 200]
    assert double(x).tolist() == [2, 2]
