"""A graph as the source of a Python function."""

from __future__ import annotations

import enum
import math
import re
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...core.tensor import Tensor
from ...devices import device
from ...utils import _pytree as pytree
from . import _pytree as fx_pytree
from .namespace import _illegal_names, _Namespace
from .naming import package, public_path, qualified_name, type_name, value_text
from .node import Node
from .operators import inplace_methods, magic_methods

TransformCodeFunc = Callable[[list[str]], list[str]]

_TYPING_NAMES: dict[Any, Any] = {
    list: typing.List,  # noqa: UP006
    dict: typing.Dict,  # noqa: UP006
    set: typing.Set,  # noqa: UP006
    frozenset: typing.FrozenSet,  # noqa: UP006
    tuple: typing.Tuple,  # noqa: UP006
}
_COUNTER = re.compile(r"# COUNTER: (\d+)")
_STACK_LINE = re.compile(r"^File \"(.+)\", line (\d+), in (.+)$")


class _CustomBuiltin(NamedTuple):
    """A name that all generated code has, and how a file would import it."""

    import_str: str
    obj: Any


_HOME = __name__.partition(".")[0]
_custom_builtins: dict[str, _CustomBuiltin] = {
    "inf": _CustomBuiltin("from math import inf", math.inf),
    "nan": _CustomBuiltin("from math import nan", math.nan),
    "NoneType": _CustomBuiltin("NoneType = type(None)", type(None)),
    "torch": _CustomBuiltin(f"import {_HOME} as torch", package()),
    "device": _CustomBuiltin(f"from {_HOME} import device", device),
    "fx_pytree": _CustomBuiltin(f"import {_HOME}.fx._pytree as fx_pytree", fx_pytree),
    "pytree": _CustomBuiltin(f"import {_HOME}.utils._pytree as pytree", pytree),
}
_illegal_names.update((name, builtin.obj) for name, builtin in _custom_builtins.items())


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    """Give all generated code one more name."""
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)
    _illegal_names[name] = obj


