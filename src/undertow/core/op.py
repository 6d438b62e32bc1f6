"""An op: its name, the forms that compute it, and the derivative of each input.

Note [rules]
A rule is a function of named arguments, and the names say what it needs; nothing else is saved:

    g, g1, g2 …      the cotangent of output 0, 1, 2 …
    gs               the cotangents of all outputs (with `partial=True`, None where none arrived;
                     otherwise zeros)
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

What an op does to tangents follows from these rules (Note [pushing forward]). Where that takes
much longer than the op, there may be a rule `jvp`: it may ask for `ts`, the tangents of all inputs
(None where there is none), and gives those of the outputs that have a history.

Of an op's outputs only the first `differentiable` have a history, as a rule all of them; others are
what a forward keeps for its rules, such as means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import dtypes
from ..backends.base import Forms
from ..kernel.expr import Expr, trace
from .node import name_saved
from .plan import Plan

OPS: dict[str, Op] = {}
EVERY = "bifc"  # the domain of most ops; see elementwise_op
_REMEMBERED = 4096  # inputs in all plans of an op together, about
_BOOL = dtypes.bool.numpy
_REAL = {
    dtypes.complex64.numpy: dtypes.float32.numpy,
    dtypes.complex128.numpy: dtypes.float64.numpy,
}


def _asked(rule: Callable[..., Any]) -> tuple[str, ...]:
    """The names that a rule asks for."""
    code = rule.__code__
    return code.co_varnames[: code.co_argcount]


class Op:
    """One primitive operation; see Note [rules]."""

    __slots__ = (
        "_expr",
        "_on_complex",
        "affine",
        "arity",
        "bare",
        "complex_op",
        "conjugate",
        "differentiable",
        "domain",
        "factors",
        "forward",
        "inputs",
        "joint",
        "jvp",
        "kind",
        "name",
        "outputs",
        "params",
        "partial",
        "plans",
        "rules",
        "scalar",
        "symmetric",
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
        jvp: Callable[..., Any] | None = None,
        bare: Mapping[str, Callable[..., Any]] | Callable[..., Any] | None = None,
        view: bool = False,
        outputs: int = 1,
        differentiable: int | None = None,
        partial: bool = False,
        derived: bool = False,
        conjugate: bool = True,
        complex_op: Op | None = None,
        affine: bool = False,
        symmetric: bool = False,
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
        name_saved((*self.inputs, *self.params))
        self.view = view
        self.outputs = outputs
        self.differentiable = outputs if differentiable is None else differentiable
        self.partial = partial
        # Of rules that complex numbers need; see Note [complex gradients].
        self.conjugate = conjugate and not view
        self.complex_op = complex_op
        # Of forward mode, see Note [pushing forward].
        self.affine = affine
        self.symmetric = symmetric
        self.jvp = None if jvp is None else (jvp, _asked(jvp))
        self._on_complex: Op | None = None
        self.scalar: Callable[..., Any] | None = None  # of an elementwise op, see `expr`
        self._expr: Expr | None = None
        self.kind = ""
        self.domain = EVERY
        # Rules for arrays, by input, or a joint one; see Note [bare rules].
        self.bare: Mapping[str, Callable[..., Any]] | Callable[..., Any] = bare or {}
        # Of a product of matrices, for each input: (backend, cotangent, the other input), as
        # arrays, to the two matrices whose product is the gradient, or None where it is none; see
        # Note [added products].
        self.factors: tuple[Callable[[Any, Any, Any], tuple[Any, Any]] | None, ...] | None = None
        self.plans: dict[tuple[int, int, int], Plan] = {}
        self.rules: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {}
        self.joint = joint is not None
        if joint is not None:
            self.vjp(*self.inputs)(joint)
        for target, rule in (vjp or {}).items():
            self.vjp(target)(rule)

    def vjp(self, *targets: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare the rule for some inputs: `@op.vjp("x")`."""

        def declare(rule: Callable[..., Any]) -> Callable[..., Any]:
            for target in targets:
                if target not in self.inputs:
                    raise ValueError(f"[{self.name}] has no input {target!r} to differentiate")
                self.rules[target] = (rule, _asked(rule))
            return rule

        return declare

    def plan(self, count: int, needs: int, numbers: int = 0) -> Plan:
        """How a call with `count` inputs saves and differentiates.

        Bit i of `needs` tells whether input i wants a gradient, of `numbers` whether it is one.
        """
        key = (count, needs, numbers)
        found = self.plans.get(key)
        if found is None:
            if len(self.plans) * count > _REMEMBERED:  # an op of many inputs has many patterns
                self.plans.clear()
            every = range(count)
            found = self.plans[key] = Plan(
                self,
                tuple([bool(needs >> i & 1) for i in every]),
                tuple([bool(numbers >> i & 1) for i in every]),
            )
        return found

    @property
    def expr(self) -> Expr:
        """The scalar expression of an elementwise op; traced when first asked for."""
        if self._expr is None:
            assert self.scalar is not None
            self._expr = trace(self.scalar, self.arity)
        return self._expr

    @property
    def on_complex(self) -> Op:
        """The op that is recorded of complex numbers; see Note [complex gradients]."""
        if not self.conjugate:
            return self
        if self._on_complex is None:
            from .conjugate import conjugated

            self._on_complex = conjugated(self)
        return self._on_complex

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
    conjugate: bool = True,
    complex_op: Op | None = None,
) -> Op:
    """An op declared by a scalar expression.

    kind is the dtype rule: "promote" (the common dtype), "float" (integers become the default
    floating dtype first), "number" (bool becomes int64 first), "bool" (computed in the common
    dtype, boolean result), "real" (a complex dtype gives its real part's) or "input" (that of the
    tensors alone, since the numbers are parameters: a slope, a threshold). domain tells the
    categories of the compute dtype that the op takes: some of b(ool), i(nteger), f(loating),
    c(omplex). For `conjugate` and `complex_op` see Note [complex gradients].
    """

    def forward(k: Forms, *operands: Any) -> Any:
        first = operands[0]
        if not hasattr(first, "dtype"):
            first = next(o for o in operands if hasattr(o, "dtype"))
        dtype = first.dtype
        if kind == "bool":
            dtype = _BOOL
        elif kind == "real":
            dtype = _REAL.get(dtype, dtype)
        return k.map(op.expr, operands, dtype)

    op = Op(
        name,
        forward,
        inputs=inputs,
        vjp=vjp,
        derived=derived,
        conjugate=conjugate,
        complex_op=complex_op,
    )
    op.scalar = function
    op.kind = kind
    op.domain = domain
    return op
