"""An op: its name, the kernel form that computes it, and the derivative of each input.

Note [rules]
A rule is a function of named arguments, and the names say what it needs; nothing else is saved:

    g, g1, g2 …      the cotangent of output 0, 1, 2 …
    gs               the cotangents of all outputs
    <input>          that input (a number when the caller passed a number)
    <input>_shape    the shape of that input, without saving it
    out, out1 …      an output
    <param>          a parameter of the call
    position         which of the variadic inputs the rule is asked for

    mul = Op("mul", …, inputs="a b", vjp={"a": lambda g, b: g * b, "b": lambda g, a: g * a})

A rule is written in the library's own ops, so it is differentiable itself, and it runs only for
the inputs whose gradient is wanted. An input that cannot have a gradient (indices) has no rule.
Where the gradients of all inputs come out of one computation, `joint` is a single rule that returns
them as a tuple; it may ask for `needs` too, which inputs want one (the others may be None).

Note [fused rules]
The rule of an elementwise op is usually elementwise itself. Called with scalar expressions in
place of tensors it then yields one expression, which the backend runs as a single kernel on bare
arrays. A first-order backward takes that shortcut; with create_graph the rule runs as written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..backends.cpu.choice import crossover
from ..backends.reference import compile_map
from ..backends.registry import CPU
from ..errors import GradientError, InplaceError, VersionError
from ..kernel.expr import Expr, arg, substitute, trace
from .modes import State, current, enter, leave
from .node import Node, no_rule, version_error
from .tensor import Tensor, connected, share

OPS: dict[str, Op] = {}
EVERY = "bifc"  # the domain of most ops; see elementwise_op
_REMEMBERED = 4096  # inputs in all plans of an op together, about
_ALL = range(1 << 62)  # outputs
_BOOL = np.dtype(bool)
_REAL = {np.dtype("complex64"): np.dtype("float32"), np.dtype("complex128"): np.dtype("float64")}


class Op:
    """One primitive operation; see Note [rules]."""

    __slots__ = (
        "_expr",
        "_kernel",
        "arity",
        "domain",
        "factors",
        "forward",
        "inputs",
        "joint",
        "kind",
        "name",
        "outputs",
        "params",
        "plans",
        "rules",
        "scalar",
        "variadic",
        "view",
    )

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        *,
        inputs: str,
        params: str = "",
        vjp: Mapping[str, Callable[..., Any]] | None = None,
        joint: Callable[..., Any] | None = None,
        view: bool = False,
        outputs: int = 1,
        derived: bool = False,
    ) -> None:
        if not derived:  # see Note [derived ops]
            if name in OPS:
                raise ValueError(f"an op named {name!r} is defined already")
            OPS[name] = self
        self.name = name
        self.forward = forward
        names = inputs.split()
        self.variadic = names[-1].startswith("*")
        self.inputs = tuple(n.lstrip("*") for n in names)
        self.arity = len(names)
        self.params = tuple(params.split())
        self.view = view
        self.outputs = outputs
        self.scalar: Callable[..., Any] | None = None  # of an elementwise op, see `expr`
        self._expr: Expr | None = None
        self._kernel: Any = None
        self.kind = ""
        self.domain = EVERY
        # Of a product of matrices, for each input: (cotangent, the other input), as arrays, to
        # the two matrices whose product is the gradient; see Note [added products].
        self.factors: tuple[Callable[[Any, Any], tuple[Any, Any]], ...] | None = None
        self.plans: dict[Any, Plan] = {}
        self.rules: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {}
        self.joint = joint is not None
        if joint is not None:
            self.vjp(*self.inputs)(joint)
        for target, rule in (vjp or {}).items():
            self.vjp(target)(rule)

    def vjp(self, *targets: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare the rule for some inputs: `@op.vjp("x")`."""

        def declare(rule: Callable[..., Any]) -> Callable[..., Any]:
            code = rule.__code__
            wants = code.co_varnames[: code.co_argcount]
            for target in targets:
                if target not in self.inputs:
                    raise ValueError(f"[{self.name}] has no input {target!r} to differentiate")
                self.rules[target] = (rule, wants)
            return rule

        return declare

    def plan(self, needs: tuple[bool, ...], numbers: tuple[bool, ...] | None = None) -> Plan:
        """How a call saves and differentiates when `needs` tells which inputs want gradients."""
        key = (needs, numbers)
        found = self.plans.get(key)
        if found is None:
            if len(self.plans) * len(needs) > _REMEMBERED:  # an op of many inputs has many patterns
                self.plans.clear()
            found = self.plans[key] = Plan(self, needs, numbers or (False,) * len(needs))
        return found

    @property
    def expr(self) -> Expr | None:
        """The scalar expression of an elementwise op; traced when first asked for."""
        if self._expr is None and self.scalar is not None:
            self._expr = trace(self.scalar, self.arity)
        return self._expr

    @property
    def kernel(self) -> Any:
        """The NumPy callable of an elementwise op: its ufunc, if the op is a primitive."""
        if self._kernel is None:
            assert self.expr is not None
            self._kernel = compile_map(self.expr, self.arity)
        return self._kernel

    @property
    def limit(self) -> int:
        """Elements from which on the CPU has a faster kernel than that."""
        assert self.expr is not None
        return crossover(self.expr)

    def __repr__(self) -> str:
        return f"<op {self.name}({', '.join((*self.inputs, *self.params))})>"


