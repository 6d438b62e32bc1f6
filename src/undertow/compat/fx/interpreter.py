"""`Interpreter` runs a graph node by node; `Transformer` makes another graph that way."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...core.overriding import watching
from ...nn.modules.module import Module
from . import traceback as fx_traceback
from ._symbolic_trace import Tracer
from .codegen import _last_uses
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node, Target, map_aggregate, map_arg
from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph node by node; subclass it to do something at each of them.

    >>> import undertow as ut
    >>> class Named(ut.fx.Interpreter):
    ...     def run_node(self, n):
    ...         result = super().run_node(n)
    ...         print(n.op, n.name)
    ...         return result
    >>> _ = Named(ut.fx.symbolic_trace(lambda x: x.exp())).run(ut.ones(2))
    placeholder x
    call_method exp
    output output
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = graph if graph is not None else module.graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())
        self.user_to_last_uses = _last_uses(list(self.graph.nodes))

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """What the graph returns for these inputs; `initial_env` has values that are known."""
        self.env = initial_env if initial_env is not None else {}
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    told = f"While executing {node.format_node()}"
                    told = f"{error.args[0]}\n\n{told}" if error.args else told
                    told += f"\nOriginal traceback:\n{node.stack_trace}"
                    error.args = (told, *error.args[1:])
                    if isinstance(error, KeyError):
                        raise RuntimeError(*error.args) from error
                raise
            if self.garbage_collect_values:
                for used in self.user_to_last_uses.get(node, ()):
                    self.env.pop(used, None)
            if node.op == "output":
                out = self.env[node]
                return self.graph.process_outputs(out) if enable_io_processing else out
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """`run` with the inputs of a list, which is emptied."""
        inputs = [n for n in self.graph.nodes if n.op == "placeholder"]
        if len(inputs) != len(args_list):
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(inputs)} arguments for placeholders but "
                f"received {len(args_list)}"
            )
        known = dict(zip(inputs, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=known)

    @contextmanager
    def _set_current_node(self, node: Node) -> Iterator[None]:
        with fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}"):
            yield

    def run_node(self, n: Node) -> Any:
        """The value of a node, given those of its arguments in `env`."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    # What each kind of node does ----------------------------------------------------------------
    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: Any) -> Any:
        """The next input."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration as stop:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from stop

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: Any) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: Any) -> Any:
        """The result of a function."""
        if isinstance(target, str):
            raise AssertionError("[Interpreter.call_function] the target is a string")
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: Any) -> Any:
        """The result of a method of the first argument."""
        this, *rest = args
        return getattr(this, target)(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: Any) -> Any:
        """The result of a module."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: Any) -> Any:
        """What is returned."""
        return args[0]

    # Values -------------------------------------------------------------------------------------
    def fetch_attr(self, target: str) -> Any:
        """What the module has at a path."""
        found: Any = self.module
        atoms = target.split(".")
        for i, atom in enumerate(atoms):
            if not hasattr(found, atom):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(atoms[: i + 1])}")
            found = getattr(found, atom)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values of a node's arguments."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """Arguments with values in the place of nodes."""

        def load(used: Node) -> Any:
            if used not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {used}! Run Graph.lint() to diagnose "
                    "such issues"
                )
            return self.env[used]

        return map_arg(args, load)


class Transformer(Interpreter):
    """Runs a graph with proxies, which makes another graph; subclass it to change what is made.

    >>> import undertow as ut
    >>> class SwapSinCos(ut.fx.Transformer):
    ...     def call_method(self, target, args, kwargs):
    ...         target = {"sin": "cos", "cos": "sin"}.get(target, target)
    ...         return super().call_method(target, args, kwargs)
    >>> swapped = SwapSinCos(ut.fx.symbolic_trace(lambda x: x.sin())).transform()
    >>> swapped(ut.tensor(0.0))
    tensor(1.)
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)

        class TransformerTracer(Tracer):
            """Adds to the new graph, and goes into no module."""

            def __init__(self, graph: Graph) -> None:
                super().__init__()
                self.graph = graph
                self.tensor_attrs: Any = {}

            def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
                return True

        self.tracer = TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: Any) -> Any:
        """An input of the new graph."""
        default = args[0] if args else inspect.Signature.empty
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: Any) -> Any:
        """An attribute, read in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: Any) -> Any:
        """A call in the new graph, or what the module does if the tracer goes into it."""
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: Any) -> Any:
        """A call in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        with fx_traceback.preserve_node_meta(), watching():
            result = super().run(enable_io_processing=False)
        if result is not None:
            new = self.new_graph.output(
                map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a)
            )
            new.meta.update(self.graph.output_node().meta)
        return GraphModule(self.module, self.new_graph)
