"""Short programs about modules that return what they saw, for ours and for torch's alike.

`test_module.py` says what must come out of those whose outcome is not obvious; the comparison
with torch runs all of them in both libraries (`conformance/test_torch_module.py`).
"""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

SCRIPTS: dict[str, Callable[[Any], Any]] = {}


def script(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    SCRIPTS[fn.__name__] = fn
    return fn


def plain(value: Any) -> Any:
    """Tensors as lists, shapes as tuples, errors as their kinds: comparable across libraries."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if type(value).__name__ == "Size":
        return list(value)
    return value


def refused(fn: Callable[[], Any], *kinds: type[Exception]) -> str:
    """Which of some kinds of errors a call raises."""
    try:
        fn()
    except kinds as error:
        return next(k.__name__ for k in kinds if isinstance(error, k))
    return "nothing"


def filled(t: Any, start: float = 1.0) -> Any:
    """Known values in every parameter of a module."""
    for i, p in enumerate(t.parameters()):
        p.data.fill_(start + i)
    return t


def two_layers(lib: Any) -> Any:
    nn = lib.nn
    return filled(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)))


# Calls and their hooks ---------------------------------------------------------------------------
@script
def order_of_forward_hooks(lib: Any) -> Any:
    model, log = two_layers(lib), []
    for name, module in model.named_modules():
        module.register_forward_pre_hook(lambda m, a, n=name: log.append(("pre", n, len(a))))
        module.register_forward_hook(lambda m, a, o, n=name: log.append(("post", n)))
    model.register_forward_pre_hook(lambda m, a: log.append("first"), prepend=True)
    model.register_forward_hook(lambda m, a, o: log.append("before"), prepend=True)
    out = model(lib.ones(1, 2))
    return log, out


@script
def hooks_change_inputs_and_outputs(lib: Any) -> Any:
    layer = filled(lib.nn.Linear(2, 1))
    one = layer.register_forward_pre_hook(lambda m, a: a[0] * 2)
    two = layer.register_forward_pre_hook(lambda m, a: (a[0] + 1,))
    three = layer.register_forward_hook(lambda m, a, o: o * 10)
    outs = [layer(lib.ones(2))]
    one.remove()
    outs.append(layer(lib.ones(2)))
    two.remove(), three.remove()
    outs.append(layer(lib.ones(2)))
    return outs


@script
def hooks_with_keywords(lib: Any) -> Any:
    class Scaled(lib.nn.Module):
        def forward(self, x: Any, *, by: float = 1.0) -> Any:
            return x * by

    module, log = Scaled(), []

    def before(m: Any, args: Any, kwargs: Any) -> Any:
        log.append((len(args), dict(kwargs)))
        return args, {"by": 5.0}

    def after(m: Any, args: Any, kwargs: Any, out: Any) -> Any:
        log.append((len(args), dict(kwargs)))
        return out + 1

    module.register_forward_pre_hook(before, with_kwargs=True)
    module.register_forward_hook(after, with_kwargs=True)
    return module(lib.ones(1), by=2.0), log


@script
def always_called_hooks(lib: Any) -> Any:
    class Broken(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("broken")

    module, log = Broken(), []
    module.register_forward_hook(lambda m, a, o: log.append(("only after success", o)))
    module.register_forward_hook(lambda m, a, o: log.append(("always", o)), always_call=True)
    raised = refused(lambda: module(1), ValueError)
    return raised, log


@script
def global_hooks(lib: Any) -> Any:
    module = lib.nn.modules.module
    model, log = two_layers(lib), []
    handles = [
        module.register_module_forward_pre_hook(lambda m, a: log.append(("pre", type(m).__name__))),
        module.register_module_forward_hook(lambda m, a, o: log.append(("post", type(m).__name__))),
        module.register_module_full_backward_hook(
            lambda m, i, o: log.append(("backward", type(m).__name__, plain(o[0].shape)))
        ),
        module.register_module_full_backward_pre_hook(
            lambda m, o: log.append(("backward pre", type(m).__name__))
        ),
    ]
    x = lib.ones(1, 2).requires_grad_()
    model(x).sum().backward()
    for handle in handles:
        handle.remove()
    model(x)
    return log


@script
def registration_hooks(lib: Any) -> Any:
    module, log = lib.nn.modules.module, []
    handles = [
        module.register_module_parameter_registration_hook(
            lambda m, n, p: log.append(("parameter", n))
        ),
        module.register_module_module_registration_hook(lambda m, n, c: log.append(("module", n))),
        module.register_module_buffer_registration_hook(lambda m, n, b: log.append(("buffer", n))),
    ]
    lib.nn.Sequential(lib.nn.BatchNorm1d(2))
    for handle in handles:
        handle.remove()
    lib.nn.Linear(2, 2)
    return [entry for entry in log if entry[1] != "nothing"]


@script
def full_backward_hooks(lib: Any) -> Any:
    model, log = two_layers(lib), []

    def after(name: str) -> Any:
        return lambda m, i, o: log.append((name, plain(list(i)), plain(list(o))))

    for name, module in model.named_modules():
        module.register_full_backward_hook(after(name))
        module.register_full_backward_pre_hook(lambda m, o, n=name: log.append((n, plain(list(o)))))
    x = lib.tensor([[1.0, -2.0]], requires_grad=True)
    model(x).sum().backward()
    return log, x.grad, [p.grad for p in model.parameters()]


@script
def backward_hooks_change_gradients(lib: Any) -> Any:
    model = two_layers(lib)
    model[2].register_full_backward_pre_hook(lambda m, o: (o[0] * 10,))
    model[0].register_full_backward_hook(lambda m, i, o: (i[0] * 100,))
    x = lib.tensor([[1.0, 2.0]], requires_grad=True)
    model(x).sum().backward()
    return x.grad, [p.grad for p in model.parameters()]


@script
def backward_hooks_without_input_gradients(lib: Any) -> Any:
    model, log = two_layers(lib), []
    model[0].register_full_backward_hook(lambda m, i, o: log.append((plain(list(i)), len(o))))
    model(lib.ones(1, 2)).sum().backward()
    return log


@script
def backward_hooks_with_several_inputs(lib: Any) -> Any:
    class Both(lib.nn.Module):
        def forward(self, a: Any, n: int, b: Any) -> Any:
            return a * n, b * a

    both, log = Both(), []
    both.register_full_backward_hook(lambda m, i, o: log.append((plain(list(i)), plain(list(o)))))
    a, b = lib.tensor([2.0], requires_grad=True), lib.tensor([3.0], requires_grad=True)
    first, second = both(a, 4, b)
    (first + 2 * second).sum().backward()
    return log, a.grad, b.grad


@script
def both_kinds_of_backward_hooks(lib: Any) -> Any:
    layer = lib.nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda m, i, o: None)
    return refused(lambda: layer.register_backward_hook(lambda m, i, o: None), RuntimeError)


@script
def wrong_answers_of_hooks(lib: Any) -> Any:
    answers = []
    layer = lib.nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda m, i, o: (None, None))
    x = lib.ones(1, 2).requires_grad_()
    answers.append(refused(lambda: layer(x).sum().backward(), RuntimeError))
    layer = lib.nn.Linear(2, 2)
    layer.register_forward_pre_hook(lambda m, a, k: 3, with_kwargs=True)
    answers.append(refused(lambda: layer(x), RuntimeError))
    return answers


# What it is made of ------------------------------------------------------------------------------
@script
def named_with_duplicates(lib: Any) -> Any:
    nn = lib.nn
    shared = nn.Linear(2, 2)
    model = nn.Module()
    model.first, model.second = shared, shared
    model.tied = shared.weight
    return {
        "modules": [n for n, _ in model.named_modules()],
        "all modules": [n for n, _ in model.named_modules(remove_duplicate=False)],
        "prefixed": [n for n, _ in model.named_modules(prefix="a")],
        "children": [n for n, _ in model.named_children()],
        "parameters": [n for n, _ in model.named_parameters()],
        "all parameters": [n for n, _ in model.named_parameters(remove_duplicate=False)],
        "own": [n for n, _ in model.named_parameters(recurse=False)],
        "state": list(model.state_dict()),
        "counts": [len(list(x)) for x in (model.modules(), model.children(), model.parameters())],
    }


@script
def paths(lib: Any) -> Any:
    nn = lib.nn
    model = nn.Module()
    model.net = nn.ModuleDict({"inner": nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))})
    found = [
        model.get_submodule("") is model,
        model.get_submodule("net.inner.1") is model.net["inner"][1],
        model.get_parameter("net.inner.0.weight") is model.net["inner"][0].weight,
        model.get_buffer("net.inner.1.running_mean") is model.net["inner"][1].running_mean,
    ]
    wrong = [
        refused(lambda: model.get_submodule("net.outer"), AttributeError),
        refused(lambda: model.get_submodule("net.inner.0.weight"), AttributeError),
        refused(lambda: model.get_parameter("net.inner.1.running_mean"), AttributeError),
        refused(lambda: model.get_parameter("net.inner.0.weights"), AttributeError),
        refused(lambda: model.get_buffer("net.inner.0.weight"), AttributeError),
    ]
    model.set_submodule("net.inner.0", nn.Identity())
    return found, wrong, repr(model), refused(lambda: model.set_submodule("", model), ValueError)


@script
def attributes(lib: Any) -> Any:
    nn = lib.nn
    m = nn.Module()
    m.p = nn.Parameter(lib.ones(1))
    m.register_buffer("b", lib.ones(1))
    m.register_parameter("none", None)
    m.child = nn.Identity()
    m.value = 3
    answers = [
        refused(lambda: m.missing, AttributeError),
        refused(lambda: setattr(m, "p", lib.ones(1)), TypeError),
        refused(lambda: setattr(m, "child", 3), TypeError),
        refused(lambda: setattr(m, "b", 3), TypeError),
        refused(lambda: m.register_parameter("q", lib.ones(1)), TypeError),
        refused(lambda: m.register_parameter("a.b", None), KeyError),
        refused(lambda: m.register_parameter("", None), KeyError),
        refused(lambda: m.register_parameter(3, None), TypeError),
        refused(lambda: m.register_buffer("value", None), KeyError),
        refused(lambda: m.register_buffer("c", 3), TypeError),
        refused(lambda: m.register_buffer("p", None), KeyError),
        refused(lambda: m.add_module("value", nn.Identity()), KeyError),
        refused(lambda: m.add_module("x", 3), TypeError),
        refused(lambda: m.register_parameter("r", nn.Parameter(lib.ones(1)) * 2), TypeError),
        refused(lambda: nn.Module(3), TypeError),
        refused(lambda: nn.Module()(), NotImplementedError),
    ]
    m.b = lib.zeros(1)
    m.none = nn.Parameter(lib.zeros(2))
    m.p = None
    state = list(m.state_dict())
    m.child = nn.Parameter(lib.ones(3))  # becomes something else
    m.later = nn.Buffer(lib.ones(2))
    del m.b
    return answers, state, list(m.state_dict()), hasattr(m, "b"), sorted(m._modules)


@script
def assignment_before_init(lib: Any) -> Any:
    class Early(lib.nn.Module):
        def __init__(self, value: Any) -> None:
            self.value = value
            super().__init__()

    values = [lib.nn.Parameter(lib.ones(1)), lib.nn.Identity(), lib.nn.Buffer(lib.ones(1))]
    kept = Early(3).value
    return [refused(lambda v=v: Early(v), AttributeError) for v in values], kept


@script
def non_persistent_buffers(lib: Any) -> Any:
    m = lib.nn.Module()
    m.register_buffer("kept", lib.ones(1))
    m.register_buffer("dropped", lib.ones(1), persistent=False)
    m.also_dropped = lib.nn.Buffer(lib.ones(1), persistent=False)
    names = [n for n, _ in m.named_buffers()]
    m.dropped = lib.zeros(1)
    before = list(m.state_dict())
    m.register_buffer("dropped", lib.ones(1))
    other = pickle.loads(pickle.dumps(m))
    return names, before, list(m.state_dict()), list(other.state_dict())


# Changing all of it ------------------------------------------------------------------------------
@script
def casts(lib: Any) -> Any:
    m = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.BatchNorm1d(2))
    weight = m[0].weight
    m(lib.ones(3, 2)).sum().backward()
    m.double()
    kinds = [str(v.dtype).split(".")[1] for v in m.state_dict().values()]
    grads = str(m[0].weight.grad.dtype).split(".")[1]
    same = m[0].weight is weight
    m.to(lib.zeros(1, dtype=lib.float16))
    kinds += [str(m[0].weight.dtype).split(".")[1], str(m[1].num_batches_tracked.dtype)[-5:]]
    return kinds, grads, same, refused(lambda: m.to(lib.int64), TypeError)


@script
def modes_and_gradients(lib: Any) -> Any:
    m = two_layers(lib)
    m(lib.ones(1, 2)).sum().backward()
    grad = m[0].weight.grad
    m.zero_grad(set_to_none=False)
    zero = plain(grad), m[0].weight.grad is grad
    m.zero_grad()
    m.requires_grad_(False)
    frozen = [p.requires_grad for p in m.parameters()]
    m.eval()
    evaluating = [x.training for x in m.modules()]
    return zero, m[0].weight.grad, frozen, evaluating, refused(lambda: m.train(3), ValueError)


@script
def applied(lib: Any) -> Any:
    log = []
    model = lib.nn.Sequential(lib.nn.Linear(1, 1), lib.nn.Sequential(lib.nn.ReLU()))
    same = model.apply(lambda m: log.append(type(m).__name__)) is model
    return log, same


# State -------------------------------------------------------------------------------------------
@script
def state_hooks(lib: Any) -> Any:
    model, log = two_layers(lib), []
    model.register_state_dict_pre_hook(lambda m, p, k: log.append(("pre", p, k)))
    model.register_state_dict_post_hook(lambda m, s, p, meta: s.__delitem__("0.bias"))
    model[0].register_state_dict_post_hook(lambda m, s, p, meta: log.append((p, list(s))))
    state = model.state_dict()
    log.append(list(state))
    model.register_load_state_dict_pre_hook(
        lambda m, s, p, meta, strict, missing, unexpected, errors: s.update({"0.bias": s["2.bias"]})
    )
    model.register_load_state_dict_post_hook(lambda m, keys: log.append(plain(list(keys))))
    state["0.bias"] = lib.zeros(3)
    given = OrderedDict(state)
    given["2.bias"] = lib.zeros(1)
    given["extra"] = lib.zeros(1)
    return log, refused(lambda: model.load_state_dict(given), RuntimeError), list(given), log


@script
def loading(lib: Any) -> Any:
    nn, answers = lib.nn, []
    model = two_layers(lib)
    state = model.state_dict()
    answers.append([list(state), sorted(state._metadata), state["0.weight"].requires_grad])
    answers.append(model.state_dict(keep_vars=True)["0.weight"] is model[0].weight)
    answers.append(list(nn.Linear(1, 1).state_dict(prefix="a.")))
    other = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    answers.append(repr(other.load_state_dict(state)))
    answers.append(plain(other[0].weight))
    partial = {n: v for n, v in state.items() if not n.startswith("2")} | {"more": lib.ones(1)}
    answers.append(plain(list(other.load_state_dict(partial, strict=False))))
    answers.append(refused(lambda: other.load_state_dict(partial), RuntimeError))
    wrong = dict(state, **{"0.weight": lib.ones(5, 5)})
    answers.append(refused(lambda: other.load_state_dict(wrong, strict=False), RuntimeError))
    answers.append(refused(lambda: other.load_state_dict([1]), TypeError))
    kept = other[0].weight
    other.load_state_dict(state, assign=True)
    answers.append([other[0].weight is kept, type(other[0].weight).__name__])
    answers.append(other[0].weight.requires_grad)
    return answers


@script
def extra_state(lib: Any) -> Any:
    class Counted(lib.nn.Linear):
        count = 0

        def get_extra_state(self) -> Any:
            return {"count": self.count}

        def set_extra_state(self, state: Any) -> None:
            self.count = state["count"]

    a, b = Counted(1, 1), Counted(1, 1)
    a.count = 7
    state = a.state_dict()
    b.load_state_dict(state)
    state.pop("_extra_state")
    return list(a.state_dict()), b.count, refused(lambda: b.load_state_dict(state), RuntimeError)


@script
def copies(lib: Any) -> Any:
    nn = lib.nn
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    m.tied = m[0].weight
    m.note = [1, 2]
    m[0].register_forward_hook(_hook)
    m.requires_grad_(False)
    answers = []
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        answers.append(other.tied is other[0].weight)
        answers.append([other.note is m.note, other[0].weight.requires_grad])
        answers.append(plain(other[0](lib.zeros(2))))
        answers.append(repr(other) == repr(m))
    shallow = copy.copy(m)
    return answers, shallow[0] is m[0]


def _hook(module: Any, args: Any, out: Any) -> Any:
    return out * 0 + 5


# Containers --------------------------------------------------------------------------------------
@script
def sequentials(lib: Any) -> Any:
    nn = lib.nn
    s = nn.Sequential(OrderedDict(a=nn.Linear(1, 2), b=nn.ReLU()))
    answers = [repr(s), repr(s[:1]), repr(s[-1]), len(s), list(s._modules)]
    s = nn.Sequential(nn.Linear(1, 2), nn.ReLU())
    s.append(nn.Linear(2, 1)).extend([nn.Tanh()]).insert(1, nn.Identity())
    answers += [repr(s), repr(s.pop(1)), repr(s)]
    del s[0]
    s[0] = nn.Sigmoid()
    answers += [repr(s), repr(s + s), repr(s * 2), refused(lambda: s[9], IndexError)]
    answers.append(refused(lambda: s * 0, ValueError))
    answers.append(refused(lambda: nn.Sequential(3), TypeError))
    s += nn.Sequential(nn.ReLU())
    return [*answers, repr(s)]


@script
def lists_and_dicts(lib: Any) -> Any:
    nn = lib.nn
    ms = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()])
    answers = [repr(ms), len(ms), repr(ms[:2]), repr(ms[-1]), list(ms.state_dict())]
    ms.append(nn.Tanh())
    ms.insert(0, nn.Identity())
    ms += [nn.Sigmoid()]
    answers += [repr(ms), repr(ms.pop(0)), refused(lambda: ms(1), NotImplementedError)]
    d = nn.ModuleDict({"a": nn.ReLU()})
    d["b"] = nn.Linear(1, 1)
    d.update([["c", nn.Tanh()]])
    answers += [repr(d), list(d), "b" in d, len(d), repr(d.pop("a")), list(d.keys())]
    answers += [refused(lambda: d["z"], KeyError), refused(lambda: d.update(3), TypeError)]
    d.clear()
    return [*answers, len(d)]


@script
def parameter_containers(lib: Any) -> Any:
    nn = lib.nn
    p = nn.ParameterList([lib.ones(2), nn.Parameter(lib.zeros(3)), 5])
    answers = [len(p), list(p.state_dict()), p[2], type(p[0]).__name__, [len(q) for q in p[:2]]]
    p.append(lib.ones(1))
    p.extend([lib.ones(4)])
    p[0] = lib.ones(7)
    answers += [[len(q) for q in p.parameters()], refused(lambda: p[9], IndexError)]
    answers.append(refused(lambda: p.extend(lib.ones(1)), TypeError))
    d = nn.ParameterDict({"a": lib.ones(2), "b": nn.Parameter(lib.ones(3))})
    d["c"] = 5
    answers += [list(d), list(d.state_dict()), d["c"], d.get("z", 1), "a" in d, len(d)]
    other = d | {"e": lib.ones(1)}
    answers += [list(other), plain(d.pop("a")), list(d.keys()), d.popitem()[0], len(d)]
    answers += [d.setdefault("x", 2), list(d.fromkeys(["k"], lib.ones(1)).state_dict())]
    answers += [refused(lambda: p(1), RuntimeError), refused(lambda: d(1), RuntimeError)]
    return answers
