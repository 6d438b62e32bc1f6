"""One recurrent layer in one direction as an op: all steps at once, with a backward of any order.

Note [recurrent rules]
A first-order backward is the form `recurrent_backward`, and then one product over all steps for
each of the weights and for the input. With create_graph the same slopes (kernel/cells) are taken
step by step with tensors in the place of scalars, so that they are recorded. They use what the
forward kept, the gates' values and the memories, which are outputs of the op for that reason: so a
further derivative brings cotangents of these back to this rule, and then, too, it goes step by
step.

An input without steps, (batch, features), is one step: a cell.
"""

from __future__ import annotations

from typing import Any

from ...backends.base import Array, Forms
from ...backends.dual import LEVELS
from ...core.dispatch import apply
from ...core.modes import current
from ...core.op import Op
from ...core.tensor import Tensor
from ...kernel import cells
from ...kernel.expr import trace
from ..elementwise.comparison import where
from ..elementwise.transcendental import tanh
from ..linalg.matmul import product
from ..shape.joining import cat, chunk, stack, unbind
from ..shape.movement import narrowed, reshaped

_SUM = trace(lambda a, b: a + b, 2)
_SLOPES: dict[str, Any] = {
    "lstm": cells.lstm_slopes,
    "gru": cells.gru_slopes,
    "tanh": cells.tanh_slopes,
    "relu": lambda dh, dc, kept, after, *_: ((s := (where(after > 0, dh, 0.0),)), s, None, None),
}


