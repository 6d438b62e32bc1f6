"""`undertow.jit`: TorchScript's names for a library that has no TorchScript.

Marks leave functions as they are, and `script` leaves functions and modules: they compute the same.
`trace` gives a module or function that calls what was traced, with a graph of the ops that ran.
Files of TorchScript are neither written nor read.
"""

from typing import Final

from ..on_demand import on_demand as _on_demand
from . import annotations as annotations
from ._script import (
    Attribute,
    ScriptFunction,
    ScriptModule,
    export_opnames,
    freeze,
    interface,
    load,
    optimize_for_inference,
    run_frozen_optimizations,
    save,
    script,
    script_method,
)
from ._script import RecursiveScriptModule as RecursiveScriptModule
from ._state import (
    enable_onednn_fusion,
    fork,
    is_scripting,
    onednn_fusion_enabled,
    optimized_execution,
    set_fusion_strategy,
    wait,
)
from ._trace import ONNXTracedModule as ONNXTracedModule
from ._trace import TopLevelTracedModule as TopLevelTracedModule
from ._trace import TracedModule as TracedModule
from ._trace import TracerWarning, is_tracing, trace, trace_module
from ._trace import TracingCheckError as TracingCheckError
from .frontend import NotSupportedError as NotSupportedError
from .frontend import UnsupportedNodeError as UnsupportedNodeError
from .marks import _drop as _drop
from .marks import _overload as _overload
from .marks import _overload_method as _overload_method
from .marks import annotate, export, ignore, script_if_tracing, unused

_fork, _wait = fork, wait  # torch's older names

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "export_opnames",
    "final",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "run_frozen_optimizations",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

final = Final
isinstance = isinstance
_script_if_tracing = script_if_tracing
strict_fusion = optimized_execution


class Error(RuntimeError):
    """What TorchScript raises in a function of its own; nothing here does."""


_LAZY = {name: name for name in ("annotations", "frontend", "_recursive", "_builtins")}
__getattr__ = _on_demand(globals(), _LAZY)
