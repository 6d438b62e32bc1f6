"""What can be done to nested tensors: elements, trailing dimensions, sums, products, attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.register import FUNCTIONAL, FUNCTIONS
from ..core.tensor import Tensor
from ..errors import ArgumentError, DimError, ShapeError, UnsupportedError
from ..layouts import jagged
from .tensor import NestedInt, NestedTensor, ends_of

# What is done to each element by itself, whatever the operands.
ELEMENTWISE = set(
    """
    abs absolute acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh bfloat16
    bitwise_and bitwise_not bitwise_or bitwise_xor bool ceil celu clamp clamp_max clamp_min clip
    clone cos cosh deg2rad detach digamma div divide double elu eq erf erfc erfinv exp
    exp2 expm1 fill_ float floor floor_divide fmod frac ge gelu greater gt half hardshrink
    hardsigmoid hardswish hardtanh int isfinite isinf isnan isneginf isposinf le leaky_relu less
    lerp lgamma log log10 log1p log2 logical_and logical_not logical_or logical_xor logit
    logsigmoid long lt masked_fill maximum minimum mish mul multiply nan_to_num ne neg negative
    ones_like positive pow rad2deg rand_like randint_like randn_like reciprocal relu relu6
    remainder round rsqrt rsub selu short sigmoid sgn sign signbit silu sin sinc sinh softplus
    softshrink softsign sqrt square sub subtract tan tanh tanhshrink threshold to true_divide
    trunc type type_as where xlogy zero_ zeros_like copy_ full_like empty_like contiguous cpu
    """.split()  # noqa: SIM905
)


def known(name: str) -> bool:
    """Whether nested tensors have an answer to this function."""
    return name in ELEMENTWISE or name in HANDLERS or _in_place(name)


def _in_place(name: str) -> bool:
    """Whether a method changes elements in place: `mul_`."""
    plain = name[:-1]
    return name.endswith("_") and (plain in ELEMENTWISE or name in ELEMENTWISE)


def answer(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the function `name` gives for arguments of which at least one is nested."""
    short = name.rpartition(".")[2]
    if short in HANDLERS:
        return HANDLERS[short](*args, **kwargs)
    if not known(short):
        raise UnsupportedError(
            f"[{name}] is not defined for nested tensors; use values(), unbind() or "
            "to_padded_tensor(padding)"
        )
    fn: Any = FUNCTIONS.get(short) or FUNCTIONAL.get(short) or getattr(Tensor, short)
    like = next(x for x in (*args, *kwargs.values()) if isinstance(x, NestedTensor))
    given = [_beside(short, x, like) for x in args]
    named = {k: _beside(short, x, like) for k, x in kwargs.items()}
    found = fn(*given, **named)
    return args[0] if found is like._values and _in_place(short) else like._with(found)


def _beside(op: str, x: Any, like: NestedTensor) -> Any:
    """An operand of an elementwise function, as a tensor that fits the values."""
    if isinstance(x, NestedTensor):
        if x._list != like._list or x._ragged != like._ragged:
            raise ShapeError(
                f"[{op}] nested tensors need the same parts, got lengths {like._lengths()[:6]} and "
                f"{x._lengths()[:6]}"
            )
        return x._values
    if isinstance(x, NestedInt):
        raise ArgumentError(f"[{op}] the size {x!r} differs from part to part and is no number")
    if not isinstance(x, Tensor) or not x.ndim:
        return x
    at = like._ragged - like.ndim  # from the end, as broadcasting counts
    if x.ndim < -at:  # the dimensions behind the ragged one
        return x
    if x.shape[at] != 1:  # all parts of a padded batch
        return _taken(op, x, like, at)
    if x.ndim == like.ndim and x.shape[0] != 1:  # something for each part
        lengths = FUNCTIONS["tensor"](like._lengths(), device=x.device)
        rows = x.squeeze(at).repeat_interleave(lengths, 0)
        return rows.movedim(0, like._ragged - 1)
    return x.squeeze(0) if x.ndim == like.ndim else x


