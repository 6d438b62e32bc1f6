"""Autocast and GradScaler: lists, nesting, gradients, caches, checkpoints, errors."""

from __future__ import annotations

import math
import pickle
import threading
from typing import Any, ClassVar

import pytest

import undertow as ut
from undertow.core.autocast import POLICIES
from undertow.core.register import FUNCTIONAL, FUNCTIONS, SPACES
from undertow.utils.checkpoint import checkpoint

F = ut.nn.functional
A = ut.ones(2, 3)
B = ut.ones(3, 2)


def test_products_run_in_the_lower_precision() -> None:
    """matmul and its kin, as functions, methods and operators; float64 and integers stay."""
    with ut.autocast("cpu"):
        assert (A @ B).dtype is ut.bfloat16
        assert A.matmul(B).dtype is ut.bfloat16
        assert F.linear(A, A.bfloat16()).dtype is ut.bfloat16
        assert F.conv1d(A[None], ut.ones(4, 2, 2)).dtype is ut.bfloat16
        assert (A.double() @ B.double()).dtype is ut.float64
        assert (A.long() @ B.long()).dtype is ut.int64
        assert (A + A).dtype is ut.float32
    assert (A @ B).dtype is ut.float32


def test_losses_run_in_float32() -> None:
    """What sums many numbers does so in float32, and `cat` takes the widest."""
    half = A.bfloat16()
    with ut.autocast("cpu"):
        assert F.mse_loss(half, half).dtype is ut.float32
        assert half.prod().dtype is ut.float32
        assert ut.cat([half, half]).dtype is ut.bfloat16
        assert ut.cat([half, A]).dtype is ut.float32
        assert ut.stack([half, A.double()]).dtype is ut.float64


def test_float16_and_nesting() -> None:
    """The dtype is the innermost one; `enabled=False` switches off inside."""
    with ut.autocast("cpu", dtype=ut.float16) as region:
        assert isinstance(region, ut.autocast)
        assert (A @ B).dtype is ut.float16
        with ut.autocast("cpu", enabled=False):
            assert (A @ B).dtype is ut.float32
            with ut.autocast("cpu", dtype=ut.bfloat16):
                assert (A @ B).dtype is ut.bfloat16
        assert (A @ B).dtype is ut.float16
        assert ut.get_autocast_dtype("cpu") is ut.float16
    assert ut.get_autocast_dtype("cpu") is ut.bfloat16


def test_as_a_decorator() -> None:
    """During calls, with or without an error, and only then."""

    @ut.autocast("cpu")
    def product(fail: bool = False) -> ut.Tensor:
        if fail:
            raise KeyError("stop")
        return A @ B

    assert product().dtype is ut.bfloat16
    with pytest.raises(KeyError):
        product(True)
    assert not ut.is_autocast_enabled("cpu")


def test_other_threads_are_not_touched() -> None:
    """A region belongs to its context."""
    found: list[Any] = []
    with ut.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append((A @ B).dtype))
        thread.start()
        thread.join()
    assert found == [ut.float32]


def test_gradients_come_back_in_the_parameter_dtype() -> None:
    """Of first and second order; casts are recorded, and a backward inside a region is the same."""
    w = ut.full((3, 3), 0.5, requires_grad=True)
    with ut.autocast("cpu"):
        inside = ut.autograd.grad((A @ w).float().pow(3).sum(), w)[0]
        y = (A @ w).float().pow(3).sum()
    (g,) = ut.autograd.grad(y, w, create_graph=True)
    assert g.dtype is inside.dtype is ut.float32
    assert ut.equal(g, inside)
    (second,) = ut.autograd.grad(g.sum(), w)
    assert second.dtype is ut.float32
    assert ut.equal(second, ut.full((3, 3), 2 * 6 * 1.5 * 3.0))


