"""`split_module`: a graph module as one that calls several, into which its nodes are dealt."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ....nn.modules.module import Module
from ..graph import Graph
from ..graph_module import GraphModule, _get_attr
from ..node import Node, map_arg
from ..proxy import Proxy

__all__ = ["Partition", "split_module"]


class Partition:
    """One part: what goes in and out, and the graph that it becomes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n "
            f"outputs: {self.outputs},\n partitions depended on: {self.dependencies},\n "
            f"partition dependents: {self.dependents}"
        )


def split_module(
    m: GraphModule,
    root_m: Module | None,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A module that calls a part for each number that `split_callback` gives to nodes.

    >>> import undertow as ut
    >>> from undertow.fx.passes.split_module import split_module
    >>> traced = ut.fx.symbolic_trace(lambda x: x.sin().cos())
    >>> parts = split_module(traced, traced, lambda node: int(node.name == "cos"))
    >>> print(parts.code.strip())
    def forward(self, x):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0);  submod_0 = None
        return submod_1
    """
    partitions: dict[str, Partition] = {}
    part_of: dict[Node, str] = {}
    for node in m.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            name = str(split_callback(node))
            name = name if partition_affix is None else f"{partition_affix}_{name}"
            partitions.setdefault(name, Partition(name)).node_names.append(node.name)
            part_of[node] = name
    for node in m.graph.nodes:
        if node in part_of or node.op == "output":
            for used in node.all_input_nodes:
                _note_use(partitions, part_of.get(used), part_of.get(node), used)
    by_name = {node.name: node for node in m.graph.nodes}
    order = _sorted(partitions)
    for partition in partitions.values():
        _open(partition, m, by_name, keep_original_input_name)
    for node, name in part_of.items():
        _copy_node(partitions[name], m, node, qualname_map, bool(keep_original_node_name))
    base = Graph()
    known: dict[str, Node] = {}
    attributes: dict[str, Any] = {}
    for node in m.graph.nodes:
        if node.op == "placeholder":
            default = node.args[0] if node.args else inspect.Signature.empty
            known[node.name] = base.placeholder(node.target, node.type, default)
        elif node.op == "get_attr":
            known[node.name] = base.get_attr(node.target)
            attributes[node.target] = _get_attr(m, node.target)
        else:
            continue
        known[node.name].meta = dict(node.meta)
    for name in list(partitions) if keep_original_order else order:
        partition = partitions[name]
        results = tuple(partition.environment[by_name[n]] for n in partition.outputs)
        single = len(results) == 1 and not tuple_return
        partition.graph.output(results[0] if single else results)
        attributes[partition.submod_name] = GraphModule(partition.targets, partition.graph)
        called = base.call_module(partition.submod_name, tuple(known[n] for n in partition.inputs))
        if single:
            known[next(iter(partition.outputs))] = called
        else:
            for i, output in enumerate(partition.outputs):
                known[output] = Proxy(called)[i].node  # type: ignore[index]
    for node in m.graph.nodes:
        if node.op == "output":
            base.output(map_arg(node.args[0], lambda n: known[n.name]))
    made = GraphModule(attributes, base)
    made.meta["partition_names"] = {p.submod_name for p in partitions.values()}
    return made


def _note_use(
    partitions: dict[str, Partition], defined: str | None, used: str | None, node: Node
) -> None:
    if defined == used:
        return
    if defined is not None:
        partitions[defined].outputs[node.name] = None
        if used is not None:
            partitions[defined].dependents[used] = None
            partitions[used].dependencies[defined] = None
    if used is not None:
        partitions[used].inputs[node.name] = None


def _sorted(partitions: dict[str, Partition]) -> list[str]:
    """The parts in an order in which they can run."""
    waiting = {name: set(p.dependencies) for name, p in partitions.items()}
    ready = [name for name, on in waiting.items() if not on]
    order: list[str] = []
    while ready:
        name = ready.pop()
        order.append(name)
        for dependent in partitions[name].dependents:
            waiting[dependent].discard(name)
            if not waiting[dependent]:
                ready.append(dependent)
    if len(order) != len(partitions):
        raise RuntimeError("cycle exists between partitions!")
    return order


def _open(partition: Partition, m: Module, by_name: dict[str, Node], keep: bool) -> None:
    """Give a part its inputs."""
    inputs: dict[str, None] = {}
    for name in partition.inputs:
        node = by_name[name]
        value = _get_attr(m, node.target) if node.op == "get_attr" else None
        if isinstance(value, Module):
            made = partition.graph.get_attr(node.target)
            partition.targets[node.target] = value
        else:
            made = partition.graph.placeholder(name if keep else f"arg_{len(inputs)}", node.type)
            inputs[name] = None
        made.meta = dict(node.meta)
        partition.environment[node] = made
    partition.inputs = inputs


def _copy_node(
    partition: Partition, m: Module, node: Node, names: dict[str, str] | None, keep_name: bool
) -> None:
    target = node.target
    if node.op == "call_module":
        target = node.target.replace(".", "_")
        partition.targets[target] = _get_attr(m, node.target)
        if names is not None:
            names[f"{partition.submod_name}.{target}"] = node.target
    known = partition.environment
    made = partition.graph.create_node(
        node.op,
        target,
        map_arg(node.args, lambda n: known[n]),
        map_arg(node.kwargs, lambda n: known[n]),
        node.name if keep_name else None,
        node.type,
    )
    made.meta = dict(node.meta)
    known[node] = made
