"""Module: calls and hooks, what it is made of, its state, and the errors that name a path."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections import OrderedDict
from typing import Any

import pytest

import undertow as ut
from module_scripts import SCRIPTS, plain
from undertow import nn


def seen(name: str) -> Any:
    """What a script returns."""
    return plain(SCRIPTS[name](ut))


# Calls and hooks ------------------------------------------------------------------------------
def test_order_of_forward_hooks() -> None:
    """Pre-hooks before, hooks after, those with `prepend` first; children between."""
    log, _ = seen("order_of_forward_hooks")
    inner = [
        ["pre", str(i), 1] if k == "pre" else ["post", str(i)] for i in range(3) for k in KINDS
    ]
    assert log == ["first", ["pre", "", 1], *inner, "before", ["post", ""]]


KINDS = ("pre", "post")


def test_hooks_change_what_passes() -> None:
    """What a hook returns replaces the input or the output; a removed one does nothing."""
    assert seen("hooks_change_inputs_and_outputs") == [[80.0], [60.0], [4.0]]
    assert seen("hooks_with_keywords") == [[6.0], [[1, {"by": 2.0}], [1, {"by": 5.0}]]]


def test_always_called() -> None:
    """After an error only the hooks that asked for it are called, without an output."""
    assert seen("always_called_hooks") == ["ValueError", [["always", None]]]


def test_global_hooks() -> None:
    """Hooks of all modules see all of them, and nothing once they are removed."""
    log = seen("global_hooks")
    assert [entry[1] for entry in log if entry[0] == "pre"] == [
        *("Sequential", "Linear", "ReLU", "Linear")
    ]
    assert [e[1] for e in log if e[0] == "backward"] == ["Linear", "ReLU", "Linear", "Sequential"]
    assert len(log) == 16
    assert [n for _, n in seen("registration_hooks")][-1] == "0"


def test_full_backward_hooks() -> None:
    """They get the gradients of a module's inputs and outputs, and may change them."""
    log, grad, _ = seen("full_backward_hooks")
    assert log[0] == ["", [[[1.0]]]]  # the outermost one's output comes first
    assert log[-1][1] == [grad]
    last = [entry for entry in log if len(entry) == 3 and entry[0] == "2"]
    assert last == [["2", [[[3.0, 3.0, 3.0]]], [[[1.0]]]]]
    changed, grads = seen("backward_hooks_change_gradients")
    assert changed == [[9000.0, 9000.0]]
    assert grads[-1] == [10.0]
    assert seen("backward_hooks_without_input_gradients") == [[[None], 1]]
    inputs, outputs = seen("backward_hooks_with_several_inputs")[0][0]
    assert inputs == [[10.0], None, [4.0]]
    assert outputs == [[1.0], [2.0]]
    assert seen("both_kinds_of_backward_hooks") == "RuntimeError"
    assert seen("wrong_answers_of_hooks") == ["RuntimeError"] * 2


def test_old_backward_hook() -> None:
    """It is called with the gradients of the last operation."""
    layer, log = nn.Linear(2, 1), []
    handle = layer.register_backward_hook(lambda m, i, o: log.append(o[0].tolist()))
    layer(ut.ones(1, 2)).sum().backward()
    assert log == [[[1.0]]]
    handle.remove()
    layer(ut.ones(1, 2)).sum().backward()
    assert len(log) == 1


def test_hooks_of_double_backward() -> None:
    """A backward with create_graph passes the borders too, and can be differentiated again."""
    layer = nn.Linear(1, 1, bias=False)
    layer.register_full_backward_hook(lambda m, i, o: None)
    x = ut.tensor([[3.0]], requires_grad=True)
    (slope,) = ut.autograd.grad((layer(x) ** 2).sum(), x, create_graph=True)
    slope.sum().backward()
    w = layer.weight.item()
    assert layer.weight.grad is not None
    assert layer.weight.grad.item() == pytest.approx(4 * w * 3)


