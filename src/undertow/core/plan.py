"""A plan: what one pattern of wanted inputs of an op saves, and which rules run with what."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..kernel.expr import Expr, arg, substitute
from .fused import Bare, Fused, Joint, traced
from .modes import current
from .node import Node, no_rule, version_error
from .saved import Group, Packed, members
from .tensor import connected, wrap

if TYPE_CHECKING:
    from .op import Op

_EVERY_OUTPUT = range(1 << 62)
_KEEP: dict[Any, Callable[[Any, Any, Any], tuple[Any, ...]]] = {
    (): lambda a, b, out: (),
    (("in", 0),): lambda a, b, out: (a,),
    (("in", 1),): lambda a, b, out: (b,),
    (("in", 0), ("in", 1)): lambda a, b, out: (a, b),
    (("in", 1), ("in", 0)): lambda a, b, out: (b, a),
    (("out", 0),): lambda a, b, out: (wrap(out),),
}
# What a call saves whose rules need no tensor: of the first input's shape and the parameters.
_FACTS: dict[Any, Callable[[Any, Any], tuple[Any, ...]]] = {
    (("shape", 0),): lambda shape, params: (shape,),
    (("param", 0),): lambda shape, params: params[:1],
    (("shape", 0), ("param", 0)): lambda shape, params: (shape, params[0]),
}


class Plan:
    """What one op saves, and which rules it runs with what, for one pattern of wanted inputs."""

    __slots__ = (
        "_derived",
        "_fused",
        "asked",
        "calls",
        "facts",
        "keep",
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
        self._fused: Fused | Bare | Joint | bool | None = False  # not tried yet
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
                            asked = _EVERY_OUTPUT
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
        # What a call of one or two inputs saves, where it is that simple: of the first input, the
        # last and the output's array, the values.
        self.facts = _FACTS.get(self.recipe)
        self.keep: Callable[[Any, Any, Any], tuple[Any, ...]] | None = None
        if len(needs) <= 2:
            self.keep = _KEEP.get(self.recipe)

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

    def place(self, word: str) -> int | None:
        """Which of the saved values torch calls so: self, other, result, or by our own name."""
        op = self.op
        if word in ("self", "other"):
            source = ("in", int(word == "other"))
        elif word == "result":
            source = ("out", 0)
        elif word in op.inputs:
            source = ("in", op.inputs.index(word))
        elif word in op.params:
            source = ("param", op.params.index(word))
        else:
            return None
        return self.recipe.index(source) if source in self.recipe else None

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
                saved.append(outs[i]._as_saved())
            elif kind == "rest":
                saved.append(Group(inputs[arity - 1 :]))
            else:
                saved.append(tuple(tuple(t._array.shape) for t in inputs[arity - 1 :]))
        if not self.tensors:
            return tuple(saved), None
        return self.seal(saved)

    def seal(self, saved: list[Any]) -> tuple[tuple[Any, ...], Any]:
        """Check that saved tensors may be saved, note their versions, apply packing hooks."""
        aliased = False
        versions = []
        for j in self.tensors:
            value = saved[j]
            for t in value if value.__class__ is Group else (value,):
                alias = t._alias
                if alias is None:
                    versions.append(0)
                    continue
                aliased = True
                t._check_savable(self.op.name)
                if alias.version.overwritten:
                    return self.seal(self._kept(saved))
                versions.append(alias.version.value)
        state = current()
        if state.pack is not None:
            for j in self.tensors:
                packed = [Packed(t, state) for t in members(saved[j])]
                saved[j] = Group(packed) if isinstance(saved[j], Group) else packed[0]
        return tuple(saved), tuple(versions) if aliased else None

    def _kept(self, saved: list[Any]) -> list[Any]:
        """With copies of the tensors that are about to be overwritten."""
        for j in self.tensors:
            kept = [t._kept() for t in members(saved[j])]
            saved[j] = Group(kept) if isinstance(saved[j], Group) else kept[0]
        return saved

    def unpack(self, node: Node, saved: Any) -> list[Any]:
        """The saved values, checked against their versions, outputs attached to the graph."""
        values = list(saved)
        count = 0
        for j in self.tensors:
            kept: list[Any] = []
            for t in members(saved[j]):
                kind, i = self.recipe[j]
                where = i + len(kept)  # a group's members follow its first input
                if isinstance(t, Packed):
                    t = t.restore(node.name())
                    if kind == "out":
                        t = t._as_saved()
                else:
                    expected = 0 if node.versions is None else node.versions[count]
                    if t._version != expected:
                        what = _describe(self, j, t)
                        raise version_error(self.op.name, node.site, what, expected, t._version)
                if kind != "out" and not connected(t, node.parents[where]):
                    t = t._attached(node.parents[where], node.indices[where])
                count += 1
                kept.append(t)
            values[j] = tuple(kept) if isinstance(saved[j], Group) else kept[0]
        if current().grad:
            for j in self.outs:
                i = self.recipe[j][1]
                # Not the indices of a selection, nor what is kept for the rules alone.
                if i < self.op.differentiable and values[j]._array.dtype.kind in "fcV":
                    values[j] = values[j]._attached(node, i)
        return values

    @property
    def fused(self) -> Fused | Bare | Joint | None:
        """The rules on bare arrays, or None; see Note [fused rules] and Note [bare rules]."""
        if self._fused is False:
            self._fused = self._on_arrays()
        return self._fused  # type: ignore[return-value]

    def _on_arrays(self) -> Fused | Bare | Joint | None:
        if self.op.scalar is not None:
            return self._fuse()
        bare = self.op.bare
        if callable(bare):
            call = next((call for call in self.calls if call is not None), None)
            if call is None:
                return None
            _, picks, simple = call  # else after the cotangent come saved values and `needs`
            return Joint(
                bare, picks if simple else [j if kind == "saved" else -1 for kind, j in picks[1:]]
            )
        names = [self.op.inputs[min(i, self.op.arity - 1)] for i in range(len(self.needs))]
        if not any(self.needs) or not all(
            call is None or (call[2] and name in bare)
            for name, call in zip(names, self.calls, strict=True)
        ):
            return None
        return Bare(
            [
                None if call is None else (bare[name], call[1])
                for name, call in zip(names, self.calls, strict=True)
            ],
            self.op.factors is not None,
        )

    def _fuse(self) -> Fused | None:
        exprs: list[Expr | None] = []
        if any(kind not in ("in", "out") for kind, _ in self.recipe):
            return None
        for call in self.calls:
            expr: Expr | None = None
            if call is not None:
                rule, picks, simple = call
                expr = traced(rule, 1 + len(picks)) if simple else None
                if expr is None or (expr.head == "arg" and expr.args != (0,)):
                    return None
                expr = substitute(expr, [arg(0), *(arg(1 + j) for j in picks)])
            exprs.append(expr)
        arrays = tuple([j in self.tensors for j in range(len(self.recipe))])
        pair = sorted(self.recipe) == [("in", 0), ("in", 1)]
        return Fused(exprs, arrays, pair)

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
            for call in self.calls:
                if call is not None:
                    break
            found = self._call(call, grads, saved, tuple([t is not None for t in wanted]))
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
        given: list[Any] = []
        for kind, j in picks:
            if kind == "saved":
                given.append(saved[j])
            elif kind == "grad":
                given.append(grads[j])
            elif kind == "grads":
                given.append(tuple(grads))
            else:
                given.append(needs if kind == "needs" else j)
        return rule(*given)


def _simplify(call: Any) -> Any:
    """Rules of the form (g, saved…) take the short way in `Plan.run`."""
    if call is None:
        return None
    rule, picks = call
    if picks and picks[0] == ("grad", 0) and all(kind == "saved" for kind, _ in picks[1:]):
        return rule, tuple(j for _, j in picks[1:]), True
    return rule, picks, False


def _describe(plan: Plan, j: int, t: Any) -> str:
    kind, i = plan.recipe[j]
    role = "its output" if kind == "out" else f"its input {plan.op.inputs[i]!r}"
    return f"{role} of shape {tuple(t._array.shape)}"


def _raise_no_rule(op: str, name: str) -> Callable[..., Any]:
    def rule(*args: Any) -> Any:
        raise no_rule(op, name)

    return rule
