"""`undertow.fx`: tracing, graphs and their changes, code, modules, interpreters, passes."""

from __future__ import annotations

import builtins
import copy
import math
import operator
import pickle
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

import undertow as ut
import undertow.nn.functional as F
from undertow import fx
from undertow.core import overriding
from undertow.fx.immutable_collections import immutable_dict, immutable_list
from undertow.fx.passes.shape_prop import ShapeProp
from undertow.fx.passes.split_module import split_module
from undertow.fx.proxy import TraceError

fx.wrap("len")
Pair = namedtuple("Pair", "left right")


@fx.wrap
def leaf(x: Any, y: Any) -> Any:
    return x.sum() * y


class Net(ut.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = ut.nn.Linear(4, 5)
        self.param = ut.nn.Parameter(ut.rand(3, 4))
        self.register_buffer("offset", ut.ones(5))

    def forward(self, x: ut.Tensor) -> ut.Tensor:
        return self.lin(x + self.param).clamp(min=0.0, max=1.0) + self.offset


def ops(graph: Any) -> list[str]:
    return [n.op for n in graph.nodes]


def body(module: Any) -> str:
    return str(module.code).strip()


# Tracing ------------------------------------------------------------------------------------------
def test_a_module_as_a_graph() -> None:
    net = Net()
    traced = fx.symbolic_trace(net)
    assert body(traced) == (
        "def forward(self, x : torch.Tensor) -> torch.Tensor:\n"
        "    param = self.param\n"
        "    add = x + param;  x = param = None\n"
        "    lin = self.lin(add);  add = None\n"
        "    clamp = lin.clamp(min = 0.0, max = 1.0);  lin = None\n"
        "    offset = self.offset\n"
        "    add_1 = clamp + offset;  clamp = offset = None\n"
        "    return add_1"
    )
    x = ut.rand(3, 4)
    assert ut.equal(traced(x), net(x))
    traced(x).sum().backward()
    assert net.param.grad is not None
    traced.graph.lint()


def test_functions_are_recorded_not_computed() -> None:
    """The function that the program calls is the node, whatever it is made of."""
    called = {
        F.gelu: lambda x: F.gelu(x),
        F.scaled_dot_product_attention: lambda x: F.scaled_dot_product_attention(x, x, x),
        F.cross_entropy: lambda x: F.cross_entropy(x, x),
        F.layer_norm: lambda x: F.layer_norm(x, (3,)),
        F.interpolate: lambda x: F.interpolate(x, scale_factor=2),
        F.multi_head_attention_forward: None,
        ut.cat: lambda x: ut.cat([x, x]),
        ut.stack: lambda x: ut.stack((x, x)),
        ut.where: lambda x: ut.where(x > 0, x, 0),
        ut.einsum: lambda x: ut.einsum("ij,jk->ik", [x, x]),
        ut.softmax: lambda x: F.softmax(x, dim=1),
        ut.add: lambda x: ut.add(x, 1, alpha=2),
        ut.linalg.inv: lambda x: ut.linalg.inv(x),
        ut.fft.fft: lambda x: ut.fft.fft(x),
        ut.zeros_like: lambda x: ut.zeros_like(x),
        ut.flatten: lambda x: ut.flatten(x, 1),
        ut.split: lambda x: ut.split(x, 2),
        ut.meshgrid: lambda x: ut.meshgrid(x, x, indexing="ij"),
        ut.conv2d: lambda x: F.conv2d(x, x),
        F.pad: lambda x: F.pad(x, (1, 1)),
        F.one_hot: lambda x: F.one_hot(x),
        F.normalize: lambda x: F.normalize(x),
        F.dropout: lambda x: F.dropout(x, 0.1),
        F.embedding: lambda x: F.embedding(x, ut.ones(2, 3)),
    }
    for target, function in called.items():
        if function is None:
            continue
        nodes = [n for n in fx.symbolic_trace(function).graph.nodes if n.op == "call_function"]
        assert nodes[-1].target is target, target
        assert len(nodes) <= 2, target


def test_operators_of_libraries_are_recorded() -> None:
    aten = ut.ops.aten

    def f(x: Any) -> Any:
        return aten.cat([aten.add.Tensor(x, x), aten.relu.default(x)]) + aten.mul(x, 2)

    traced = fx.symbolic_trace(f)
    targets = [n.target for n in traced.graph.nodes if n.op == "call_function"]
    assert targets[:3] == [aten.add.Tensor, aten.relu.default, aten.cat]
    assert "torch.ops.aten.add.Tensor(x, x)" in traced.code
    x = ut.ones(1)
    assert ut.equal(traced(x), f(x))
    assert ut.equal(pickle.loads(pickle.dumps(traced))(x), f(x))
    traced.graph.eliminate_dead_code()
    written = fx.symbolic_trace(lambda x: (aten.add_.Tensor(x, 1), x)[1])
    assert not written.graph.eliminate_dead_code()


def test_every_operator() -> None:
    def f(x: Any, y: Any) -> Any:
        return [x + y, x - y, x * y, x / y, x // y, x % y, x**y, x @ y, x & y, x | y, x ^ y] + [
            *(x << y, x >> y, x == y, x != y, x < y, x <= y, x > y, x >= y, -x, +x, ~x, abs(x)),
            *(1 + x, 1 - x, 2 * x, 1 / x, 3 // x, 3 % x, 2**x, x[1], x[:, 2:], x[..., None]),
        ]

    names = [n.target.__name__ for n in fx.symbolic_trace(f).graph.nodes if callable(n.target)]
    assert names == [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "and_",
        "or_",
        "xor",
        "lshift",
        "rshift",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "neg",
        "pos",
        "invert",
        "abs",
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "getitem",
        "getitem",
        "getitem",
    ]


def test_tensors_beside_proxies() -> None:
    constant = ut.tensor([1.0, 2.0])

    def f(x: Any) -> Any:
        return constant + x, constant.mul(x), constant @ x, constant > x, ut.add(constant, x)

    traced = fx.symbolic_trace(f)
    x = ut.tensor([3.0, 0.5])
    for got, wanted in zip(traced(x), f(x), strict=True):
        assert ut.equal(got, wanted)


def test_control_flow_names_the_line() -> None:
    def branch(x: Any) -> Any:
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(TraceError, match=r"control flow\n  .*test_fx.py:\d+ in branch: if x.sum"):
        fx.symbolic_trace(branch)
    with pytest.raises(TraceError, match="cannot be iterated"):
        fx.symbolic_trace(lambda x: list(x))
    with pytest.raises(TraceError, match="cannot be iterated"):
        fx.symbolic_trace(lambda x: ut.cat(*x))


def test_unpacking_indexes() -> None:
    def f(x: Any) -> Any:
        a, b, c = x.split(1)
        return a + b * c

    traced = fx.symbolic_trace(f)
    assert ops(traced.graph).count("call_function") == 5
    assert ut.equal(traced(ut.ones(3)), ut.tensor([2.0]))


def test_wrapped_functions_and_builtins() -> None:
    def f(x: Any) -> Any:
        return leaf(x, len(x)) + math.sqrt(x.numel())

    traced = fx.symbolic_trace(f)
    assert [n.target for n in traced.graph.nodes if n.op == "call_function"] == [
        *(len, leaf, math.sqrt, operator.add)
    ]
    assert traced(ut.ones(4)).item() == 18
    with pytest.raises(RuntimeError, match="module scope"):
        exec("from undertow import fx\nfx.symbolic_trace(lambda x: len(x))", {})
    with pytest.raises(NotImplementedError, match="top level"):
        fx.wrap("f")
    assert len([1, 2]) == 2
    assert builtins.len is len


def test_concrete_arguments() -> None:
    def f(x: Any, flags: Any, scale: float = 2.0) -> Any:
        out = x["a"] * scale
        for extra in x["b"]:
            out = out + extra
        return {"out": out} if flags["wrap"] else out

    traced = fx.symbolic_trace(
        f, concrete_args={"x": {"a": fx.PH, "b": [fx.PH, fx.PH]}, "flags": {"wrap": True}}
    )
    given = {"a": ut.ones(2), "b": [ut.ones(2), ut.zeros(2)]}
    assert ut.equal(traced(given, {"wrap": True}, 3.0)["out"], ut.full((2,), 4.0))
    assert ut.equal(
        fx.Interpreter(traced).run(given, {"wrap": True}, 3.0)["out"], ut.full((2,), 4.0)
    )
    with pytest.raises(AssertionError, match="specialized"):
        traced(given, {"wrap": False}, 3.0)
    none = fx.symbolic_trace(lambda x, y: x if y is None else x + y, concrete_args={"y": None})
    assert none(3, None) == 3
    with pytest.raises(AssertionError, match="specialized to have value None"):
        none(3, 4)


def test_variadic_functions() -> None:
    def f(x: Any, *rest: Any, key: int = 1, **more: Any) -> Any:
        return x * key + rest[0] + more["z"]

    traced = fx.symbolic_trace(f)
    assert "def forward(self, x, key : int = 1, *rest, **more):" in traced.code
    assert traced(2, 3, 4, z=5) == 15


def test_tracers_decide_about_modules() -> None:
    class Deep(fx.Tracer):
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return isinstance(m, ut.nn.ReLU)

    model = ut.nn.Sequential(ut.nn.Linear(2, 3), ut.nn.Sequential(ut.nn.ReLU(), ut.nn.Linear(3, 1)))
    tracer = Deep()
    graph = tracer.trace(model)
    assert ops(graph).count("call_module") == 1
    assert graph.find_nodes(op="call_module")[0].target == "1.0"
    module = fx.GraphModule(tracer.root, graph)
    x = ut.rand(4, 2)
    assert ut.allclose(module(x), model(x))
    scopes = {n.name: tracer.node_name_to_scope[n.name][0] for n in graph.nodes}
    assert scopes["linear_1"] == "1.1"
    stack = graph.find_nodes(op="call_module")[0].meta["nn_module_stack"]
    assert list(stack) == ["", "1", "1.0"][-len(stack) :]


def test_everything_is_put_back_after_a_trace_that_fails() -> None:
    before = (
        ut.nn.Module.__call__,
        ut.nn.Module.__getattr__,
        globals()["leaf"],
        [*overriding._levels],
    )
    with pytest.raises(ZeroDivisionError):
        fx.symbolic_trace(lambda x: leaf(x, 1) + 1 / 0)
    after = (
        ut.nn.Module.__call__,
        ut.nn.Module.__getattr__,
        globals()["leaf"],
        [*overriding._levels],
    )
    assert before == after
    assert not fx._symbolic_trace.is_fx_tracing()


def test_named_tuples_dataclasses_and_slices_as_arguments() -> None:
    traced = fx.symbolic_trace(lambda x: Pair(x, x + 1))
    out = traced(ut.ones(1))
    assert isinstance(out, Pair)
    assert out.right.item() == 2

    def f(x: Any, n: Any) -> Any:
        return x[1:n, ..., None][0]

    assert ut.equal(fx.symbolic_trace(f)(ut.arange(6).reshape(3, 2), 3), ut.tensor([[2], [3]]))


class TensorPair(metaclass=fx.ProxyableClassMeta):
    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right

    def add(self, other: Any) -> Any:
        return TensorPair(self.left + other.left, self.right + other.right)


def test_proxyable_classes() -> None:
    def f(pair: Any, y: Any) -> Any:
        return pair.add(TensorPair(y, y))

    out = fx.symbolic_trace(f)(TensorPair(ut.ones(1), ut.zeros(1)), ut.ones(1))
    assert (out.left.item(), out.right.item()) == (2, 1)


def test_parameters_with_constant_shapes() -> None:
    class Shaped(ut.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = ut.nn.Parameter(ut.ones(2, 3))

        def forward(self, x: Any) -> Any:
            return x @ self.w if self.w.shape[0] == 2 and self.w.dim() == 2 else x

    graph = fx.Tracer(param_shapes_constant=True).trace(Shaped())
    assert "call_function" in ops(graph)
    with pytest.raises(TraceError):
        fx.symbolic_trace(Shaped())


# Graphs -------------------------------------------------------------------------------------------
def graph_of(f: Any) -> Any:
    return fx.symbolic_trace(f).graph


def test_building_and_editing() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(ut.relu, (x,))
    out = graph.output(y)
    with graph.inserting_before(y):
        half = graph.call_function(operator.mul, (x, 0.5))
    y.args = (half,)
    with graph.inserting_after(y):
        last = graph.call_method("neg", (y,))
    assert y.replace_all_uses_with(last, lambda user: user is not last) == [out]
    graph.lint()
    assert [n.name for n in graph.nodes] == ["x", "mul", "relu", "neg", "output"]
    assert list(y.users) == [last]
    assert half.all_input_nodes == [x]
    assert half < y < last
    assert (x.next, y.prev) == (half, half)
    module = fx.GraphModule({}, graph)
    assert module(ut.tensor([4.0])).item() == -2
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(half)
    with pytest.raises(TypeError, match="does not support mutation"):
        graph.call_function(ut.cat, ([x, y],)).args[0].append(x)


def test_nodes_may_be_erased_while_walking() -> None:
    graph = graph_of(lambda x: (x + 1, x + 2, x + 3)[0])
    for node in graph.nodes:
        if node.op == "call_function" and not node.users:
            graph.erase_node(node)
    assert len(graph.nodes) == 3
    assert [n.name for n in reversed(graph.nodes)] == ["output", "add", "x"]


def test_dead_code() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        y.exp()
        ut.rand(2)
        ut._assert(x.sum() > 0, "positive")
        return x

    traced = fx.symbolic_trace(f)
    assert traced.graph.eliminate_dead_code()
    assert [n.name for n in traced.graph.nodes] == ["x", "sum_1", "gt", "_assert", "output"]
    assert not traced.graph.eliminate_dead_code()
    traced.recompile()
    with pytest.raises(AssertionError, match="positive"):
        traced(-ut.ones(1))


def test_lint_finds_what_is_wrong() -> None:
    graph = graph_of(lambda x: x.sin().cos())
    sin = graph.find_nodes(op="call_method", target="sin")[0]
    graph.output_node().prepend(sin)
    with pytest.raises(RuntimeError, match="used before it has been defined"):
        graph.lint()
    other = fx.Graph()
    other.call_method("sin", (graph.find_nodes(op="placeholder")[0],))
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        other.lint()
    traced = fx.symbolic_trace(Net())
    traced.graph.find_nodes(op="call_module")[0].target = "nothing"
    with pytest.raises(RuntimeError, match="nonexistent attribute nothing"):
        traced.graph.lint()


def test_copies_of_graphs() -> None:
    graph = graph_of(lambda x, y=3: {"a": x + y})
    assert str(copy.deepcopy(graph)) == str(graph)
    made = fx.Graph()
    values: dict[Any, Any] = {}
    result = made.graph_copy(graph, values)
    made.output(made.call_function(operator.getitem, (result, "a")))
    assert fx.GraphModule({}, made)(4) == 7
    assert set(values) == set(list(graph.nodes)[:-1])


def test_graphs_that_are_printed(capsys: Any) -> None:
    graph = graph_of(lambda x, k=None: F.relu(x).view(-1, 2))
    assert str(graph) == (
        "graph():\n"
        "    %x : [num_users=1] = placeholder[target=x]\n"
        "    %k : [num_users=0] = placeholder[target=k](default=None)\n"
        "    %relu : [num_users=1] = call_function[target=torch.nn.functional.relu]"
        "(args = (%x,), kwargs = {inplace: False})\n"
        "    %view : [num_users=1] = call_method[target=view](args = (%relu, -1, 2), kwargs = {})\n"
        "    return view"
    )
    traced = fx.symbolic_trace(Net())
    ShapeProp(traced).propagate(ut.rand(3, 4))
    text = traced.print_readable(print_output=False)
    assert 'lin: "f32[3, 5]" = self.lin(add)' in text
    assert "class Net(torch.nn.Module)" in text
    assert "print_readable()" in str(traced)


def test_code_can_be_changed() -> None:
    traced = fx.symbolic_trace(lambda x: x + 1)
    with traced.graph.on_generate_code(lambda _: lambda lines: ["x = x * 2\n", *lines]):
        traced.recompile()
    assert traced(3) == 7
    traced.recompile()
    assert traced(3) == 4

    class Listed(fx.CodeGen):
        def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
            names = ", ".join(free_vars)
            return (
                f"def forward(self, args_list){maybe_return_annotation}:\n    {names}, = args_list"
            )

        def process_inputs(self, *inputs: Any) -> Any:
            return inputs[0]

    traced.graph.set_codegen(Listed())
    traced.recompile()
    assert traced([3]) == 4
    assert fx.Interpreter(traced).run([3]) == 4


def test_constants_in_code() -> None:
    def f(x: Any) -> Any:
        return (
            x.to(ut.float64),
            x.to("cpu"),
            x + math.inf,
            x.sum(dtype=ut.int64),
            x.to(ut.device("cpu")),
        )

    traced = fx.symbolic_trace(f)
    assert "x.to(torch.float64)" in traced.code
    assert "x.to(device(type='cpu'))" in traced.code
    assert traced(ut.ones(1))[0].dtype is ut.float64


def test_immutable_collections() -> None:
    assert pickle.loads(pickle.dumps(immutable_list([1, 2]))) == [1, 2]
    assert hash(immutable_dict({"a": 1})) == hash(immutable_dict({"a": 1}))
    assert ut.utils._pytree.tree_map(lambda n: n + 1, immutable_list([1])) == [2]
    with pytest.raises(TypeError):
        immutable_dict({})["a"] = 1


# Modules ------------------------------------------------------------------------------------------
def test_modules_are_copied_and_pickled() -> None:
    traced = fx.symbolic_trace(Net())
    traced.meta["kept"] = 1
    x = ut.rand(3, 4)
    for other in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced)), copy.copy(traced)):
        assert other.code == traced.code
        assert ut.equal(other(x), traced(x))
        assert other.meta["kept"] == 1
    assert copy.deepcopy(traced).lin is not traced.lin
    assert type(copy.deepcopy(traced)).__name__ == "Net"
    assert [*traced.state_dict()] == [*copy.deepcopy(traced).state_dict()]


