"""`Function`: operations whose derivative the user writes.

Note [custom functions]
The context that `forward` and `backward` receive is the node of the graph itself. Its parents are
the tensors among the arguments, its outputs are all values that `forward` returned (those that are
no tensors keep their place and never receive a gradient).

Note [never detached]
A `backward` that leaves the library's ops (NumPy, `detach`) returns a gradient without history.
With `create_graph=True` that would be a constant where there is none, so every incoming gradient
is tracked, if need be by a `_Probe`, and a result that depends on none of them gets a Barrier: it
can be used, and differentiating it is an error. A result that leads to nothing but probes is
really constant (a linear function of a constant) and gets no history at all.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from .. import dtypes
from ..backends.batch import enclosing, frames_of
from ..backends.dual import LEVELS, unfollowed
from ..backends.registry import backend_of
from ..core.batching import into_batch, is_mapped, met, out_of_batch
from ..core.generator import rewind, watched
from ..core.inplace import _commit, check_writable
from ..core.modes import current, enable_grad, no_grad
from ..core.node import AccumulateGrad, Barrier, Node, version_error
from ..core.overriding import of_user
from ..core.record import forward_stack
from ..core.saved import Packed, SavedTensor
from ..core.tensor import Tensor, beside, connected, is_dual, node_of, share, wrap
from ..errors import ArgumentError, DTypeError, FreedError, GradientError, UnsupportedError
from .forward_mode import dual, level_of, primal, tangent

_NO_TENSOR = ((), dtypes.OBJECT)  # the meta of an output that is no tensor
_wanted: ContextVar[Any] = ContextVar("undertow_wanted", default=(None, ()))


class Saved:
    """A tensor kept for a backward: where it stands in the graph, and at which version.

    `node` None with `own` True means that it is an output of the node that keeps it.
    """

    __slots__ = ("index", "name", "node", "own", "value", "version")

    def __init__(self, name: str, t: Tensor, node: Node | None, index: int, own: bool) -> None:
        t._check_savable(name)
        t = t._kept()
        state = current()
        self.name = name
        self.node = node
        self.index = index
        self.own = own
        self.version = t._version
        self.value = t if state.pack is None else Packed(t, state)

    def get(self, what: str, owner: Node | None = None) -> Tensor:
        """The tensor, checked, and connected to the graph."""
        t = self.value
        if isinstance(t, Packed):
            t = t.restore(self.name)
        elif t._version != self.version:
            site = None if owner is None else owner.site
            what = f"{what} of shape {t.shape}"
            raise version_error(self.name, site, what, self.version, t._version)
        node = owner if self.own else self.node
        return t if connected(t, node) else t._attached(node, self.index)


class SavedSparse:
    """A sparse tensor kept for a backward, which is no Tensor and has the history of its values."""

    __slots__ = ("name", "value", "version")

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value, self.version = name, value, value._stored._version

    def get(self, what: str, owner: Node | None = None) -> Any:
        """The tensor, checked."""
        found = self.value._stored._version
        if found != self.version:
            what = f"{what} of shape {self.value.shape}"
            site = None if owner is None else owner.site
            raise version_error(self.name, site, what, self.version, found)
        return self.value


def _is_sparse(value: Any) -> bool:
    return not isinstance(value, Tensor) and isinstance(getattr(value, "_stored", None), Tensor)


def raw(saved: Saved | None, owner: Node | None = None) -> SavedTensor:
    """A saved tensor as something that can be given hooks of its own."""

    def read() -> Any:
        return None if saved is None else saved.value

    def write(packed: Packed) -> None:
        assert saved is not None
        saved.value = packed

    def unpack() -> Any:
        return None if saved is None else saved.get("a saved tensor", owner)

    return SavedTensor.of(read, write, unpack)


class FunctionCtx(Node):
    """What `forward` and `backward` of a Function share; also the node of the graph."""

    _function: type[Function]
    _keeps: tuple[Tensor | None, ...] = ()
    _dirty: tuple[Tensor, ...] = ()
    _constant: tuple[Tensor, ...] = ()
    _materialize = runs_empty = True  # with zeros for what has not arrived, as in torch
    adapts = True
    _backends: tuple[Any, ...] = ()  # of the outputs
    _materialize_non_diff_grads = True  # zeros also for outputs without gradients
    _stay_none: frozenset[int] = frozenset()  # else the places of these outputs
    _for_forward: tuple[Any, ...] = ()  # what `jvp` asks for
    _in_jvp = False
    _needs: Any = None  # what was assigned to `needs_input_grad`

    def __init__(self, args: tuple[Any, ...]) -> None:
        tensors = [a for a in args if isinstance(a, Tensor)]
        self._begin(tuple(node_of(t) for t in tensors), tuple(t._index for t in tensors))
        self._tensors = tuple(isinstance(a, Tensor) for a in args)
        self._sources = tuple(backend_of(t._array) for t in tensors)
        self._enabled = current().grad
        self._recording = self._enabled and any(p is not None for p in self.parents)

    def name(self) -> str:
        return type(self).__name__

    # What the user calls ---------------------------------------------------------------------
    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for `backward`, which finds them in `saved_tensors`.

        Inputs and outputs keep their history. Anything else is a constant to second order: to
        differentiate twice through an intermediate result, return it as an output as well.
        """
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor) and not _is_sparse(t):
                raise DTypeError(
                    f"[{self.name()}] save_for_backward keeps tensors, argument {i} is a "
                    f"{type(t).__name__}; set it as an attribute of ctx"
                )
        self._keeps = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, which finds them in `saved_tensors`."""
        self._for_forward = tensors

    def freed(self) -> FreedError:
        """The error for saved tensors that are asked for after a backward freed them."""
        return FreedError(
            f"[{self.name()}] its saved tensors were freed by an earlier backward; pass "
            "retain_graph=True to that one to go through the graph twice"
        )

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors given to `save_for_backward`; an error if one has changed since."""
        if self._in_jvp:
            return self._for_forward
        if self._keeps:  # still in forward
            return self._keeps
        if self.saved is None:
            if self._function.clear_saved_tensors_on_access:
                raise FreedError(
                    f"[{self.name()}] its saved tensors were freed when they were first asked for, "
                    "since clear_saved_tensors_on_access is set; ask once, or do not set it"
                )
            raise self.freed()
        found = tuple(
            None if s is None else s.get(f"saved tensor {i}", self)
            for i, s in enumerate(self.saved)
        )
        if self._function.clear_saved_tensors_on_access and self.saved:
            self.saved = None
        return found

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        """The saved tensors as objects that take hooks of their own."""
        if self.saved is None:
            raise self.freed()
        return tuple(raw(s, self) for s in self.saved)

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """`saved_tensors` by its older name."""
        warnings.warn(
            f"[{self.name()}] saved_variables is deprecated; use saved_tensors",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.saved_tensors

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For every argument, whether its gradient is wanted (in `backward`: by this pass)."""
        if self._needs is not None:
            return self._needs
        node, wanted = _wanted.get()
        asked = iter(wanted if node is self else self.parents)
        return tuple(next(asked) is not None if tensor else False for tensor in self._tensors)

    @needs_input_grad.setter
    def needs_input_grad(self, value: Any) -> None:
        self._needs = value

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare inputs that `forward` changes in place; they must be returned."""
        for t in tensors:
            if not isinstance(t, Tensor):
                raise DTypeError(
                    f"[{self.name()}] mark_dirty takes tensors, got {type(t).__name__}"
                )
            if self._enabled:
                with enable_grad():
                    check_writable(self.name(), t)
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare outputs that have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for outputs without a gradient."""
        self._materialize = self.runs_empty = bool(value)

    def apply(self, *grads: Any) -> Any:
        """What `backward` returns for these gradients of the outputs, in the graph or not."""
        return of_user(self._rule(), self, *self._given(grads))

    # What the engine asks --------------------------------------------------------------------
    def materialize(self, grads: list[Any]) -> list[Any]:
        """Zeros for missing gradients, if the user wants them."""
        if not self._materialize:
            return grads
        return [
            wrap(self._backends[i].full(shape, 0, dtype))
            if g is None and dtype.kind != "O" and i not in self._stay_none
            else g
            for i, (g, (shape, dtype)) in enumerate(zip(grads, self.metas, strict=True))
        ]

    def _rule(self) -> Callable[..., Any]:
        rule = self._function.backward
        if rule is Function.backward:
            rule = self._function.vjp
        elif self._function.vjp is not Function.backward:
            raise GradientError(
                f"[{self.name()}] has both a backward and a vjp, which are two names of one thing; "
                "define one of them"
            )
        return rule

    def _given(self, grads: Any) -> tuple[Any, ...]:
        """The arguments of the rule: the gradients, or one list of them."""
        if not self._function.boxed_grads_call:
            return tuple(grads)
        # The engine's own list, so that to empty it is to free them; hooks want them as well.
        return (grads if isinstance(grads, list) and self.hooks is None else list(grads),)

    def backward(self, grads: list[Any], wanted: Any) -> list[Any]:
        rule = self._rule()
        tracked, probes = _tracked(grads) if current().grad else (grads, None)
        given = self._given(tracked)
        del tracked
        token = _wanted.set((self, wanted))
        try:
            results = of_user(rule, self, *given)
        finally:
            _wanted.reset(token)
        results = self._per_tensor(results)
        if probes is not None:
            once = getattr(rule, "_once_differentiable", False)
            for i, (result, target) in enumerate(zip(results, wanted, strict=True)):
                if target is not None and isinstance(result, Tensor):
                    results[i] = self._second_order(result, grads, probes, once)
        return results

    def _per_tensor(self, results: Any) -> list[Any]:
        """What `backward` returned, one for every tensor argument, checked."""
        given = list(results) if isinstance(results, (tuple, list)) else [results]
        count = len(self._tensors)
        if len(given) > count and all(r is None for r in given[count:]):
            given = given[:count]  # torch allows to return more, if they are None
        if len(given) != count:
            raise GradientError(
                f"[{self.name()}] backward returned {len(given)} gradients for {count} arguments "
                "of forward; return one for each, None where there is none"
            )
        kept: list[Any] = []
        for i, (result, tensor) in enumerate(zip(given, self._tensors, strict=True)):
            if not tensor:
                if result is not None:
                    raise GradientError(
                        f"[{self.name()}] backward returned a gradient for argument {i}, which is "
                        "no tensor; return None there"
                    )
                continue
            if _is_sparse(result):
                result = result.to_dense()
            if (
                isinstance(result, Tensor)
                and backend_of(result._array).base is not self._sources[len(kept)].base
            ):
                raise GradientError(
                    f"[{self.name()}] backward returned a gradient for argument {i} on "
                    f"{result.device}, where the argument is not; move it there"
                )
            kept.append(result)
        return kept

    def _second_order(self, result: Tensor, grads: Any, probes: set[Node], once: bool) -> Tensor:
        """A result with an honest history; see Note [never detached]."""
        node = node_of(result)
        if not once and node is not None:
            return result if self._leads_beyond(node, probes) else wrap(result._array)
        why = (
            "is marked once_differentiable"
            if once
            else "was computed outside of Undertow's ops or detached from what it depends on; "
            "write it in Undertow's ops, or return None where there is no gradient"
        )
        sources = list(zip(self.parents, self.indices, strict=True))
        sources += [(node_of(g), g._index) for g in grads if isinstance(g, Tensor)]
        meta = (tuple(result._array.shape), result._array.dtype)
        out = wrap(result._array)
        out._node = Barrier(
            f"[{self.name()}] cannot be differentiated twice: its backward {why}", sources, meta
        )
        return out

    def _leads_beyond(self, node: Node, probes: set[Node]) -> bool:
        """Whether `node` depends on anything but probes."""
        ends = {self, *self.parents}
        seen: set[Node] = {node}
        stack = [node]
        while stack:
            node = stack.pop()
            if isinstance(node, AccumulateGrad) or node in ends:
                return True
            for parent in node.parents:
                if parent is not None and parent not in seen and parent not in probes:
                    seen.add(parent)
                    stack.append(parent)
        return False

    def release(self) -> None:
        if self.saved:
            self.saved = None


class _Probe(Node):
    """Stands in for the history of a gradient that has none."""

    __slots__ = ()

    def __init__(self, meta: Any) -> None:
        self._begin(metas=(meta,))

    def name(self) -> str:
        return "Constant"

    def release(self) -> None:
        pass


def _tracked(grads: list[Any]) -> tuple[list[Any], set[Node]]:
    probes: set[Node] = set()
    tracked = []
    for g in grads:
        if isinstance(g, Tensor) and g._array.dtype.kind in "fcV" and node_of(g) is None:
            probe = _Probe((tuple(g._array.shape), g._array.dtype))
            probes.add(probe)
            g = g._attached(probe, 0)
        tracked.append(g)
    return tracked, probes


class Function:
    """An operation with a derivative of its own.

    Subclass it with two static methods and call `apply`:

    >>> import undertow as ut
    >>> class Cube(ut.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return grad * 3 * x * x
    >>> x = ut.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)

    `forward(ctx, *args)` may be split into `forward(*args)` and `setup_context(ctx, inputs,
    output)`. `backward` returns one gradient per argument, None where there is none. Written in
    Undertow's ops it can be differentiated itself, to any order.

    Two attributes of the class save memory. With `clear_saved_tensors_on_access = True` the first
    look at `ctx.saved_tensors` takes them out of the graph. With `boxed_grads_call = True`,
    `backward(ctx, grads)` gets one list, and gradients that it takes out of the list are freed.
    """

    clear_saved_tensors_on_access = False
    boxed_grads_call = False
    generate_vmap_rule = False  # accepted: without a rule, `forward` runs on the whole batch

    _ctx: type[FunctionCtx]
    _backward_cls: type[FunctionCtx]
    _split = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"[{type(self).__name__}] a Function should not be instantiated; its methods are "
            f"static, and it is called by {type(self).__name__}.apply(...)",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """An error: functions written as objects have not worked since 2018, in torch either."""
        raise GradientError(
            f"[{type(self).__name__}] an object of a Function is not called; call "
            f"{type(self).__name__}.apply(...)"
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._ctx = type(f"{cls.__name__}Backward", (FunctionCtx,), {"_function": cls})
        cls._backward_cls = cls._ctx  # torch's name for it
        cls._split = cls.setup_context is not Function.setup_context

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: `forward(ctx, *args)`, or `forward(*args)` with setup_context."""
        raise UnsupportedError("[Function] a subclass defines the static method forward")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what `backward` needs, when `forward` takes no ctx."""
        raise UnsupportedError("[Function] a subclass defines the static method setup_context")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradient of every argument from those of the outputs."""
        raise UnsupportedError("[Function] a subclass defines the static method backward or vjp")

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangent of every output from those of the arguments, for forward mode.

        Without it forward mode differentiates `backward` by the cotangents.
        """
        raise UnsupportedError("[Function] a subclass defines the static method jvp")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """A rule for `func.vmap`: the outputs for whole batches, and their dimensions.

        Without it `forward` runs on the whole batch, as every function does.
        """
        raise UnsupportedError("[Function] a subclass defines the static method vmap")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and record it."""
        if cls._split or kwargs:
            import inspect

            lead = () if cls._split else (None,)  # in the place of ctx
            bound = inspect.signature(cls.forward).bind(*lead, *args, **kwargs)
            bound.apply_defaults()
            if bound.kwargs:
                raise ArgumentError(
                    f"[{cls.__name__}] forward must not have keyword-only arguments, got "
                    f"{', '.join(bound.kwargs)}"
                )
            args = bound.args[len(lead) :]
        if enclosing.get() is not None:
            mapped, found = _mapped(cls, args)
            if found is not None:
                return found[0]
            args = mapped
        if LEVELS and any(is_dual(a) for a in args):
            if any(level.order > 1 for level in LEVELS):
                raise UnsupportedError(
                    f"[{cls.__name__}] a custom Function has a first derivative only, and jet asks "
                    "for higher ones; nest func.jvp, or write it in ops"
                )
            return pushed_function(cls, args)
        return cls._run(args)[1]

    @classmethod
    def _run(cls, args: tuple[Any, ...]) -> tuple[Any, Any]:
        """The context of a call, and what it gives."""
        ctx = cls._ctx(args)
        if ctx._recording:
            _check_nested(cls.__name__, args)
        inputs = [a for a in args if isinstance(a, Tensor)]
        versions = [t._version for t in inputs]
        with no_grad():
            if cls._split:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args)
        outputs = result if isinstance(result, tuple) else (result,)
        _check_dirty(ctx, inputs, versions, outputs)
        if ctx._recording:
            wrapped = _record(ctx, inputs, outputs)
        else:
            ctx._keeps = ()
            wrapped = [_plain(ctx, o, inputs) for o in outputs]
        return ctx, tuple(wrapped) if isinstance(result, tuple) else wrapped[0]