def elementwise_op(
    name: str,
    function: Callable[..., Any],
    *,
    inputs: str,
    vjp: Mapping[str, Callable[..., Any]] | None = None,
    kind: str = "promote",
    domain: str = EVERY,
    derived: bool = False,
) -> Op:
    """An op declared by a scalar expression.

    kind is the dtype rule: "promote" (the common dtype), "float" (integers become the default
    floating dtype first), "number" (bool becomes int64 first), "bool" (computed in the common
    dtype, boolean result), "real" (a complex dtype gives its real part's) or "input" (that of the
    tensors alone, since the numbers are parameters: a slope, a threshold). domain tells the
    categories of the compute dtype that the op takes: some of b(ool), i(nteger), f(loating),
    c(omplex).
    """

    def forward(k: Any, *operands: Any) -> Any:
        first = operands[0]
        if not hasattr(first, "dtype"):
            first = next(o for o in operands if hasattr(o, "dtype"))
        dtype = first.dtype
        if kind == "bool":
            dtype = _BOOL
        elif kind == "real":
            dtype = _REAL.get(dtype, dtype)
        return k.map(op.expr, operands, dtype)

    op = Op(name, forward, inputs=inputs, vjp=vjp, derived=derived)
    op.scalar = function
    op.kind = kind
    op.domain = domain
    return op


class Group(tuple[Any, ...]):
    """Variadic inputs saved together; `_alias` sends the node to `Plan.unpack`."""

    _alias = True


class Packed:
    """A saved tensor in the keeping of saved-tensor hooks, which must give it back as it was."""

    __slots__ = ("counter", "kind", "meta", "unpack", "value", "version")
    _alias = True

    def __init__(self, t: Tensor, state: State) -> None:
        alone = t.detach()
        before = alone._version
        token = enter(state.but(grad=False, pack=None, unpack=None))
        try:
            self.value = state.pack(alone)  # type: ignore[misc]
        finally:
            leave(token)
        if alone._version != before:
            raise InplaceError(
                "[saved_tensors_hooks] pack changed the tensor of shape "
                f"{t.shape} in place; it is in use, so return a changed copy instead"
            )
        self.unpack = state.unpack
        self.kind = t._array.__class__
        self.meta = tuple(t._array.shape), t._array.dtype
        # Whatever comes back may still be the same memory; then a change since must be noticed.
        self.counter = share(t).version
        self.version = before

    def restore(self, name: str) -> Tensor:
        """The tensor as `unpack` returns it, checked; `name` is the node that asks."""
        state = current()
        token = enter(state.but(grad=False, pack=None, unpack=None))
        try:
            value: Any = self.unpack(self.value)  # type: ignore[misc]
        finally:
            leave(token)
        shape, dtype = self.meta
        if not isinstance(value, Tensor):
            raise GradientError(
                f"[{name}] unpack of saved_tensors_hooks returned a {type(value).__name__}; "
                "it must return the Tensor that pack was given"
            )
        array = value._array
        if array.shape != shape or array.dtype != dtype or array.__class__ is not self.kind:
            raise GradientError(
                f"[{name}] unpack of saved_tensors_hooks returned a tensor of shape {value.shape}, "
                f"{value.dtype} on {value.device}; pack was given shape {shape}, "
                f"undertow.{dtype.name}, and its device must be the same"
            )
        same = value._alias is not None and value._alias.version is self.counter
        if same and value._version != self.version:
            raise VersionError(
                f"[{name}] a tensor of shape {shape} in the keeping of saved_tensors_hooks, saved "
                f"at version {self.version}, is now at version {value._version}: it was changed in "
                "place after the forward; clone it before, or copy it in pack"
            )
        return value


