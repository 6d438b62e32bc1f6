"""`Node`: one step of a graph: an input, an attribute, a call, or the output."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.tensor import Tensor
from ...devices import device
from ...dtypes import DType
from ...layouts import layout, memory_format
from .immutable_collections import immutable_dict, immutable_list
from .naming import qualified_name as _get_qualified_name
from .naming import shown_target, value_text
from .naming import type_name as _type_repr

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

Argument = Any
Target = Any
base_types = (str, int, float, bool, complex, DType, Tensor, device, memory_format, layout)
F = TypeVar("F", bound=Callable[..., Any])

_OPS = (
    *("placeholder", "call_method", "call_module", "call_function", "get_attr", "output"),
    "root",
)
_side_effectful_functions: set[Callable[..., Any]] = {operator.setitem}


def has_side_effect(fn: F) -> F:
    """Say that calls of a function must stay even if nobody uses their result.

    >>> import undertow as ut
    >>> ut.fx.has_side_effect(print) is print
    True
    """
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """`fn` of everything in nested tuples, lists, dictionaries and slices, in containers alike.

    >>> from undertow.fx.node import map_aggregate
    >>> map_aggregate((1, [2, {"a": 3}]), lambda n: n + 1)
    (2, [3, {'a': 4}])
    """
    if isinstance(a, tuple):
        values = [map_aggregate(v, fn) for v in a]
        return type(a)(*values) if hasattr(a, "_fields") else tuple(values)
    if isinstance(a, list):
        return immutable_list([map_aggregate(v, fn) for v in a])
    if isinstance(a, dict):
        return immutable_dict({k: map_aggregate(v, fn) for k, v in a.items()})
    if isinstance(a, slice):
        return slice(*[map_aggregate(v, fn) for v in (a.start, a.stop, a.step)])
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """`map_aggregate` of the nodes; everything else stays."""
    if not callable(fn):
        raise AssertionError("[fx.map_arg] fn must be callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


class Node:
    """One step of a graph.

    `op` says what it does: "placeholder" (an input), "get_attr" (a parameter or buffer),
    "call_function", "call_method", "call_module", or "output". `target` is the function, or the
    name of the input, attribute, method or module; `args` and `kwargs` are what it is given, in
    which other nodes stand for their values. `users` are the nodes that have it in theirs.

    >>> import undertow as ut
    >>> graph = ut.fx.symbolic_trace(lambda x: x.relu()).graph
    >>> [(n.op, n.name, list(n.users)) for n in graph.nodes]
    [('placeholder', 'x', [relu]), ('call_method', 'relu', [output]), ('output', 'output', [])]
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in _OPS:
            raise AssertionError(f"[fx.Node] {op!r} is none of {_OPS}")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target).__name__} but a Callable is expected"
            )
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target).__name__} but a str is expected"
            )
        self.graph = graph
        self._name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.meta: dict[str, Any] = {}
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev: Node = self
        self._next: Node = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._update_args_kwargs(args, kwargs)

    # In the list of its graph -----------------------------------------------------------------
    @property
    def next(self) -> Node:
        """The node behind it."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before it."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Put `x`, which may stand elsewhere in the graph, right before this node."""
        if x.graph is not self.graph:
            raise AssertionError("[Node.prepend] attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        self.graph._order = None

    def append(self, x: Node) -> None:
        """Put `x` right behind this node."""
        if self._next is not x:
            self._next.prepend(x)

    def _remove_from_list(self) -> None:
        # Its own two stay, so that whoever stands on it while it is erased can walk on.
        self._prev._next, self._next._prev = self._next, self._prev
        self.graph._order = None

    @property
    def _sort_key(self) -> int:
        return self.graph._position(self)

    def __lt__(self, other: Node) -> bool:
        return self._sort_key < other._sort_key

    def __gt__(self, other: Node) -> bool:
        return self._sort_key > other._sort_key

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    # Its name ---------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        """The name of its value in the code."""
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
            for user in self.users:
                hook(old=self, new=value, user=user)
        self._name = value

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)

    # What it is given -------------------------------------------------------------------------
    @property
    def args(self) -> tuple[Any, ...]:
        """Positional arguments; assign a new tuple to change them."""
        return self._args

    @args.setter
    def args(self, a: tuple[Any, ...]) -> None:
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """Keyword arguments; assign a new dictionary to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._update_args_kwargs(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes in its arguments, each once."""
        return list(self._input_nodes)

    def _update_args_kwargs(self, args: Any, kwargs: Any) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def used(n: Node) -> Node:
            self._input_nodes[n] = None
            n.users[self] = None
            return n

        self._args: tuple[Any, ...] = map_arg(tuple(args), used)
        self._kwargs: dict[str, Any] = map_arg(dict(kwargs), used)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace one positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Put a positional argument before the one at `idx`."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(
                f"[Node.insert_arg] idx must be between 0 and {len(self.args)}, got {idx}"
            )
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Replace or add one keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take `new_input` wherever `old_input` stands in the arguments."""
        for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
            hook(old=old_input, new=new_input.name, user=self)
        self._replace_input_with(old_input, new_input)

    def _replace_input_with(self, old: Node, new: Node) -> None:
        def swap(n: Node) -> Node:
            return new if n is old else n

        self._update_args_kwargs(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let the users take `replace_with` instead of this node; which of them did."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "[Node.replace_all_uses_with] replace_with already has .meta keys, which "
                    "propagate_meta=True would overwrite"
                )
            replace_with.meta.update(self.meta)
        changed = [u for u in self.users if delete_user_cb is None or delete_user_cb(u)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # What is known of it ------------------------------------------------------------------------
    @property
    def stack_trace(self) -> str | None:
        """Where the user's program asked for it, if the tracer recorded that."""
        trace: str | None = self.meta.get("stack_trace")
        return trace

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it must stay even if nobody uses it: inputs, the output, and side effects."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("[Node.is_impure] the graph has no owning_module")
            return bool(getattr(owner.get_submodule(self.target), "_is_impure", False))
        if self.op == "call_function":
            name = getattr(self.target, "__name__", "")
            makes_noise = name in _RANDOM and _get_qualified_name(self.target).startswith("torch")
            return (
                self.target in _side_effectful_functions
                or (impure_random and makes_noise)
                or _changes_in_place(self.target, name)
                or _schema_says_so(self.target)
            )
        return False

    def normalized_arguments(
        self,
        root: Any,
        arg_types: Any = None,
        kwarg_types: Any = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """The arguments held against the signature of the target; None if that is unknown."""
        from .operator_schemas import normalize_function, normalize_module

        only = normalize_to_only_use_kwargs
        if self.op == "call_function":
            return normalize_function(
                self.target, self.args, self.kwargs, arg_types, kwarg_types, only
            )
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs, only)
        return None

    # As text ------------------------------------------------------------------------------------
    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        return shown_target(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node as one line of a printed graph."""
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        kind = f"{_type_repr(self.type)} " if self.type is not None else ""
        users = f"[num_users={len(self.users)}]"
        if self.op == "placeholder":
            if placeholder_names:
                placeholder_names.append(f"{self.target}: {kind}" if kind else self.target)
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {kind}{users} = {self.op}[target={self.target}]{default}"
        target = self._pretty_print_target(self.target)
        if self.op == "get_attr":
            return f"%{self.name} : {kind}{users} = {self.op}[target={target}]"
        args, kwargs = _format_arg(self.args), _format_arg(self.kwargs)
        value = self.meta.get("val", self.meta.get("example_value"))
        if include_tensor_metadata and isinstance(value, Tensor):
            kind = f'Tensor "{value.dtype}{list(value.shape)}{list(value.stride())}{value.device}"'
        return (
            f"%{self.name} : {kind}{users} = {self.op}[target={target}]"
            f"(args = {args}, kwargs = {kwargs})"
        )


# Functions of torch that draw numbers: calls of these are not dead code.
_RANDOM = frozenset(
    """
    bernoulli multinomial normal poisson rand rand_like randint randint_like randn randn_like
    randperm
    """.split()  # noqa: SIM905
)


def _schema_says_so(target: Any) -> bool:
    """Whether an operator of `library` writes into its arguments."""
    schema = vars(target).get("_schema") if hasattr(target, "__dict__") else None
    return schema is not None and bool(schema.is_mutable)


def _changes_in_place(target: Any, name: str) -> bool:
    """Whether a function of the library's writes into its arguments: its name says so."""
    name = name.partition(".")[0]  # of an operator's overload
    if not name.endswith("_") or name.endswith("__"):
        return False
    return _get_qualified_name(target).startswith("torch.")


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    """An argument as a printed graph shows it."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return str(arg._custom_fx_repr_fn())
    if isinstance(arg, (list, tuple)):
        shown = [_format_arg(a) for i, a in enumerate(arg) if i < max_list_len]
        comma = "," if isinstance(arg, tuple) and len(arg) == 1 else ""
        more = "" if len(arg) < max_list_len + 1 else f", ...[total_len={len(arg)}]"
        text = ", ".join(shown) + comma + more
        return f"({text})" if isinstance(arg, tuple) else f"[{text}]"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    if isinstance(arg, Node):
        return f"%{arg}"
    return arg if isinstance(arg, str) else value_text(arg)