def _mapped(cls: type[Function], args: tuple[Any, ...]) -> tuple[Any, Any]:
    """Arguments that are all mapped or none; or what the function's own rule gives, in a tuple."""
    frame = enclosing.get()
    assert frame is not None
    tensors = [a for a in args if isinstance(a, Tensor)]
    if not any(frames_of(t._array) for t in tensors):
        return args, None
    if cls.vmap is not Function.vmap and any(is_mapped(t, frame) for t in tensors):
        dims = tuple(0 if isinstance(a, Tensor) and is_mapped(a, frame) else None for a in args)
        whole = [
            a if d is None else out_of_batch(a, frame, 0) for a, d in zip(args, dims, strict=True)
        ]
        token = enclosing.set(frame.outer)
        try:
            answer = cls.vmap(VmapInfo(frame.size, frame.randomness), dims, *whole)
        finally:
            enclosing.reset(token)
        found, outs = _checked_rule(cls, answer)
        if not isinstance(found, tuple):
            return args, (found if outs is None else into_batch(found, frame, outs % found.ndim),)
        outs = outs if isinstance(outs, tuple) else (outs,) * len(found)
        back = [
            x if d is None else into_batch(x, frame, d % x.ndim)
            for x, d in zip(found, outs, strict=True)
        ]
        return args, (tuple(back),)
    lifted = iter(met(tensors))
    return tuple([next(lifted) if isinstance(a, Tensor) else a for a in args]), None