class Plan:
    """What one op saves, and which rules it runs with what, for one pattern of wanted inputs."""

    __slots__ = (
        "_derived",
        "_fused",
        "asked",
        "calls",
        "needs",
        "numbers",
        "op",
        "outs",
        "recipe",
        "tensors",
    )

    def __init__(self, op: Op, needs: tuple[bool, ...], numbers: tuple[bool, ...]) -> None:
        self.op = op
        self.needs = needs
        self.numbers = numbers
        self._fused: Any = False  # not tried yet
        self._derived = op.scalar is None  # whether the rules are what they can be
        recipe: list[tuple[str, int]] = []
        calls: list[Any] = []
        asked: set[int] | range = set()
        for i, needed in enumerate(needs):
            name = op.inputs[min(i, op.arity - 1)]
            if not needed:
                calls.append(None)
            elif name not in op.rules:
                calls.append((_raise_no_rule(op.name, name), ()))
            else:
                rule, wants = op.rules[name]
                picks = []
                for want in wants:
                    source = self._source(want, i)
                    if source[0] in ("grad", "grads", "needs", "position"):
                        picks.append(source)
                        if source[0] == "grads":
                            asked = _ALL
                        elif source[0] == "grad" and isinstance(asked, set):
                            asked.add(source[1])
                    else:
                        if source not in recipe:
                            recipe.append(source)
                        picks.append(("saved", recipe.index(source)))
                calls.append((rule, tuple(picks)))
        self.asked = asked  # the outputs whose cotangents the rules look at
        self.recipe = tuple(recipe)
        self.outs = tuple(j for j, (kind, _) in enumerate(recipe) if kind == "out")
        self.tensors = tuple(
            j
            for j, (kind, i) in enumerate(recipe)
            if kind in ("out", "rest") or (kind == "in" and not numbers[i])
        )
        self.calls = tuple(_simplify(call) for call in calls)

    def _source(self, want: str, position: int) -> tuple[str, int]:
        op = self.op
        if want == "gs":
            return "grads", 0
        if want == "needs" and op.joint:
            return "needs", 0
        if want == "position":
            return "position", position - (op.arity - 1)
        if want in op.inputs:
            i = op.inputs.index(want)
            return ("rest" if op.variadic and i == op.arity - 1 else "in"), i
        if want.endswith("_shape") and want[:-6] in op.inputs:
            i = op.inputs.index(want[:-6])
            return ("rest_shape" if op.variadic and i == op.arity - 1 else "shape"), i
        if want in op.params:
            return "param", op.params.index(want)
        for word, kind in (("g", "grad"), ("out", "out")):
            number = want[len(word) :]
            if want.startswith(word) and (number == "" or number.isdigit()):
                return kind, int(number or 0)
        raise ValueError(f"[{op.name}] a rule asks for {want!r}, which the op does not have")

    def save(self, inputs: Any, params: Any, outs: Any) -> tuple[tuple[Any, ...], Any]:
        """What the recipe names, and the versions of its tensors if any has been changed."""
        saved: list[Any] = []
        arity = self.op.arity
        for kind, i in self.recipe:
            if kind == "in":
                saved.append(inputs[i])
            elif kind == "param":
                saved.append(params[i])
            elif kind == "shape":
                saved.append(tuple(inputs[i]._array.shape))
            elif kind == "out":
                saved.append(outs[i]._twin())
            elif kind == "rest":
                saved.append(Group(inputs[arity - 1 :]))
            else:
                saved.append(tuple(tuple(t._array.shape) for t in inputs[arity - 1 :]))
        if not self.tensors:
            return tuple(saved), None
        return self.seal(saved)

    def seal(self, saved: list[Any]) -> tuple[tuple[Any, ...], Any]:
        """Check that saved tensors may be saved, note their versions, apply packing hooks."""
        aliased = doomed = False
        for j in self.tensors:
            for t in _members(saved[j]):
                if t._alias is not None:
                    aliased = True
                    t._check_savable(self.op.name)
                    doomed = doomed or t._alias.version.doomed
        if doomed:
            for j in self.tensors:
                kept = [t._kept() for t in _members(saved[j])]
                saved[j] = Group(kept) if isinstance(saved[j], Group) else kept[0]
        versions = None
        if aliased:
            versions = tuple(t._version for j in self.tensors for t in _members(saved[j]))
        state = current()
        if state.pack is not None:
            for j in self.tensors:
                packed = [Packed(t, state) for t in _members(saved[j])]
                saved[j] = Group(packed) if isinstance(saved[j], Group) else packed[0]
        return tuple(saved), versions

    def unpack(self, node: Node, saved: Any) -> list[Any]:
        """The saved values, checked against their versions, outputs attached to the graph."""
        values = list(saved)
        count = 0
        for j in self.tensors:
            members: list[Any] = []
            for t in _members(saved[j]):
                kind, i = self.recipe[j]
                where = i + len(members)  # a group's members follow its first input
                if isinstance(t, Packed):
                    t = t.restore(node.name())
                    if kind == "out":
                        t = t._twin()
                else:
                    expected = 0 if node.versions is None else node.versions[count]
                    if t._version != expected:
                        what = _describe(self, j, t)
                        raise version_error(self.op.name, node.site, what, expected, t._version)
                if kind != "out" and not connected(t, node.parents[where]):
                    t = t._attached(node.parents[where], node.indices[where])
                count += 1
                members.append(t)
            values[j] = tuple(members) if isinstance(saved[j], Group) else members[0]
        if current().grad:
            for j in self.outs:
                if values[j]._array.dtype.kind in "fV":  # not the indices of a selection
                    values[j] = values[j]._attached(node, self.recipe[j][1])
        return values

    @property
    def fused(self) -> Any:
        """`(g, saved) -> arrays` for all needed inputs at once, or None; see Note [fused rules]."""
        if self._fused is False:
            self._fused = self._fuse() if self.op.scalar is not None else None
        return self._fused

    def _fuse(self) -> Any:
        exprs: list[Expr | None] = []
        chosen: list[list[int]] = []
        for call in self.calls:
            expr: Expr | None = None
            picks: tuple[int, ...] = ()
            if call is not None:
                rule, picks, simple = call
                if not simple or any(self.recipe[j][0] not in ("in", "out") for j in picks):
                    return None
                try:
                    expr = trace(rule, 1 + len(picks))
                except Exception:  # the rule uses something not elementwise: run it as written
                    return None
                if expr.head == "const" or (expr.head == "arg" and expr.args != (0,)):
                    return None
            exprs.append(expr)
            chosen.append(list(picks))
        return _fused(exprs, chosen, self.tensors, self.recipe)

    def _derive(self) -> None:
        """Put ops in the place of the rules that can be one; see Note [derived ops]."""
        from .derived import derived

        calls = []
        for call in self.calls:
            if (
                call is not None
                and call[2]
                and all(self.recipe[j][0] in ("in", "out") for j in call[1])
            ):
                rule, picks, simple = call
                call = (derived(self.op, rule, 1 + len(picks)), picks, simple)
            calls.append(call)
        self.calls, self._derived = tuple(calls), True

    def run(self, node: Node, grads: list[Any], saved: Any, wanted: Any) -> list[Any]:
        """Each wanted input's gradient by its rule."""
        if not self._derived:
            self._derive()
        results: list[Any] = []
        g = grads[0]
        if self.op.joint:
            call = next(call for call in self.calls if call is not None)
            found = self._call(call, grads, saved, tuple(t is not None for t in wanted))
            return [None if t is None else r for t, r in zip(wanted, found, strict=True)]
        for call, target in zip(self.calls, wanted):  # noqa: B905 (hot)
            if target is None or call is None:
                results.append(None)
                continue
            rule, picks, simple = call
            if simple:
                results.append(rule(g, *[saved[j] for j in picks]))
            else:
                results.append(self._call(call, grads, saved))
        return results

    def _call(self, call: Any, grads: list[Any], saved: Any, needs: Any = None) -> Any:
        """Run a rule with whatever it asks for."""
        rule, picks, simple = call
        if simple:
            return rule(grads[0], *[saved[j] for j in picks])
        sources = {"saved": saved, "grad": grads}
        whole = {"grads": tuple(grads), "needs": needs}
        return rule(*(sources[k][j] if k in sources else whole.get(k, j) for k, j in picks))