def test_a_parameter_is_cast_once_until_it_changes() -> None:
    """The cast is kept within a region; a change in place makes a new one."""
    w = ut.ones(3, 3, requires_grad=True)
    with ut.autocast("cpu"):
        first, second = A @ w, A @ w
        assert first.grad_fn.parents[1] is second.grad_fn.parents[1]  # type: ignore[union-attr]
        with ut.no_grad():
            w.mul_(2)
            assert (A @ w).tolist() == [[6.0] * 3] * 2
        assert (A @ w).tolist() == [[6.0] * 3] * 2
    with ut.autocast("cpu", cache_enabled=False):
        first, second = A @ w, A @ w
        assert first.grad_fn.parents[1] is not second.grad_fn.parents[1]  # type: ignore[union-attr]


def test_two_backwards_through_one_cast() -> None:
    """What a cast saves is no tensor, so nothing is gone after the first backward."""
    w = ut.ones(3, 3, requires_grad=True)
    with ut.autocast("cpu"):
        (A @ w).sum().backward()
        (A @ w).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [[4.0] * 3] * 3


def test_checkpoint_computes_again_under_autocast() -> None:
    """The second run sees the region of the first, though the backward is outside."""
    w = ut.full((3, 3), 0.5, requires_grad=True)
    with ut.autocast("cpu"):
        y = checkpoint(lambda x: (x @ w).relu() @ w, A)
    assert y.dtype is ut.bfloat16
    y.sum().backward()
    assert w.grad is not None
    assert w.grad.dtype is ut.float32


def test_in_place_forms_keep_their_dtype() -> None:
    """As in torch, only functions that make a tensor are on the lists."""
    x = ut.zeros(2, 2)
    with ut.autocast("cpu"):
        assert x.addmm_(A, B).dtype is ut.float32


def test_switches() -> None:
    """The functions beside `autocast`."""
    ut.set_autocast_dtype("cpu", ut.float16)
    ut.set_autocast_enabled("cpu", True)
    try:
        assert ut.is_autocast_enabled("cpu")
        assert ut.is_autocast_cpu_enabled()
        assert not ut.is_autocast_enabled()
        assert (A @ B).dtype is ut.float16
        ut.clear_autocast_cache()
    finally:
        ut.set_autocast_enabled("cpu", False)
        ut.set_autocast_dtype("cpu", ut.bfloat16)
    assert (A @ B).dtype is ut.float32


def test_off_is_off() -> None:
    """A region that switches autocast off leaves functions as they are."""
    x, w, target = ut.randn(4, 3), ut.randn(5, 3), ut.tensor([0, 1, 2, 3])
    options = ut.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    expected = ut.nn.functional.linear_cross_entropy(x, w, target, options=options)
    with ut.autocast("cpu", enabled=False):  # a warning would fail this test
        found = ut.nn.functional.linear_cross_entropy(x, w, target, options=options)
    assert found.dtype is ut.float32
    assert ut.equal(found, expected)


def test_bad_regions() -> None:
    """A dtype that is not supported warns and switches off; a device that nobody knows raises."""
    with pytest.warns(UserWarning, match=r"undertow\.float32 is not supported"):
        region = ut.autocast("cpu", dtype=ut.float32)
    with region:
        assert (A @ B).dtype is ut.float32
    with pytest.raises(ut.errors.ArgumentError, match="no device type 'abacus9'"):
        ut.autocast("abacus9")
    with pytest.raises(TypeError, match="device_type is a name, got int"):
        ut.autocast(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="functions"):
        ut.autocast("cpu")(3)  # type: ignore[type-var]


def test_errors_are_as_outside() -> None:
    """A listed function that fails names itself, and leaves autocast on."""
    with ut.autocast("cpu"):
        with pytest.raises(ut.errors.ShapeError, match=r"\[matmul\]"):
            A @ A
        with pytest.raises(ut.errors.DTypeError, match=r"\[linear\] weight must be a Tensor"):
            F.linear(A, 3)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            F.pad()  # type: ignore[call-arg]
        assert ut.is_autocast_enabled("cpu")