def test_submodules_of_graph_modules() -> None:
    traced = fx.symbolic_trace(ut.nn.Sequential(ut.nn.Linear(2, 2), ut.nn.ReLU()))
    assert traced.add_submodule("extra.inner", ut.nn.Dropout())
    assert isinstance(traced.extra.inner, ut.nn.Dropout)
    traced.delete_all_unused_submodules()
    assert not hasattr(traced, "extra")
    assert not traced.delete_submodule("nothing.here")
    with pytest.raises(RuntimeError, match="not provided"):
        fx.GraphModule({}, traced.graph)


def test_errors_show_the_line_of_the_code(capsys: Any) -> None:
    traced = fx.symbolic_trace(lambda x: x.undefined_method())
    with pytest.raises(AttributeError):
        traced(ut.ones(1))
    assert "undefined_method = x.undefined_method()" in capsys.readouterr().err


def test_modules_as_folders(tmp_path: Path, monkeypatch: Any) -> None:
    traced = fx.symbolic_trace(Net())
    traced.to_folder(tmp_path / "written_net", "Written")
    monkeypatch.syspath_prepend(str(tmp_path))
    from written_net import Written  # type: ignore[import-not-found]

    x = ut.rand(3, 4)
    assert ut.equal(Written()(x), traced(x))


