"""`ut.onnx.export`: a model as an ONNX file, from a trace of one call.

The trace is the ops that ran; each is written as ONNX nodes (`ops`, `layers`; elementwise ops by
their expressions, `scalar`). What does not depend on an input is computed now and written as a
constant. Only what the outputs need is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import IO, Any

from .. import dtypes
from ..core.modes import no_grad
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..errors import ArgumentError, DTypeError, UnsupportedError
from ..files.atomic import PathLike, is_path, write_file
from ..shapes import broadcast_shapes
from . import layers as layers  # for their writers
from . import recurrent as recurrent
from .graph import Axis, Graph
from .model import Dims, Node, model_message
from .ops import WRITERS
from .probing import axes_by_name, check_names, find_axes, probes, resized
from .scalar import WHOLE, Scalar
from .tracing import Call, Trace, Value, place
from .writer import Writer

_OPSETS = range(18, 24)


def export(
    model: Any,
    args: Any,
    f: PathLike | IO[bytes] | None = None,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    **ignored: Any,
) -> bytes | None:
    """Write `model(*args)` as an ONNX model to a path or file object, or return its bytes.

    The model is called with `args`, a tensor or a tuple, in evaluation mode, and the operations
    that run are written: a branch that was not taken is not there, and numbers that Python
    computed, values that `item()` read, places that a mask selects, and random numbers are
    constants. A warning names the line where that happens.

    `dynamic_axes={"x": {0: "batch"}}` names sizes that may vary; the same name means the same size.
    `dynamic_shapes` tells the same by position, or by name. The model is then called with a handful
    of other sizes, up to eight times as large, too: what differs between these calls and is not
    linear in a size is an error. What differs at none of them is not noticed.

    >>> import undertow as ut
    >>> model = ut.nn.Sequential(ut.nn.Linear(3, 4), ut.nn.Linear(4, 2))
    >>> data = ut.onnx.export(model, ut.ones(5, 3), dynamic_axes={"input": {0: "batch"}})
    >>> isinstance(data, bytes)
    True
    """
    _check_ignored(ignored)
    opset = 18 if opset_version is None else opset_version
    if opset not in _OPSETS:
        raise UnsupportedError(
            f"[onnx.export] opset_version {opset} is not written; there are {_OPSETS.start} to "
            f"{_OPSETS.stop - 1}"
        )
    given = args if isinstance(args, tuple) else (args,)
    tensors = [a for a in given if isinstance(a, Tensor)]
    names = _names("input_names", input_names, len(tensors), "input")
    wanted = axes_by_name(names, dynamic_axes, dynamic_shapes)
    check_names(wanted, names, output_names)
    axes = find_axes(tensors, names, wanted)
    modes = _evaluated(model)
    try:
        data = _exported(model, given, names, axes, opset, output_names, wanted)
    finally:
        for module, training in modes:
            module.training = training
    if f is None:
        return data
    if is_path(f):
        write_file(f, [data])  # type: ignore[arg-type]
    else:
        f.write(data)  # type: ignore[union-attr]
    return None


def _check_ignored(ignored: dict[str, Any]) -> None:
    """torch's arguments that change nothing here; others are an error."""
    known = {
        "export_params": True,
        "do_constant_folding": True,
        "keep_initializers_as_inputs": False,
        "dynamo": None,
        "verbose": None,
        "training": None,
        "external_data": False,
        "optimize": None,
    }
    for name, value in ignored.items():
        if name not in known:
            raise DTypeError(f"[onnx.export] has no argument {name!r}")
        wanted = known[name]
        if wanted is not None and value not in (wanted, None):
            raise UnsupportedError(f"[onnx.export] {name}={value!r} is not supported")


