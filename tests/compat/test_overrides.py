"""`__torch_function__`, modes, and what a subclass of Tensor gives."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
from typing import Any

import pytest

import undertow as ut
import undertow.nn.functional as F
from undertow.core import overriding
from undertow.core.overriding import DisableTorchFunction, DisableTorchFunctionSubclass
from undertow.overrides import TorchFunctionMode

LOG: list[Any] = []


class Logged(ut.Tensor):
    """It writes down what it is asked for, and answers as Tensor does."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append(func)
        return super().__torch_function__(func, types, args, kwargs)


class Stand:
    """No Tensor; it answers every name, as a tracer's stand-ins do."""

    def __getattr__(self, name: str) -> Any:
        return Stand()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func, types, args, kwargs


def logged(*shape: int) -> Any:
    x = ut.ones(*shape).as_subclass(Logged)
    LOG.clear()
    return x


CALLS = {
    "function": (lambda x: ut.add(x, x), lambda: ut.add),
    "composite": (lambda x: F.layer_norm(x, (3,)), lambda: F.layer_norm),
    "space": (lambda x: ut.linalg.norm(x), lambda: ut.linalg.norm),
    "keyword": (lambda x: ut.mul(ut.ones(3), other=x), lambda: ut.mul),
    "list": (lambda x: ut.cat([ut.ones(2, 3), x]), lambda: ut.cat),
    "tuple": (lambda x: ut.stack((x, x), dim=0), lambda: ut.stack),
    "method": (lambda x: x.softmax(-1), lambda: ut.Tensor.softmax),
    "method of a plain one": (lambda x: ut.ones(3).sub(x), lambda: ut.Tensor.sub),
    "operator": (lambda x: x + 1, lambda: ut.Tensor.add),
    "reflected": (lambda x: 1 + x, lambda: ut.Tensor.add),
    "plain one first": (lambda x: ut.ones(3) * x, lambda: ut.Tensor.mul),
    "in place": (lambda x: x.add_(1), lambda: ut.Tensor.add_),
    "comparison": (lambda x: x < 1, lambda: ut.Tensor.lt),
    "index": (lambda x: x[0], lambda: ut.Tensor.__getitem__),
    "property": (lambda x: x.T, lambda: ut.Tensor.T.__get__),
    "layer": (lambda x: ut.nn.Linear(3, 2)(x), lambda: F.linear),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_function_that_was_called_is_asked_for(call: str) -> None:
    """Once, by its own object, whatever it is made of; the result is of the class."""
    run, wanted = CALLS[call]
    result = run(logged(2, 3))
    assert [wanted()] == LOG
    assert type(result) is Logged


def test_getters_of_what_is_no_tensor() -> None:
    x = logged(2, 3)
    assert x.shape == (2, 3)
    assert x.dtype is ut.float32
    assert [ut.Tensor.shape.__get__, ut.Tensor.dtype.__get__] == LOG
    assert ut.is_tensor(x)
    assert isinstance(ut.tensor(x), ut.Tensor)
    assert len(LOG) == 2


def test_setters_and_assignments() -> None:
    x = logged(2, 3)
    x.requires_grad = True
    assert [ut.Tensor.requires_grad.__set__] == LOG
    with ut.no_grad():
        x[0] = 5
    assert LOG[-1] is ut.Tensor.__setitem__
    assert x[0, 0].item() == 5


def test_tuples_hold_the_class() -> None:
    values, indices = logged(2, 3).max(0)
    assert type(values) is type(indices) is Logged
    assert {type(p) for p in logged(4).split(2)} == {Logged}
    assert type(ut.max(logged(2, 3), 0)).__name__ == type(ut.max(ut.ones(2, 3), 0)).__name__


def test_stand_ins_that_are_no_tensors() -> None:
    with overriding.watching():
        stand = Stand()
        func, types, args, kwargs = ut.softmax(stand, dim=-1)
        assert (func, types, args, kwargs) == (ut.softmax, (Stand,), (stand,), {"dim": -1})
        assert F.layer_norm(stand, 3)[0] is F.layer_norm
        assert ut.cat([stand])[0] is ut.cat
        assert (ut.ones(2) + stand)[0] is ut.Tensor.add
        assert ut.ones(4)[stand][0] is ut.Tensor.__getitem__
        assert ut.ones(4)[stand:][0] is ut.Tensor.__getitem__
        assert ut.ones(4).view(stand, 2)[0] is ut.Tensor.view


IN_ANOTHER_PROCESS = """
import undertow as ut
from undertow.core import overriding
class Lazy:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__
code = ut.add.__code__, ut.Tensor.exp.__code__, ut.Tensor.shape.fget.__code__
class Sub(ut.Tensor): pass
ut.nn.Parameter(ut.ones(2)) + 1
assert code == (ut.add.__code__, ut.Tensor.exp.__code__, ut.Tensor.shape.fget.__code__)
assert not overriding.ASKING
assert {call} == {name!r}, {call}
assert overriding.ASKING
"""


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("ut.matmul(Lazy(), ut.ones(2))", "matmul"),
        ("ut.exp(Lazy())", "exp"),
        ("ut.ones(2) + Lazy()", "add"),
        ("ut.cat([ut.ones(2), Lazy()])", "cat"),
    ],
)
def test_nobody_is_asked_before_there_is_somebody(call: str, name: str) -> None:
    """Functions keep their code until a class is met; one that is no Tensor where it fails."""
    import subprocess
    import sys

    program = IN_ANOTHER_PROCESS.format(call=call, name=name)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_subclasses_are_asked_first_and_may_decline() -> None:
    asked = []

    class Base(ut.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            asked.append(cls.__name__)
            return NotImplemented if cls.__name__ == "Derived" else "base"

    class Derived(Base):
        pass

    base, derived = ut.ones(2).as_subclass(Base), ut.ones(2).as_subclass(Derived)
    assert ut.add(base, derived) == "base"
    assert asked == ["Derived", "Base"]
    with pytest.raises(TypeError, match="NotImplemented"):
        ut.exp(derived)
    with pytest.raises(TypeError):
        _ = derived + 1


def test_a_class_that_another_does_not_know_is_not_implemented() -> None:
    class One(ut.Tensor):
        pass

    class Two(ut.Tensor):
        pass

    with pytest.raises(TypeError):
        ut.add(ut.ones(2).as_subclass(One), ut.ones(2).as_subclass(Two))


def test_plain_subclasses_keep_their_class() -> None:
    class Plain(ut.Tensor):
        pass

    x = Plain([1.0, 2.0])
    assert type(x * 2) is type(2 * x) is type(x.sum()) is type(ut.ones(2) + x) is Plain
    kept = x
    kept += 1
    assert kept is x
    assert type(ut.nn.Parameter(ut.ones(2)) * 2) is ut.Tensor


def test_disabled() -> None:
    x = logged(2)
    with DisableTorchFunctionSubclass():
        assert type(x + 1) is ut.Tensor
    with DisableTorchFunction():
        assert type(x + 1) is ut.Tensor
    assert LOG == []


def test_a_mode_sees_every_call_until_it_ends() -> None:
    seen: list[Any] = []

    class Mode(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append((func, types))
            return func(*args, **(kwargs or {}))

    x = logged(2)
    with Mode():
        y = ut.zeros(2)
        F.gelu(y)
        _ = y.shape
        x.exp()
    assert seen == [
        (ut.zeros, ()),
        (F.gelu, ()),
        (ut.Tensor.shape.__get__, ()),
        (ut.Tensor.exp, (Logged,)),
    ]
    assert [ut.Tensor.exp] == LOG
    y.exp()
    assert len(seen) == 4


def test_modes_nest_and_belong_to_a_thread() -> None:
    order = []

    class Mode(TorchFunctionMode):
        def __init__(self, name: str) -> None:
            self.name = name

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            order.append(self.name)
            return func(*args, **(kwargs or {}))

    with Mode("outer"), Mode("inner"):
        ut.ones(2)
        thread = threading.Thread(target=lambda: ut.ones(2))
        thread.start()
        thread.join()
        with DisableTorchFunctionSubclass():
            ut.ones(2)
        with DisableTorchFunction():
            ut.ones(2)
    assert order == ["inner", "outer"] * 2


def test_a_mode_that_fails_is_left() -> None:
    class Mode(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"), Mode():
        ut.ones(2)
    ut.ones(2)


def test_gradients_flow_and_rules_ask_nobody() -> None:
    w = ut.tensor([1.0, 2.0], requires_grad=True)
    x = w.as_subclass(Logged)
    loss = (x * x).exp().sum()
    LOG.clear()
    loss.backward()
    assert [ut.Tensor.backward] == LOG
    expected = 2 * w.detach() * (w.detach() ** 2).exp()
    assert type(w.grad) is ut.Tensor
    assert ut.allclose(w.grad, expected)


def test_hooks_and_custom_functions_are_the_users() -> None:
    class Double(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(type(g.as_subclass(Logged) * 2))
            return g * 2

    seen: list[Any] = []
    logged(1)
    w = ut.ones(2, requires_grad=True)
    y = Double.apply(w)
    y.register_hook(lambda g: seen.append(type(g.as_subclass(Logged) + 1)))
    y.sum().backward()
    assert seen == [Logged, Logged]


def test_signatures_stay() -> None:
    logged(1)
    assert [*inspect.signature(ut.cat).parameters] == ["tensors", "dim"]
    assert ut.add.__name__ == "add"
    with pytest.raises(ut.errors.DTypeError, match=r"\[cat\]"):
        ut.cat(5)


def test_names() -> None:
    o = ut.overrides
    assert o.resolve_name(ut.add) == "torch.add"
    assert o.resolve_name(ut.Tensor.add_) == "torch.Tensor.add_"
    assert o.resolve_name(ut.Tensor.shape.__get__) == "torch.Tensor.shape.__get__"
    assert o.is_tensor_method_or_property(ut.Tensor.add_)
    assert not o.is_tensor_method_or_property(ut.add)
    assert o.is_tensor_like(Stand())
    assert o.has_torch_function((logged(1),))
    assert not o.has_torch_function((ut.ones(1), ut.nn.Parameter(ut.ones(1)), 1))
    assert ut.zeros in o.get_ignored_functions()
    assert ut.Tensor.add in o.get_overridable_functions()[ut.Tensor]


def test_a_function_of_ones_own_can_be_overridden() -> None:
    @ut.overrides.wrap_torch_function(lambda x: (x,))
    def mine(x: Any) -> Any:
        return "own"

    with overriding.watching():
        assert mine(Stand())[0] is mine
    assert mine(ut.ones(1)) == "own"


# Instances of subclasses, and attributes -----------------------------------------------------
class Tagged(ut.Tensor):
    """As libraries write them: a `__new__` that calls Tensor's, and an `__init__`."""

    def __new__(cls, data: Any, tag: str = "") -> Any:
        return super().__new__(cls, data)

    def __init__(self, data: Any, tag: str = "") -> None:
        self.tag = tag


def test_instances_are_made_by_super_new() -> None:
    x = Tagged([1.0, 2.0], tag="a")
    assert (type(x), x.tag, x.tolist()) == (Tagged, "a", [1.0, 2.0])
    base = ut.ones(2, dtype=ut.int32)
    shared = Tagged(base)
    assert shared.dtype is ut.int32
    base[0] = 7
    assert shared[0].item() == 7
    assert type(ut.Tensor.__new__(Tagged, [1.0])) is Tagged
    assert type(ut.Tensor([1.0])) is ut.Tensor
    assert repr(x) == "Tagged([1., 2.])"


def test_gradients_reach_what_an_instance_shares_memory_with() -> None:
    w = ut.ones(2, requires_grad=True)
    Tagged(w).mul(3).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [3.0, 3.0]
    leaf = ut.Tensor._make_subclass(Tagged, ut.ones(2), True)
    leaf.mul(2).sum().backward()
    assert leaf.is_leaf
    assert type(leaf.grad) is ut.Tensor
    assert leaf.grad is leaf.grad


def test_attributes_of_any_tensor() -> None:
    x = ut.ones(2)
    x.require_grad = True  # type: ignore[attr-defined]  # a common slip that torch allows
    assert not x.requires_grad
    assert not hasattr(x + 1, "require_grad")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = x.nothing  # type: ignore[attr-defined]
    del x.require_grad  # type: ignore[attr-defined]
    assert vars(x) == {}


@pytest.mark.parametrize("kind", [ut.Tensor, Tagged, Logged, ut.nn.Parameter])
def test_copies_keep_class_and_attributes(kind: type) -> None:
    import copy
    import pickle

    x: Any = kind(ut.ones(2))
    x.note = [1]
    for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(made) is kind
        assert made.note == [1]
        assert made.requires_grad is x.requires_grad
        assert made.tolist() == [1.0, 1.0]
    assert copy.copy(x).note is x.note
    if kind is not ut.nn.Parameter:
        assert copy.deepcopy(x).note is not x.note
    assert copy.copy(x).data_ptr() == x.data_ptr() != copy.deepcopy(x).data_ptr()


def test_a_class_can_be_assigned() -> None:
    x = ut.ones(2)
    x.__class__ = Logged
    LOG.clear()
    assert type(x + 1) is Logged


def test_parameters_of_a_subclass_keep_their_class() -> None:
    """As in torch they count as Parameters, and a module lists them."""
    p: Any = ut.nn.Parameter(Tagged([1.0, 2.0]))
    assert type(p) is Tagged
    assert isinstance(p, ut.nn.Parameter)
    assert p.requires_grad
    assert p.is_leaf
    assert repr(p) == "Parameter(Tagged([1., 2.], requires_grad=True))"
    module = ut.nn.Module()
    module.weight = p
    assert [*module.state_dict()] == ["weight"]
    assert next(iter(module.parameters())) is p
    (module.weight * 3).sum().backward()
    ut.optim.SGD(module.parameters(), lr=0.5).step()
    assert p.tolist() == [-0.5, 0.5]
    assert not isinstance(Tagged([1.0]), ut.nn.Parameter)
    assert isinstance(ut.nn.Parameter(ut.ones(1)), ut.nn.Parameter)


def test_redispatch_skips_one_level() -> None:
    seen = []

    class Watched(ut.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func.__name__)
            return ut.overrides.redispatch_function(func, types, args, kwargs)

    def product(a: Any, b: Any) -> Any:
        if ut.overrides.has_torch_function((a, b)):
            return ut.overrides.handle_torch_function(product, (a, b), a, b)
        return a * b + 1

    x = ut.tensor([3.0]).as_subclass(Watched)
    found = product(x, x)
    assert seen == ["product", "mul"]
    assert type(found) is ut.Tensor
    assert found.item() == 10.0


LOOKS_AT_FRAMES = """
import sys
import undertow as ut

class Other(ut.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs)

ut.ones(2).as_subclass(Other)
try:
    ut.signal.windows.hamming(3, dtype=int)
except ValueError as error:
    place, seen = error.__traceback__, []
    while place:
        seen.append(place.tb_frame.f_code.co_name)
        dict(place.tb_frame.f_locals)
        place = place.tb_next
    assert len(seen) > 3, seen
def look(frame, event, arg):
    dict(frame.f_locals)
sys.setprofile(look)
ut.ones(2).as_subclass(Other).add(1).sum(0).reshape(1)
sys.setprofile(None)
"""


def test_debuggers_may_look_at_the_frames_of_functions_that_ask() -> None:
    """Python ends with a segmentation fault where code has cells and does not bring them."""
    subprocess.run([sys.executable, "-c", LOOKS_AT_FRAMES], check=True, timeout=120)