class VmapRuleError(ArgumentError):
    """What a Function's `vmap` returned is no outputs and their dimensions."""


def _checked_rule(cls: type[Function], answer: Any) -> tuple[Any, Any]:
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise VmapRuleError(
            f"[{cls.__name__}] its vmap returns (outputs, dimensions), got {type(answer).__name__}"
            + (f" of {len(answer)}" if isinstance(answer, tuple) else "")
        )
    found, outs = answer
    count = len(found) if isinstance(found, tuple) else None
    if isinstance(outs, (tuple, list)) and (count is None or len(outs) != count):
        raise VmapRuleError(
            f"[{cls.__name__}] its vmap returned dimensions {outs} for "
            + ("one output" if count is None else f"{count} outputs")
        )
    return found, tuple(outs) if isinstance(outs, list) else outs


class VmapInfo(NamedTuple):
    """What a Function's `vmap` is told about the batch."""

    batch_size: int
    randomness: str


def pushed_function(cls: type[Function], args: tuple[Any, ...]) -> Any:
    """A call of which some argument has a tangent; inside of `forward` nobody follows it."""
    levels = [found for a in args if (found := level_of(a)) is not None]
    level = max(levels, key=lambda found: found.number)
    changes = [tangent(a, level) for a in args]
    token = unfollowed.set(frozenset(LEVELS))
    try:
        with watched() as begun:
            ctx, result = cls._run(args)
    finally:
        unfollowed.reset(token)
    outputs = result if isinstance(result, tuple) else (result,)
    if ctx._dirty or any(_among(o, args) >= 0 for o in outputs if isinstance(o, Tensor)):
        raise UnsupportedError(
            f"[{cls.__name__}] changes an argument in place, of which forward mode knows nothing; "
            "clone it in forward"
        )
    moving = [primal(a, level) if isinstance(a, Tensor) else a for a in args]
    if any(level_of(a) is not None for a in moving):
        rewind(begun)  # it draws the same random numbers
        with no_grad():
            again = cls.apply(*moving)
        for o, q in zip(outputs, again if isinstance(again, tuple) else (again,), strict=True):
            if isinstance(o, Tensor):
                o._array = q._array
    if cls.jvp is not Function.jvp:
        moved = _by_jvp(cls, ctx, level, changes, moving)
    else:
        rewind(begun)
        moved = _by_backward(cls, moving, changes)
    if len(moved) != len(outputs):
        raise GradientError(
            f"[{cls.__name__}] jvp returned {len(moved)} tangents for {len(outputs)} outputs"
        )
    for out, change in zip(outputs, moved, strict=True):
        if isinstance(out, Tensor) and change is not None and out.dtype.is_differentiable:
            if any(c is not None and c._array is change._array for c in changes):
                change = change.clone()  # who writes into the one does not mean the other
            out._array = dual(out, change, level)
    for kept in ctx.saved or ():
        if isinstance(kept, Saved) and kept.own and isinstance(kept.value, Tensor):
            kept.value._array = outputs[kept.index]._array
    return result