@dataclass
class PythonCode:
    """The source of a function, and the globals that it needs."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


class _PyTreeInfo(NamedTuple):
    """The containers that a function takes and returns, when its graph has only their leaves."""

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


def _format_target(base: str, target: str) -> str:
    """`base.a.b`; a name that is none is asked for with getattr."""
    for name in target.split("."):
        base = f"{base}.{name}" if name.isidentifier() else f'getattr({base}, "{name}")'
    return base


def stack_summary(trace: str | None) -> str:
    """The innermost line of a stack trace."""
    lines = (trace or "").strip().split("\n")
    for i in range(len(lines) - 2, -1, -1):
        found = _STACK_LINE.match(lines[i].strip())
        if found:
            file, number, name = found.groups()
            return f"File: {file}:{number} in {name}, code: {lines[i + 1].strip()}"
    return "No stacktrace found for following nodes"


class CodeGen:
    """How a graph becomes code; subclass it to write another signature or another return.

    >>> import undertow as ut
    >>> graph = ut.fx.symbolic_trace(lambda x: x + 1).graph
    >>> print(graph.python_code("self").src.strip())
    def forward(self, x):
        add = x + 1;  x = None
        return add
    """

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line `def forward(self, …):`."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """The line `return …`."""
        return f"return {value_repr(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """What the inputs of the function are as inputs of the graph."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What the output of the graph is as output of the function."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Further names that the code needs."""
        return []

    def _gen_python_code(
        self,
        nodes: Iterable[Node],
        root_module: str,
        namespace: _Namespace,
        *,
        verbose: bool = False,
        **options: Any,
    ) -> PythonCode:
        writer = _Writer(self, root_module, namespace, verbose, options)
        return writer.write(list(nodes))


def value_repr(value: Any) -> str:
    """A value, possibly of nodes, as code without any globals."""
    return _Writer(CodeGen(), "self", _Namespace(), False, {}).text(value)


class _Writer:
    """The code of one graph while it is written."""

    def __init__(
        self,
        codegen: CodeGen,
        root: str,
        namespace: _Namespace,
        verbose: bool,
        options: dict[str, Any],
    ) -> None:
        self.codegen = codegen
        self.root = root
        self.namespace = namespace
        self.verbose = verbose
        self.options = options
        self.globals: dict[str, Any] = {}
        self.inputs: list[str] = []
        self.body: list[str] = []
        self.wrapped: dict[str, None] = {}
        self.returns = ""

    # Names and values ---------------------------------------------------------------------------
    def name(self, hint: str, obj: Any) -> str:
        """How the code calls an object: by its place in the library, or as a global."""
        if obj is not device:
            path = public_path(obj)
            if path is not None:
                return path
        name = self.namespace.create_name(hint, obj)
        self.globals.setdefault(name, obj)
        return name

    def type(self, kind: Any) -> str:
        """How the code writes a type."""
        if kind == ():
            return "()"
        if isinstance(kind, types.UnionType):
            return "|".join(self.type(a) for a in typing.get_args(kind))
        origin = getattr(kind, "__origin__", None)
        if origin is None:
            return self.name(type_name(kind), kind)
        if isinstance(kind, typing._GenericAlias):  # type: ignore[attr-defined]
            origin = _TYPING_NAMES.get(origin, origin)
        name = self.name(type_name(origin), origin)
        args = kind.__args__ if hasattr(kind, "dims") else typing.get_args(kind)
        return f"{name}[{','.join(self.type(a) for a in args)}]" if args else name

    def text(self, value: Any) -> str:
        """How the code writes an argument."""
        if isinstance(value, Node):
            return repr(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            kind = self.name(qualified_name(type(value)), type(value))
            return kind + self.text(tuple(value))
        if isinstance(value, enum.Enum):
            return f"{self.name(type(value).__name__, type(value))}.{value.name}"
        if isinstance(value, Tensor):
            dtype = str(value.dtype).rpartition(".")[2]
            return f"torch.Tensor(size={list(value.shape)}, dtype={dtype})"
        if isinstance(value, tuple):
            inner = ", ".join(self.text(v) for v in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if isinstance(value, list):
            return f"[{', '.join(self.text(v) for v in value)}]"
        if isinstance(value, dict):
            inner = ", ".join(f"{self.text(k)}: {self.text(v)}" for k, v in value.items())
            return f"{{{inner}}}"
        if isinstance(value, slice):
            parts = [self.text(v) for v in (value.start, value.stop, value.step)]
            return f"slice({', '.join(parts)})"
        if isinstance(value, type) or callable(value):
            return self.name(qualified_name(value), value)
        return value_text(value)

    def call(self, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
        """What stands between the parentheses of a call."""
        given = [self.text(a) for a in args]
        return ", ".join([*given, *[f"{k} = {self.text(v)}" for k, v in kwargs.items()]])

    # One node -----------------------------------------------------------------------------------
    def line(self, node: Node) -> None:
        """Add the code of a node, without the end of its line."""
        name = repr(node) + self.annotation(node)
        if node.op == "placeholder":
            default = f" = {self.text(node.args[0])}" if node.args else ""
            self.inputs.append(f"{node.target}{self.annotation(node)}{default}")
            raw = node.target.replace("*", "")
            if raw != repr(node):
                self.body.append(f"{node!r} = {raw}\n")
        elif node.op == "call_method":
            method = _format_target(self.text(node.args[0]), node.target)
            self.body.append(f"{name} = {method}({self.call(node.args[1:], node.kwargs)})")
        elif node.op == "call_module":
            module = _format_target(self.root, node.target)
            self.body.append(f"{name} = {module}({self.call(node.args, node.kwargs)})")
        elif node.op == "get_attr":
            self.body.append(f"{name} = {_format_target(self.root, node.target)}")
        elif node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.type(node.type)}"
            self.body.append(self.codegen.generate_output(_Shown.of(self, node.args[0])))
        else:
            self.body.append(self.function(node, name))

    def function(self, node: Node, name: str) -> str:
        """The call of a function, as an operator where it is one."""
        target = node.target
        if getattr(target, "__module__", "") == "_operator":
            form = magic_methods.get(target.__name__)
            if form:
                return f"{name} = {form.format(*[self.text(a) for a in node.args])}"
            form = inplace_methods.get(target.__name__)
            if form:
                done = form.format(*[self.text(a) for a in node.args])
                return f"{done};  {name} = {self.text(node.args[0])}"
        called = self.name(qualified_name(target), target)
        if (
            called == "getattr"
            and len(node.args) == 2
            and isinstance(node.args[1], str)
            and node.args[1].isidentifier()
        ):
            return f"{name} = {_format_target(self.text(node.args[0]), node.args[1])}"
        if node.meta.get("is_wrapped", False):
            self.wrapped[called] = None
        return f"{name} = {called}({self.call(node.args, node.kwargs)})"

    def annotation(self, node: Node) -> str:
        """The type of a node; for people, the dtype and shape that are known of it."""
        if self.verbose and node.op != "output":
            value = node.meta.get("val", node.meta.get("tensor_meta"))
            if value is not None and hasattr(value, "shape") and hasattr(value, "dtype"):
                shape = ", ".join(map(str, value.shape))
                stride = where = ""
                if isinstance(value, Tensor):
                    if self.options.get("include_stride"):
                        stride = f"[{', '.join(map(str, value.stride()))}]"
                    if self.options.get("include_device"):
                        where = str(value.device)
                return f': "{dtype_abbr(value.dtype)}[{shape}]{stride}{where}"'
        return "" if node.type is None else f" : {self.type(node.type)}"

    # The function -------------------------------------------------------------------------------
    def write(self, nodes: list[Node]) -> PythonCode:
        """The whole function."""
        for name, builtin in _custom_builtins.items():
            self.namespace.create_name(name, builtin.obj)
            self.globals[name] = builtin.obj
        last_uses = _last_uses(nodes)
        summary = None
        for i, node in enumerate(nodes):
            if self.verbose and node.op not in ("placeholder", "output"):
                told = f"\n# {stack_summary(node.stack_trace)}\n"
                if told != summary:
                    self.body.append(told)
                summary = told
            self.body.append(f"# COUNTER: {i}\n")
            self.line(node)
            if node.op != "placeholder":
                gone = [] if node.op == "output" else last_uses.get(node, [])
                if not node.users and node.op != "output":
                    gone = [*gone, node]
                ends = " = ".join([*map(repr, gone), "None"])
                self.body.append(f";  {ends}\n" if gone else "\n")
        if not self.body:
            self.body.append("pass\n")
        wraps = ""
        if self.wrapped:
            from ._symbolic_trace import wrap

            wrapper = self.name("wrap", wrap)
            wraps = "\n".join(f'{wrapper}("{name}")' for name in self.wrapped)
        if self.codegen._body_transformer:
            self.body = self.codegen._body_transformer(self.body)
        for name, value in self.codegen.additional_globals():
            self.name(name, value)
        prologue = self.codegen.gen_fn_def(self.inputs, self.returns)
        first = prologue.count("\n") + 1
        numbers: dict[int, int | None] = {}
        lines: list[str] = []
        current = None
        for line in "".join(self.body).split("\n"):
            counter = _COUNTER.search(line)
            if counter:
                current = int(counter.group(1))
            else:
                numbers[len(lines) + first] = current
                lines.append(line)
        text = "\n".join(lines).lstrip("\n")
        if not text.strip():
            text = "pass\n"
        text = "\n".join(f"    {line}" for line in text.split("\n"))
        source = f"\n{wraps}\n\n{prologue}\n{text}"
        return PythonCode(source, self.globals, numbers, wraps.count("\n") + 4)


class _Shown:
    """Something whose repr is code that was written already."""

    def __init__(self, text: str) -> None:
        self.shown = text

    def __repr__(self) -> str:
        return self.shown

    @staticmethod
    def of(writer: _Writer, value: Any) -> Any:
        """A value as `CodeGen.generate_output` gets it: containers stay, leaves know their text."""
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return tuple(_Shown.of(writer, v) for v in value)
        if type(value) is list or type(value).__name__ == "immutable_list":
            return [_Shown.of(writer, v) for v in value]
        return value if isinstance(value, Node) else _Shown(writer.text(value))


def _last_uses(nodes: list[Node]) -> dict[Node, list[Node]]:
    """Which values are used for the last time by each node."""
    last: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for node in reversed(nodes):
        for used in node._input_nodes:
            if used not in seen:
                seen.add(used)
                last.setdefault(node, []).append(used)
    return last


def dtype_abbr(dtype: Any) -> str:
    """The short name of a dtype: f32, i64, b8 …"""
    name = str(dtype).rpartition(".")[2]
    if name in ("bool", "bfloat16"):
        return {"bool": "b8", "bfloat16": "bf16"}[name]
    for long, short in (("complex", "c"), ("float", "f"), ("uint", "u"), ("int", "i")):
        if name.startswith(long):
            return short + name[len(long) :]
    return name


class _PyTreeCodeGen(CodeGen):
    """Code of a function whose arguments are containers, and whose graph has their leaves."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        """The leaves of the inputs."""
        return pytree.tree_leaves(inputs)

    def process_outputs(self, out: Any) -> Any:
        """The outputs in their containers."""
        if self.pytree_info.out_spec is None:
            return out
        listed = out if isinstance(out, (list, tuple)) else [out]
        return pytree.tree_unflatten(listed, self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The signature, and the line that takes the arguments apart."""
        names = list(self.pytree_info.orig_args)
        if names and names[0] == "self":
            free_vars.insert(0, "self")
        # A leaf that is an argument by itself has its default in the signature.
        values = [v.partition(" = ") for v in free_vars]
        defaults = {v.split(" : ")[0]: default for v, _, default in values if default}
        signed = [f"{n} = {defaults[n]}" if n in defaults else n for n in names]
        head = super().gen_fn_def(signed, maybe_return_annotation)
        if not free_vars:
            return head
        given = f"[{', '.join(names)}], self._in_spec"
        spec = self.pytree_info.in_spec
        kinds = [c.type for c in spec.children_specs]
        if spec.type is tuple and kinds == [tuple, dict]:  # (args, kwargs)
            count = len(spec.children_specs[0].children_specs)
            keys = zip(spec.children_specs[1].context, names[count:], strict=False)
            words = ", ".join(f"'{k}':{v}" for k, v in keys)
            given = f"([{', '.join(names[:count])}], {{{words}}}), self._in_spec"
        typed = [v for v, _, _ in values if ":" in v]
        if typed:
            head += "\n    " + "".join(f"{v}; " for v in typed) + "\n"
        bare = ", ".join(v.split(":")[0].strip() for v, _, _ in values)
        return f"{head}\n    {bare}, = fx_pytree.tree_flatten_spec({given})"

    def generate_output(self, output_args: Any) -> str:
        """The return, with the outputs put into their containers."""
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args)
        return f"return pytree.tree_unflatten({value_repr(output_args)}, self._out_spec)"


class _BoxedCodeGen(CodeGen):
    """Code that takes its inputs in one list, which it empties."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The signature, and the lines that take the list apart."""
        head = f"def {self._func_name}(self, args_list){maybe_return_annotation}:"
        names = [v.split(":")[0].split("=")[0].strip() for v in free_vars if v != "self"]
        if names:
            head += "\n    args_iter = iter(args_list)"
            head += "".join(f"\n    {name} = next(args_iter)" for name in names)
            head += "\n    args_list.clear()"
        return head