def _taken(op: str, x: Tensor, like: NestedTensor, at: int) -> Tensor:
    lengths = like._lengths()
    if x.ndim != like.ndim or x.shape[at] < max(lengths, default=0) or len(x) not in (1, len(like)):
        raise ShapeError(
            f"[{op}] a tensor of shape {x.shape} does not go with a nested one of {like.shape}"
        )
    parts = [x[i if len(x) > 1 else 0].narrow(at, 0, n) for i, n in enumerate(lengths)]
    return FUNCTIONS["cat"](parts, like._ragged - 1)


# Dimensions ------------------------------------------------------------------------------------
def _inner(op: str, x: NestedTensor, dim: int) -> int:
    """A dimension of the values, which is neither the batch nor the ragged one."""
    d = x._dim(op, dim)
    if d in (0, x._ragged):
        which = "batch" if d == 0 else "ragged"
        raise DimError(f"[{op}] is not defined for the {which} dimension of a nested tensor")
    return d - 1


def _softmax(name: str) -> Callable[..., Any]:
    def run(
        x: NestedTensor, dim: int = -1, *rest: Any, dtype: Any = None, **_: Any
    ) -> NestedTensor:
        values = x._values if dtype is None else x._values.to(dtype)
        if x._dim(name, dim) != x._ragged:
            return x._with(FUNCTIONS[name](values, _inner(name, x, dim)))
        at = x._ragged - 1
        parts = [FUNCTIONS[name](p, at) for p in x._with(values).unbind()]
        return x._with(FUNCTIONS["cat"](parts, at))

    return run


def _dims_of(op: str, x: NestedTensor, dim: Any) -> list[int]:
    return sorted(x._dim(op, d) for d in ([dim] if isinstance(dim, int) else list(dim)))