def _by_jvp(cls: Any, ctx: Any, level: Any, changes: Any, args: Any) -> tuple[Any, ...]:
    """The tangents of the outputs as the function says."""
    given = [
        a.new_zeros(a.shape)
        if change is None and isinstance(a, Tensor) and a.dtype.is_differentiable
        and ctx._materialize else change
        for a, change in zip(args, changes, strict=True)
    ]  # fmt: skip
    ctx._for_forward = tuple(
        primal(t, level) if isinstance(t, Tensor) else t for t in ctx._for_forward
    )
    ctx._in_jvp = True
    try:
        found = cls.jvp(ctx, *given)
    finally:
        ctx._in_jvp = False
    return found if isinstance(found, tuple) else (found,)


def _by_backward(cls: Any, args: list[Any], changes: list[Any]) -> tuple[Any, ...]:
    """The same from `backward`, which is linear in the cotangents."""
    from .api import grad as gradients

    outer = current().grad and any(
        isinstance(t, Tensor) and node_of(t) is not None for t in (*args, *changes)
    )
    with enable_grad():
        own = [
            a if change is None
            else a.view(a.shape) if a.requires_grad else a._same().requires_grad_()
            for a, change in zip(args, changes, strict=True)
        ]  # fmt: skip
        result = cls.apply(*own)
        outputs = result if isinstance(result, tuple) else (result,)
        roots = [o for o in outputs if isinstance(o, Tensor) and o.requires_grad]
        pairs = [(a, c) for a, c in zip(own, changes, strict=True) if c is not None]
        if not roots:
            return (None,) * len(outputs)
        probes = [o.detach().new_ones(o.shape).requires_grad_() for o in roots]
        rows = gradients(
            roots, [a for a, _ in pairs], probes, create_graph=True, materialize_grads=True
        )
        moving = [(r, c) for r, (_, c) in zip(rows, pairs, strict=True) if r.requires_grad]
        if not moving:
            return (None,) * len(outputs)
        found = iter(
            gradients(
                [r for r, _ in moving],
                probes,
                [c for _, c in moving],
                create_graph=outer,
                materialize_grads=True,
            )
        )
    return tuple(
        next(found) if isinstance(o, Tensor) and o.requires_grad else None for o in outputs
    )


