"""Nodes of the recorded graph: what made a tensor, from what, and what its derivative needs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..backends.locks import Lock
from ..dtypes import DType, of_array
from ..errors import DTypeError, FreedError, GradientError, VersionError
from .modes import current
from .recording import changed

if TYPE_CHECKING:
    from .plan import Plan
    from .tensor import Tensor

Meta = tuple[tuple[int, ...], Any]  # the shape and NumPy dtype of an output


class Hooks:
    """The hooks of one node, made when the first one is registered.

    `tensor` maps an output number to the hooks on that output's gradient, in order; `pre` and
    `post` are hooks on the node. Each is a dict from a handle's key to the callable.
    """

    __slots__ = ("capture", "post", "pre", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, dict[int, Callable[..., Any]]] = {}
        self.capture: dict[int, weakref.ref[Tensor]] = {}  # retain_grad: after tensor hooks
        self.pre: dict[int, Callable[..., Any]] = {}
        self.post: dict[int, Callable[..., Any]] = {}


class RemovableHandle:
    """Returned by every `register_…hook`; `remove()` takes the hook away again."""

    __slots__ = ("_hooks", "id")
    _count = 0

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        if not callable(hook):
            raise DTypeError(f"[register_hook] a hook is callable, got {type(hook).__name__}")
        RemovableHandle._count += 1
        self.id = RemovableHandle._count
        self._hooks = hooks
        hooks[self.id] = hook
        changed()

    def remove(self) -> None:
        """Take the hook away; doing it twice is harmless."""
        self._hooks.pop(self.id, None)
        changed()

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Node:
    """One recorded operation. `parents[i]` made input i (None: no gradient wanted there)."""

    __slots__ = (
        "__weakref__",
        "_dtype",
        "_metadata",
        "_metas",
        "_origins",
        "_shape",
        "hooks",
        "indices",
        "parents",
        "plan",
        "saved",
        "sequence",
        "site",
        "versions",
    )

    plan: Plan
    parents: tuple[Node | None, ...]
    indices: tuple[int, ...]  # which output of parents[i] input i was
    saved: Any  # what the plan names, in its order; None once freed
    versions: tuple[int, ...] | None  # of the saved tensors, when one had been changed by then
    _shape: tuple[int, ...] | None  # of its output; None where it has not just one
    _dtype: Any
    _metas: tuple[Meta, ...]  # where it has not just one
    hooks: Hooks | None
    site: Any  # the forward stack, in anomaly mode
    sequence: int  # the number of the call that made it; only while a profiler is on
    _origins: tuple[Node, ...]  # of a derivative: the roots it is one of; see Note [zeros]
    runs_empty = False  # whether the rule runs though no gradient has arrived
    in_order = (
        False  # whether other processes wait for it, in an order that threads must not change
    )
    adapts = False  # whether gradients of the rule are summed and cast until they fit

    def _begin(
        self,
        parents: tuple[Node | None, ...] = (),
        indices: tuple[int, ...] = (),
        metas: tuple[Meta, ...] = (),
    ) -> None:
        """What `__init__` is to other kinds of nodes; see `new_node`."""
        self.parents = parents
        self.indices = indices
        self.metas = metas
        self.saved = ()
        self.versions = self.hooks = self.site = None

    @property
    def metas(self) -> tuple[Meta, ...]:
        """The shape and dtype of each output."""
        return self._metas if self._shape is None else ((self._shape, self._dtype),)

    @metas.setter
    def metas(self, metas: tuple[Meta, ...]) -> None:
        self._shape, self._dtype = metas[0] if len(metas) == 1 else (None, None)
        self._metas = metas

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The parent node and its output number for each input, as in torch."""
        return tuple(zip(self.parents, self.indices, strict=True))

    def name(self) -> str:
        """torch's manner of naming: `MulBackward0`."""
        return "".join(p.capitalize() for p in self.plan.op.name.split("_") if p) + "Backward0"

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict of the user's own, kept as long as the node."""
        try:
            return self._metadata
        except AttributeError:  # no constructor makes one
            self._metadata: dict[Any, Any] = {}
            return self._metadata

    def _place(self, attribute: str, word: str) -> int:
        """Which of the saved values torch calls so; AttributeError if it is none of them."""
        plan: Any = getattr(self, "plan", None)
        place: int | None = None if plan is None else plan.place(word)
        if place is None or (attribute[1] == "r" and place not in plan.tensors):
            raise AttributeError(
                f"{self.__class__.__name__!r} object has no attribute {attribute!r}"
            )
        return place

    def __dir__(self) -> list[str]:
        """Without the names of what other nodes save; see `name_saved`."""
        names = []
        for name in super().__dir__():
            try:
                if name in _SAVED:
                    self._place(name, _SAVED[name])
                names.append(name)
            except AttributeError:
                pass
        return names

    @property
    def _input_metadata(self) -> list[Any]:
        """The shape and dtype of each gradient that arrives here."""
        from types import SimpleNamespace

        return [
            SimpleNamespace(shape=tuple(shape), dtype=of_array(dtype))
            for shape, dtype in self.metas
        ]

    def __repr__(self) -> str:
        return f"<{self.name()} at {id(self):#x}>"

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after this node; it may return new grad_inputs."""
        return RemovableHandle(self._hooks().post, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before this node; it may return new grad_outputs."""
        return RemovableHandle(self._hooks().pre, hook)

    def _hooks(self) -> Hooks:
        if self.hooks is None:
            self.hooks = Hooks()
        return self.hooks

    # What the engine asks of a node ----------------------------------------------------------
    def backward(self, grads: list[Any], wanted: Any) -> Any:
        """Gradients for the inputs where `wanted` is not None, from those of the outputs."""
        return self.plan.run(self, grads, self.values(), wanted)

    def values(self) -> Any:
        """What was saved, checked, and attached to the graph where a gradient is recorded."""
        saved = self.saved
        if saved is None:
            raise self.freed()
        plan = self.plan
        if plan.outs and current().grad:  # a saved output must be attached to the graph
            return plan.unpack(self, saved)
        else:
            for i in plan.tensors:
                if saved[i]._alias is not None:
                    return plan.unpack(self, saved)
        return saved

    def freed(self) -> FreedError:
        """The error for a second backward through a graph that the first one freed."""
        return FreedError(
            f"[backward] the values that {self.name()} saved were freed by an earlier "
            "backward; pass retain_graph=True to that one to go through the graph twice"
        )

    def materialize(self, grads: list[Any]) -> list[Any]:
        """Zeros for the outputs that no gradient reached, but some rule looks at.

        That is when some gradient did, and unless the op's rules take None for the others.
        """
        asked = self.plan.asked
        if self.plan.op.partial or (len(asked) == 1 and 0 in asked and grads[0] is not None):
            return grads
        like = next(g for g in grads if g is not None)
        return [
            like.new_zeros(shape, dtype=dtype)
            if g is None and i in asked and dtype.kind in "fcV"
            else g
            for i, (g, (shape, dtype)) in enumerate(zip(grads, self.metas, strict=True))
        ]

    def release(self) -> None:
        """Free the tensors that were saved for the derivative.

        A node that saved none has nothing to free, so it can run again, as in torch.
        """
        if self.plan.tensors:
            self.saved = None