# Errors ---------------------------------------------------------------------------------------
def test_an_error_names_the_path() -> None:
    """From the outermost module that was called down to the layer, with its text."""
    model = nn.Module()
    model.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 3)
    model.encoder.layers[2].linear1 = nn.Linear(5, 16)
    model.forward = lambda x: model.encoder(x)  # type: ignore[method-assign]
    with pytest.raises(ut.errors.ShapeError) as caught:
        model(ut.ones(3, 1, 8))
    text = str(caught.value)
    assert "in encoder.layers.2.linear1: Linear(in_features=5, out_features=16, bias=True)" in text
    assert text.startswith("[linear] expects an input")
    assert text.count("\n") == 1


def test_foreign_errors_get_a_note() -> None:
    """An error of the user's own keeps its text and its class."""

    class Broken(nn.Module):
        def forward(self, x: Any) -> Any:
            raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        nn.Sequential(nn.Identity(), nn.Sequential(Broken()))(1)
    assert caught.value.args == ("mine",)
    assert caught.value.__notes__ == ["in 1.0: Broken()"]


def test_what_a_module_refuses() -> None:
    """Wrong names and values at registration, and attributes before __init__."""
    wrong = seen("attributes")[0]
    kinds = ["Attribute", *["Type"] * 4, "Key", "Key", "Type", "Key", "Type", "Key", "Key"]
    kinds += ["Type", "Type", "Type"]
    assert wrong == [*(f"{kind}Error" for kind in kinds), "NotImplementedError"]
    assert seen("assignment_before_init") == [["AttributeError"] * 3, 3]
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'wait'"):
        _ = nn.Linear(1, 1).wait
    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        _without_init()