def _check_nested(name: str, args: tuple[Any, ...]) -> None:
    for i, arg in enumerate(args):
        if isinstance(arg, (list, tuple, dict)):
            values = arg.values() if isinstance(arg, dict) else arg
            if any(isinstance(v, Tensor) and node_of(v) is not None for v in values):
                raise GradientError(
                    f"[{name}] argument {i} is a {type(arg).__name__} with tensors that require "
                    "gradients, and only tensors that are arguments themselves get one; pass them "
                    "one by one, or detach() them"
                )


def _among(t: Any, tensors: Sequence[Any]) -> int:
    """Where `t` itself stands among `tensors`, the last time; -1 if nowhere."""
    return next((i for i in reversed(range(len(tensors))) if tensors[i] is t), -1)


def _check_dirty(ctx: Any, inputs: list[Tensor], versions: list[int], outputs: Any) -> None:
    """Inputs that forward changed in place must be marked, and marked ones must be returned."""
    for t in ctx._dirty:
        i = _among(t, inputs)
        if i < 0:
            if ctx._recording and t._is_view():
                raise GradientError(
                    f"[{ctx.name()}] mark_dirty takes inputs, and was given a view of shape "
                    f"{t.shape} that forward made; mark the input that it changes, or nothing"
                )
            warnings.warn(
                f"[{ctx.name()}] mark_dirty takes inputs, and was given another tensor, which it "
                "leaves alone",
                stacklevel=3,
            )
            continue
        if _among(t, outputs) < 0:
            raise GradientError(
                f"[{ctx.name()}] argument tensor {i} is marked dirty but not returned; "
                "forward must return every input that it changes in place"
            )
        if t._version == versions[i]:  # changed behind our back, through NumPy for example
            share(t).version.value += 1
    if not ctx._recording:
        return
    if len(outputs) == 1 and isinstance(outputs[0], list):
        raise GradientError(
            f"[{ctx.name()}] forward returned a list, whose tensors would get no gradient; "
            "return a tuple"
        )
    marked = [share(t).version for t in ctx._dirty]
    for i, t in enumerate(inputs):
        changed = t._version != versions[i] and ctx.parents[i] is not None
        if changed and share(t).version not in marked:
            raise GradientError(
                f"[{ctx.name()}] forward changed its input tensor {i} of shape {t.shape} in place "
                "without ctx.mark_dirty; mark it, and return it"
            )