def _names(what: str, given: Sequence[str] | None, count: int, default: str) -> list[str]:
    if given is None:
        return [default] if count == 1 else [f"{default}_{i}" for i in range(count)]
    found = list(given)
    if len(found) != count or len(set(found)) != count:
        raise ArgumentError(
            f"[onnx.export] {what} must be {count} different names, got {found}; only tensors count"
        )
    return found


def _exported(
    model: Any,
    args: Sequence[Any],
    names: list[str],
    axes: list[Axis],
    opset: int,
    output_names: Sequence[str] | None,
    wanted: dict[str, dict[int, str]],
) -> bytes:
    """The model from a trace; from traces of all probes, too, which must give the same."""
    first = _traced(model, args, names)
    if not axes:
        return _Export(first, first, names, Graph([], opset)).write(output_names, wanted)
    data, formulas = b"", None
    for number, probe in enumerate(probes(axes)):
        try:
            other = _traced(model, resized(args, names, probe), names, warns=False)
        except UnsupportedError:
            raise
        except Exception:
            if not number:
                raise
            continue  # no size for this model, so that nothing can be wrong there
        turned = [a._replace(first=a.second, second=a.first) for a in probe]
        # Turned around once: nothing may come from the sizes of the first trace alone.
        pairs = [(probe, first, other)] + ([] if number else [(turned, other, first)])
        for pair, one, two in pairs:
            graph = Graph(pair, opset, formulas)
            export = _Export(one, two, names, graph)
            found = export.write(output_names, wanted)
            if formulas is None:
                data, formulas, wanted = found, graph.formulas, export.named
            elif data != found:
                raise UnsupportedError(
                    "[onnx.export] some size in the model is not linear in a dynamic axis (or the "
                    "model computes other numbers at each call); make that axis fixed"
                )
    return data


_Traced = tuple[Trace, list[Value]]  # with the outputs