def test_the_reference_device_is_cast_too() -> None:
    """Regions are per device type."""
    a, b = A.to("reference"), B.to("reference")
    with ut.autocast("cpu"):
        assert (a @ b).dtype is ut.float32
    with ut.autocast("reference"):
        assert (a @ b).dtype is ut.bfloat16
        assert (A @ B).dtype is ut.float32


def test_lists() -> None:
    """What is listed is published, and no function that takes the fast path is."""
    assert [ut.fft.__all__, ut.linalg.__all__]  # published when first asked for
    spaces = {f"{space}.{n}" for space, table in SPACES.items() for n in table}
    assert set(POLICIES) - {*FUNCTIONS, *FUNCTIONAL, *spaces} <= {"conv_tbc"}


class Square(ut.autograd.Function):
    """Tells which dtype it has seen, forwards and backwards."""

    seen: ClassVar[list[Any]] = []

    @staticmethod
    @ut.amp.custom_fwd(device_type="cpu")
    def forward(ctx: Any, x: ut.Tensor) -> ut.Tensor:
        ctx.save_for_backward(x)
        Square.seen.append((x @ x).dtype)
        return x * x

    @staticmethod
    @ut.amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, g: ut.Tensor) -> ut.Tensor:
        (x,) = ctx.saved_tensors
        Square.seen.append((x @ x).dtype)
        return 2 * g * x


def test_custom_functions_keep_their_region() -> None:
    """The backward sees the autocast of the forward."""
    x = ut.ones(2, 2, requires_grad=True)
    Square.seen.clear()
    with ut.autocast("cpu"):
        y = Square.apply(x)
    y.sum().backward()
    with ut.autocast("cpu"):
        Square.apply(x.detach())
    Square.apply(x).sum().backward()
    assert Square.seen == [ut.bfloat16] * 3 + [ut.float32] * 2


# GradScaler ------------------------------------------------------------------------------------
class Descent:
    """The least that a scaler needs of an optimiser."""

    def __init__(self, *params: ut.Tensor) -> None:
        self.param_groups = [{"params": list(params)}]
        self.steps = 0

    def step(self) -> int:
        self.steps += 1
        return self.steps


def scaled(gradient: float = 1.0, **options: Any) -> tuple[Any, ut.Tensor, Descent]:
    scaler = ut.amp.GradScaler("cpu", **{"init_scale": 4.0, **options})
    x = ut.ones(2, requires_grad=True)
    scaler.scale((x * gradient).sum()).backward()
    return scaler, x, Descent(x)


