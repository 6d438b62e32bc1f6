"""`ShapeProp`: run a graph once, and write the shape and dtype of every value into its node."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....core.tensor import Tensor
from ....layouts import contiguous_format
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its elements."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    rows = contiguous_format if include_contiguity and result.is_contiguous() else None
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), rows, False, {}
    )


class ShapeProp(Interpreter):
    """Writes `meta["tensor_meta"]` and `meta["type"]` of every node.

    >>> import undertow as ut
    >>> from undertow.fx.passes.shape_prop import ShapeProp
    >>> traced = ut.fx.symbolic_trace(ut.nn.Linear(2, 3))
    >>> _ = ShapeProp(traced).propagate(ut.ones(4, 2))
    >>> {n.name: n.meta["tensor_meta"].shape for n in traced.graph.nodes}["linear"]
    (4, 3)
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = self.fake_module = None
        self.real_module = self.module

    def run_node(self, n: Node) -> Any:
        """The value of a node, whose kind is written down."""
        try:
            result = super().run_node(n)
        except Exception as error:
            raise RuntimeError(
                f"ShapeProp error for: node={n.format_node()} with meta={n.meta}: {error}"
            ) from error
        found = []

        def known(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            found.append(value)
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, known)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with these inputs."""
        return super().run(*args)