def test_hooks_of_changes() -> None:
    traced = fx.symbolic_trace(Net())
    made, erased, replaced = [], [], []
    traced._register_create_node_hook(made.append)
    traced._register_erase_node_hook(erased.append)
    lin = traced.graph.find_nodes(op="call_module")[0]
    with traced._set_replace_hook(lambda old, new, user: replaced.append((str(old), new))):
        with traced.graph.inserting_after(lin):
            new = traced.graph.call_function(ut.relu, (lin.args[0],))
        lin.replace_all_uses_with(new)
    traced.graph.erase_node(lin)
    assert (made, erased, replaced) == ([new], [lin], [("lin", "relu")])


# Interpreters -------------------------------------------------------------------------------------
def test_interpreters() -> None:
    traced = fx.symbolic_trace(Net())
    x = ut.rand(3, 4)
    assert ut.equal(fx.Interpreter(traced).run(x), traced(x))
    known = {n: ut.zeros(3, 5) for n in traced.graph.nodes if n.name == "clamp"}
    assert ut.equal(fx.Interpreter(traced).run(x, initial_env=known), ut.ones(3, 5))
    listed = [x]
    assert ut.equal(fx.Interpreter(traced).boxed_run(listed), traced(x))
    assert listed == []
    traced.graph.find_nodes(op="call_method")[0].target = "undefined"
    with pytest.raises(AttributeError, match="While executing %clamp"):
        fx.Interpreter(traced).run(x)
    with pytest.raises(RuntimeError, match="was not passed in"):
        fx.Interpreter(traced).run()