def _plain(ctx: Any, out: Any, inputs: list[Tensor]) -> Any:
    """An output when nothing is recorded: never an unchanged input itself, never with history."""
    if not isinstance(out, Tensor) or _among(out, ctx._dirty) >= 0:
        return out
    if node_of(out) is not None:
        return out.detach()
    return beside(out.detach(), out) if _among(out, inputs) >= 0 else out


def _record(ctx: Any, inputs: list[Tensor], outputs: tuple[Any, ...]) -> list[Any]:
    """The outputs hung on the node, and the saved tensors sealed."""
    name = ctx.name()
    ctx.metas = tuple(
        (tuple(o._array.shape), o._array.dtype) if isinstance(o, Tensor) else _NO_TENSOR
        for o in outputs
    )
    ctx._backends = tuple(backend_of(o._array) if isinstance(o, Tensor) else None for o in outputs)
    if current().anomaly:
        ctx.site = forward_stack()
    if not ctx._materialize_non_diff_grads:
        constants = (i for i, o in enumerate(outputs) if _among(o, ctx._constant) >= 0)
        ctx._stay_none = frozenset(constants)
    wrapped: list[Any] = []
    for i, out in enumerate(outputs):
        if not isinstance(out, Tensor):
            wrapped.append(out)
            continue
        kind = out._array.dtype.kind
        dirty = _among(out, ctx._dirty) >= 0
        if kind not in "fcV" or _among(out, ctx._constant) >= 0:
            if dirty and node_of(out) is not None:
                wrapped.append(out.detach_())
            else:
                wrapped.append(_plain(ctx, out, inputs))
        elif dirty:
            value = wrap(out._array)
            value._node, value._index = ctx, i
            _commit(out, value)
            wrapped.append(out)
        else:
            new = out._attached(ctx, i)
            other = _sharing(new, [*inputs, *outputs[:i], *outputs[i + 1 :]])
            wrapped.append(new if other is None else beside(new, other))
    keeps, ctx._keeps = ctx._keeps, ()
    ctx.saved = tuple(
        None if t is None else _keep(ctx, name, t, inputs, outputs, wrapped) for t in keeps
    )
    for i, out in enumerate(outputs):  # one that is returned twice is the last output, as in torch
        if isinstance(out, Tensor):
            wrapped[i] = wrapped[_among(out, outputs)]
    ctx._dirty = ctx._constant = ()  # they hold the node, or are of no use to it
    return wrapped


