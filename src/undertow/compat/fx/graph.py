"""`Graph`: the steps of a function in their order, to be read, changed and written as code."""

from __future__ import annotations

import contextlib
import copy
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from ...core.overriding import watching
from ...errors import UnsupportedError
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from .codegen import CodeGen, PythonCode
from .codegen import _BoxedCodeGen as _BoxedCodeGen  # where torch has them
from .codegen import _custom_builtins as _custom_builtins
from .codegen import _PyTreeCodeGen as _PyTreeCodeGen
from .codegen import _PyTreeInfo as _PyTreeInfo
from .codegen import _register_custom_builtin as _register_custom_builtin
from .namespace import _Namespace
from .naming import public_path
from .node import Argument, Node, Target, map_arg
from .operators import inplace_methods as inplace_methods
from .operators import magic_methods as magic_methods
from .operators import reflectable_magic_methods as reflectable_magic_methods

__all__ = ["CodeGen", "Graph", "PythonCode"]

_OPS = ("call_function", "call_method", "get_attr", "call_module", "placeholder", "output")
_HUMP = re.compile(r"(?<=[a-z])([A-Z])")


def _snake_case(s: str) -> str:
    """`BatchNorm` as `batch_norm`."""
    return _HUMP.sub(r"_\1", s).lower()


def _is_from_torch(obj: Any) -> bool:
    """Whether an object is one of the library's."""
    return public_path(obj) is not None


class _InsertPoint:
    """Where new nodes go, until the end of a `with`."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.before, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self.graph._insert = self.before


class _node_list:
    """The nodes of a graph in order; nodes may be added and erased while it is walked."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph = graph
        self.direction = direction

    def __len__(self) -> int:
        return self.graph._len

    def _walk(self, direction: str) -> Iterator[Node]:
        root = self.graph._root
        node = getattr(root, direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, direction)

    def __iter__(self) -> Iterator[Node]:
        return self._walk(self.direction)

    def __reversed__(self) -> Iterator[Node]:
        return self._walk("_next" if self.direction == "_prev" else "_prev")


class _Watch:
    """Lets functions ask their arguments as long as it lives: there are proxies about."""

    def __init__(self) -> None:
        self._while = watching()
        self._while.__enter__()

    def __del__(self) -> None:
        self._while.__exit__(None, None, None)


