"""torch_geometric (PyG): layers and models on a small graph."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import torch
from part import Numbers, compare, fill, normal, part, step, uniform

NODES, EDGES = 12, 40


def edges(seed: int = 0, nodes: int = NODES, number: int = EDGES) -> Any:
    """A graph without doubled edges or loops."""
    pairs = [(i, j) for i in range(nodes) for j in range(nodes) if i != j]
    chosen = np.random.RandomState(seed).permutation(len(pairs))[:number]
    return torch.tensor(np.array([pairs[i] for i in sorted(chosen)]).T.copy())


def add(name: str, *arguments: Any, extra: str = "", quick: bool = False, **options: Any) -> None:
    """A part that runs one layer; `extra` names what it is given beside nodes and edges."""

    @part(name, quick=quick)
    def run() -> Numbers:
        layer = getattr(import_module("torch_geometric.nn"), name)(*arguments, **options)
        given: dict[str, Any] = {}
        if "weight" in extra:
            given["edge_weight"] = uniform(EDGES, seed=7)
        if "attributes" in extra:
            given["edge_attr"] = normal(EDGES, 3, seed=7)
        if "types" in extra:
            given["edge_type"] = torch.tensor(np.random.RandomState(1).randint(0, 3, EDGES))
        if "batch" in extra:
            given["batch"] = torch.tensor([0] * 5 + [1] * 7)
        return step(layer, normal(NODES, 8), edges(), **given)


add("GCNConv", 8, 6, extra="weight", quick=True)
add("GATConv", 8, 6, heads=2, quick=True)
add("GATv2Conv", 8, 6, heads=2, edge_dim=3, extra="attributes")
add("SAGEConv", 8, 6)
add("GraphConv", 8, 6, extra="weight")
add("ChebConv", 8, 6, K=3, extra="weight")
add("TAGConv", 8, 6, extra="weight")
add("SGConv", 8, 6, K=2)
add("APPNP", 3, 0.1)
add("ARMAConv", 8, 6, num_stacks=2, num_layers=2)
add("TransformerConv", 8, 6, heads=2, edge_dim=3, extra="attributes", quick=True)
add("LEConv", 8, 6)
add("ClusterGCNConv", 8, 6)
add("GatedGraphConv", 8, 2)
add("FeaStConv", 8, 6, heads=2)
add("SuperGATConv", 8, 6, heads=2)
add("MFConv", 8, 6)
add("GENConv", 8, 6)
add("ResGatedGraphConv", 8, 6)
add("RGCNConv", 8, 6, num_relations=3, extra="types")
add("GeneralConv", 8, 6)
add("GCN", 8, 16, num_layers=2, out_channels=5, quick=True)
add("GAT", 8, 16, num_layers=2, out_channels=4, heads=2)
add("GIN", 8, 16, num_layers=2, out_channels=5)
add("GraphSAGE", 8, 16, num_layers=2, out_channels=5, jk="lstm")
add(
    "PNA",
    8,
    16,
    2,
    5,
    aggregators=["mean", "min", "max", "std"],
    scalers=["identity", "attenuation"],
    deg=torch.tensor([0, 2, 5, 3, 2]),
)


@part("GINConv")
def gin_conv() -> Numbers:
    from torch_geometric.nn import MLP, GINConv

    return step(GINConv(MLP([8, 16, 6]), train_eps=True), normal(NODES, 8), edges())


@part("EdgeConv")
def edge_conv() -> Numbers:
    from torch_geometric.nn import MLP, EdgeConv

    return step(EdgeConv(MLP([16, 16, 6])), normal(NODES, 8), edges())


@part("global pooling")
def global_pooling() -> Numbers:
    from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool

    batch = torch.tensor([0] * 5 + [1] * 7)
    pools = (global_add_pool, global_mean_pool, global_max_pool)
    return compare(lambda x: [pool(x, batch) for pool in pools], normal(NODES, 8))


@part("TopKPooling")
def top_k_pooling() -> Numbers:
    from torch_geometric.nn import TopKPooling

    batch = torch.tensor([0] * 5 + [1] * 7)
    return step(TopKPooling(8, ratio=0.5), normal(NODES, 8), edges(), batch=batch)


@part("data and batches", quick=True)
def data_and_batches() -> Numbers:
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import GCN, global_mean_pool

    graphs = [
        Data(x=normal(6, 8, seed=i, grad=False), edge_index=edges(i, 6, 12)) for i in range(4)
    ]
    model = fill(GCN(8, 8, num_layers=2, out_channels=5)).eval()

    def run() -> list[Any]:
        loader = DataLoader(graphs, batch_size=2)
        return [global_mean_pool(model(b.x, b.edge_index), b.batch) for b in loader]

    return compare(run, parameters=model.named_parameters())


@part("graph arithmetic")
def graph_arithmetic() -> Numbers:
    from torch_geometric.utils import (
        add_self_loops,
        coalesce,
        degree,
        get_laplacian,
        scatter,
        softmax,
        to_dense_adj,
        to_undirected,
    )

    graph, weight = edges(), normal(EDGES)

    def run(weight: Any) -> list[Any]:
        both, doubled = to_undirected(graph, weight)
        loops, _ = add_self_loops(graph)
        return [
            doubled,
            to_dense_adj(graph, edge_attr=weight),
            softmax(weight, graph[1], num_nodes=NODES),
            get_laplacian(graph, weight, normalization="sym")[1],
            scatter(weight, graph[0], dim_size=NODES, reduce="mean"),
            degree(graph[0], NODES),
            coalesce(both)[0],
            loops,
        ]

    return compare(run, weight)
