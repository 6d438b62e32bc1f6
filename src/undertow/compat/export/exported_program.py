"""`ExportedProgram`: the graph of a call, the state that it needs, and what its inputs are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ...core.tensor import Tensor
from ...errors import ArgumentError
from ...utils import _pytree as pytree
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from .dynamic_shapes import Varying
from .graph_signature import ExportGraphSignature

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "default_decompositions"]


class CallSpec(NamedTuple):
    """The containers of the inputs and outputs."""

    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec


class ModuleCallSignature(NamedTuple):
    """The inputs and outputs of a module's call, which programs here do not keep."""

    inputs: Any = ()
    outputs: Any = ()
    in_spec: Any = None
    out_spec: Any = None
    forward_arg_names: Any = None


class ModuleCallEntry(NamedTuple):
    """A module that was called."""

    fqn: str
    signature: ModuleCallSignature | None = None


def default_decompositions() -> dict[Any, Any]:
    """The decompositions of ops: none."""
    return {}


class Guard:
    """Checks the inputs of a program's module against what it was made for."""

    def __init__(
        self, in_spec: pytree.TreeSpec, leaves: list[Any], names: list[str], sizes: list[Varying]
    ) -> None:
        self.in_spec = in_spec
        self.names = names
        self.sizes = sizes
        self.wanted = [
            (tuple(leaf.shape), leaf.dtype) if isinstance(leaf, Tensor) else leaf for leaf in leaves
        ]

    def __call__(self, module: Any, args: Any, kwargs: Any) -> None:
        leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
        if spec != self.in_spec:
            raise ArgumentError(
                f"[ExportedProgram] was exported for arguments {self.in_spec}, got {spec}"
            )
        free = {(v.leaf, v.dim) for v in self.sizes}
        for i, (leaf, wanted, name) in enumerate(zip(leaves, self.wanted, self.names, strict=True)):
            if not isinstance(wanted, tuple) or not isinstance(leaf, Tensor):
                if type(leaf) is not type(wanted) or leaf != wanted:
                    raise AssertionError(f"Guard failed: {name} == {wanted!r}, got {leaf!r}")
                continue
            shape, dtype = wanted
            if leaf.dtype is not dtype or leaf.ndim != len(shape):
                raise AssertionError(
                    f"Guard failed: {name} is a {dtype} of {len(shape)} dimensions, got "
                    f"{leaf.dtype} of shape {tuple(leaf.shape)}"
                )
            for dim, size in enumerate(shape):
                if (i, dim) not in free and leaf.shape[dim] != size:
                    raise AssertionError(
                        f"Guard failed: {name}.size()[{dim}] == {size}, got {leaf.shape[dim]}; "
                        "name sizes that vary in dynamic_shapes"
                    )
        self._check_sizes(leaves)

    def _check_sizes(self, leaves: list[Any]) -> None:
        roots: dict[str, int] = {}
        for v in self.sizes:
            size = leaves[v.leaf].shape[v.dim]
            found = v.root(size)
            if roots.setdefault(v.name, found) != found or not v.least <= found <= v.most:
                raise AssertionError(
                    f"Guard failed: {self.names[v.leaf]}.size()[{v.dim}] is {size}, which does not "
                    f"fit {v.name}: {v.least} to {v.most}, and {roots[v.name]} elsewhere"
                )


class ExportedProgram:
    """A call of a module as a program; `module()` runs it.

    In `graph_module` parameters, buffers and constants are inputs, as `graph_signature` tells.

    >>> import undertow as ut
    >>> program = ut.export.export(ut.nn.Linear(3, 2), (ut.ones(4, 3),))
    >>> program.graph_signature.parameters
    ('weight', 'bias')
    >>> program.module()(ut.ones(4, 3)).shape
    (4, 2)
    """

    def __init__(
        self,
        graph_module: GraphModule,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Any],
        constants: dict[str, Any],
        call_spec: CallSpec,
        example_inputs: Any,
        guard: Guard,
        unlifted: GraphModule,
    ) -> None:
        self.graph_module = graph_module
        self.graph_signature = graph_signature
        self.state_dict = state_dict
        self.constants = constants
        self.call_spec = call_spec
        self.example_inputs = example_inputs
        self.range_constraints = {v.name: (v.least, v.most) for v in guard.sizes}
        self.module_call_graph = [ModuleCallEntry("", None)]
        self._guard = guard
        self._unlifted = unlifted

    @property
    def graph(self) -> Graph:
        """The graph, with the state as inputs."""
        return self.graph_module.graph

    @property
    def tensor_constants(self) -> dict[str, Any]:
        """The tensors that are neither parameters nor buffers."""
        return self.constants

    @property
    def dialect(self) -> str:
        """Which ops the graph has: the library's own."""
        return "UNDERTOW"

    def module(self, check_guards: bool = True) -> GraphModule:
        """A module that runs the program with its state, and checks its inputs."""
        made = GraphModule(self._unlifted, self._unlifted.graph, "GraphModule")
        if check_guards:
            made.register_forward_pre_hook(self._guard, with_kwargs=True)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refused as in torch: `module()` runs the program."""
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` "
            "instead."
        )

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """The parameters by their paths."""
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def parameters(self) -> Iterator[Any]:
        """The parameters."""
        for _, value in self.named_parameters():
            yield value

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """The buffers by their paths."""
        for name in self.graph_signature.buffers:
            yield name, self.state_dict.get(name, self.constants.get(name))

    def buffers(self) -> Iterator[Any]:
        """The buffers."""
        for _, value in self.named_buffers():
            yield value

    def run_decompositions(self, decomp_table: Any = None, **options: Any) -> ExportedProgram:
        """The program itself: its ops are not decomposed further."""
        return self

    def __str__(self) -> str:
        code = self.graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        signature = str(self.graph_signature).strip("\n").replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {code}\n"
            f"Graph signature: \n    {signature}\n"
            f"Range constraints: {self.range_constraints}\n"
        )
