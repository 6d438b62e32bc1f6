"""Derivatives of functions as functions.

Note [levels]
A transform differentiates by tensors of its own: views of its arguments where these have a history
outside, else leaves that nobody else has. The derivative is recorded only where the result depends
on something else that wants a gradient: an argument of a transform around this one, or a tensor
that the function found by itself.
Inside `inference_mode` a transform computes as outside of it, on its own tensors; what it returns
then has no history.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.api import grad as gradients
from ..autograd.forward_ad import with_tangent
from ..autograd.forward_mode import unpacked
from ..backends.batch import enclosing
from ..backends.dual import Level, on_a_line
from ..core.batching import lifted
from ..core.inplace import zeros_of
from ..core.modes import current, enable_grad, inference_mode, is_grad_enabled
from ..core.node import AccumulateGrad
from ..core.tensor import Tensor, node_of, restored, wrap
from ..errors import ArgumentError, DTypeError, GradientError, ShapeError
from ..ops.create.creation import eye
from ..utils._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten
from .batches import _mapped, over_rows

ArgNums = int | tuple[int, ...]


def _own(op: str, tree: Any) -> tuple[list[Tensor], TreeSpec]:
    """The tensors of a tree, to differentiate by; see Note [levels]."""
    leaves, spec = tree_flatten(tree)
    for x in leaves:
        if not isinstance(x, Tensor):
            raise DTypeError(f"[{op}] differentiates by tensors, got {type(x).__name__}")
    if not leaves:
        raise ArgumentError(f"[{op}] needs at least one tensor to differentiate by")
    with _recording():
        return [_own_tensor(x) for x in leaves], spec


def _own_tensor(x: Tensor) -> Tensor:
    frame = enclosing.get()
    while frame is not None:  # else the derivative would be the sum over the batch
        x = lifted(x, (frame,))
        frame = frame.outer
    if x.is_inference():  # its memory alone: what it is itself can have no history
        return wrap(x._array).requires_grad_()
    return x.view(x.shape) if x.requires_grad else restored(x._same().requires_grad_())


def _recording() -> Any:
    """A block in which ops are recorded, in `inference_mode` too."""
    return inference_mode(False) if current().inference else enable_grad()


def _numbers(op: str, argnums: Any, count: int) -> tuple[int, ...]:
    """The positions of the arguments to differentiate by, from 0 on."""
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not all(isinstance(n, int) for n in numbers):
        raise DTypeError(f"[{op}] argnums is an int or a tuple of ints, got {argnums!r}")
    if not numbers:
        raise ArgumentError(f"[{op}] argnums must not be empty")
    for n in numbers:
        if not -count <= n < count:
            raise ArgumentError(f"[{op}] argnums={argnums}, but there are {count} arguments")
    found = tuple(n % count for n in numbers)
    if len(set(found)) < len(found):
        raise ArgumentError(f"[{op}] argnums must be unique, got {argnums}")
    return found


def _depend_on_others(outputs: list[Tensor], own: list[Tensor]) -> bool:
    """Whether anything but `own` leaves, which nobody else has, wants a gradient of these."""
    mine = {id(x) for x in own}
    waiting = [node for o in outputs if (node := node_of(o)) is not None]
    seen = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, AccumulateGrad) and id(node.variable) not in mine:
            return True
        waiting += [parent for parent in node.parents if parent is not None]
    return False


class _Call:
    """A function called with tensors of its own in place of some arguments."""

    def __init__(
        self, op: str, func: Callable[..., Any], args: Any, kwargs: Any, argnums: ArgNums, aux: bool
    ) -> None:
        several = isinstance(argnums, tuple)
        self.op = op
        numbers = _numbers(op, argnums, len(args))
        chosen = tuple(args[n] for n in numbers) if several else args[numbers[0]]
        self.own, self.inputs = _own(op, chosen)
        replaced = list(args)
        found = tree_unflatten(self.own, self.inputs)
        for n, value in zip(numbers, found if several else (found,), strict=True):
            replaced[n] = value
        enabled = is_grad_enabled()
        with _recording():
            result = func(*replaced, **kwargs)
        self.aux: Any = None
        if aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise DTypeError(f"[{op}] has_aux=True wants the function to return (output, aux)")
            result, self.aux = result
        self.leaves, self.outputs = tree_flatten(result)
        for x in self.leaves:
            if not isinstance(x, Tensor):
                raise DTypeError(f"[{op}] the function must return tensors, got {type(x).__name__}")
        if not self.leaves:
            raise ArgumentError(f"[{op}] the function must return at least one tensor")
        self.depends = _depend_on_others(self.leaves, self.own)
        self.recorded = enabled and self.depends

    def result(self, tensors: list[Tensor] | None = None, spec: TreeSpec | None = None) -> Any:
        """The output, or a tree of derivatives, with a history only if it has one outside."""
        found = self.leaves if tensors is None else tensors
        found = found if self.recorded else [_alone(x) for x in found]
        return tree_unflatten(found, self.outputs if spec is None else spec)

    def kept(self) -> Any:
        """What the function returned beside its output."""
        if self.recorded:
            return self.aux
        return tree_map(lambda x: x._same() if isinstance(x, Tensor) else x, self.aux)

    def pull(
        self, outputs: list[Tensor], by: list[Tensor], seeds: list[Tensor], record: bool
    ) -> list[Tensor]:
        """The product of `seeds` with the derivative of `outputs`; zeros where there is none."""
        pairs = [(o, s) for o, s in zip(outputs, seeds, strict=True) if o.requires_grad]
        if not pairs:
            return [x.detach().new_zeros(x.shape) for x in by]
        roots, vectors = zip(*pairs, strict=True)
        with _recording():
            return list(
                gradients(
                    roots, by, vectors, retain_graph=True, create_graph=record,
                    materialize_grads=True,
                )
            )  # fmt: skip

    def like_outputs(self, cotangents: Any) -> list[Tensor]:
        """Cotangents that were given, in the order of the outputs."""
        found, spec = tree_flatten(cotangents)
        if spec != self.outputs and not (self.outputs.is_leaf() and len(found) == 1):
            raise ArgumentError(f"[{self.op}] cotangents have another structure than the outputs")
        return _fitting(self.op, "cotangent", found, self.leaves)


def _alone(x: Tensor) -> Tensor:
    """`x` without a history; itself if it has none, and shares its memory with nobody."""
    return x if x._node is None and x._alias is None else restored(x._same())


def _fitting(op: str, what: str, given: list[Any], like: list[Tensor]) -> list[Tensor]:
    for a, x in zip(given, like, strict=True):
        if not isinstance(a, Tensor) or a.shape != x.shape:
            shape = a.shape if isinstance(a, Tensor) else type(a).__name__
            raise ShapeError(f"[{op}] a {what} of {shape} does not fit {x.shape}")
    return given


def grad_and_value(
    func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, and its value; see `grad`.

    >>> import undertow as ut
    >>> ut.func.grad_and_value(lambda x: x**3)(ut.tensor(2.0))
    (tensor(12.), tensor(8.))
    """

    @functools.wraps(func)
    def both(*args: Any, **kwargs: Any) -> Any:
        call = _Call("grad", func, args, kwargs, argnums, has_aux)
        if not call.outputs.is_leaf() or call.leaves[0].ndim:
            shapes = ", ".join(str(x.shape) for x in call.leaves)
            raise ShapeError(f"[grad] the function must return one number, got shapes {shapes}")
        (output,) = call.leaves
        found = call.pull([output], call.own, [output.detach().new_ones(())], call.recorded)
        value = call.result()
        return call.result(found, call.inputs), (value, call.kept()) if has_aux else value

    return both