def test_a_step_unscales() -> None:
    """Gradients are divided once, by `unscale_` or by `step`, and the step returns its result."""
    for explicitly in (False, True):
        scaler, x, optimizer = scaled(3.0)
        assert x.grad is not None
        assert x.grad.tolist() == [12.0, 12.0]
        if explicitly:
            scaler.unscale_(optimizer)
        assert scaler.step(optimizer) == 1
        assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_an_overflow_leaves_the_step_out(bad: float) -> None:
    """And the factor shrinks; after enough good steps it grows."""
    scaler, x, optimizer = scaled(bad, growth_interval=2)
    assert scaler.step(optimizer) is None
    scaler.update()
    assert (scaler.get_scale(), optimizer.steps) == (2.0, 0)
    for _ in range(2):
        x.grad = None
        scaler.scale(x.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert (scaler.get_scale(), optimizer.steps) == (4.0, 2)
    scaler.update(32.0)
    assert scaler.get_scale() == 32.0


def test_order_of_calls() -> None:
    """Twice unscaled, stepped or updated, or without a loss: each a clear error."""
    scaler, _, optimizer = scaled()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="another unscale_"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"after step\(\)"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already; call update"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="can be pickled"):
        pickle.dumps(scaler)
    scaler.update()
    with pytest.raises(RuntimeError, match="no gradients were looked at"):
        scaler.update()
    for call in (lambda s: s.step(optimizer), lambda s: s.unscale_(optimizer)):
        with pytest.raises(RuntimeError, match="no loss was scaled"):
            call(ut.amp.GradScaler("cpu"))
    with pytest.raises(RuntimeError, match="closures"):
        scaler.step(optimizer, closure=lambda: 0)


def test_bad_settings() -> None:
    """Factors that never grow or shrink, losses that are none, gradients in float16."""
    with pytest.raises(ValueError, match=r"growth_factor must be above 1, got 1\.0"):
        ut.amp.GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(ValueError, match=r"backoff_factor must be below 1, got 2\.0"):
        ut.amp.GradScaler("cpu", backoff_factor=2.0)
    scaler = ut.amp.GradScaler("cpu")
    with pytest.raises(TypeError, match="expects tensors, got int 3"):
        scaler.scale(3)
    x = ut.ones(2, dtype=ut.float16, requires_grad=True)
    scaler.scale(x.sum()).backward()
    with pytest.raises(ValueError, match="is float16; keep parameters in float32"):
        scaler.unscale_(Descent(x))


def test_scale_takes_several() -> None:
    """Lists, tuples and iterators of tensors, nested."""
    scaler = ut.amp.GradScaler("cpu", init_scale=2.0)
    one = ut.ones(1)
    assert scaler.scale([one, (one, one)]) == [2.0, (2.0, 2.0)]
    assert [t.item() for t in scaler.scale(iter([one, one]))] == [2.0, 2.0]


def test_state_and_pickle() -> None:
    """A scaler continues where another was."""
    scaler, _, optimizer = scaled(growth_interval=7)
    scaler.step(optimizer)
    scaler.update()
    other = ut.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    copied = pickle.loads(pickle.dumps(scaler))
    assert other.state_dict() == copied.state_dict() == scaler.state_dict()
    assert scaler.state_dict() == {
        "scale": 4.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 7,
        "_growth_tracker": 1,
    }
    with pytest.raises(ValueError, match="the state is empty"):
        other.load_state_dict({})
    other.set_growth_interval(3)
    other.set_growth_factor(4.0)
    other.set_backoff_factor(0.25)
    assert other.get_growth_interval() == 3
    assert other.get_growth_factor() == 4.0
    assert other.get_backoff_factor() == 0.25


def test_a_scaler_that_is_off_does_nothing() -> None:
    """Everything passes through."""
    scaler = ut.amp.GradScaler("cpu", enabled=False)
    x = ut.ones(2, requires_grad=True)
    loss = x.sum()
    assert scaler.scale(loss) is loss
    optimizer = Descent(x)
    scaler.unscale_(optimizer)
    assert scaler.step(optimizer) == 1
    scaler.update()
    assert (scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (1.0, {}, False)
    scaler.load_state_dict({})


def test_a_training_step() -> None:
    """Autocast, scaler and a real optimiser together learn, and parameters stay float32."""
    ut.manual_seed(0)
    model = ut.nn.Sequential(ut.nn.Linear(4, 16), ut.nn.Linear(16, 3))
    optimizer = ut.optim.SGD(model.parameters(), lr=0.1)
    scaler = ut.amp.GradScaler("cpu", init_scale=256.0)
    x = ut.randn(48, 4)
    labels = x[:, :3].argmax(1)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        with ut.autocast("cpu"):
            out = model(x)
            loss = F.cross_entropy(out, labels)
        assert out.dtype is ut.bfloat16
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]
    assert {p.dtype for p in model.parameters()} == {ut.float32}
    before = [p.detach().clone() for p in model.parameters()]
    scaler.scale(loss.detach().requires_grad_() * math.inf).backward()
    for p in model.parameters():
        p.grad = ut.full_like(p, math.inf)
    assert scaler.step(optimizer) is None
    assert all(ut.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_an_optimiser_of_other_parameters_is_noticed() -> None:
    """A step of the scaler needs gradients to look at."""
    used, other = ut.nn.Parameter(ut.ones(1)), ut.nn.Parameter(ut.ones(1))
    scaler = ut.amp.GradScaler("cpu")
    scaler.scale(used.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.step(ut.optim.SGD([other], lr=0.1))
