"""`trace`: a module or function that was run once, with a graph of what ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...core.tensor import Tensor
from ...nn.modules.module import Module
from ._script import ScriptFunction, ScriptModule, refuse

_tracing = False


class TracerWarning(Warning):
    """What a trace warns of; nothing here does, since branches are not frozen."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Nothing is to be ignored."""


class TracingCheckError(Exception):
    """What torch raises when a trace does not repeat; nothing here does."""


def is_tracing() -> bool:
    """Whether `trace` runs its example.

    >>> import undertow as ut
    >>> ut.jit.is_tracing()
    False
    """
    return _tracing


@contextmanager
def _running() -> Iterator[None]:
    global _tracing
    before, _tracing = _tracing, True
    try:
        yield
    finally:
        _tracing = before


def _recorded(fn: Any, example: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    from ..fx.recording import recorded  # loaded when somebody wants to see a graph

    return recorded(fn, *example)


class TopLevelTracedModule(ScriptModule):
    """A traced module: it has the parameters and modules of the first, and calls that.

    `graph` and `code` are those of the ops that ran with the example; branches and loops of the
    program are not frozen to what they did then. Every module runs in the mode (training or
    evaluation) in which it was traced, as in torch, whatever it is switched to.
    """

    def __init__(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__()
        fields = self.__dict__
        for name in ("_parameters", "_buffers", "_non_persistent_buffers_set", "_modules"):
            fields[name] = module.__dict__[name]
        fields["training"] = module.training
        fields["_original"], fields["_example"] = module, (args, kwargs)
        fields["_traced_modes"] = [(m, m.training) for m in module.modules()]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the traced module returns."""
        with self._as_traced():
            return self._original(*args, **kwargs)

    @contextmanager
    def _as_traced(self) -> Iterator[None]:
        """A block in which every module is in the mode in which it was traced."""
        others = [m for m, mode in self._traced_modes if m.training is not mode]
        for m in others:
            m.training = not m.training
        try:
            yield
        finally:
            for m in others:
                m.training = not m.training

    def train(self, mode: bool = True) -> Any:
        """Kept as `training`: what was traced stays in the mode that it had then."""
        self.training = mode
        return self

    @property
    def original_name(self) -> str:
        """The name of the class that was traced."""
        return type(self._original).__name__

    @property
    def graph(self) -> Any:
        """The ops that the example runs, as an `fx.Graph`."""
        with self._as_traced():
            return _recorded(self._original, self._example).graph

    inlined_graph = graph

    @property
    def code(self) -> str:
        """The graph as Python."""
        with self._as_traced():
            return str(_recorded(self._original, self._example).code)


TracedModule = ONNXTracedModule = TopLevelTracedModule


class TracedFunction(ScriptFunction):
    """A traced function: it calls the function; see `TopLevelTracedModule`."""

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> None:
        super().__init__(fn)
        self._example = args, kwargs

    @property
    def graph(self) -> Any:
        """The ops that the example runs, as an `fx.Graph`."""
        return _recorded(self._fn, self._example).graph

    @property
    def code(self) -> str:
        """The graph as Python."""
        return str(_recorded(self._fn, self._example).code)


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: Any = None,
    _store_inputs: bool = True,
) -> Any:
    """Run a module or function with an example; what comes back calls it, and knows its graph.

    >>> import undertow as ut
    >>> traced = ut.jit.trace(ut.nn.ReLU(), ut.ones(2))
    >>> traced(ut.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    >>> [n.op for n in traced.graph.nodes]
    ['placeholder', 'call_function', 'output']
    """
    args = example_inputs
    if isinstance(args, dict) and example_kwarg_inputs is None:
        args, example_kwarg_inputs = (), args
    if args is None:
        args = ()
    args = tuple(args) if isinstance(args, (list, tuple)) else (args,)
    kwargs = dict(example_kwarg_inputs or {})
    if isinstance(func, (TopLevelTracedModule, TracedFunction)):
        return func
    if not callable(func):
        raise TypeError(f"[jit.trace] takes a module or a function, got {type(func).__name__}")
    with _running():
        out = func(*args, **kwargs)
    if not _has_tensor(out):
        raise RuntimeError(
            "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from "
            f"traced functions, got {type(out).__name__}"
        )
    if isinstance(func, Module):
        return TopLevelTracedModule(func, args, kwargs)
    return TracedFunction(func, args, kwargs)


def _has_tensor(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_tensor, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_has_tensor, value))
    return isinstance(value, Tensor)


def trace_module(mod: Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """`trace` of the method `forward`; others are refused."""
    if list(inputs) != ["forward"]:
        refuse("trace_module")
    return trace(mod, inputs["forward"])