def grad(
    func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, whose value is one number.

    It is taken by the argument `argnums`, or by several. With `has_aux` the function returns
    something else beside the number, which comes back beside the gradient.

    >>> import undertow as ut
    >>> cube = lambda x: x**3
    >>> ut.func.grad(cube)(ut.tensor(2.0)), ut.func.grad(ut.func.grad(cube))(ut.tensor(2.0))
    (tensor(12.), tensor(12.))
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The output of `func`, and a function from cotangents of it to those of the arguments.

    >>> import undertow as ut
    >>> out, pull = ut.func.vjp(lambda x, y: x * y, ut.tensor(2.0), ut.tensor(3.0))
    >>> pull(ut.tensor(10.0))
    (tensor(30.), tensor(20.))
    """
    call = _Call("vjp", func, primals, {}, tuple(range(len(primals))), has_aux)

    def pull(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        seeds = call.like_outputs(given)
        outer = is_grad_enabled() and (call.depends or any(s.requires_grad for s in seeds))
        record = outer if create_graph is None else create_graph
        found = call.pull(call.leaves, call.own, seeds, record)
        found = found if record else [_alone(x) for x in found]
        return tree_unflatten(found, call.inputs)

    return (call.result(), pull, call.kept()) if has_aux else (call.result(), pull)


def _pushed(call: _Call) -> Callable[..., Any]:
    """The product of the derivative with tangents, by Note [double backward]."""
    with _recording():
        probes = [x.detach().new_ones(x.shape).requires_grad_() for x in call.leaves]
    rows = call.pull(call.leaves, call.own, probes, True)

    def push(*tangents: Any) -> Any:
        found, spec = tree_flatten(tangents)
        if spec != call.inputs:
            raise ArgumentError(f"[{call.op}] tangents have another structure than the arguments")
        given = _fitting(call.op, "tangent", found, call.own)
        outer = is_grad_enabled() and (call.depends or any(t.requires_grad for t in given))
        result = call.pull(rows, probes, given, outer)
        return tree_unflatten(result if outer else [_alone(x) for x in result], call.outputs)

    return push


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """The output of `func`, and the change of it when the arguments change by `tangents`.

    An output that depends on no argument changes by zeros; with `strict` it is an error.

    >>> import undertow as ut
    >>> ut.func.jvp(lambda x: x * x, (ut.tensor(3.0),), (ut.tensor(10.0),))
    (tensor(9.), tensor(60.))
    """
    given: Any = primals, tangents
    if not all(isinstance(g, tuple) for g in given):
        raise DTypeError(
            "[jvp] primals and tangents are tuples of the arguments, got "
            f"{type(primals).__name__} and {type(tangents).__name__}"
        )
    if not primals:
        raise ArgumentError("[jvp] needs at least one tensor to differentiate by")
    if tree_flatten(primals)[1] != tree_flatten(tangents)[1]:
        raise ArgumentError("[jvp] tangents have another structure than the arguments")
    leaves, spec = tree_flatten(primals)
    if not leaves:
        raise ArgumentError("[jvp] needs at least one tensor to differentiate by")
    level = Level()
    try:
        duals = [
            with_tangent("jvp", x, t, level)
            for x, t in zip(leaves, tree_flatten(tangents)[0], strict=True)
        ]
        result = func(*tree_unflatten(duals, spec))
        aux: Any = None
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise DTypeError("[jvp] has_aux=True wants the function to return (output, aux)")
            result, aux = result
            aux = tree_map(lambda x: unpacked(x, level)[0] if isinstance(x, Tensor) else x, aux)
        outputs, shape = tree_flatten(result)
        for x in outputs:
            if not isinstance(x, Tensor):
                raise DTypeError(f"[jvp] the function must return tensors, got {type(x).__name__}")
        if not outputs:
            raise ArgumentError("[jvp] the function must return at least one tensor")
        parts = [unpacked(x, level) for x in outputs]
    finally:
        level.end()
    if strict and any(t is None for _, t in parts):
        raise GradientError("[jvp] strict=True, but an output does not depend on the arguments")
    changes = [zeros_of(x) if t is None else t for x, t in parts]
    out = tree_unflatten([x for x, _ in parts], shape), tree_unflatten(changes, shape)
    return (*out, aux) if has_aux else out


def jet(
    func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], order: int
) -> tuple[Any, list[Any]]:
    """The output of `func`, and its derivatives along a direction up to an order, in one pass.

    The arguments move along a straight line, `primals + t * tangents`; the derivatives are those
    by t at 0, the first, the second and so on. The cost grows with the square of the order, where
    nested `jvp` or `grad` double it each time. See Note [Taylor mode].

    >>> import undertow as ut
    >>> ut.func.jet(lambda x: x**3, (ut.tensor(2.0),), (ut.tensor(1.0),), order=4)
    (tensor(8.), [tensor(12.), tensor(12.), tensor(6.), tensor(0.)])
    """
    if order < 1:
        raise ArgumentError(f"[jet] order is an int above 0, got {order!r}")
    given: Any = primals, tangents
    if not all(isinstance(g, tuple) for g in given) or not primals:
        raise ArgumentError("[jet] primals and tangents are tuples of the arguments")
    leaves, spec = tree_flatten(primals)
    changes, same = tree_flatten(tangents)
    if spec != same:
        raise ArgumentError("[jet] tangents have another structure than the arguments")
    level = Level(max(order, 2))
    try:
        curves = [_on_a_line(x, v, level) for x, v in zip(leaves, changes, strict=True)]
        result = func(*tree_unflatten(curves, spec))
        outputs, shape = tree_flatten(result)
        for x in outputs:
            if not isinstance(x, Tensor):
                raise DTypeError(f"[jet] the function must return tensors, got {type(x).__name__}")
        parts = [unpacked(x, level) for x in outputs]
        rows: list[list[Tensor]] = [[] for _ in range(order)]
        for x, series in parts:
            for k, row in enumerate(rows, 1):
                c = None if series is None else series[k]
                if c is None:
                    row.append(zeros_of(x))
                else:
                    row.append(c.clone() if k == 1 else c * float(math.factorial(k)))
    finally:
        level.end()
    return (
        tree_unflatten([x for x, _ in parts], shape),
        [tree_unflatten(row, shape) for row in rows],
    )


def _on_a_line(x: Any, v: Any, level: Level) -> Tensor:
    """A view of `x` with the series of a straight line."""
    view = with_tangent("jet", x, v, level)
    on_a_line(view._array)
    return view


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The output of `func`, and a function from tangents of the arguments to those of the output.

    >>> import undertow as ut
    >>> out, push = ut.func.linearize(ut.sin, ut.zeros(2))
    >>> push(ut.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    call = _Call("linearize", func, primals, {}, tuple(range(len(primals))), False)
    return call.result(), _pushed(call)


def jacrev(
    func: Callable[..., Any],
    argnums: ArgNums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,  # torch's way to save memory
) -> Callable[..., Any]:
    """A function that returns all derivatives of `func`, of shape (*output, *argument).

    A tree of outputs gives a tree, of trees over the arguments. With `chunk_size` so many rows are
    computed at a time, else all of an output.

    >>> import undertow as ut
    >>> ut.func.jacrev(ut.sin)(ut.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        call = _Call("jacrev", func, args, kwargs, argnums, has_aux)
        _check_real("jacrev", "inputs", call.own)
        _check_real("jacrev", "outputs", call.leaves)
        found = [call.result(_rows(call, o, chunk_size), call.inputs) for o in call.leaves]
        whole = tree_unflatten(found, call.outputs)
        return (whole, call.kept()) if has_aux else whole

    return jacobian


def _check_real(op: str, what: str, tensors: Sequence[Tensor]) -> None:
    """Raise for complex tensors: a derivative of their parts is no complex number."""
    for x in tensors:
        if x.is_complex():
            raise DTypeError(
                f"[{op}] takes real {what}, got one of {x.dtype}; give the parts by view_as_real"
            )


def _rows(call: _Call, output: Tensor, chunk_size: int | None) -> list[Tensor]:
    """The Jacobian of one output by each input: all rows at once, or some."""
    count = output.numel()
    shapes = [output.shape + x.shape for x in call.own]
    if not count:
        return [x.detach().new_zeros(s) for x, s in zip(call.own, shapes, strict=True)]
    seeds = eye(count, dtype=output.dtype, device=output.device)

    def row(seed: Tensor) -> tuple[Tensor, ...]:
        return tuple(call.pull([output], call.own, [seed], call.recorded))

    rows = over_rows(row, chunk_size)(seeds.reshape(count, *output.shape))
    return [r.reshape(s) for r, s in zip(rows, shapes, strict=True)]


def jacfwd(
    func: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """What `jacrev` returns, column by column, in forward mode: for few inputs and many outputs.

    >>> import undertow as ut
    >>> ut.func.jacfwd(lambda x: x[0] * x)(ut.tensor([2.0, 3.0]))
    tensor([[4., 0.],
            [3., 2.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        several = isinstance(argnums, tuple)
        numbers = _numbers("jacfwd", argnums, len(args))
        chosen = tuple(args[n] for n in numbers)
        leaves, spec = tree_flatten(chosen)
        for x in leaves:
            if not isinstance(x, Tensor):
                raise DTypeError(f"[jacfwd] differentiates by tensors, got {type(x).__name__}")
        _check_real("jacfwd", "inputs", leaves)

        def of_chosen(*given: Any) -> Any:
            replaced = list(args)
            for n, value in zip(numbers, given, strict=True):
                replaced[n] = value
            return func(*replaced, **kwargs)

        def column(*tangents: Tensor) -> Any:
            found = jvp(of_chosen, chosen, tree_unflatten(list(tangents), spec), has_aux=has_aux)
            return found[1], found[2] if has_aux else None

        columns = _mapped(column, 0, (-1, None), randomness, None, None, False)
        found, aux = columns(*_basis(leaves))
        outputs, shape = tree_flatten(found)
        _check_real("jacfwd", "outputs", outputs)
        sizes = [x.numel() for x in leaves]
        rows = []
        for output in outputs:
            columns_of = output.split(sizes, -1) if len(leaves) > 1 else (output,)
            parts = [
                part.reshape(*output.shape[:-1], *x.shape)
                for part, x in zip(columns_of, leaves, strict=True)
            ]
            by = tree_unflatten(parts, spec)
            rows.append(by if several else by[0])
        whole = tree_unflatten(rows, shape)
        return (whole, aux) if has_aux else whole

    return jacobian


def _basis(leaves: list[Tensor]) -> list[Tensor]:
    """For each tensor the tangents along every element of all of them, one after the other."""
    total = sum(x.numel() for x in leaves)
    found, start = [], 0
    for x in leaves:
        whole = eye(total, dtype=x.dtype, device=x.device)
        part = whole if len(leaves) == 1 else whole[:, start : start + x.numel()]
        found.append(part.reshape(total, *x.shape))
        start += x.numel()
    return found


def hessian(func: Callable[..., Any], argnums: ArgNums = 0) -> Callable[..., Any]:
    """A function that returns all second derivatives of `func`, forward over reverse.

    >>> import undertow as ut
    >>> ut.func.hessian(lambda x: x.prod())(ut.tensor([2.0, 3.0]))
    tensor([[0., 1.],
            [1., 0.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def hvp(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """The value of `func`, and the product of its Hessian with `tangents`, forward over reverse.

    `func` returns one number. The product has the structure of the arguments.

    >>> import undertow as ut
    >>> x, v = ut.tensor([1.0, 2.0]), ut.tensor([1.0, 0.0])
    >>> ut.func.hvp(lambda x: (x**3).sum(), (x,), (v,))
    (tensor(9.), (tensor([6., 0.]),))
    """
    both = grad_and_value(func, tuple(range(len(primals))))
    (_, value), (product, _) = jvp(both, primals, tangents)
    return value, product


def laplacian(func: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """A function that returns the sum of the unmixed second derivatives of each output of `func`.

    The second derivatives along all elements of one argument are taken at once, by `jet`.

    >>> import undertow as ut
    >>> ut.func.laplacian(lambda x: (x**3).sum())(ut.tensor([1.0, 2.0]))
    tensor(18.)
    """

    @functools.wraps(func)
    def summed(*args: Any, **kwargs: Any) -> Any:
        (n,) = _numbers("laplacian", argnum, len(args))
        x = args[n]
        if not isinstance(x, Tensor):
            raise DTypeError(f"[laplacian] differentiates by a tensor, got {type(x).__name__}")

        def along(x: Tensor) -> Any:
            return func(*args[:n], x, *args[n + 1 :], **kwargs)

        def twice(v: Tensor) -> Any:
            return jet(along, (x,), (v,), 2)[1][1]

        return tree_map(lambda t: t.sum(0), over_rows(twice)(_basis([x])[0]))

    return summed


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """The function itself: changes in place need no help here.

    >>> import undertow as ut
    >>> ut.func.functionalize(lambda x: x.clone().add_(1))(ut.zeros(1))
    tensor([1.])
    """
    return func