class _Export:
    """Two traces of a model, and the graph that is written from them."""

    def __init__(self, one: _Traced, other: _Traced, names: list[str], graph: Graph) -> None:
        self._names = names
        self._graph = graph
        self._trace, self._outputs = one
        self._twin, self._twin_outputs = other
        _check_same_ops(self._trace, self._twin)
        self._numbers = {id(v): i for i, v in enumerate(self._trace.values)}
        self._twin_numbers = {id(v): i for i, v in enumerate(self._twin.values)}
        if not self._same(self._outputs, self._twin_outputs):
            raise UnsupportedError(
                "[onnx.export] the model returns other tensors when a dynamic axis has another "
                "size; make that axis fixed"
            )
        self._written: dict[int, str] = {}
        self.named: dict[str, dict[int, str]] = {}  # sizes of outputs that vary

    def _same(self, one: Sequence[Any], other: Sequence[Any]) -> bool:
        """Whether these are the same values of the two traces; numbers are not compared."""
        places = [self._numbers.get(id(v)) for v in one]
        return places == [self._twin_numbers.get(id(v)) for v in other]

    def _twin_of(self, value: Value) -> Value:
        return self._twin.values[self._numbers[id(value)]]

    # The model --------------------------------------------------------------------------------
    def write(
        self, output_names: Sequence[str] | None, dynamic_axes: dict[str, dict[int, str]]
    ) -> bytes:
        """The bytes of the model."""
        names = _names("output_names", output_names, len(self._outputs), "output")
        inputs = []
        for name, value in zip(self._names, self._trace.values, strict=False):
            self._written[id(value)] = name
            inputs.append((name, value.tensor.dtype, self._dims(value, name, {})))
        self._write_needed()
        outputs = []
        for name, value in zip(names, self._outputs, strict=True):
            self._graph.nodes.append(Node("Identity", (self._name_of(value),), (name,), {}))
            dims = self._dims(value, name, dynamic_axes.get(name, {}))
            self.named[name] = {d: n for d, n in enumerate(dims) if isinstance(n, str)}
            outputs.append((name, value.tensor.dtype, dims))
        nodes, constants = self._needed(names)
        return model_message(nodes, constants, inputs, outputs, self._graph.opset)

    def _dims(self, value: Value, name: str, told: Mapping[int, str]) -> Dims:
        """The shape of an input or output, with names for the sizes that vary."""
        dims: list[int | str] = []
        pairs = zip(value.tensor.shape, self._twin_of(value).tensor.shape, strict=True)
        for d, (one, other) in enumerate(pairs):
            same = [a for a in self._graph.axes if (a.first, a.second) == (one, other)]
            own = [a for a in same if a.input == name and a.dim == d]
            if one == other:
                dims.append(one)
            else:
                known = [a.name for a in (*own, *same)]
                dims.append(told.get(d) or (known[0] if known else f"{name}_{d}"))
        return tuple(dims)

    def _write_needed(self) -> None:
        """Write the calls that the outputs depend on, in the order in which they ran."""
        needed: set[int] = set()
        waiting = list(self._outputs)
        while waiting:
            value = waiting.pop()
            call = value.made_by
            if call is None or id(call) in needed or self._is_constant(value):
                continue
            needed.add(id(call))
            waiting += [v for v in call.inputs if isinstance(v, Value)]
        for call, twin in zip(self._trace.calls, self._twin.calls, strict=True):
            if id(call) in needed:
                self._write_call(call, twin)

    def _needed(self, outputs: list[str]) -> tuple[list[Node], dict[str, Tensor]]:
        """The nodes and constants that lead to the outputs."""
        names = set(outputs)
        nodes = []
        for node in reversed(self._graph.nodes):
            if names & set(node.outputs):
                nodes.append(node)
                names |= set(node.inputs)
        nodes.reverse()
        return nodes, {n: t for n, t in self._graph.constants.items() if n in names}

    # Values -----------------------------------------------------------------------------------
    def _is_constant(self, value: Value) -> bool:
        """Whether it is the same at every size."""
        if value.varies:
            return False
        if self._twin is self._trace:
            return True
        one, other = value.tensor, self._twin_of(value).tensor
        return one.shape == other.shape and _equal(one, other)

    def _name_of(self, value: Value) -> str:
        """Its name in the graph; a constant is written when it is first asked for."""
        found = self._written.get(id(value))
        if found is None:
            found = self._written[id(value)] = self._constant(value)
        return found

    def _constant(self, value: Value) -> str:
        t = value.tensor
        if self._is_constant(value):
            return self._graph.tensor(t, value.name)
        other = self._twin_of(value).tensor
        what = "a constant"
        flat = t.reshape(-1)
        if flat.numel() and all(_equal(u, flat[0].expand(u.shape)) for u in (t, other)):
            # Of one number, such as zeros.
            sizes = self._graph.sizes(t.shape, other.shape, what)
            return self._graph.node("ConstantOfShape", sizes, value=flat[:1].clone())
        if all(
            u.ndim == 1 and u.dtype is dtypes.int64 and u.tolist() == list(range(len(u)))
            for u in (t, other)
        ):
            ends = [self._graph.number(n, dtypes.int64) for n in (0, 1)]
            size = self._graph.size(len(t), len(other), what)
            size = self._graph.node("Squeeze", size, self._graph.numbers([0]))
            return self._graph.node("Range", ends[0], size, ends[1])
        how = "other elements" if t.shape == other.shape else f"shape {other.shape}"
        raise UnsupportedError(
            f"[onnx.export] a constant of shape {t.shape} has {how} when a dynamic axis has "
            "another size (or at another call); compute it from an input, or make that axis fixed"
        )

    # Calls ------------------------------------------------------------------------------------
    def _write_call(self, call: Call, twin: Call) -> None:
        w = Writer(self._graph, call, twin, [])
        try:
            if not self._same(call.inputs, twin.inputs):
                raise w.refused("it takes other tensors when a dynamic axis has another size")
            if call.op.scalar is not None:
                found: Any = self._elementwise(w)
            elif call.op.name in WRITERS:
                w.names = [
                    self._name_of(i) if isinstance(i, Value) else w.fixed("operand", i, j)
                    for i, j in zip(call.inputs, twin.inputs, strict=True)
                ]
                found = WRITERS[call.op.name](w)
            else:
                raise w.refused("there is no ONNX form of it here")
        except UnsupportedError as error:
            why = str(error)
            if why.startswith("[onnx.export] the op"):
                raise
            raise w.refused(why.removeprefix("[onnx.export] ")) from None
        names = found if isinstance(found, list) else [found]
        for value, name in zip(call.outputs, names, strict=False):
            self._written[id(value)] = name

    def _elementwise(self, w: Writer) -> str:
        call = w.call
        values = [i for i in call.inputs if isinstance(i, Value)]
        kinds = [v.tensor.dtype for v in values if v.tensor.dtype is not dtypes.bool]
        dtype = kinds[0] if kinds else (values[0].tensor.dtype if values else w.dtype)
        if call.op.name == "where" and not kinds:
            dtype = w.dtype
        names = self._broadcast(w)
        pairs = zip(names, w.twin.inputs, strict=True)
        args = [n if isinstance(n, str) else w.operand(n, other, dtype) for n, other in pairs]
        if call.op.name in WHOLE:
            return self._graph.node(WHOLE[call.op.name], *args)
        return Scalar(self._graph, args, dtype).write(call.op.expr)

    def _broadcast(self, w: Writer) -> list[Any]:
        """The operands; ONNX broadcasts, so the `expand` before one is left out where it can be."""
        plain = [_unexpanded(i) if isinstance(i, Value) else i for i in w.call.inputs]
        values = [v for v in plain if isinstance(v, Value)]
        both = [v.tensor.shape for v in values], [self._twin_of(v).tensor.shape for v in values]
        if tuple([broadcast_shapes("onnx.export", *s) for s in both]) != w.out_shapes():
            plain = list(w.call.inputs)
        return [self._name_of(i) if isinstance(i, Value) else i for i in plain]


