"""`ut.summary`: a model's layers with what goes in and out, what they hold and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from html import escape
from typing import Any

from ..core.modes import no_grad
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..nn import Module
from .profiler import profile, record_function
from .profiler.events import amount, duration, laid_out

__all__ = ["Row", "Summary", "summary"]
_RUNS = 4  # of which the first is not timed


class Row:
    """One module of a model; sizes are in bytes, `time` in microseconds."""

    def __init__(self, path: str, module: Module) -> None:
        self.path = path
        self.kind = type(module).__name__
        self.parameters = 0  # its own, without those of the modules inside; each is counted once
        self.inputs: Any = None
        self.outputs: Any = None
        self.calls = 0
        self.flops = 0
        self.activations = 0  # of a module with none inside: the size of its outputs
        self.time = 0.0


class Summary:
    """The rows of a model; prints as a table, and is one in a notebook."""

    def __init__(self, rows: list[Row], model: Module, ran: bool, timed: bool) -> None:
        self.rows = rows
        self.parameters = sum([r.parameters for r in rows])
        every = {id(p): p for p in model.parameters()}.values()
        self.trainable = sum([p.numel() for p in every if p.requires_grad])
        self.parameter_bytes = sum([p.numel() * p.element_size() for p in every])
        self.flops = rows[0].flops
        self.activations = sum([r.activations for r in rows])
        self.time = rows[0].time
        self._ran, self._timed = ran, timed

    def _table(self) -> tuple[list[str], list[list[str]]]:
        titles = ["Layer", "Parameters"]
        if self._ran:
            titles = ["Layer", "Input", "Output", "Parameters", "FLOPs", "Activations"]
        if self._timed:
            titles += ["Time", "Share"]
        cells = []
        for r in self.rows:
            depth = r.path.count(".") + 1 if r.path else 0
            name = f"{r.path.rpartition('.')[2]}: {r.kind}" if r.path else r.kind
            repeated = f" x{r.calls}" if r.calls > 1 else ""
            line = ["  " * depth + name + repeated]
            own = f"{r.parameters:,}" if r.parameters else "--"
            if self._ran:
                line += [_shown(r.inputs), _shown(r.outputs), own]
                line.append(amount(r.flops, "FLOP") if r.flops else "--")
                line.append(amount(r.activations, "B", 1024) if r.activations else "--")
            else:
                line.append(own)
            if self._timed:
                share = 100 * r.time / self.time if self.time else 0.0
                line += [duration(r.time), f"{share:.1f}%"] if r.calls else ["--", "--"]
            cells.append(line)
        return titles, cells

    def _totals(self) -> list[str]:
        size = amount(self.parameter_bytes, "B", 1024)
        lines = [f"Parameters: {self.parameters:,} ({self.trainable:,} trainable), {size}"]
        if self._ran:
            held = amount(self.activations, "B", 1024)
            lines.append(f"Forward: {amount(self.flops, 'FLOP')}, activations of layers {held}")
        if self._timed:
            lines.append(f"Time of a forward: {duration(self.time)}")
        return lines

    def __str__(self) -> str:
        return "\n".join([laid_out(*self._table()), *self._totals()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        titles, cells = self._table()
        head = "".join([f"<th>{escape(t)}</th>" for t in titles])
        body = ""
        for first, *others in cells:
            indent = (len(first) - len(first.lstrip())) / 2
            body += f'<tr><td style="text-align:left;padding-left:{indent:g}em">'
            body += escape(first.strip()) + "</td>"
            body += "".join([f"<td>{escape(c)}</td>" for c in others]) + "</tr>"
        totals = "<br>".join(map(escape, self._totals()))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{totals}</p>"


def summary(model: Module, *inputs: Any, time: bool = False, **kwargs: Any) -> Summary:
    """The layers of a model: shapes, parameters, FLOPs, memory of activations, time if asked.

    The inputs are tensors, or shapes of tensors of zeros; `kwargs` are given to the model. It runs
    in evaluation mode and without gradients, and is left as it was. Without inputs only parameters
    are told.

    >>> import undertow as ut
    >>> ut.summary(ut.nn.Sequential(ut.nn.Linear(4, 8), ut.nn.ReLU()), (2, 4))
    -----------  ------  ------  ----------  --------  -----------
    Layer         Input  Output  Parameters     FLOPs  Activations
    -----------  ------  ------  ----------  --------  -----------
    Sequential   (2, 4)  (2, 8)          --  144 FLOP           --
      0: Linear  (2, 4)  (2, 8)          40  128 FLOP         64 B
      1: ReLU    (2, 8)  (2, 8)          --   16 FLOP         64 B
    -----------  ------  ------  ----------  --------  -----------
    Parameters: 40 (40 trainable), 160 B
    Forward: 144 FLOP, activations of layers 128 B
    """
    if not isinstance(model, Module):
        raise ArgumentError(f"[summary] expects a module, got {type(model).__name__}")
    rows: dict[str, Row] = {}
    seen: set[int] = set()
    for path, module in model.named_modules():
        row = rows[path] = Row(path, module)
        for p in module._parameters.values():
            if p is not None and id(p) not in seen:
                seen.add(id(p))
                row.parameters += p.numel()
    ran = bool(inputs or kwargs)
    if time and not ran:
        raise ArgumentError("[summary] needs inputs for a time: summary(model, x, time=True)")
    if ran:
        given = [FUNCTIONS["zeros"](*x) if _is_shape(x) else x for x in inputs]
        _run(model, rows, given, kwargs, _RUNS if time else 1)
    return Summary(list(rows.values()), model, ran, time)


def _run(
    model: Module, rows: dict[str, Row], inputs: Sequence[Any], kwargs: dict[str, Any], runs: int
) -> None:
    """Call the model, and tell the rows what was seen."""
    modes = {module: module.training for module in model.modules()}
    with ExitStack() as undo:
        for path, module in model.named_modules():
            _watch(undo, rows[path], path, module)
        undo.callback(_restore, modes)
        model.eval()
        for number in range(runs):
            for row in rows.values():
                row.calls = row.activations = 0
            with no_grad(), profile(with_flops=True) as recorded:
                model(*inputs, **kwargs)
            marks = {e.key: e for e in recorded.key_averages() if e.kind == "mark"}
            for path, row in rows.items():
                mark = marks.get(_PREFIX + path)
                if mark is not None:
                    row.flops = mark.flops
                    best = row.time if number > 1 else float("inf")
                    row.time = min(best, mark.cpu_time_total)


def _restore(modes: dict[Module, bool]) -> None:
    for module, mode in modes.items():
        module.training = mode


_PREFIX = "undertow.summary: "


def _watch(undo: ExitStack, row: Row, path: str, module: Module) -> None:
    mark = record_function(_PREFIX + path)

    def before(module: Module, args: Any, kwargs: Any) -> None:
        found = _tensors((args, kwargs))
        row.inputs = [tuple(t.shape) for t in found]
        mark.__enter__()

    def after(module: Module, args: Any, output: Any) -> None:
        mark.__exit__()
        found = _tensors(output)
        row.outputs = [tuple(t.shape) for t in found]
        row.calls += 1
        if not module._modules:
            given = {t.data_ptr() for t in _tensors(args)}  # a view of them needs no memory
            new = [t for t in found if t.data_ptr() not in given]
            row.activations += sum([t.numel() * t.element_size() for t in new])

    undo.enter_context(module.register_forward_pre_hook(before, with_kwargs=True))
    undo.enter_context(module.register_forward_hook(after))


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _tensors(v)]
    return []


def _is_shape(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and bool(value) and all(type(v) is int for v in value)


def _shown(shapes: Any) -> str:
    if not shapes:
        return "--"
    return str(shapes[0]) if len(shapes) == 1 else ", ".join(map(str, shapes))
