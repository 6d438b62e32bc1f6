"""`make_fx`: a function as a graph of the ops that it runs with some inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ....errors import UnsupportedError
from .._symbolic_trace import Tracer
from ..graph_module import GraphModule
from ..recording import recorded

__all__ = [
    "PythonKeyTracer",
    "disable_proxy_modes_tracing",
    "get_isolated_graphmodule",
    "get_proxy_mode",
    "make_fx",
    "maybe_disable_fake_tensor_mode",
    "py_sym_types",
    "snapshot_fake",
]

py_sym_types: tuple[type, ...] = ()


class PythonKeyTracer(Tracer):
    """A tracer under torch's name; `make_fx` does not use it."""


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Any = None,
    tracing_mode: str = "real",
    **options: Any,
) -> Callable[..., GraphModule]:
    """A function that, given inputs, returns the graph of what `f` does with them.

    Sizes are those of the inputs, also with tracing_mode="symbolic", which is refused.

    >>> import undertow as ut
    >>> from undertow.fx.experimental.proxy_tensor import make_fx
    >>> graph = make_fx(lambda x: x.sin() + 1)(ut.zeros(2))
    >>> graph(ut.zeros(2))
    tensor([1., 1.])
    """
    if tracing_mode == "symbolic":
        raise UnsupportedError(
            "[make_fx] there are no symbolic sizes; use tracing_mode='real', or "
            "export.export with dynamic_shapes"
        )

    def traced(*args: Any, **kwargs: Any) -> GraphModule:
        return recorded(f, args, kwargs)

    return traced


def get_proxy_mode() -> None:
    """The mode in which `make_fx` traces: there is none."""


@contextmanager
def disable_proxy_modes_tracing(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Nothing is to be disabled."""
    yield


maybe_disable_fake_tensor_mode = disable_proxy_modes_tracing


def snapshot_fake(val: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor without its history."""
    return val.detach()


def get_isolated_graphmodule(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], **options: Any
) -> GraphModule:
    """The graph of a call."""
    return recorded(func, args, kwargs)