def _sharing(t: Tensor, others: Sequence[Any]) -> Tensor | None:
    """One of `others` whose memory `t` shares."""
    version = share(t).version
    tensors = (o for o in others if isinstance(o, Tensor) and o._alias is not None)
    return next((o for o in tensors if share(o).version is version), None)


def _keep(
    ctx: Any, name: str, t: Any, inputs: Any, outputs: Any, wrapped: Any
) -> Saved | SavedSparse:
    if not isinstance(t, Tensor):
        return SavedSparse(name, t)
    i = _among(t, outputs)
    if i >= 0 and (_among(t, inputs) < 0 or _among(t, ctx._dirty) >= 0):
        history = isinstance(wrapped[i], Tensor) and node_of(wrapped[i]) is not None
        return Saved(name, t.detach(), None, i, history)
    i = _among(t, inputs)
    if i >= 0:
        return Saved(name, t, ctx.parents[i], ctx.indices[i], False)
    return Saved(name, t, node_of(t), t._index, False)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` that is not written in Undertow's ops: differentiating it is an error.

    >>> import undertow as ut
    >>> from undertow.autograd.function import once_differentiable
    >>> class Double(ut.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...
    ...     @staticmethod
    ...     @once_differentiable
    ...     def backward(ctx, grad):
    ...         return ut.tensor(grad.numpy() * 2)
    >>> x = ut.tensor(1.0, requires_grad=True)
    >>> Double.apply(x).backward()
    >>> x.grad
    tensor(2.)
    """

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            return backward(ctx, *(g.detach() if isinstance(g, Tensor) else g for g in grads))

    wrapper._once_differentiable = True  # type: ignore[attr-defined]
    return wrapper


class InplaceFunction(Function):
    """A Function that may work in place, as torch's old ones could be asked to.

    >>> import undertow as ut
    >>> issubclass(ut.autograd.function.InplaceFunction, ut.autograd.Function)
    True
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
