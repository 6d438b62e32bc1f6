"""Functions of functions: branches, loops and scans, run as Python runs them.

Each is differentiable to any order, since what runs is ordinary ops; arguments and results may be
nested containers of tensors.
"""

from .associative_scan import associative_scan
from .cond import cond
from .flex_attention import flex_attention
from .map import map
from .refused import (
    auto_functionalized,
    auto_functionalized_v2,
    call_torchbind,
    invoke_subgraph,
    run_const_graph,
    with_effects,
)
from .scan import scan
from .strict_mode import strict_mode
from .while_loop import while_loop

__all__ = [
    "associative_scan",
    "auto_functionalized",
    "auto_functionalized_v2",
    "call_torchbind",
    "cond",
    "flex_attention",
    "invoke_subgraph",
    "map",
    "run_const_graph",
    "scan",
    "strict_mode",
    "while_loop",
    "with_effects",
]