def layer(
    kind: str,
    x: Tensor,
    h: Tensor,
    c: Tensor | None,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
    lengths: Tensor | None = None,
    reverse: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The states after all steps, the last state and the last memory; see `Forms.recurrent`.

    `x` is (steps, batch, features), or (batch, features) for one step.
    """
    outs = apply(_LAYERS[kind], (x, h, c, w_ih, w_hh, b_ih, b_hh, lengths), (reverse,))
    return outs[0], outs[1], outs[2] if kind == "lstm" else None


def _layer_op(kind: str, rule: Any, outputs: int) -> Op:
    apart = cells.CELLS[kind].apart

    def forward(
        k: Forms,
        x: Array,
        h: Array,
        c: Array | None,
        w_ih: Array,
        w_hh: Array,
        b_ih: Array | None,
        b_hh: Array | None,
        lengths: Array | None,
        reverse: bool,
    ) -> Any:
        if b_hh is not None and not apart:
            b_ih, b_hh = k.map(_SUM, (b_ih, b_hh), x.dtype), None
        lead = x.shape[:-1]
        rows = x
        if len(lead) > 1:
            flat = (lead[0] * lead[1], x.shape[2])
            rows = k.reshape(x, flat)
            if rows is None:
                rows = k.reshape(k.copy(x), flat)
        gates = k.matmul(rows, k.permute(w_ih, (1, 0)), b_ih)
        gates = k.reshape(gates, (*(lead if len(lead) > 1 else (1, *lead)), gates.shape[1]))
        out, h, c, *kept = k.recurrent(kind, gates, h, c, w_hh, b_hh, lengths, reverse)
        if len(lead) == 1:
            out, *kept = (_without_steps(k, a) for a in (out, *kept))
        return _present((out, h, c, *kept))

    return Op(
        f"{kind}_layer",
        forward,
        inputs="x h c w_ih w_hh b_ih b_hh lengths",
        params="reverse",
        joint=rule,
        outputs=outputs,
        partial=True,
    )


def _backward_op(kind: str) -> Op:
    cell = cells.CELLS[kind]

    def forward(
        k: Forms,
        g: Array,
        dh: Array | None,
        dc: Array | None,
        kept: Array | None,
        before: Array,
        weight: Array,
        lengths: Array | None,
        reverse: bool,
    ) -> Any:
        dh = k.full(g.shape[-2:], 0, g.dtype) if dh is None else dh
        if dc is None and cell.memory:
            dc = k.full(dh.shape, 0, g.dtype)
        one = len(g.shape) == 2
        if one:
            g, kept, before = (
                a if a is None else k.reshape(a, (1, *a.shape)) for a in (g, kept, before)
            )
        found = k.recurrent_backward(kind, g, dh, dc, kept, before, weight, lengths, reverse)
        by_input, by_state, dh, dc = found
        if one:
            by_input, by_state = _without_steps(k, by_input), _without_steps(k, by_state)
        return _present((by_input, by_state if cell.apart else None, dh, dc))

    return Op(
        f"{kind}_layer_backward",
        forward,
        inputs="g dh dc kept before weight lengths",
        params="reverse",
        outputs=2 + cell.apart + cell.memory,
    )


def _without_steps(k: Forms, x: Array | None) -> Array | None:
    return None if x is None else k.reshape(x, x.shape[1:])


def _present(arrays: tuple[Array | None, ...]) -> tuple[Array, ...]:
    return tuple([a for a in arrays if a is not None])


# Rules ---------------------------------------------------------------------------------------
def _lstm_rule(
    gs: Any,
    x: Tensor,
    h: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    lengths: Tensor | None,
    out: Tensor,
    out3: Tensor,
    out4: Tensor,
    reverse: bool,
    needs: Any,
) -> Any:
    given = (x, h, w_ih, w_hh, lengths, out, out3, out4, reverse, needs)
    return _rule("lstm", gs[:3], gs[3:], *given)


def _gru_rule(
    gs: Any,
    x: Tensor,
    h: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    lengths: Tensor | None,
    out: Tensor,
    out2: Tensor,
    reverse: bool,
    needs: Any,
) -> Any:
    given = (x, h, w_ih, w_hh, lengths, out, out2, None, reverse, needs)
    return _rule("gru", (*gs[:2], None), (gs[2], None), *given)


def _plain_rule(kind: str) -> Any:
    def rule(
        gs: Any,
        x: Tensor,
        h: Tensor,
        w_ih: Tensor,
        w_hh: Tensor,
        lengths: Tensor | None,
        out: Tensor,
        reverse: bool,
        needs: Any,
    ) -> Any:
        given = (x, h, w_ih, w_hh, lengths, out, None, out, reverse, needs)
        return _rule(kind, (*gs, None), (None, None), *given)

    return rule


def _rule(
    kind: str,
    gs: tuple[Tensor | None, ...],
    extra: tuple[Tensor | None, ...],
    x: Tensor,
    h: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    lengths: Tensor | None,
    out: Tensor,
    kept: Tensor | None,
    before: Tensor | None,
    reverse: bool,
    needs: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """The gradients of a layer's inputs; see Note [recurrent rules]."""
    cell = cells.CELLS[kind]
    g, dh, dc = gs
    g = out.new_zeros(out.shape) if g is None else g
    states = _states_before(h, out, reverse)
    before = states if before is None else before
    if current().grad or LEVELS or any(e is not None for e in extra):
        dh = h.new_zeros(h.shape) if dh is None else dh
        dc = h.new_zeros(h.shape) if dc is None and cell.memory else dc
        by_input, by_state, dh, dc = _step_by_step(
            kind, g, dh, dc, kept, before, w_hh, lengths, reverse, extra
        )
    else:
        given = (g, dh, dc, kept, before, w_hh, lengths)
        by_input, *others = apply(_BACKWARD[kind], given, (reverse,))
        by_state = others.pop(0) if cell.apart else by_input
        dh, dc = others[0], others[1] if cell.memory else None
    gates, w_gates = _rows(by_input), _rows(by_state)
    by_x = None
    if needs[0]:
        by_x = product(gates, w_ih)
        by_x = by_x if x.ndim == 2 else reshaped(by_x, x.shape)
    by_b = gates.sum(0) if needs[5] or (needs[6] and not cell.apart) else None
    return (
        by_x,
        dh,
        dc,
        product(gates, _rows(x), True) if needs[3] else None,
        product(w_gates, _rows(states), True) if needs[4] else None,
        by_b,
        w_gates.sum(0) if needs[6] and cell.apart else by_b,
        None,
    )


def _rows(x: Tensor) -> Tensor:
    """All steps below each other."""
    return x if x.ndim == 2 else reshaped(x, (x.shape[0] * x.shape[1], x.shape[2]))


def _states_before(h: Tensor, out: Tensor, reverse: bool) -> Tensor:
    """The state before each step."""
    if out.ndim == 2:
        return h
    steps = out.shape[0]
    first = reshaped(h, (1, *h.shape))
    if reverse:
        return cat([narrowed(out, 0, 1, steps - 1), first], 0)
    return cat([first, narrowed(out, 0, 0, steps - 1)], 0)


def _step_by_step(
    kind: str,
    g: Tensor,
    dh: Tensor,
    dc: Tensor | None,
    kept: Tensor | None,
    before: Tensor,
    weight: Tensor,
    lengths: Tensor | None,
    reverse: bool,
    extra: tuple[Tensor | None, ...],
) -> Any:
    """`recurrent_backward` in ops that have rules, with cotangents of what was kept, too."""
    cell, slopes = cells.CELLS[kind], _SLOPES[kind]
    one = g.ndim == 2
    steps = 1 if one else g.shape[0]
    every: list[tuple[Any, ...]] = [
        (None,) * steps if a is None else (a,) if one else unbind(a)
        for a in (g, kept, before, *extra)
    ]
    by_input: list[Any] = [None] * steps
    by_state: list[Any] = [None] * steps
    for t in range(steps) if reverse else range(steps)[::-1]:
        given, blocks, last, more, memory = (of_step[t] for of_step in every)
        dh = dh + given
        split = () if blocks is None else chunk(blocks, cell.kept, 1)
        added = (None,) * cell.kept if more is None else chunk(more, cell.kept, 1)
        by_x, by_w, new_dc, past = slopes(dh, dc, split, last, added, tanh)
        by_input[t] = by_state[t] = _beside(by_x)
        if cell.apart:
            by_state[t] = _beside(by_w)
        if lengths is not None:
            active = (lengths > t).unsqueeze(1)
            by_input[t], by_state[t] = (where(active, s[t], 0.0) for s in (by_input, by_state))
            past = where(active, 0.0 if past is None else past, dh)
            new_dc = None if dc is None else where(active, new_dc, dc)
        dc = new_dc if memory is None else new_dc + memory
        dh = product(by_state[t], weight)
        if past is not None:
            dh = dh + past
    if one:
        return by_input[0], by_state[0], dh, dc
    return stack(by_input), stack(by_state), dh, dc


def _beside(blocks: tuple[Tensor, ...]) -> Tensor:
    return cat(blocks, 1) if len(blocks) > 1 else blocks[0]


_LAYERS = {
    "lstm": _layer_op("lstm", _lstm_rule, 5),
    "gru": _layer_op("gru", _gru_rule, 3),
    "tanh": _layer_op("tanh", _plain_rule("tanh"), 2),
    "relu": _layer_op("relu", _plain_rule("relu"), 2),
}
_BACKWARD = {kind: _backward_op(kind) for kind in _LAYERS}
