"""How tensors are shown, by torch's inner names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ..core.printing import get_printoptions, printoptions, set_printoptions
from ..core.tensor import Tensor

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]


def __getattr__(name: str) -> Any:
    if name == "PRINT_OPTS":  # as they are now
        return SimpleNamespace(**get_printoptions())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _str(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """A tensor as it is shown."""
    return repr(self)


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """A tensor as it is shown."""
    return repr(inp)


def _tensor_str(self: Tensor, indent: int) -> str:
    r"""The elements of a tensor as they are shown, with later lines indented.

    >>> import undertow as ut
    >>> _tensor_str(ut.tensor([[1, 2], [3, 4]]), 1)
    '[[1, 2],\n [3, 4]]'
    """
    shown = repr(self.detach().cpu())
    depth, text = 0, shown[shown.index("(") + 1 :]
    for i, letter in enumerate(text):  # up to the bracket that closes the first one
        depth += (letter == "[") - (letter == "]")
        if depth == 0 and letter in "],)":
            text = text[: i + (letter == "]")]
            break
    head, *rest = text.split("\n")
    strip = len("tensor(")
    return "\n".join([head, *(" " * indent + line[strip:] if line else line for line in rest)])


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """The text of a tensor with what is said after its elements, at most 80 columns wide."""
    lines = [tensor_str]
    width = len(tensor_str) - tensor_str.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or width + len(suffix) + 2 > get_printoptions()["linewidth"]:
            lines.append(",\n" + " " * indent + suffix)
            width, force_newline = indent + len(suffix), False
        else:
            lines.append(", " + suffix)
            width += len(suffix) + 2
    return "".join([*lines, ")"])