def _fused(
    exprs: list[Expr | None], picks: list[list[int]], tensors: tuple[int, ...], recipe: Any
) -> Any:
    """`(g, saved) -> arrays` of expressions over the cotangent and some saved values each.

    Small arrays take a NumPy function per expression, large ones a kernel for all of them. Where
    both inputs are one tensor, that kernel adds what they get; the second one gets nothing.
    """
    scope: dict[str, Any] = {}
    results = []
    place = {j: 1 + i for i, j in enumerate(sorted({j for js in picks for j in js}))}
    saved = {j: f"saved[{j}]" + ("._array" if j in tensors else "") for j in place}
    whole: list[Expr] = []
    for i, (expr, js) in enumerate(zip(exprs, picks, strict=True)):
        if expr is None:
            results.append("None")
        elif expr.head == "arg":  # passed through
            results.append("g")
        else:
            scope[f"k{i}"] = compile_map(expr, 1 + len(js))
            results.append(f"k{i}({', '.join(['g', *(saved[j] for j in js)])})")
            whole.append(substitute(expr, [arg(0), *(arg(place[j]) for j in js)]))
    lines = ["def fused(g, saved):"]
    if whole:
        names = iter(f"r{i}" for i in range(len(whole)))
        large = [next(names) if r.startswith("k") else r for r in results]
        found = "".join(f"r{i}, " for i in range(len(whole)))
        scope |= {"maps": CPU.maps, "exprs": tuple(whole), "ndarray": np.ndarray}
        lines.append(f"    if g.size >= {min(map(crossover, whole))} and g.__class__ is ndarray:")
        twins = sorted(recipe[j] for j in place) == [("in", 0), ("in", 1)]
        if twins and len(exprs) == len(whole) == 2:
            alike = [substitute(expr, [arg(0), arg(1), arg(1)]) for expr in whole]
            scope["both"] = (alike[0] + alike[1],)
            lines += [
                "        if saved[0] is saved[1]:",
                "            found = maps(both, (g, saved[0]._array), g.dtype)",
                "            if found is not None:",
                "                return (found[0], None)",
            ]
        lines += [
            f"        found = maps(exprs, (g, {', '.join(saved.values())}), g.dtype)",
            "        if found is not None:",
            f"            {found}= found",
            f"            return ({', '.join(large)},)",
        ]
    exec("\n".join([*lines, f"    return ({', '.join(results)},)"]), scope)
    return scope["fused"]


def _simplify(call: Any) -> Any:
    """Rules of the form (g, saved…) take the short way in `Plan.run`."""
    if call is None:
        return None
    rule, picks = call
    if picks and picks[0] == ("grad", 0) and all(kind == "saved" for kind, _ in picks[1:]):
        return rule, tuple(j for _, j in picks[1:]), True
    return rule, picks, False


def _members(value: Any) -> Any:
    return value if isinstance(value, Group) else (value,)


def _describe(plan: Plan, j: int, t: Any) -> str:
    kind, i = plan.recipe[j]
    role = "its output" if kind == "out" else f"its input {plan.op.inputs[i]!r}"
    return f"{role} of shape {tuple(t._array.shape)}"


def _raise_no_rule(op: str, name: str) -> Callable[..., Any]:
    def rule(*args: Any) -> Any:
        raise no_rule(op, name)

    return rule