def new_node(
    plan: Plan,
    parents: tuple[Node | None, ...],
    indices: tuple[int, ...],
    shape: tuple[int, ...] | None,
    dtype: Any,
    saved: Any,
    versions: tuple[int, ...] | None = None,
) -> Node:
    """The node of a call of an op: the one place that makes them.

    `shape` and `dtype` are those of its output; for several outputs set `metas` afterwards.
    """
    node = Node()  # has no __init__, which would cost as much as a small op
    node.plan = plan
    node.parents = parents
    node.indices = indices
    node._shape = shape
    node._dtype = dtype
    node.saved = saved
    node.versions = versions
    node.hooks = node.site = None
    return node


class WrapperNode(Node):
    """The node of an op that wrappers answered: gradients come here as Tensors, not as arrays."""

    __slots__ = ()


class AccumulateGrad(Node):
    """The node of a leaf: it adds what arrives to the leaf's `.grad`.

    The leaf owns the node and the node knows the leaf weakly, so that neither keeps the other
    alive; nobody can see the gradient of a leaf that is gone. With post-accumulate hooks the node
    holds the leaf, since they are called with it.
    """

    __slots__ = ("grad_dtype", "holds", "leaf", "lock", "post_accumulate")

    def __init__(self, leaf: Tensor) -> None:
        self._begin(metas=((leaf._array.shape, leaf._array.dtype),))
        self.leaf = weakref.ref(leaf)
        self.lock = Lock()  # two backward passes may end here at once
        self.holds: Tensor | None = None
        # That of `.grad`: False for the leaf's own, None for that of what arrives.
        self.grad_dtype: DType | bool | None = False
        self.post_accumulate: dict[int, Callable[..., Any]] | None = None

    @property
    def variable(self) -> Tensor | None:
        """The leaf, or None when it is gone."""
        return self.leaf()

    def name(self) -> str:
        return "AccumulateGrad"

    def release(self) -> None:
        pass


