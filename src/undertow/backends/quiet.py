"""Silencing NumPy's floating-point warnings, cheaply.

`np.errstate` costs about a microsecond, as much as a small op. Where NumPy has the context variable
behind it, setting that directly costs a tenth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    from numpy._core.umath import _extobj_contextvar, _make_extobj

    silent: Any = _make_extobj(all="ignore")
    hush: Any = _extobj_contextvar.set
    unhush: Any = _extobj_contextvar.reset
    unhush(hush(silent))
except (ImportError, TypeError):  # another NumPy: the public way
    silent = None

    def hush(_: Any) -> Any:
        """Silence warnings; pass the result to `unhush`."""
        state = np.errstate(all="ignore")
        state.__enter__()
        return state

    def unhush(token: Any) -> None:
        """Undo `hush`."""
        token.__exit__(None, None, None)
