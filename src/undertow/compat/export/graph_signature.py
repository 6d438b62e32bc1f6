"""What the inputs and outputs of a program's graph are: parameters, buffers, the user's."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

__all__ = [
    "ConstantArgument",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "TensorArgument",
]


@dataclasses.dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclasses.dataclass
class ConstantArgument:
    """A value that is no tensor."""

    name: str
    value: Any


class InputKind(enum.Enum):
    """What an input of the graph is."""

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()
    CUSTOM_OBJ = enum.auto()
    TOKEN = enum.auto()


class OutputKind(enum.Enum):
    """What an output of the graph is."""

    USER_OUTPUT = enum.auto()
    LOSS_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()
    PARAMETER_MUTATION = enum.auto()
    GRADIENT_TO_PARAMETER = enum.auto()
    GRADIENT_TO_USER_INPUT = enum.auto()
    USER_INPUT_MUTATION = enum.auto()
    TOKEN = enum.auto()


@dataclasses.dataclass
class InputSpec:
    """One input."""

    kind: InputKind
    arg: Any
    target: str | None
    persistent: bool | None = None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        kept = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{kept}"


@dataclasses.dataclass
class OutputSpec:
    """One output."""

    kind: OutputKind
    arg: Any
    target: str | None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name}: {self.kind.name}{target}"


@dataclasses.dataclass
class ExportBackwardSignature:
    """The gradients among the outputs; programs here have none."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclasses.dataclass
class ExportGraphSignature:
    """The inputs and outputs of a program's graph, in order."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple(s.target for s in self.input_specs if s.kind is kind and s.target is not None)

    def _by_name(self, kind: InputKind) -> Mapping[str, str]:
        specs = [s for s in self.input_specs if s.kind is kind and s.target is not None]
        return {s.arg.name: s.target for s in specs if s.target is not None}

    @property
    def parameters(self) -> tuple[str, ...]:
        """The paths of the parameters."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        """The paths of the buffers."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """The paths of the buffers that no state_dict has."""
        kept = [s for s in self.input_specs if s.persistent is False]
        return tuple(s.target for s in kept if s.target is not None)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of tensors that are neither."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self) -> tuple[str, ...]:
        """The names of other objects: none."""
        return ()

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The names of the user's inputs; of one that is no tensor the value."""
        specs = [s.arg for s in self.input_specs if s.kind is InputKind.USER_INPUT]
        return tuple(a.value if isinstance(a, ConstantArgument) else a.name for a in specs)

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The names of what the user gets; of what is no tensor the value."""
        specs = [s.arg for s in self.output_specs]
        return tuple(a.value if isinstance(a, ConstantArgument) else a.name for a in specs)

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """The paths of parameters by the names of their inputs."""
        return self._by_name(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """The paths of buffers by the names of their inputs."""
        return self._by_name(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """The names of constants by the names of their inputs."""
        return self._by_name(InputKind.CONSTANT_TENSOR)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """The buffers that the program changes: none, since that is refused."""
        return {}

    parameters_to_mutate = user_inputs_to_mutate = buffers_to_mutate

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """The gradients among the outputs: there are none."""
        return None

    def __str__(self) -> str:
        inputs = "\n".join(map(str, self.input_specs))
        outputs = "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
