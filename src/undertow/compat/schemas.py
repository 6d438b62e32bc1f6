"""Schemas of operators: `lib::name(Tensor x, int[] k=[1, 1], *, float? eps=None) -> Tensor`.

`parse` reads one, `infer_schema` writes one from the annotations of a function.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from ast import literal_eval
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .. import dtypes
from ..core.tensor import Tensor
from ..devices import Device
from ..dtypes import DType
from ..errors import ArgumentError

__all__ = ["AliasInfo", "Argument", "FunctionSchema", "infer_schema", "parse"]

_HEAD = re.compile(r"\s*(?:([\w:]+?)(?:\.(\w*))?)?\s*\((.*)\)\s*->\s*(.*?)\s*$", re.DOTALL)
_ARGUMENT = re.compile(r"(\w+)\s*(\([^)]*\))?([?\[\]\d]*)\s*(\w+)?\s*(?:=\s*(.*))?$", re.DOTALL)
_REQUIRED = object()


@dataclass(frozen=True)
class AliasInfo:
    """Which memory an argument shares, and whether it is written."""

    before_set: frozenset[str]
    is_write: bool


@dataclass(frozen=True)
class Argument:
    """An argument or a result: its type as it is written, its name and its default."""

    type: str
    name: str = ""
    default_value: Any = None
    has_default: bool = False
    kwarg_only: bool = False
    alias_info: AliasInfo | None = None

    def has_default_value(self) -> bool:
        """Whether it may be left out."""
        return self.has_default

    @property
    def is_out(self) -> bool:
        """Whether it is where a result is written."""
        return self.kwarg_only and self.is_write

    @property
    def is_write(self) -> bool:
        """Whether it is changed."""
        return self.alias_info is not None and self.alias_info.is_write


@dataclass(frozen=True)
class FunctionSchema:
    """What an operator takes and returns.

    >>> s = parse("lib::scale(Tensor(a!) x, float by=2.0, *, int[] dims=[]) -> ()")
    >>> s.name, [a.name for a in s.arguments], s.arguments[1].default_value, s.is_mutable
    ('lib::scale', ['x', 'by', 'dims'], 2.0, True)
    """

    name: str
    overload_name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]
    text: str

    @property
    def is_mutable(self) -> bool:
        """Whether an argument is changed."""
        return any(a.is_write for a in self.arguments)

    def __str__(self) -> str:
        return self.text

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """All arguments, with defaults: those by position, and those by name only."""
        positional = [a for a in self.arguments if not a.kwarg_only]
        if len(args) > len(positional):
            raise ArgumentError(
                f"[{self.name}] takes {len(positional)} arguments by position, got {len(args)}; "
                f"its schema is {self}"
            )
        values: list[Any] = list(args)
        given = dict(kwargs)
        named = {}
        for i, argument in enumerate(self.arguments):
            if i < len(args):
                if argument.name in given:
                    raise ArgumentError(f"[{self.name}] got {argument.name} twice; see {self}")
                continue
            value = given.pop(argument.name, _REQUIRED)
            if value is _REQUIRED:
                if not argument.has_default:
                    raise ArgumentError(f"[{self.name}] {argument.name} is missing; see {self}")
                value = argument.default_value
            if argument.kwarg_only:
                named[argument.name] = value
            else:
                values.append(value)
        if given:
            raise ArgumentError(f"[{self.name}] has no argument {next(iter(given))!r}; see {self}")
        return values, named


def parse(text: str) -> FunctionSchema:
    """The schema that a text says."""
    found = _HEAD.match(text)
    if found is None:
        raise ArgumentError(f"[schema] expects 'name(Tensor x) -> Tensor', got {text!r}")
    name, overload, inside, out = found.groups()
    arguments, kwarg_only = [], False
    for part in _split(inside):
        if part == "*":
            kwarg_only = True
        else:
            arguments.append(_argument(part, kwarg_only))
    out = out[1:-1] if out.startswith("(") and out.endswith(")") else out
    returns = tuple(_argument(part, False) for part in _split(out))
    return FunctionSchema(name or "", overload or "", tuple(arguments), returns, text.strip())


def _split(text: str) -> list[str]:
    """The parts between commas that are in no brackets and no quotes."""
    parts, depth, quote, part = [], 0, "", ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        depth += 0 if quote else (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0 and not quote:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return [p for p in [*parts, part.strip()] if p]


def _argument(text: str, kwarg_only: bool) -> Argument:
    found = _ARGUMENT.match(text)
    if found is None:
        raise ArgumentError(
            f"[schema] cannot read the argument {text!r}; write 'type name=default'"
        )
    kind, alias, many, name, default = found.groups()
    shared = None
    if alias is not None:
        inside = alias[1:-1].partition("->")[0].strip()
        names = frozenset(n.strip() for n in inside.rstrip("!").split("|"))
        shared = AliasInfo(names, inside.endswith("!"))
    value = None if default is None else _default(default.strip(), kind, many)
    return Argument(kind + many, name or "", value, default is not None, kwarg_only, shared)


def _default(text: str, kind: str, many: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    try:
        value = literal_eval(text)
    except (ValueError, SyntaxError):
        found = getattr(dtypes, text, None)
        if isinstance(found, DType):
            return found
        raise ArgumentError(f"[schema] cannot read the default {text!r}") from None
    size = re.search(r"\[(\d+)\]", many)
    if size and not isinstance(value, list) and value is not None:
        return [value] * int(size.group(1))  # int[2] x=1
    if kind == "Device" and isinstance(value, str):
        return Device(value)
    return float(value) if kind == "float" and type(value) is int else value


_WORDS: dict[str, Any] = {
    "True": True,
    "False": False,
    "None": None,
    "inf": float("inf"),
    "Mean": 1,
    "Sum": 2,
}
_WORDS |= {"contiguous_format": None, "long": dtypes.int64}


# From annotations ---------------------------------------------------------------------------------
_KINDS: dict[Any, str] = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    DType: "ScalarType",
    Device: "Device",
}
# What an operator may take and return, as in torch.
_PARAMETERS = frozenset(
    """
    Tensor Tensor? Tensor[] Tensor?[] SymInt SymInt? SymInt[] SymInt[]? float float? float[]
    float[]? bool bool? bool[] bool[]? str str? ScalarType ScalarType? Device Device? Scalar
    Scalar? Scalar[]
    """.split()  # noqa: SIM905
)
_RESULTS = frozenset({"Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar"})


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """The schema that the annotations of a function say.

    >>> import undertow as ut
    >>> def pick(x: ut.Tensor, at: list[int], eps: float | None = None) -> ut.Tensor: ...
    >>> infer_schema(pick, mutates_args=())
    '(Tensor x, SymInt[] at, float? eps=None) -> Tensor'
    """
    try:
        signature = inspect.signature(prototype_function, eval_str=True)
    except NameError as error:
        raise ArgumentError(
            f"[infer_schema] an annotation names what is not there: {error}"
        ) from None
    changed = mutates_args if isinstance(mutates_args, str) else set(mutates_args)
    if isinstance(changed, str) and changed != "unknown":
        raise ArgumentError(
            f"[infer_schema] mutates_args is a list of names or 'unknown', got {changed!r}"
        )
    unknown = set() if isinstance(changed, str) else changed - set(signature.parameters)
    if unknown:
        raise ArgumentError(f"[infer_schema] mutates_args names {sorted(unknown)}, see {signature}")
    parts, starred = [], False
    for i, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ArgumentError(
                f"[infer_schema] {name} must be an argument by name, see {signature}"
            )
        if parameter.kind == parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        if parameter.annotation is parameter.empty:
            raise ArgumentError(f"[infer_schema] {name} needs a type annotation, see {signature}")
        kind = _kind(parameter.annotation, name, _PARAMETERS)
        if (changed == "unknown" and kind.startswith("Tensor")) or name in changed:
            if not kind.startswith("Tensor"):
                raise ArgumentError(f"[infer_schema] {name} is no tensor and cannot be changed")
            kind = f"Tensor(a{i}!){kind[len('Tensor') :]}"
        text = f"{kind} {name}"
        if parameter.default is not parameter.empty:
            text += f"={_written(parameter.default, name)}"
        parts.append(text)
    returned = signature.return_annotation
    if returned is signature.empty:
        raise ArgumentError(f"[infer_schema] the result needs a type annotation, see {signature}")
    if returned is None or returned is types.NoneType:
        out = "()"
    elif typing.get_origin(returned) is tuple:
        kinds = [_kind(k, "the result", _RESULTS) for k in typing.get_args(returned)]
        out = f"({', '.join(kinds)})"
    else:
        out = _kind(returned, "the result", _RESULTS)
    return f"{op_name or ''}({', '.join(parts)}) -> {out}"


def _kind(annotation: Any, name: str, allowed: frozenset[str]) -> str:
    """The notation of a type, if it is one of those that are allowed."""
    found = _notation(annotation)
    if found in allowed:
        return found
    if typing.get_origin(annotation) is tuple:
        raise ArgumentError(f"[infer_schema] {name} is a tuple; write list[…] instead")
    raise ArgumentError(
        f"[infer_schema] {name} has the type {annotation}; it can be one of {sorted(allowed)}"
    )


def _notation(annotation: Any) -> str:
    """A type as schemas write it; empty if they have no word for it."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, typing.Hashable) and annotation in _KINDS:
        return _KINDS[annotation]
    if origin in (typing.Union, types.UnionType):
        kept = [k for k in inner if k is not types.NoneType]
        option = "?" if len(kept) < len(inner) else ""
        if set(kept) == {int, float, bool}:
            return f"Scalar{option}"
        return f"{_notation(kept[0])}{option}" if len(kept) == 1 else ""
    if origin in (list, typing.get_origin(typing.Sequence[int])) and len(inner) == 1:
        return f"{_notation(inner[0])}[]"
    return ""


def _written(value: Any, name: str) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, (str, Device)):
        return f'"{value}"'
    if isinstance(value, DType):
        return value.name
    raise ArgumentError(f"[infer_schema] {name} has the default {value!r}, which has no notation")
