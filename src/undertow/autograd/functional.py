"""Derivatives of functions: vjp, jvp, jacobian, hessian, vhp, hvp, in torch's signatures.

`func` takes tensors and returns a tensor or a tuple of them; `inputs` is a tensor or a tuple. A
tuple in gives a tuple out. With `create_graph=True` the results can be differentiated again, also
through `inputs`. Where an output does not depend on an input the derivative is zero, or with
`strict=True` an error.

Note [double backward]
The product of a Jacobian with a vector from the right, jvp, is made of two from the left: the
gradient u ↦ uᵀJ is linear in u, so its own vjp with v is J v, whatever u is. Every rule is written
in the library's ops, so this works for every op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backends.registry import backend_of
from ..core.dispatch import apply
from ..core.modes import enable_grad
from ..core.node import Zero
from ..core.op import OPS
from ..core.tensor import Tensor, node_of, wrap
from ..errors import ArgumentError, DTypeError, GradientError, ShapeError
from .api import grad

Tensors = tuple[Tensor, ...]


def _tuple(op: str, what: str, value: Any) -> tuple[Tensors, bool]:
    """A tensor or a sequence of them as a tuple, and whether it was a sequence."""
    several = isinstance(value, (tuple, list))
    given = tuple(value) if several else (value,)
    for i, t in enumerate(given):
        if not isinstance(t, Tensor):
            where = f"element {i} of {what}" if several else what
            raise DTypeError(f"[{op}] {where} is a {type(t).__name__}, expected a Tensor")
    return given, several


def _prepare(given: Tensors, create_graph: bool) -> Tensors:
    """Tensors to differentiate by: of their own, or connected to `given` if that is wanted."""
    return tuple(
        apply(OPS["view"], (t,), (tuple(t._array.shape),))
        if create_graph and node_of(t) is not None
        else t.detach().requires_grad_()
        for t in given
    )


def _call(op: str, func: Callable[..., Any], inputs: Tensors) -> tuple[Tensors, bool]:
    return _tuple(op, "the output of the function", func(*inputs))


def _vectors(op: str, v: Any, like: Tensors, what: str) -> Tensors:
    """`v` checked against the tensors that it multiplies; ones if it may be left out."""
    if v is None:
        if len(like) == 1 and like[0].numel() == 1:
            return (_full(like[0], 1),)
        raise ArgumentError(
            f"[{op}] v can be left out only for one {what} of one element, here are shapes "
            f"{', '.join(str(t.shape) for t in like)}"
        )
    vectors, _ = _tuple(op, "v", v)
    if len(vectors) != len(like):
        raise ArgumentError(f"[{op}] v has {len(vectors)} tensors for {len(like)} {what}s")
    for i, (a, t) in enumerate(zip(vectors, like, strict=True)):
        if a.shape != t.shape:
            raise ShapeError(f"[{op}] v {i} has shape {a.shape}, the {what} {t.shape}")
    return vectors


def _full(like: Tensor, value: float) -> Tensor:
    array = like._array
    return wrap(backend_of(array).full(tuple(array.shape), value, array.dtype))


def _varies(t: Tensor) -> bool:
    """Whether it depends on anything."""
    node = node_of(t)
    return node is not None and not isinstance(node, Zero)


def _gradients(
    op: str,
    outputs: Tensors,
    inputs: Tensors,
    vectors: Tensors,
    create_graph: bool,
    strict: bool,
    what: str = "the outputs do",
) -> Tensors:
    """The vjp of `outputs`, with zeros (or an error) where there is no dependence."""
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if _varies(o)]
    if strict and len(pairs) < len(outputs):
        raise GradientError(f"[{op}] {what} not depend on the inputs in a differentiable way")
    found: tuple[Any, ...] = (None,) * len(inputs)
    if pairs:
        roots, seeds = zip(*pairs, strict=True)
        found = grad(
            roots, inputs, seeds, retain_graph=True, create_graph=create_graph, allow_unused=True
        )
    if strict and any(g is None for g in found):
        missing = [i for i, g in enumerate(found) if g is None]
        raise GradientError(f"[{op}] {what} not depend on input {missing[0]}")
    return tuple(_full(t, 0) if g is None else g for g, t in zip(found, inputs, strict=True))


def _strict_graph(op: str, results: Tensors, strict: bool, create_graph: bool) -> None:
    if strict and create_graph:
        for i, t in enumerate(results):
            if not _varies(t):
                raise GradientError(
                    f"[{op}] result {i} does not depend on the inputs, so it cannot be "
                    "differentiated again as strict=True with create_graph=True asks"
                )


def _finish(results: Any, several: bool, create_graph: bool) -> Any:
    """What the caller gets: without history unless asked for, alone unless a tuple came in."""
    if not create_graph:
        results = tuple(t.detach() for t in results)
    return tuple(results) if several else results[0]


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The outputs and the product of `v` with the Jacobian: vᵀ J.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0])
    >>> ut.autograd.functional.vjp(lambda x: x * x, x, ut.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    given, several = _tuple("vjp", "inputs", inputs)
    with enable_grad():
        prepared = _prepare(given, create_graph)
        outputs, many = _call("vjp", func, prepared)
        vectors = _vectors("vjp", v, outputs, "output")
        results = _gradients("vjp", outputs, prepared, vectors, create_graph, strict)
    _strict_graph("vjp", results, strict, create_graph)
    return _finish(outputs, many, create_graph), _finish(results, several, create_graph)


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The outputs and the product of the Jacobian with `v`: J v; see Note [double backward].

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0])
    >>> ut.autograd.functional.jvp(lambda x: x * x, x, ut.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    given, _ = _tuple("jvp", "inputs", inputs)
    vectors = _vectors("jvp", v, given, "input")
    with enable_grad():
        prepared = _prepare(given, create_graph)
        outputs, many = _call("jvp", func, prepared)
        probes = tuple(_full(o, 1).requires_grad_() for o in outputs)
        rows = _gradients("jvp", outputs, prepared, probes, True, strict)
        results = _gradients("jvp", rows, probes, vectors, create_graph, strict)
    _strict_graph("jvp", results, strict, create_graph)
    return _finish(outputs, many, create_graph), _finish(results, many, create_graph)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """All derivatives of every output by every input, of shape (*output, *input).

    With a tuple of outputs the result is a tuple over outputs, with a tuple of inputs each is a
    tuple over inputs. `vectorize` is accepted; the rows are computed one by one.

    >>> import undertow as ut
    >>> ut.autograd.functional.jacobian(lambda x: x * x, ut.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ArgumentError(
            f"[jacobian] strategy is 'reverse-mode' or 'forward-mode', got {strategy!r}"
        )
    if strict and vectorize:
        raise ArgumentError("[jacobian] takes either strict=True or vectorize=True")
    given, several = _tuple("jacobian", "inputs", inputs)
    with enable_grad():
        prepared = _prepare(given, create_graph)
        outputs, many = _call("jacobian", func, prepared)
        results = [
            _finish(_rows(output, prepared, create_graph, strict), several, create_graph)
            for output in outputs
        ]
    return tuple(results) if many else results[0]


def _rows(output: Tensor, inputs: Tensors, create_graph: bool, strict: bool) -> list[Tensor]:
    """The Jacobian of one output by each input, row by row."""
    if output.is_complex():
        raise GradientError(
            "[jacobian] grad can be implicitly created only for real scalar outputs but got "
            f"{output.dtype}; return its view_as_real"
        )
    size = output.numel()
    rows: list[list[Tensor]] = [[] for _ in inputs]
    one = backend_of(output._array).full((1,), 1, output._array.dtype)
    backend = backend_of(one)  # of a wrapper's it is not
    for j in range(size):
        seed = backend.full((size,), 0, output._array.dtype)
        backend.assign(backend.slice(seed, (slice(j, j + 1),)), one)
        vector = wrap(backend.reshape(seed, output.shape))
        found = _gradients(
            "jacobian", (output,), inputs, (vector,), create_graph, strict, "the output does"
        )
        _strict_graph("jacobian", found, strict, create_graph)
        for row, g in zip(rows, found, strict=True):
            row.append(g)
    return [
        _stacked(row, output.shape + t.shape) if size else _empty(t, output.shape + t.shape)
        for row, t in zip(rows, inputs, strict=True)
    ]


def _stacked(rows: list[Tensor], shape: tuple[int, ...]) -> Tensor:
    from ..ops.shape.joining import stack

    return stack(rows).reshape(shape)


def _empty(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    return wrap(backend_of(like._array).full(shape, 0, like._array.dtype))


def _one_number(op: str, func: Callable[..., Any]) -> Callable[..., Tensor]:
    """`func`, checked to return a single tensor of one element."""

    def checked(*inputs: Tensor) -> Tensor:
        (output, *more), _ = _call(op, func, inputs)
        if more or output.numel() != 1:
            raise GradientError(
                f"[{op}] the function must return one tensor of one element, got "
                f"{1 + len(more)} of shape {output.shape}"
            )
        return output.reshape(())

    return checked


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """All second derivatives of a function with one number as its result.

    >>> import undertow as ut
    >>> ut.autograd.functional.hessian(lambda x: (x * x * x).sum(), ut.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    _, several = _tuple("hessian", "inputs", inputs)
    single = _one_number("hessian", func)

    def gradient(*values: Tensor) -> Any:
        output = single(*values)
        found = _gradients(
            "hessian", (output,), values, (_full(output, 1),), True, strict, "the output does"
        )
        return found if several else found[0]

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def _gradient_by(op: str, func: Any, given: Tensors, strict: bool) -> Any:
    """The output of a one-number function and its gradient, both recorded."""
    output = _one_number(op, func)(*given)
    first = _gradients(op, (output,), given, (_full(output, 1),), True, strict, "the output does")
    return output, first


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The output and the product of `v` with the Hessian: vᵀ H.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0])
    >>> ut.autograd.functional.vhp(lambda x: (x * x * x).sum(), x, ut.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    given, several = _tuple("vhp", "inputs", inputs)
    vectors = _vectors("vhp", v, given, "input")
    with enable_grad():
        prepared = _prepare(given, create_graph)
        output, first = _gradient_by("vhp", func, prepared, strict)
        results = _gradients("vhp", first, prepared, vectors, create_graph, strict)
    _strict_graph("vhp", results, strict, create_graph)
    return _finish((output,), False, create_graph), _finish(results, several, create_graph)


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The output and the product of the Hessian with `v`: H v.

    The Hessian is symmetric, so this is `vhp` for every function that is twice differentiable.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0])
    >>> ut.autograd.functional.hvp(lambda x: (x * x * x).sum(), x, ut.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    given, several = _tuple("hvp", "inputs", inputs)
    vectors = _vectors("hvp", v, given, "input")
    with enable_grad():
        prepared = _prepare(given, create_graph)
        output, first = _gradient_by("hvp", func, prepared, strict)
        probes = tuple(_full(t, 1).requires_grad_() for t in prepared)
        rows = _gradients("hvp", first, prepared, probes, True, strict)
        results = _gradients("hvp", rows, probes, vectors, create_graph, strict)
    _strict_graph("hvp", results, strict, create_graph)
    return _finish((output,), False, create_graph), _finish(results, several, create_graph)