def _unexpanded(value: Value) -> Value:
    while value.made_by is not None and value.made_by.op.name == "expand":
        value = value.made_by.inputs[0]
    return value


def _check_same_ops(one: Trace, other: Trace) -> None:
    # A view or a copy: that may depend on sizes, and means the same.
    ops = [["view" if c.op.name == "reshape" else c.op.name for c in t.calls] for t in (one, other)]
    if ops[0] == ops[1] and len(one.values) == len(other.values):
        return
    pairs = enumerate(zip_longest(*ops, fillvalue="nothing"))
    at, (a, b) = next(((i, p) for i, p in pairs if p[0] != p[1]), (0, ("a tensor", "another")))
    calls = one.calls if at < len(one.calls) else other.calls
    raise UnsupportedError(
        "[onnx.export] the model runs other operations when a dynamic axis has another size: "
        f"{b} instead of {a}{place(calls[at].path) if calls else ''}; make that axis fixed"
    )


def _traced(model: Any, args: Sequence[Any], names: list[str], warns: bool = True) -> _Traced:
    trace = Trace(warns=warns)
    result = trace.run(model, args, names)
    return trace, [trace.find(t, "the result") for t in _flat(result)]


def _flat(result: Any) -> list[Tensor]:
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        return [t for member in result for t in _flat(member)]
    raise DTypeError(
        f"[onnx.export] the model returned a {type(result).__name__}; it must return tensors, or "
        "tuples, lists or dicts of them"
    )


def _evaluated(model: Any) -> list[tuple[Any, bool]]:
    """Switch to evaluation; the modules and whether they were training."""
    if not hasattr(model, "modules"):
        return []
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    return modes


@no_grad()
def _equal(one: Tensor, other: Tensor) -> bool:
    return bool(FUNCTIONS["equal"](one, other))