class Graph:
    """The steps of a function: nodes in an order in which they can be run.

    >>> import undertow as ut
    >>> graph = ut.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(ut.relu, (x,))
    >>> _ = graph.output(y)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    >>> ut.fx.GraphModule({}, graph)(ut.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(
        self,
        owning_module: Any = None,
        tracer_cls: Any = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._order: dict[Node, int] | None = None
        self._len = 0
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._graph_namespace = _Namespace()
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen: CodeGen = CodeGen()
        self._co_fields: dict[str, Any] = {}
        self._watch: _Watch | None = None

    def _expect_proxies(self) -> None:
        """Somebody adds to the graph by proxies, until its code is written."""
        if self._watch is None:
            self._watch = _Watch()

    # Reading ------------------------------------------------------------------------------------
    @property
    def nodes(self) -> _node_list:
        """The nodes in order."""
        return _node_list(self)

    def output_node(self) -> Node:
        """The last node, which returns."""
        last = self._root._prev
        if last.op != "output":
            raise AssertionError(f"[Graph.output_node] the last node is a {last.op}, no output")
        return last

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes that do `op`, and if that is given with `target`, in order."""
        if op == "call_function" and target is None:
            raise AssertionError("[Graph.find_nodes] op='call_function' needs a target")
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def _position(self, node: Node) -> int:
        """The place of a node in the order, for comparisons."""
        if self._order is None:
            self._order = {n: i for i, n in enumerate(self.nodes)}
        return self._order.get(node, -1)

    # Building -----------------------------------------------------------------------------------
    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A new node, put where nodes are put now: at the end, or where a `with` says."""
        if args and not isinstance(args, tuple):
            raise AssertionError(f"[Graph.create_node] args must be a tuple, got {type(args)}")
        if kwargs and not isinstance(kwargs, dict):
            raise AssertionError(f"[Graph.create_node] kwargs must be a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        name = self._graph_namespace.create_name(candidate, None)
        node = Node(self, name, op, target, args or (), kwargs or {}, type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(node)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._len += 1
        return node

    def placeholder(
        self, name: str, type_expr: Any = None, default_value: Any = inspect.Signature.empty
    ) -> Node:
        """An input."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or module of the owning module."""
        if self.owning_module is not None and not _has_attribute(
            self.owning_module, qualified_name
        ):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning "
                f"GraphModule: it has no {qualified_name!r}; add it with "
                "GraphModule.add_submodule, register_parameter or register_buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a module of the owning module."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """The return of a value, which may hold nodes in containers."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda n: n) -> Node:
        """A node like one of another graph, given which nodes stand for its arguments here."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Any], return_output_node: bool = False
    ) -> Any:
        """Copy the nodes of another graph but its output; what that returns, in nodes of this one.

        `val_map` tells which of its nodes stand for something here already, and learns the rest.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda n: val_map[n])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[Any, Any] | None = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        copies: dict[Node, Any] = {}
        output = made.graph_copy(self, copies, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        if output is not None:
            value, old = output
            new = made.output(value, type_expr=old.type)
            new.meta = copy.copy(old.meta)
        if memo is not None:
            memo.update((id(old), new) for old, new in copies.items())
            memo.setdefault(id(memo), []).append(list(copies))  # keep what is known by its id
        return made

    # Changing -----------------------------------------------------------------------------------
    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Put new nodes before `n`, or at the beginning; for `with`, or for good."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("[Graph.inserting_before] the node is not of this graph")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Put new nodes behind `n`, or at the end; for `with`, or for good."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("[Graph.inserting_after] the node is not of this graph")
        return _InsertPoint(self, n.append)

    def erase_node(self, to_erase: Node) -> None:
        """Take out a node that nobody uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        nothing = map_arg((to_erase._args, dict(to_erase._kwargs)), lambda n: None)
        to_erase._update_args_kwargs(*nothing)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase what nobody uses and what has no side effect; whether there was any."""
        self.lint()
        impure = is_impure_node or Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        if self.owning_module is not None:
            from .graph_module import GraphModule

            named = {n.target for n in self.find_nodes(op="get_attr")}
            for name, child in self.owning_module.named_children():
                if name in named and isinstance(child, GraphModule):
                    changed |= child.graph.eliminate_dead_code()
                    child.recompile()
        return changed

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)

    # Checking -----------------------------------------------------------------------------------
    def lint(self) -> None:
        """Raise if the graph is not whole: order, ownership, names, targets that are not there."""
        names: set[str] = set()
        seen: set[Node] = set()
        for node in self.nodes:
            if node.op not in _OPS:
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for arg in node._input_nodes:
                where = f"Argument '{arg}' of Node '{node}' "
                if arg.graph is not self:
                    raise RuntimeError(
                        f"{where}does not belong to this Graph, but was used as an argument! If "
                        "you are copying nodes from another graph, make sure to use "
                        f"``arg_transform`` on node_copy() to remap values\n{self}"
                    )
                if arg not in seen:
                    raise RuntimeError(
                        f"{where}was used before it has been defined! Please check that Nodes in "
                        f"the graph are topologically ordered\n{self}"
                    )
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        if self.owning_module is not None:
            for node in self.nodes:
                self._lint_target(node)

    def _lint_target(self, node: Node) -> None:
        wanted = "Callable" if node.op == "call_function" else "str"
        if not (callable(node.target) if wanted == "Callable" else isinstance(node.target, str)):
            raise ValueError(
                f"Node {node} target {node.target} has type {type(node.target).__name__} but a "
                f"{wanted} is expected"
            )
        if node.op not in ("get_attr", "call_module"):
            return
        place: Any = self.owning_module
        atoms = node.target.split(".")
        for i, atom in enumerate(atoms):
            place = getattr(place, atom, None)
            of = ".".join(atoms[:i])
            if place is None:
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {atom} "
                    f"of {of}"
                )
            if node.op == "call_module" and not isinstance(place, Module):
                raise RuntimeError(
                    f"Node {node} target {node.target} {atom} of {of} does not reference an "
                    "nn.Module"
                )

    # As code and text ---------------------------------------------------------------------------
    def _target_to_str(self, target: Target) -> str:
        if callable(target):
            name = getattr(target, "__name__", type(target).__name__)
        else:
            name = target
            if name.startswith("__") and name.endswith("__"):
                name = name[2:-2]
        return _snake_case(name)

    def python_code(self, root_module: str, *, verbose: bool = False, **options: Any) -> PythonCode:
        """The graph as the source of a function, in which `root_module` names the module.

        With `verbose` it has comments for people: where a step comes from, and known shapes.
        """
        self._watch = None
        namespace = _Namespace()
        before = [(node, node._repr_fn) for node in self.nodes]
        try:
            for node, _ in before:
                node._repr_fn = lambda n: namespace.create_name(n.name, n)
            return self._python_code(root_module, namespace, verbose=verbose, **options)
        finally:
            for node, shown in before:
                node._repr_fn = shown

    def _python_code(self, root_module: str, namespace: _Namespace, **options: Any) -> PythonCode:
        return self._codegen._gen_python_code(self.nodes, root_module, namespace, **options)

    def __str__(self) -> str:
        names: list[str] = []
        lines = [node.format_node(names) for node in self.nodes]
        head = f"graph({', '.join(names)}):"
        return "\n    ".join([head, *[line for line in lines if line]])

    def print_tabular(self) -> None:
        """Print the nodes as a table; needs the package `tabulate`."""
        try:
            from tabulate import tabulate  # type: ignore[import-untyped,unused-ignore]
        except ImportError as error:
            raise UnsupportedError(
                "[Graph.print_tabular] needs the package tabulate: pip install tabulate, or "
                "print(graph)"
            ) from error
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    def set_codegen(self, codegen: CodeGen) -> None:
        """Write code in another way; see `CodeGen`."""
        self._codegen = codegen

    def on_generate_code(
        self, make_transformer: Callable[[Any], Callable[[list[str]], list[str]]]
    ) -> contextlib.AbstractContextManager[None]:
        """Pass the lines of the body through a function whenever code is written.

        `make_transformer` gets the one in place, or None. At the end of a `with` the old one is
        back.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def restored() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return restored()

    def process_inputs(self, *args: Any) -> Any:
        """What the inputs of the function are as inputs of the graph."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """What the output of the graph is as output of the function."""
        return self._codegen.process_outputs(out)


def _has_attribute(module: Any, target: str) -> bool:
    """Whether a module has a module, parameter or buffer at a path."""
    path, _, name = target.rpartition(".")
    try:
        place = module.get_submodule(path)
    except AttributeError:
        return False
    found = getattr(place, name, None)
    return isinstance(found, (Module, Parameter)) or name in place._buffers
