"""Names that a checkpoint may mention beyond tensors and plain data, because the user said so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from types import ModuleType, TracebackType
from typing import Any

from ..errors import DTypeError

# A class or function, which goes by its own name, or that with the name that files use for it.
SafeGlobal = Callable[..., Any] | tuple[Callable[..., Any], str] | ModuleType
_allowed: list[SafeGlobal] = []
_lock = Lock()


def add_safe_globals(safe_globals: Iterable[SafeGlobal]) -> None:
    """Let `ut.load` call these classes and functions where a file names them.

    They are run with whatever the file gives them: allow only what does no harm. Where a file uses
    another name, give a pair: `(np._core.multiarray.scalar, "numpy.core.multiarray.scalar")`. A
    module or package stands for all classes and functions in it, in files that are read with
    `weights_only=False`: these may import its modules and call any of them.

    >>> import fractions
    >>> import undertow as ut
    >>> ut.serialization.add_safe_globals([fractions.Fraction])
    >>> ut.serialization.get_safe_globals()
    [<class 'fractions.Fraction'>]
    >>> ut.serialization.clear_safe_globals()
    """
    added = list(safe_globals)
    for entry in added:
        if not isinstance(entry, ModuleType):
            _named(entry)
    with _lock:
        _allowed.extend(added)


def get_safe_globals() -> list[SafeGlobal]:
    """What `add_safe_globals` has allowed."""
    with _lock:
        return list(dict.fromkeys(_allowed))


def clear_safe_globals() -> None:
    """Allow nothing beyond tensors and plain data any more."""
    with _lock:
        _allowed.clear()


class safe_globals:
    """`add_safe_globals` inside a `with` block.

    >>> import fractions
    >>> import undertow as ut
    >>> with ut.serialization.safe_globals([fractions.Fraction]):
    ...     print(len(ut.serialization.get_safe_globals()))
    1
    """

    def __init__(self, safe_globals: Iterable[SafeGlobal]) -> None:
        self._added = list(safe_globals)

    def __enter__(self) -> None:
        add_safe_globals(self._added)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with _lock:
            for entry in self._added:
                if entry in _allowed:
                    _allowed.remove(entry)


def _named(entry: Any) -> tuple[str, Any]:
    """The name that files use, and what it means."""
    if isinstance(entry, tuple):
        if len(entry) == 2 and callable(entry[0]) and isinstance(entry[1], str):
            return entry[1], entry[0]
    elif callable(entry) and hasattr(entry, "__qualname__"):
        return f"{entry.__module__}.{entry.__qualname__}", entry
    raise DTypeError(
        "[add_safe_globals] takes classes and functions, pairs of one and the name that files use "
        f"for it, and modules, got {entry!r}"
    )


def allowed_names() -> dict[str, Any]:
    """What is allowed, by name."""
    return dict(_named(entry) for entry in get_safe_globals() if not isinstance(entry, ModuleType))


def allowed_modules() -> list[str]:
    """Modules in which everything is allowed to files that are read with `weights_only=False`."""
    return [entry.__name__ for entry in get_safe_globals() if isinstance(entry, ModuleType)]