def test_transformers() -> None:
    watched = overriding._levels[1]  # other tests may have made overriding classes

    class Swap(fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target is ut.sigmoid:
                return ut.neg(*args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target == "neg":
                return F.gelu(args[0])
            return super().call_method(target, args, kwargs)

    made = Swap(fx.symbolic_trace(lambda x: ut.sigmoid(x).neg())).transform()
    assert [n.target for n in made.graph.nodes if n.op == "call_function"] == [ut.neg, F.gelu]
    x = ut.rand(3)
    assert ut.equal(made(x), F.gelu(-x))
    assert overriding._levels[1] == watched


def test_proxies_around_nodes_of_a_finished_graph() -> None:
    """The tutorial's inversion of functions: operators of proxies add to a graph."""
    inverses = {ut.sin: ut.arcsin, ut.exp: ut.log}
    watched = overriding._levels[1]

    def invert(module: Any) -> Any:
        graph, known = fx.Graph(), {}
        for node in reversed(module.graph.nodes):
            if node.op == "call_function":
                known[node.args[0]] = inverses[node.target](known[node])
            elif node.op == "placeholder":
                graph.output(known[node].node)
                graph.find_nodes(op="placeholder")[0].name = node.name
            else:
                known[node.args[0]] = fx.Proxy(graph.placeholder("inverse"))
        return fx.GraphModule(module, graph)

    traced = fx.symbolic_trace(lambda x: ut.exp(ut.sin(x)))
    x = ut.rand(3, dtype=ut.float64)
    assert ut.allclose(invert(traced)(traced(x)), x)
    assert overriding._levels[1] == watched


# Passes -------------------------------------------------------------------------------------------
def test_replace_pattern() -> None:
    def f(x: Any, w1: Any, w2: Any) -> Any:
        m1 = ut.cat([w1, w2]).sum()
        m2 = ut.cat([w2, w1]).sum()
        return x + ut.max(m1) + ut.max(m2)

    traced = fx.symbolic_trace(f)
    found = fx.replace_pattern(
        traced, lambda a, b: ut.cat([a, b]).sum(), lambda a, b: ut.stack([a, b]).mean()
    )
    assert len(found) == 2
    assert "cat" not in traced.code
    x, w1, w2 = ut.ones(1), ut.ones(2), ut.full((2,), 3.0)
    assert traced(x, w1, w2).item() == 5
    chain = fx.symbolic_trace(lambda x: x.exp().exp().exp())
    assert len(fx.replace_pattern(chain, lambda y: y.exp().exp(), lambda y: y.sin())) == 1
    assert ops(chain.graph).count("call_method") == 2
    kept = fx.symbolic_trace(lambda x: (lambda y: (y, y.log()))(x.exp()))
    assert fx.replace_pattern(kept, lambda a: a.exp().log(), lambda a: a) == []
    two = fx.symbolic_trace(lambda x: ut.add(x, 2))
    assert not fx.replace_pattern(two, lambda a: ut.add(a, 3), lambda a: a)
    again = fx.replace_pattern_with_filters(
        two, lambda a: ut.add(a, 3), lambda a: ut.mul(a, 5), ignore_literals=True
    )
    assert len(again) == 1
    assert two(ut.ones(1)).item() == 5


def test_replace_pattern_by_a_module() -> None:
    class Scale(ut.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = ut.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.scale(x)

    traced = fx.symbolic_trace(lambda x: ut.relu(x) + 1)
    fx.replace_pattern(traced, lambda x: ut.relu(x), fx.symbolic_trace(Scale()))
    assert isinstance(traced.scale, ut.nn.Linear)
    assert traced(ut.ones(3, 2)).shape == (3, 2)


def test_shapes_are_propagated() -> None:
    traced = fx.symbolic_trace(Net())
    ShapeProp(traced).propagate(ut.rand(3, 4))
    known = {n.name: n.meta["tensor_meta"] for n in traced.graph.nodes}
    assert known["lin"].shape == (3, 5)
    assert known["param"].requires_grad
    assert known["x"].dtype is ut.float32


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_split_module(parts: int) -> None:
    net = Net()
    traced = fx.symbolic_trace(net)
    places = {n: i for i, n in enumerate(traced.graph.nodes)}
    step = len(places) / parts
    split = split_module(traced, net, lambda node: int(places[node] // step))
    x = ut.rand(3, 4)
    assert ut.equal(split(x), net(x))
    assert all(name.startswith("submod_") for name, _ in split.named_children())
    with pytest.raises(RuntimeError, match="cycle"):
        split_module(
            fx.symbolic_trace(lambda x: x.sin().cos().tan()), net, lambda n: int(n.name == "cos")
        )


def test_fusing_and_folding() -> None:
    from undertow.fx.experimental.const_fold import split_const_subgraphs
    from undertow.fx.experimental.optimization import fuse, remove_dropout

    model = ut.nn.Sequential(
        ut.nn.Conv2d(1, 2, 3),
        ut.nn.BatchNorm2d(2),
        ut.nn.Dropout(),
        ut.nn.Flatten(),
        ut.nn.Linear(18, 4),
    )
    model.append(ut.nn.BatchNorm1d(4))
    x = ut.rand(2, 1, 5, 5)
    model(x)
    model.eval()
    fused = remove_dropout(fuse(model))
    assert [n.target for n in fused.graph.nodes if n.op == "call_module"] == ["0", "3", "4"]
    assert ut.allclose(fused(x), model(x), atol=1e-5)

    class Constant(ut.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = ut.nn.Parameter(ut.ones(2))

        def forward(self, x: Any) -> Any:
            return x * (self.w + 1) + ut.relu(self.w)

    folded = split_const_subgraphs(Constant())
    assert ut.equal(folded(ut.ones(2)), ut.full((2,), 3.0))
    assert ops(folded.graph).count("get_attr") == 2


def test_refusals() -> None:
    from undertow.fx.passes.graph_drawer import FxGraphDrawer

    with pytest.raises(NotImplementedError, match="print_readable"):
        FxGraphDrawer(None, "x")
    with pytest.raises(NotImplementedError, match="no symbolic sizes"):
        fx.experimental.symbolic_shapes.ShapeEnv()


def test_recorded_calls_follow_any_python() -> None:
    from undertow.fx.recording import recorded

    def f(x: Any, steps: int) -> Any:
        while steps > 0 and x.sum().item() < 100:
            x, steps = x * 2, steps - 1
        return x.add_(1), {"steps": steps}

    with pytest.warns(UserWarning, match="read as a number"):
        module = recorded(f, (ut.ones(2), 3))
    out, rest = module(ut.full((2,), 10.0), 3)
    assert out.tolist() == [81.0, 81.0]
    assert rest == {"steps": 0}
    net = ut.nn.TransformerEncoderLayer(8, 2, batch_first=True).eval()
    x = ut.rand(2, 3, 8)
    copied = pickle.loads(pickle.dumps(recorded(net, (x,))))
    assert ut.allclose(copied(x), net(x), atol=1e-6)


def test_asserts_are_recorded_where_asked_for() -> None:
    """Python makes other instructions of an `assert` in each of its versions."""

    class Asserting(fx.Tracer):
        trace_asserts = True

    room: dict[str, Any] = {}  # as text: pytest makes something else of an assert
    exec("def checked(x):\n    assert x.sum() > 0, 'small'\n    return x * 2", room)
    graph = Asserting().trace(room["checked"])
    assert [n.target.__name__ for n in graph.nodes if n.op == "call_function"].count(
        "assert_fn"
    ) == 1

    def branching(x: Any) -> Any:
        return x * 2 if x.sum() > 0 else x

    with pytest.raises(TraceError):
        Asserting().trace(branching)
