"""One recurrent layer in one direction as an op: all steps at once, with a backward of any order.

Note [recurrent rules]
The op is given the products of the inputs, so that their derivatives are those of a linear layer.
A first-order backward is the form `recurrent_backward`, and one product over all steps for the
weights. With create_graph the same slopes (kernel/cells) are taken step by step with tensors in the
place of scalars, so that they are recorded. They use what the forward kept, the gates' values and
the memories, which are outputs of the op for that reason: so a further derivative brings cotangents
of these back to this rule, and then, too, it goes step by step.
"""

from __future__ import annotations

from typing import Any

from ..backends.base import Array, Forms
from ..core.dispatch import apply
from ..core.modes import current
from ..core.op import Op
from ..core.tensor import Tensor
from ..kernel import cells
from .comparison import where
from .joining import cat, chunk, stack, unbind
from .matmul import product
from .movement import narrowed, reshaped
from .transcendental import tanh

_SLOPES: dict[str, Any] = {
    "lstm": cells.lstm_slopes,
    "gru": cells.gru_slopes,
    "tanh": cells.tanh_slopes,
    "relu": lambda dh, dc, kept, after, *_: ((s := (where(after > 0, dh, 0.0),)), s, None, None),
}


def _layer_op(kind: str, rule: Any, outputs: int) -> Op:
    def forward(k: Forms, *given: Any) -> Any:
        return _present(k.recurrent(kind, *given))

    inputs = "gates h c weight bias lengths"
    return Op(
        f"{kind}_layer",
        forward,
        inputs=inputs,
        params="reverse",
        joint=rule,
        outputs=outputs,
        partial=True,
    )


def _backward_op(kind: str) -> Op:
    cell = cells.CELLS[kind]

    def forward(k: Forms, *given: Any) -> Any:
        by_input, by_state, dh, dc = k.recurrent_backward(kind, *given)
        return _present((by_input, by_state if cell.apart else None, dh, dc))

    return Op(
        f"{kind}_layer_backward",
        forward,
        inputs="g dh dc kept before weight lengths",
        params="reverse",
        outputs=2 + cell.apart + cell.memory,
    )


def _present(arrays: tuple[Array | None, ...]) -> tuple[Array, ...]:
    return tuple([a for a in arrays if a is not None])


def _lstm_rule(
    gs: Any,
    h: Tensor,
    c: Tensor,
    weight: Tensor,
    lengths: Tensor | None,
    out: Tensor,
    out3: Tensor,
    out4: Tensor,
    reverse: bool,
    needs: Any,
) -> Any:
    return _rule("lstm", gs[:3], gs[3:], h, weight, lengths, out, out3, out4, reverse, needs)


def _gru_rule(
    gs: Any,
    h: Tensor,
    weight: Tensor,
    lengths: Tensor | None,
    out: Tensor,
    out2: Tensor,
    reverse: bool,
    needs: Any,
) -> Any:
    gs, extra = (*gs[:2], None), (gs[2], None)
    return _rule("gru", gs, extra, h, weight, lengths, out, out2, None, reverse, needs)


def _plain_rule(kind: str) -> Any:
    def rule(
        gs: Any,
        h: Tensor,
        weight: Tensor,
        lengths: Tensor | None,
        out: Tensor,
        reverse: bool,
        needs: Any,
    ) -> Any:
        gs, extra = (*gs, None), (None, None)
        return _rule(kind, gs, extra, h, weight, lengths, out, None, out, reverse, needs)

    return rule


def _rule(
    kind: str,
    gs: tuple[Tensor | None, ...],
    extra: tuple[Tensor | None, ...],
    h: Tensor,
    weight: Tensor,
    lengths: Tensor | None,
    out: Tensor,
    kept: Tensor | None,
    before: Tensor | None,
    reverse: bool,
    needs: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """The gradients of a layer's inputs; see Note [recurrent rules]."""
    g, dh, dc = gs
    g = out.new_zeros(out.shape) if g is None else g
    dh = h.new_zeros(h.shape) if dh is None else dh
    if cells.CELLS[kind].memory and dc is None:
        dc = h.new_zeros(h.shape)
    states = _states_before(h, out, reverse)
    before = states if before is None else before
    if current().grad or any(x is not None for x in extra):
        by_input, by_state, dh, dc = _step_by_step(
            kind, g, dh, dc, kept, before, weight, lengths, reverse, extra
        )
    else:
        given = (g, dh, dc, kept, before, weight, lengths)
        by_input, *others = apply(_BACKWARD[kind], given, (reverse,))
        by_state = others.pop(0) if cells.CELLS[kind].apart else by_input
        dh, dc = others[0], others[1] if dc is not None else None
    wide = (-1, by_state.shape[2])
    flat = by_state.reshape(wide) if needs[3] or needs[4] else by_state
    by_weight = product(flat, states.reshape(-1, states.shape[2]), True) if needs[3] else None
    return by_input, dh, dc, by_weight, flat.sum(0) if needs[4] else None, None


def _states_before(h: Tensor, out: Tensor, reverse: bool) -> Tensor:
    """The state before each step."""
    steps = out.shape[0]
    first = reshaped(h, (1, *h.shape))
    if steps == 1:
        return first
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
    steps = g.shape[0]
    every: list[tuple[Any, ...]] = [
        (None,) * steps if x is None else unbind(x) for x in (g, kept, before, *extra)
    ]
    by_input: list[Any] = [None] * steps
    by_state: list[Any] = [None] * steps
    for t in range(steps) if reverse else range(steps)[::-1]:
        given, blocks, last, more, memory = (of_step[t] for of_step in every)
        dh = dh + given
        split = () if blocks is None else chunk(blocks, cell.kept, 1)
        added = (None,) * cell.kept if more is None else chunk(more, cell.kept, 1)
        by_x, by_w, new_dc, past = slopes(dh, dc, split, last, added, tanh)
        one = two = _beside(by_x)
        if cell.apart:
            two = _beside(by_w)
        if lengths is not None:
            active = (lengths > t).unsqueeze(1)
            one, two = where(active, one, 0.0), where(active, two, 0.0)
            past = where(active, 0.0 if past is None else past, dh)
            new_dc = None if dc is None else where(active, new_dc, dc)
        by_input[t], by_state[t] = one, two
        dc = new_dc if memory is None else new_dc + memory
        dh = product(two, weight)
        if past is not None:
            dh = dh + past
    return stack(by_input), stack(by_state), dh, dc


def _beside(blocks: tuple[Tensor, ...]) -> Tensor:
    return cat(blocks, 1) if len(blocks) > 1 else blocks[0]


LAYERS = {
    "lstm": _layer_op("lstm", _lstm_rule, 5),
    "gru": _layer_op("gru", _gru_rule, 3),
    "tanh": _layer_op("tanh", _plain_rule("tanh"), 2),
    "relu": _layer_op("relu", _plain_rule("relu"), 2),
}
_BACKWARD = {kind: _backward_op(kind) for kind in LAYERS}


def layer(
    kind: str,
    gates: Tensor,
    h: Tensor,
    c: Tensor | None,
    weight: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    reverse: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The states after all steps, the last state and the last memory; see `Forms.recurrent`."""
    outs = apply(LAYERS[kind], (gates, h, c, weight, bias, lengths), (reverse,))
    return outs[0], outs[1], outs[2] if kind == "lstm" else None