def _reduced(name: str) -> Callable[..., Any]:
    """Sums and the like: over all elements, over each part, or over other dimensions."""

    def run(x: NestedTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        values = x._values if dtype is None else x._values.to(dtype)
        fn = FUNCTIONS[name]
        if dim is None:
            return fn(values)
        dims = _dims_of(name, x, dim)
        if 0 in dims and x._ragged not in dims:
            raise DimError(f"[{name}] over the batch of a nested tensor goes with its ragged dim")
        inner: Any = [d - 1 for d in dims if d]
        if len(inner) == 1:  # `prod` takes no list
            (inner,) = inner
        if 0 in dims:
            found = fn(values, inner, keepdim=keepdim)
            return found.unsqueeze(0) if keepdim else found
        if x._ragged not in dims:
            found = fn(values, inner, keepdim=keepdim)
            gone = 0 if keepdim else sum(d < x._ragged for d in dims)
            return x._with(found, x._ragged - gone)
        parts = [fn(p, inner, keepdim=keepdim) for p in x._with(values).unbind()]
        return FUNCTIONS["stack"](parts)

    return run


def _extreme(name: str) -> Callable[..., Any]:
    """`max` and `min`: of all elements, along one dimension with positions, or of two tensors."""

    def run(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        if other is not None or isinstance(dim, (Tensor, NestedTensor)):
            return answer(f"{name}imum", (input, dim if other is None else other), {})
        fn = FUNCTIONS[name]
        if dim is None:
            return fn(input._values)
        found = [fn(t, at, True) for t, at in _rows(name, input, dim)]
        pair = type(found[0])
        return pair(
            *(_joined(input, dim, list(part), keepdim) for part in zip(*found, strict=True))
        )

    return run


def _place(name: str) -> Callable[..., Any]:
    """`argmax` and `argmin`: the position among all values, or along one dimension."""

    def run(input: NestedTensor, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is None:
            return FUNCTIONS[name](input._values)
        found = [FUNCTIONS[name](t, at, True) for t, at in _rows(name, input, dim)]
        return _joined(input, dim, found, keepdim)

    return run


def _rows(op: str, x: NestedTensor, dim: int) -> list[tuple[Tensor, int]]:
    """What is looked at along `dim`: all values at once, or part by part if that is the ragged."""
    d = x._dim(op, dim)
    if d == 0:
        raise DimError(f"[{op}] is not defined for the batch dimension of a nested tensor")
    return [(t, d - 1) for t in (x.unbind() if d == x._ragged else (x._values,))]


def _joined(x: NestedTensor, dim: int, found: list[Tensor], keepdim: bool) -> Any:
    """The results of `_rows`, with a size of 1 at the dimension that was looked along."""
    d = x._dim("dim", dim)
    if d == x._ragged:
        stacked = FUNCTIONS["stack"](found)
        return stacked if keepdim else stacked.squeeze(d)
    (values,) = found
    return x._with(values) if keepdim else _squeeze(x._with(values), d)


def _divided(name: str) -> Callable[..., Any]:
    """`chunk` and `split`: of an inner dimension, or of the parts themselves."""

    def run(x: NestedTensor, size: Any, dim: int = 0) -> tuple[NestedTensor, ...]:
        if x._dim(name, dim):
            found = getattr(x._values, name)(size, _inner(name, x, dim))
            return tuple(x._with(piece) for piece in found)
        groups = getattr(FUNCTIONS["arange"](len(x)), name)(size)
        return tuple(_some(x, group.tolist()) for group in groups)

    return run


def _chunk(input: NestedTensor, chunks: int, dim: int = 0) -> tuple[NestedTensor, ...]:
    return _divided("chunk")(input, chunks, dim)


def _split(
    tensor: NestedTensor, split_size_or_sections: Any = None, dim: int = 0, split_size: Any = None
) -> tuple[NestedTensor, ...]:
    size = split_size if split_size_or_sections is None else split_size_or_sections
    return _divided("split")(tensor, size, dim)


def _split_with_sizes(
    input: NestedTensor, split_sizes: Any, dim: int = 0
) -> tuple[NestedTensor, ...]:
    return _divided("split")(input, list(split_sizes), dim)


def _some(x: NestedTensor, numbers: list[int]) -> NestedTensor:
    """Neighbouring parts as a nested tensor, a view."""
    first, last = (numbers[0], numbers[-1] + 1) if numbers else (0, 0)
    begin, end = x._list[first], x._list[last]
    values = x._values.narrow(x._ragged - 1, begin, end - begin)
    offsets = ends_of(x._lengths()[first:last], values)
    return NestedTensor(values, offsets, x._ragged, x.layout)


def _flip(input: NestedTensor, *dims: Any) -> NestedTensor:
    given = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    return input._with(input._values.flip([_inner("flip", input, d) for d in given]))


def _cumsum(input: NestedTensor, dim: int, *, dtype: Any = None) -> NestedTensor:
    return input._with(input._values.cumsum(_inner("cumsum", input, dim), dtype=dtype))


def _transpose(x: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    a, b = x._dim("transpose", dim0), x._dim("transpose", dim1)
    if 0 in (a, b):
        raise DimError("[transpose] the batch of a nested tensor stays first")
    place = {a: b, b: a}.get(x._ragged, x._ragged)
    return x._with(x._values.transpose(a - 1, b - 1), place)


def _permute(x: NestedTensor, *dims: Any) -> NestedTensor:
    order = [x._dim("permute", d) for d in (dims[0] if len(dims) == 1 else dims)]
    if not order or order[0] != 0 or sorted(order) != list(range(x.ndim)):
        raise DimError(f"[permute] the batch of a nested tensor stays first, got {order}")
    return x._with(x._values.permute([d - 1 for d in order[1:]]), order.index(x._ragged))


def _unsqueeze(x: NestedTensor, dim: int) -> NestedTensor:
    rank = x.ndim + 1
    if not -rank <= dim < rank:
        raise DimError(f"[unsqueeze] dim {dim} is not among the {rank} dimensions of the result")
    at = dim % rank
    if at == 0:
        raise DimError("[unsqueeze] the batch of a nested tensor stays first")
    return x._with(x._values.unsqueeze(at - 1), x._ragged + (at <= x._ragged))


def _squeeze(x: NestedTensor, dim: Any = None) -> NestedTensor:
    if dim is None:
        raise UnsupportedError("[squeeze] of a nested tensor needs its dim")
    if not isinstance(dim, int):
        for d in sorted((x._dim("squeeze", d) for d in dim), reverse=True):
            x = _squeeze(x, d)
        return x
    at = _inner("squeeze", x, dim)
    gone = x._values.shape[at] == 1 and at + 1 < x._ragged
    return x._with(x._values.squeeze(at), x._ragged - gone)


def _unflatten(x: NestedTensor, dim: int, sizes: Any) -> NestedTensor:
    at = _inner("unflatten", x, dim)
    return x._with(
        x._values.unflatten(at, sizes), x._ragged + (len(sizes) - 1) * (at + 1 < x._ragged)
    )


def _flatten(x: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    low, high = _inner("flatten", x, start_dim), _inner("flatten", x, end_dim)
    if low < x._ragged - 1 < high:
        raise DimError("[flatten] is not defined across the ragged dimension")
    return x._with(x._values.flatten(low, high), x._ragged - (high - low) * (high + 1 < x._ragged))


def _view(x: NestedTensor, *shape: Any) -> NestedTensor:
    wanted = list(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
    place = wanted[x._ragged] if len(wanted) > x._ragged else 0
    if wanted[0] not in (-1, len(x)) or not (place is x._size or place == -1):
        raise ShapeError(
            "[view] keeps the batch and the ragged dimension (as -1) where they are: "
            f"{x.shape}, got {wanted}"
        )
    inner = wanted[1:]
    inner[x._ragged - 1] = x._values.shape[x._ragged - 1]
    return x._with(x._values.reshape(inner))


def _cat(tensors: Any, dim: int = 0) -> NestedTensor:
    first = next(t for t in tensors if isinstance(t, NestedTensor))
    d = first._dim("cat", dim)
    if d == 0:
        parts = [p for t in tensors for p in t.unbind()]
        at = first._ragged - 1
        values = FUNCTIONS["cat"](parts, at)
        return NestedTensor(
            values, ends_of([p.shape[at] for p in parts], values), first._ragged, first.layout
        )
    at = _inner("cat", first, dim)
    return first._with(FUNCTIONS["cat"]([_beside("cat", t, first) for t in tensors], at))


# Products and layers -------------------------------------------------------------------------
def _last(op: str, x: NestedTensor) -> None:
    if x._ragged == x._values.ndim:
        raise DimError(f"[{op}] the last dimension of the nested tensor is the ragged one")


def _linear(input: NestedTensor, weight: Tensor, bias: Tensor | None = None) -> NestedTensor:
    _last("linear", input)
    return input._with(FUNCTIONAL["linear"](input._values, weight, bias))


def _matmul(a: Any, b: Any) -> Any:
    if isinstance(a, NestedTensor) and isinstance(b, Tensor) and b.ndim == 2:
        _last("matmul", a)
        return a._with(FUNCTIONS["matmul"](a._values, b))
    x: NestedTensor = a if isinstance(a, NestedTensor) else b
    fits = [t.ndim == 2 or (t.ndim == x.ndim and len(t) == len(x)) for t in (a, b)]
    if x.ndim < 3 or not all(fits):
        raise UnsupportedError(
            "[matmul] of nested tensors takes matrices, and batches as large as the nested one, "
            f"got {a.ndim} and {b.ndim} dimensions"
        )
    if isinstance(a, Tensor) and a.ndim == 2:
        lefts = (a,) * len(x)
    else:
        lefts = a.unbind()
    parts = [FUNCTIONS["matmul"](p, q) for p, q in zip(lefts, b.unbind(), strict=True)]
    rows, columns = x.ndim - 2, x.ndim - 1
    kept = {rows} if x is a else {columns}
    if not (isinstance(a, NestedTensor) and isinstance(b, NestedTensor)):
        if x._ragged in kept or x._ragged < rows:
            return x._with(FUNCTIONS["cat"](parts, x._ragged - 1))
        return FUNCTIONS["stack"](parts)
    if a._ragged == columns and b._ragged == rows and x.layout is jagged:  # summed over
        return FUNCTIONS["stack"](parts)
    differ = [d for d in range(parts[0].ndim) if len({p.shape[d] for p in parts}) > 1]
    if differ not in ([], [parts[0].ndim - 2]) and differ != [parts[0].ndim - 1]:
        raise UnsupportedError(
            "[matmul] the products differ in several sizes; use scaled_dot_product_attention, or "
            "to_padded_tensor"
        )
    at = differ[0] if differ else parts[0].ndim - 2
    values = FUNCTIONS["cat"](parts, at)
    return NestedTensor(values, ends_of([p.shape[at] for p in parts], values), at + 1, a.layout)


def _norm(name: str) -> Callable[..., Any]:
    def run(input: NestedTensor, normalized_shape: Any, *args: Any, **kwargs: Any) -> NestedTensor:
        shape = [normalized_shape] if isinstance(normalized_shape, int) else normalized_shape
        inner = input._values.ndim - input._ragged
        if len(shape) == inner + 1 and shape[0] is input._size:  # each part, whatever its length
            at = input._ragged - 1
            parts = [FUNCTIONAL[name](p, p.shape[at:], *args, **kwargs) for p in input.unbind()]
            return input._with(FUNCTIONS["cat"](parts, at))
        if len(shape) > inner:
            raise DimError(f"[{name}] is not defined over the ragged dimension")
        return input._with(FUNCTIONAL[name](input._values, normalized_shape, *args, **kwargs))

    return run


def _embedding(input: NestedTensor, weight: Tensor, *args: Any, **kwargs: Any) -> NestedTensor:
    return input._with(FUNCTIONAL["embedding"](input._values, weight, *args, **kwargs))


def _attention(
    query: NestedTensor,
    key: NestedTensor,
    value: NestedTensor,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> NestedTensor:
    """Attention within each part; queries and keys may have lengths of their own."""
    if attn_mask is not None:
        raise UnsupportedError(
            "[scaled_dot_product_attention] nested tensors take no attn_mask; their lengths mask"
        )
    if not all(isinstance(t, NestedTensor) for t in (query, key, value)):
        raise ArgumentError("[scaled_dot_product_attention] query, key and value must be nested")
    attend = FUNCTIONAL["scaled_dot_product_attention"]
    options = {"scale": scale, "enable_gqa": enable_gqa}
    rows = zip(query.unbind(), key.unbind(), value.unbind(), strict=True)
    parts = [attend(q, k, v, None, dropout_p, is_causal, **options) for q, k, v in rows]
    return query._with(FUNCTIONS["cat"](parts, query._ragged - 1))


def _select(x: NestedTensor, dim: int, index: int) -> Any:
    if x._dim("select", dim) == 0:
        return x.unbind()[index]
    at = _inner("select", x, dim)
    return x._with(x._values.select(at, index), x._ragged - (at + 1 < x._ragged))


def _dropout(
    input: NestedTensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    train: bool | None = None,
) -> NestedTensor:
    """Of `nn.functional`; `ut.dropout` says `train`."""
    wanted = training if train is None else train
    found = FUNCTIONAL["dropout"](input._values, p, wanted, inplace)
    return input if found is input._values else input._with(found)


def _as_tensor(data: NestedTensor, dtype: Any = None, device: Any = None) -> NestedTensor:
    moved = data._values.to(device, dtype) if device is not None else data._values.to(dtype)
    return data if moved is data._values else data._with(moved)


def _equal(a: Any, b: Any) -> bool:
    nested = isinstance(a, NestedTensor) and isinstance(b, NestedTensor)
    return nested and a._list == b._list and bool(FUNCTIONS["equal"](a._values, b._values))


HANDLERS: dict[str, Callable[..., Any]] = {
    **{name: _softmax(name) for name in ("softmax", "log_softmax")},
    **{name: _reduced(name) for name in ("sum", "mean", "prod", "amax", "amin", "any", "all")},
    **{name: _norm(name) for name in ("layer_norm", "rms_norm")},
    **{name: _extreme(name) for name in ("max", "min")},
    **{name: _place(name) for name in ("argmax", "argmin")},
    "chunk": _chunk,
    "split_with_sizes": _split_with_sizes,
    "split": _split,
    "flip": _flip,
    "cumsum": _cumsum,
    "transpose": _transpose,
    "swapaxes": _transpose,
    "permute": _permute,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "unflatten": _unflatten,
    "flatten": _flatten,
    "view": _view,
    "reshape": _view,
    "cat": _cat,
    "concat": _cat,
    "linear": _linear,
    "matmul": _matmul,
    "bmm": _matmul,
    "embedding": _embedding,
    "scaled_dot_product_attention": _attention,
    "select": _select,
    "as_tensor": _as_tensor,
    "dropout": _dropout,
    "equal": _equal,
    "unbind": NestedTensor.unbind,
    "is_floating_point": NestedTensor.is_floating_point,
    "is_complex": NestedTensor.is_complex,
    "numel": NestedTensor.numel,
}