class Barrier(Node):
    """Where a derivative ends: whoever differentiates through it gets its error.

    Its parents are what the value depends on, so that no path is silently cut off.
    """

    __slots__ = ("message",)

    def __init__(self, message: str, sources: list[tuple[Node | None, int]], meta: Meta) -> None:
        self._begin(tuple(n for n, _ in sources), tuple(i for _, i in sources), (meta,))
        self.message = message

    def name(self) -> str:
        return "NotDifferentiable"

    def backward(self, grads: list[Any], wanted: Any) -> Any:
        raise GradientError(self.message)

    def release(self) -> None:
        pass


class Zero(Node):
    """The history of a derivative that does not vary: its own derivative is zero, not missing.

    Its parents are what the derivative was taken by.
    """

    __slots__ = ()

    def __init__(self, sources: list[tuple[Node, int]], meta: Meta) -> None:
        self._begin(tuple(n for n, _ in sources), tuple(i for _, i in sources), (meta,))

    def name(self) -> str:
        return "ZeroBackward0"

    def backward(self, grads: list[Any], wanted: Any) -> Any:
        found = []
        for node, index, target in zip(self.parents, self.indices, wanted, strict=True):
            assert node is not None
            shape, dtype = node.metas[index]
            found.append(None if target is None else grads[0].new_zeros(shape, dtype=dtype))
        return found

    def release(self) -> None:
        pass


class Derivative(Node):
    """The history of a derivative that varies: it passes gradients on, and knows its `_origins`.

    A node of its own, since the derivative may hang on a node that others have (a seed, a tensor
    that a custom backward returned).
    """

    __slots__ = ()

    def __init__(self, node: Node, index: int, meta: Meta) -> None:
        self._begin((node,), (index,), (meta,))

    def name(self) -> str:
        assert self.parents[0] is not None
        return self.parents[0].name()

    def backward(self, grads: list[Any], wanted: Any) -> Any:
        return grads

    def release(self) -> None:
        pass


def version_error(op: str, site: Any, what: str, saved: int, found: int) -> VersionError:
    """The error for a saved value that has changed since; `site` is where it was saved."""
    where = (
        f"\nForward call:\n{''.join(site)}"
        if site
        else ("; ut.autograd.detect_anomaly() shows the forward line")
    )
    return VersionError(
        f"[{op}] {what}, saved at version {saved} for the gradient, is now at version {found}: it "
        f"was changed in place after the forward; clone it before the in-place operation{where}"
    )


def no_rule(op: str, name: str) -> GradientError:
    """The error for an input that has no derivative rule."""
    return GradientError(
        f"[{op}] has no derivative with respect to {name}; detach() that input if it is a constant"
    )


_SAVED: dict[str, str] = {}  # the word of each attribute that `name_saved` made


def name_saved(words: Iterable[str]) -> None:
    """Let nodes answer `_saved_word` and `_raw_saved_word`: what derivatives need, as in torch.

    By properties, for a class with a `__getattr__` is slow to look up any attribute.
    """
    for word in words:
        for attribute in (f"_saved_{word}", f"_raw_saved_{word}"):
            if attribute not in _SAVED:
                _SAVED[attribute] = word
                setattr(Node, attribute, property(_reader(attribute, word)))


def _reader(attribute: str, word: str) -> Callable[[Node], Any]:
    def value(node: Node) -> Any:
        place = node._place(attribute, word)
        if node.saved is None:
            raise node.freed()
        plan = node.plan
        return (plan.unpack(node, node.saved) if plan.tensors else node.saved)[place]

    def raw(node: Node) -> Any:
        from .saved import raw_saved  # which needs this module

        return raw_saved(node, node._place(attribute, word))

    return raw if attribute.startswith("_raw") else value


name_saved(("self", "other", "result"))