def _without_init() -> None:
    class Forgotten(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(1, 1)

    Forgotten()


# What it is made of ---------------------------------------------------------------------------
def test_names_and_duplicates() -> None:
    """A module or parameter that stands in two places is found once, or twice if asked for."""
    found = seen("named_with_duplicates")
    assert found["modules"] == ["", "first"]
    assert found["all modules"] == ["", "first", "second"]
    assert found["parameters"] == ["tied", "first.bias"]
    assert found["all parameters"] == [
        *("tied", "first.weight", "first.bias", "second.weight", "second.bias")
    ]
    assert found["state"] == found["all parameters"]


def test_paths() -> None:
    """Modules, parameters and buffers by their path."""
    right, wrong, _, _ = seen("paths")
    assert right == [True] * 4
    assert wrong == ["AttributeError"] * 5


def test_non_persistent_buffers() -> None:
    """They are buffers, and no part of the state."""
    names, before, after, pickled = seen("non_persistent_buffers")
    assert names == ["kept", "dropped", "also_dropped"]
    assert before == ["kept"]
    assert after == pickled == ["kept", "dropped"]


def test_a_module_is_freed_at_once() -> None:
    """No cycles: memory comes back without the garbage collector, hooks or not."""
    gc.disable()
    try:
        for hooked in (False, True):
            model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
            if hooked:
                model.register_full_backward_hook(lambda m, i, o: None)
            model(ut.ones(1, 2)).sum().backward()
            gone = weakref.ref(model)
            del model
            assert gone() is None
    finally:
        gc.enable()


# Changing all of it ---------------------------------------------------------------------------
def test_casts_modes_and_gradients() -> None:
    """to() casts floating values in place, zero_grad and requires_grad_ reach all parameters."""
    kinds, grads, same, refused = seen("casts")
    assert kinds == [*["float64"] * 6, "int64", "float16", "int64"]
    assert (grads, same, refused) == ("float64", True, "TypeError")
    zero, grad, frozen, training, wrong = seen("modes_and_gradients")
    assert zero == [[[0.0, 0.0]] * 3, True]
    assert (grad, wrong) == (None, "ValueError")
    assert not any(frozen)
    assert not any(training)


def test_to() -> None:
    """Every way to say where: device, dtype, tensor, keywords."""
    m = nn.Linear(2, 1)
    assert str(m.to("reference").weight.device) == "reference"
    assert m.to("cpu", ut.float64).weight.dtype is ut.float64
    assert m.to(dtype=ut.float32, non_blocking=True).weight.dtype is ut.float32
    assert m.bfloat16().weight.dtype is ut.bfloat16
    assert m.half().float().weight.dtype is ut.float32
    with pytest.raises(TypeError, match="floating or complex"):
        m.to(ut.int32)
    with pytest.raises(TypeError, match="colour"):
        m.to(colour=1)


# State ----------------------------------------------------------------------------------------
def test_a_state_that_does_not_fit() -> None:
    """The error lists what is missing, unexpected and of another shape, all at once."""
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    state = model.state_dict()
    state["1.weight"] = ut.ones(5, 3)
    del state["0.bias"]
    state["2.weight"] = ut.ones(1)
    with pytest.raises(RuntimeError) as caught:
        model.load_state_dict(state)
    assert str(caught.value).split("\n    ") == [
        "Error(s) in loading state_dict for Sequential:",
        'Missing key(s) in state_dict: "0.bias".',
        'Unexpected key(s) in state_dict: "2.weight".',
        "size mismatch for 1.weight: copying a param with shape (5, 3) from checkpoint, the shape "
        "in current model is (1, 3).",
    ]


def test_state_hooks_and_loading() -> None:
    """State hooks see and change the state; a non-strict load tells what was left over."""
    answers = seen("loading")
    assert answers[3] == "<All keys matched successfully>"
    assert answers[5] == [["2.weight", "2.bias"], ["more"]]
    assert answers[6:9] == ["RuntimeError", "RuntimeError", "TypeError"]
    assert answers[9:] == [[False, "Parameter"], True]
    log = seen("state_hooks")[0]
    assert log[:3] == [
        *(["pre", "", False], ["0.", ["0.weight", "0.bias"]], ["0.weight", "2.weight", "2.bias"])
    ]
    assert seen("extra_state") == [["weight", "bias", "_extra_state"], 7, "RuntimeError"]


def test_copies() -> None:
    """deepcopy and pickle keep ties, hooks, flags and other attributes."""
    answers, shallow = seen("copies")
    assert answers[:4] == answers[4:] == [True, [False, False], [5.0, 5.0], True]
    assert shallow
    lazy = pickle.loads(pickle.dumps(nn.Sequential(nn.LazyLinear(2))))
    assert lazy(ut.ones(1, 3)).shape == (1, 2)
    assert copy.deepcopy(nn.LazyLinear(2))(ut.ones(1, 3)).shape == (1, 2)


def test_lazy_states() -> None:
    """A lazy module takes the shapes of a state; a state without shapes is refused."""
    lazy, full = nn.LazyLinear(2), nn.Linear(3, 2)
    lazy.load_state_dict(full.state_dict())
    assert lazy(ut.ones(1, 3)).shape == (1, 2)
    assert lazy.in_features == 3
    with pytest.raises(RuntimeError, match="has no shape yet"):
        full.load_state_dict(nn.LazyLinear(2).state_dict())
    with pytest.raises(RuntimeError, match="before its module has seen an input"):
        _ = nn.LazyLinear(2).weight.shape


# Containers -----------------------------------------------------------------------------------
def test_containers() -> None:
    """Lists and dictionaries of modules and parameters behave as lists and dictionaries."""
    assert seen("sequentials")[5].count("\n") == 6
    answers = seen("lists_and_dicts")
    assert answers[0].startswith("ModuleList(\n  (0-1): 2 x Linear(")
    assert answers[7] == "NotImplementedError"
    assert answers[9:13] == [["a", "b", "c"], True, 3, "ReLU()"]
    answers = seen("parameter_containers")
    assert answers[:5] == [3, ["0", "1"], 5, "Parameter", [2, 3]]
    assert answers[5:8] == [[7, 3, 1, 4], "IndexError", "TypeError"]
    text = repr(nn.ParameterList([ut.ones(2, 3)]))
    assert "(0): Parameter containing: [undertow.float32 of size 2x3]" in text


def test_parameters_and_buffers() -> None:
    """Parameters share memory, print and copy as what they are."""
    data = ut.ones(2)
    p = nn.Parameter(data)
    with ut.no_grad():
        p.mul_(3)
    assert data.tolist() == [3.0, 3.0]
    assert repr(p) == "Parameter containing:\ntensor([3., 3.], requires_grad=True)"
    other = copy.deepcopy(p)
    assert type(other) is nn.Parameter
    assert other is not p
    assert type(pickle.loads(pickle.dumps(nn.Buffer(data, persistent=False)))) is nn.Buffer
    with pytest.raises(TypeError, match=r"use ut.tensor\(data\) first"):
        nn.Parameter([1.0])  # type: ignore[arg-type]


# What a review found -----------------------------------------------------------------------------
def test_hooks_do_not_disturb_what_goes_past_them() -> None:
    """A second derivative, an output that nobody uses, and a result that is no tuple."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    for layer in model:
        layer.register_full_backward_hook(lambda *given: None)
    x = ut.randn(5, 3, requires_grad=True)
    (slope,) = ut.autograd.grad(model(x).sum(), x, create_graph=True)
    slope.pow(2).sum().backward()
    assert model[0].weight.grad is not None

    network = nn.LSTM(3, 4)
    network.register_full_backward_hook(lambda *given: None)
    _, (h, _) = network(ut.randn(5, 2, 3, requires_grad=True))
    h.sum().backward()

    class Named(nn.Module):
        def forward(self, x):
            return {"double": 2 * x}

    named = Named()
    named.register_full_backward_hook(lambda *given: None)
    with pytest.warns(UserWarning, match="tuple of Tensors but received"):
        out = named(x)
    out["double"].sum().backward()


def test_a_lazy_parameter_cannot_be_used() -> None:
    """Neither computed with nor counted, before it has a shape."""
    layer = nn.LazyLinear(3)
    for use in (
        lambda: layer.weight + 1,
        lambda: sum(p.numel() for p in layer.parameters()),
        lambda: ut.zeros_like(layer.weight),
        lambda: nn.init.xavier_uniform_(layer.weight),
        lambda: layer.weight.shape,
    ):
        with pytest.raises(ut.errors.ArgumentError, match="uninitialized"):
            use()
    layer.double()
    assert layer.weight.dtype is ut.float64
    assert layer(ut.ones(2, 5, dtype=ut.float64)).dtype is ut.float64


def test_a_prefix_is_taken_off() -> None:
    """The state of a wrapped model fits the model."""
    model = nn.Linear(2, 1)
    state = nn.parallel.DistributedDataParallel(model).state_dict()
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["weight", "bias"]
    model.load_state_dict(state)


def test_parameter_dicts_have_the_order_of_their_keys() -> None:
    values = {"b": ut.ones(1), "a": ut.ones(2)}
    assert list(nn.ParameterDict(values)) == ["a", "b"]
    assert list(nn.ParameterDict(OrderedDict(values)).copy()) == ["b", "a"]


def test_modules_may_be_listed_as_often_as_they_occur() -> None:
    layer = nn.Linear(1, 1)
    twice = nn.Sequential(layer, layer)
    assert len(list(twice.modules())) == 2
    assert len(list(twice.modules(remove_duplicate=False))) == 3
    with pytest.raises(IndexError, match=r"insert\] index -5 is out of range for 2"):
        twice.insert(-5, layer)


def test_hooks_are_found_under_the_names_that_programs_know() -> None:
    layer = nn.Linear(1, 1)
    calls: list[int] = []
    handle = layer.register_forward_hook(lambda *_: calls.append(1))
    assert list(layer._forward_hooks) == [handle.id]
    layer._forward_hooks.clear()
    layer.register_forward_pre_hook(lambda *_: calls.append(2))
    layer._forward_pre_hooks = OrderedDict()
    layer(ut.ones(1))
    assert calls == []
    layer._forward_hooks[123] = lambda *_: calls.append(3)
    layer._forward_pre_hooks = {5: lambda *_: calls.append(4)}
    layer._forward_pre_hooks[6] = lambda *_: calls.append(5)
    layer(ut.ones(1))
    assert calls == [4, 5, 3]


def test_an_argument_without_gradient_stays_so_behind_a_backward_hook() -> None:
    class Two(nn.Module):
        def forward(self, x: ut.Tensor, y: ut.Tensor) -> ut.Tensor:
            seen.append((x.requires_grad, y.requires_grad))
            return x * y

    seen: list[tuple[bool, bool]] = []
    module = Two()
    module.register_full_backward_hook(lambda m, to, of: None)
    x = ut.ones(2, requires_grad=True)
    module(x, ut.ones(2)).sum().backward()
    assert seen == [(True, False)]
    assert x.grad is not None


def test_to_takes_one_of_each() -> None:
    layer = nn.Linear(2, 2)
    assert layer.to("cpu", ut.float64).weight.dtype is ut.float64
    for args in ((ut.float32, ut.float64), ("cpu", "cpu")):
        with pytest.raises(TypeError, match=r"\[to\] takes one"):
            layer.to(*args)


def test_a_buffer_does_not_replace_another_attribute() -> None:
    """Assigned to a name that is taken by something else it is an error, as registered."""
    m = nn.Module()
    m.name, m.weight = 5, nn.Parameter(ut.ones(1))
    for taken in ("name", "weight"):
        with pytest.raises(KeyError, match=f"'{taken}' already exists"):
            setattr(m, taken, nn.Buffer(ut.zeros(1)))


@pytest.mark.parametrize("args", [("cpu", True), (None, True), (True,), ("cpu", ut.float32, True)])
def test_to_takes_non_blocking_at_its_place(args: Any) -> None:
    m = nn.Linear(1, 1)
    if len(args) == 3:
        assert m.to(*args) is m
        assert m.to(ut.float32, True) is m
        assert m.to(ut.ones(1), True) is m
    else:
        with pytest.raises(TypeError, match=r"\[to\] takes \(device, dtype, non_blocking\)"):
            m.to(*args)


def test_the_suffix_of_extra_states_is_where_torch_has_it() -> None:
    """transformers' from_pretrained compares the names of parameters with it."""

    class Counted(nn.Module):
        def get_extra_state(self) -> int:
            return 3

    assert list(Counted().state_dict()) == [nn.modules.module._EXTRA_STATE_KEY_SUFFIX]


def test_buffer_of_a_class_whose_register_buffer_does_not_know_persistent() -> None:
    class Old(nn.Module):
        def register_buffer(self, name: str, value: Any) -> None:  # type: ignore[override]
            super().register_buffer(name, value, True)

    m = Old()
    m.kept = nn.Buffer(ut.ones(2))
    assert "kept" in m.state_dict()


def test_what_answers_functions_may_be_a_buffer() -> None:
    class Like:
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise NotImplementedError

    first, second = Like(), Like()
    m = nn.Module()
    m.register_buffer("kept", first)  # type: ignore[arg-type]
    assert m.kept is first
    m.kept = second
    assert m.get_buffer("kept") is second


@pytest.mark.parametrize("where", [[], {}])
def test_to_what_is_no_device_is_a_type_error(where: Any) -> None:
    with pytest.raises(TypeError, match="expects a name such as 'cpu'"):
        nn.Linear(1, 1).to(where, non_blocking=True)
