"""`vmap` on all elements at once: the op table, gradients of layers, nesting, random numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import undertow as ut
from op_cases import cases
from op_samples import OpInfo, Sample
from transform_table import as_function, other_element, same, stacked
from undertow.backends.base import Backend
from undertow.backends.batch import UnmappedWriteError, ValueLookedAtError
from undertow.backends.batch.backend import BatchBackend
from undertow.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap

close = ut.testing.assert_close
F = ut.nn.functional

# Functions whose result has a shape that depends on values, or whose way to it does: for some of
# their samples they are called once for every element.
LOOK = (
    "argwhere", "bincount", "binomial", "full", "gru", "histc", "histogram", "histogramdd",
    "index_put", "linalg.lstsq", "linspace", "lobpcg", "lstm", "masked_scatter",
    "masked_select", "narrow", "nn.functional.ctc_loss", "nn.functional.embedding",
    "nn.functional.embedding_bag", "nn.functional.grouped_mm", "nn.functional.one_hot",
    "nonzero", "nonzero_static", "poisson", "repeat_interleave", "rnn_relu", "rnn_tanh",
    "searchsorted", "segment_reduce", "tensor_split", "unique", "unique_consecutive",
)  # fmt: skip
WRITE = ("nn.functional.batch_norm", "nn.functional.instance_norm")  # into running statistics
LAYOUT = ("as_strided",)  # a stacked tensor lies in memory in another order


def rows_of(info: OpInfo, sample: Sample, only_first: bool) -> Any:
    """The op as a function of a sample's tensors, two rows of these, and which are mapped."""
    run, xs = as_function(info, sample)
    xs = [x.detach() for x in xs]
    dims = tuple(0 if i == 0 or not only_first else None for i in range(len(xs)))
    others = [x if d is None else other_element(x) for x, d in zip(xs, dims, strict=True)]
    return run, [xs, others], dims


def one_by_one(run: Callable[..., Any], rows: Any) -> Any:
    """The results of each row, stacked; None where there is none, or a row is out of the domain."""
    found = []
    for row in rows:
        ut.manual_seed(0)
        try:
            found.append([t.detach() for t in run(*[x.clone() for x in row])])
        except (ValueError, RuntimeError):
            return None
    if not found[0] or any(a.shape != b.shape for a, b in zip(*found, strict=True)):
        return None
    return stacked(found)


def together(rows: Any, dims: Any) -> list[Any]:
    """The rows as batches."""
    return [
        ut.stack([row[i] for row in rows]) if d == 0 else rows[0][i].clone()
        for i, d in enumerate(dims)
    ]


@pytest.mark.parametrize("info, sample", cases(lambda i, s: i.name not in LAYOUT, 3))
def test_op(info: OpInfo, sample: Sample) -> None:
    """All elements at once give what each alone gives, all arguments mapped or only the first."""
    for only_first in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run, rows, dims = rows_of(info, sample, only_first)
            expected = one_by_one(run, rows) if dims else None
            if expected is None:
                return
            ut.manual_seed(0)
            try:
                found = vmap(run, dims, loop=False, randomness="same")(*together(rows, dims))
            except ValueLookedAtError:
                assert info.name in LOOK
                continue
            except UnmappedWriteError:
                assert info.name in WRITE
                continue
        same(found, expected)


_FIRST = cases(lambda i, s: i.grad and i.name not in (*LAYOUT, *LOOK, "is_nonzero"), 10**6)


@pytest.mark.parametrize("info, sample", _FIRST)
def test_derivatives(info: OpInfo, sample: Sample) -> None:
    """Gradients, and tangents, of each element; and a map of maps."""
    run, rows, dims = rows_of(info, sample, False)
    floats = tuple(i for i, x in enumerate(rows[0]) if x.dtype is ut.float64)
    if not floats:
        return

    def loss(*xs: Any) -> Any:
        ut.manual_seed(0)
        parts = [o for o in run(*xs) if o.dtype.is_floating_point]
        return sum((o.sin().sum() for o in parts), ut.zeros((), dtype=ut.float64))

    def tangents(*xs: Any) -> Any:
        def inner(*given: Any) -> Any:
            whole = list(xs)
            for i, g in zip(floats, given, strict=True):
                whole[i] = g
            return loss(*whole)

        moved = tuple(xs[i] for i in floats)
        return jvp(inner, moved, moved)[1:]

    for function in (grad(loss, floats), tangents):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = stacked([function(*row) for row in rows])
            except (ValueError, RuntimeError):
                return
            batch = together(rows, dims)
            found = vmap(function, loop=False, randomness="same")(*batch)
            same(found, expected, 1e-5, 1e-7)
            twice = vmap(
                vmap(function, loop=False, randomness="same"), loop=False, randomness="same"
            )
            deep = twice(*[ut.stack([x, x.flip(0)]) for x in batch])
        same([d[0] for d in deep], expected, 1e-5, 1e-7)
        same([d[1].flip(0) for d in deep], expected, 1e-5, 1e-7)


def test_tangents_of_step_functions() -> None:
    """The tangent of what has two inputs and no slope by either is zeros for each element."""
    a, b = ut.tensor([[7.5, -7.5], [3.5, 2.5]]), ut.tensor([[2.0, 2.0], [-2.0, 1.0]])

    def divided(a: Any, b: Any) -> Any:
        return jvp(lambda a, b: ut.div(a, b, rounding_mode="floor"), (a, b), (a, b))

    value, change = vmap(divided, loop=False)(a, b)
    close(value, ut.tensor([[3.0, -4.0], [-2.0, 2.0]]))
    close(change, ut.zeros(2, 2))


def test_values_of_the_whole_batch() -> None:
    """A way that is chosen by values is chosen for all elements: degrees, and zeros of products."""
    x, n = ut.tensor([0.5, 0.5, 0.5]), ut.tensor([1.0, 3.0, float("nan")])
    expected = ut.tensor([0.5, -1.0, 0.0])
    close(ut.special.chebyshev_polynomial_t(x, n), expected)
    close(vmap(ut.special.chebyshev_polynomial_t, loop=False)(x, n), expected)
    src = ut.tensor([[0.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    index = ut.tensor([[0, 0, 1], [1, 1, 1]])

    def product(src: Any, index: Any) -> Any:
        return ut.ones(2).scatter_reduce(0, index, src, "prod").sum()

    found = vmap(grad(product), loop=False)(src, index)
    close(found, ut.tensor([[2.0, 0.0, 1.0], [30.0, 24.0, 20.0]]))


def test_every_form_is_answered() -> None:
    """A form that is added to the contract has a rule here, or is a composition of others."""
    compositions = {
        "add_product", "all_plain", "bincount", "conv", "csr_matmul", "contiguous", "direct",
        "map", "norms", "prepare", "recurrent", "recurrent_backward", "run", "transposed", "update",
        "zero",
    }  # fmt: skip
    forms = {n for n, f in vars(Backend).items() if callable(f) and not n.startswith("_")}
    assert forms - set(vars(BatchBackend)) == compositions


LAYERS: dict[str, tuple[Any, Any]] = {
    "linear": (lambda: ut.nn.Linear(4, 3), lambda: ut.randn(5, 4)),
    "conv": (lambda: ut.nn.Conv2d(2, 4, 3, padding=1, groups=2), lambda: ut.randn(5, 1, 2, 6, 6)),
    "conv of several": (lambda: ut.nn.Conv1d(2, 3, 3), lambda: ut.randn(5, 2, 2, 7)),
    "transposed": (lambda: ut.nn.ConvTranspose1d(2, 3, 3, 2), lambda: ut.randn(5, 1, 2, 4)),
    "embedding": (lambda: ut.nn.Embedding(7, 3), lambda: ut.randint(0, 7, (5, 4))),
    "attention": (
        lambda: ut.nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True),
        lambda: ut.randn(5, 1, 3, 4),
    ),
    "lstm": (lambda: ut.nn.LSTM(3, 4), lambda: ut.randn(5, 6, 1, 3)),
    "gru": (lambda: ut.nn.GRU(3, 4, batch_first=True), lambda: ut.randn(5, 2, 6, 3)),
    "batch norm": (lambda: ut.nn.BatchNorm2d(3).eval(), lambda: ut.randn(5, 2, 3, 4, 4)),
    "layer norm": (lambda: ut.nn.LayerNorm(4), lambda: ut.randn(5, 3, 4)),
    "group norm": (lambda: ut.nn.GroupNorm(2, 4), lambda: ut.randn(5, 2, 4, 3)),
    "rms norm": (lambda: ut.nn.RMSNorm(4), lambda: ut.randn(5, 3, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_each_sample(name: str) -> None:
    ut.manual_seed(0)
    layer = LAYERS[name][0]()
    x = LAYERS[name][1]()
    layer.double()
    x = x.double() if x.is_floating_point() else x
    weights = {k: v.detach() for k, v in layer.named_parameters()}

    def loss(weights: Any, x: Any) -> Any:
        found = functional_call(layer, weights, (x,))
        found = found[0] if isinstance(found, tuple) else found
        return found.sin().sum()

    each = vmap(grad(loss), (None, 0), loop=False)(weights, x)
    for k, g in each.items():
        close(g, ut.stack([grad(loss)(weights, row)[k] for row in x]))
    whole = grad(lambda w: vmap(loss, (None, 0), loop=False)(w, x).sum())(weights)
    for k, g in whole.items():
        close(g, each[k].sum(0))


def test_nested_towers() -> None:
    """Gradients by what one level, the other, both or none maps."""
    a, b, c = (ut.randn(*s, dtype=ut.float64).requires_grad_() for s in ((3, 2), (4, 2), (2,)))

    def inner(x: Any, y: Any) -> Any:
        return (x * y + c).sin().sum()

    found = vmap(lambda x: vmap(lambda y: inner(x, y), loop=False)(b), loop=False)(a)
    expected = (a[:, None] * b + c).sin().sum(-1)
    close(found, expected)
    seed = ut.randn(3, 4, dtype=ut.float64)
    for f, e in zip(
        ut.autograd.grad(found, (a, b, c), seed, create_graph=True),
        ut.autograd.grad(expected, (a, b, c), seed, create_graph=True),
        strict=True,
    ):
        close(f, e)
        close(
            ut.autograd.grad(f.square().sum(), a, retain_graph=True)[0],
            ut.autograd.grad(e.square().sum(), a, retain_graph=True)[0],
        )
    each = vmap(lambda x: vmap(grad(lambda y: inner(x, y)), loop=False)(b), loop=False)(a.detach())
    close(each, (a[:, None] * b + c).cos() * a[:, None])


def test_jacobians() -> None:
    w, x = ut.randn(4, 3, dtype=ut.float64), ut.randn(3, dtype=ut.float64)

    def function(x: Any) -> Any:
        return (w @ x).tanh()

    expected = (1 - (w @ x).tanh() ** 2)[:, None] * w
    for jacobian in (jacrev(function), jacrev(function, chunk_size=3), jacfwd(function)):
        close(jacobian(x), expected)
    xs = ut.stack([x, -x, 2 * x])
    close(vmap(jacfwd(function), loop=False)(xs), ut.stack([jacrev(function)(row) for row in xs]))
    second = ut.stack([hessian(lambda x: function(x).sum())(row) for row in xs])
    close(vmap(hessian(lambda x: function(x).sum()), loop=False)(xs), second)
    seeds = ut.eye(4, dtype=ut.float64)
    x.requires_grad_()
    (rows,) = ut.autograd.grad(function(x), x, seeds, is_grads_batched=True)
    close(rows, expected)


def test_chunks() -> None:
    x = ut.randn(7, 3)
    sizes = []

    def function(x: Any) -> Any:
        sizes.append(1)
        return {"s": x.sum(), "t": x * 2}

    found = vmap(function, out_dims={"s": 0, "t": 1}, chunk_size=3)(x)
    close(found, {"s": x.sum(1), "t": (x * 2).T})
    assert len(sizes) == 3


def test_changes_in_place() -> None:
    x = ut.randn(3, 4)

    def function(x: Any) -> Any:
        out = x.new_zeros(4)
        out[1:] = x[:3]
        other = ut.zeros_like(x)
        other += x
        other.mul_(2)
        return out, other

    out, other = vmap(function, loop=False)(x)
    close(out[:, 1:], x[:, :3])
    close(out[:, 0], ut.zeros(3))
    close(other, 2 * x)
    shared = ut.zeros(4)
    for write in (shared.add_, shared.copy_, lambda x: shared.__setitem__(0, x[0])):
        with pytest.raises(RuntimeError, match=r"\[vmap\].*a tensor that is not mapped"):
            vmap(lambda x, write=write: (write(x), x)[1])(x)  # type: ignore[misc]
    close(shared, ut.zeros(4))
    mapped = x.clone()
    vmap(lambda x: x.mul_(3), loop=False)(mapped)
    close(mapped, 3 * x)


def test_random_numbers() -> None:
    x = ut.ones(5, 1000)
    for name, alike in (("different", False), ("same", True)):
        for draw in (
            lambda x: F.dropout(x, 0.5),
            lambda x: x * ut.rand(1000),
            lambda x: x * ut.randint(0, 1000, (1000,)),
            lambda x: ut.randn_like(x),
        ):
            found = vmap(draw, randomness=name, loop=False)(x)
            assert bool((found[0] == found[1]).all()) is alike
    kept = vmap(lambda x: F.dropout(x, 0.5), randomness="different", loop=False)(x)
    assert 0.4 < float((kept > 0).float().mean()) < 0.6


def test_what_escapes_is_refused() -> None:
    kept: list[Any] = []
    vmap(lambda x: kept.append(x) or x)(ut.ones(3))
    with pytest.raises(ValueError, match="another call of vmap"):
        vmap(lambda x: x + kept[0], loop=False)(ut.ones(3))


def test_control_flow() -> None:
    """Branches and loops by values that are mapped, and their gradients."""
    x = ut.tensor([-1.0, 2.0, 0.5], dtype=ut.float64)

    def branch(x: Any) -> Any:
        return ut.cond(x > 0, lambda x: x * x, lambda x: -x, (x,))

    close(vmap(branch, loop=False)(x), ut.tensor([1.0, 4.0, 0.25], dtype=ut.float64))
    close(vmap(grad(branch), loop=False)(x), ut.tensor([-1.0, 4.0, 1.0], dtype=ut.float64))
    close(vmap(lambda x: jvp(branch, (x,), (x,))[1], loop=False)(x), x * vmap(grad(branch))(x))

    def doubled(x: Any) -> Any:
        return ut.while_loop(
            lambda x, n: x.abs() < 3, lambda x, n: (x * 2, n + 1), (x, ut.tensor(0))
        )

    found, steps = vmap(doubled, loop=False)(x)
    close(found, ut.tensor([-4.0, 4.0, 4.0], dtype=ut.float64))
    assert steps.tolist() == [2, 1, 3]
    slopes = vmap(grad(lambda x: doubled(x)[0]), loop=False)(x)
    close(slopes, ut.tensor([4.0, 2.0, 8.0], dtype=ut.float64))

    rows = ut.randn(4, 5, dtype=ut.float64)
    for loop in (
        lambda row: ut.scan(lambda c, x: (c * x + 1, c.sin()), row[0], row)[1].sum(),
        lambda row: ut.map(lambda x, c: x * c, row, row.sum()).sum(),
        lambda row: ut.associative_scan(lambda a, b: a * b, row, 0).sum(),
    ):
        close(vmap(loop, loop=False)(rows), ut.stack([loop(r) for r in rows]))
        close(vmap(grad(loop), loop=False)(rows), ut.stack([grad(loop)(r) for r in rows]))
        moved = vmap(lambda r, f=loop: jvp(f, (r,), (r,))[1], loop=False)(rows)
        close(moved, (ut.stack([grad(loop)(r) for r in rows]) * rows).sum(1))


def test_scan_with_checkpoints() -> None:
    """The same gradients under every transform, and only some carries are kept."""
    w = ut.tensor(0.9, dtype=ut.float64)
    rows = ut.randn(3, 10, dtype=ut.float64)
    calls = []

    def total(w: Any, row: Any, checkpoint: bool, reverse: bool = False) -> Any:
        def one(c: Any, x: Any) -> Any:
            calls.append(1)
            return (c * w + x).tanh(), c.sin()

        last, outs = ut.scan(one, row[0], row, reverse=reverse, checkpoint=checkpoint)
        return last + (outs * row).sum()

    for reverse in (False, True):
        plain = grad(total, (0, 1))(w, rows[0], False, reverse)
        calls.clear()
        close(grad(total, (0, 1))(w, rows[0], True, reverse), plain)
        assert len(calls) > 15  # most steps ran again
    close(total(w, rows[0], True), total(w, rows[0], False))
    by_row = lambda kept: vmap(grad(lambda r: total(w, r, kept)), loop=False)(rows)
    close(by_row(True), by_row(False))
    moved = lambda kept: jvp(lambda w: total(w, rows[0], kept), (w,), (w,))[1]
    close(moved(True), moved(False))


def test_products_with_hessians() -> None:
    from undertow.func import hvp, laplacian

    x, v = ut.randn(3, dtype=ut.float64), ut.randn(3, dtype=ut.float64)

    def function(x: Any) -> Any:
        return x.prod() + x.sin().sum()

    value, (product,) = hvp(function, (x,), (v,))
    close(value, function(x))
    close(product, hessian(function)(x) @ v)
    close(laplacian(function)(x), hessian(function)(x).trace())
    field = laplacian(lambda a, x: ut.stack([function(x), (a * x).sum()]), 1)
    close(field(2.0, x), ut.stack([hessian(function)(x).trace(), ut.zeros((), dtype=x.dtype)]))


@pytest.mark.parametrize("derivative", [ut.func.jacfwd, ut.func.jacrev])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, b: w[0] * 2,
        lambda x, w, b: x @ w,
        lambda x, w, b: (x @ w).tanh(),
        lambda x, w, b: ut.nn.functional.linear(x, w, b).tanh() @ w,
        lambda x, w, b: (x * b).sum() * b,
    ],
)
def test_gradients_of_what_the_elements_have_in_common(function: Any, derivative: Any) -> None:
    """They are sums over the batch, also where the elements differ by their tangents alone."""
    given = [ut.randn(5, 3), ut.randn(3, 3, requires_grad=True), ut.randn(3, requires_grad=True)]
    x, w, b = given
    one = derivative(lambda e: function(e, w, b))
    found, wanted = (
        ut.autograd.grad((whole**2).sum() + mapped.exp().sum(), (w, b), materialize_grads=True)
        for whole, mapped in (
            (ut.func.vmap(one)(x), ut.func.vmap(lambda e: function(e, w, b))(x)),
            (ut.stack([one(e) for e in x]), ut.stack([function(e, w, b) for e in x])),
        )
    )
    ut.testing.assert_close(found, wanted)


def test_what_is_equal_for_all_elements_leaves_the_batch() -> None:
    def twice(x: ut.Tensor) -> Any:
        return x.sin(), x.cos()

    x = ut.randn(4, 3)
    both = ut.func.jacfwd(ut.func.jacrev(twice, has_aux=True), has_aux=True)
    first, second = (ut.func.vmap(both)(x)[1] for _ in range(2))
    ut.testing.assert_close(first + second, 2 * x.cos())  # of two calls, so of no batch any more


@pytest.mark.parametrize(
    ("mapped", "by_hand"),
    [
        (vmap(lambda x: x[1:]), lambda y: y[:, 1:]),
        (vmap(lambda x: x.t(), 1, 2), lambda y: y.permute(2, 0, 1)),
        (vmap(lambda x: x.view(-1), 0, 1), lambda y: y.view(2, 12).t()),
        (vmap(lambda x: x, 0, 1), lambda y: y.transpose(0, 1)),
        (vmap(vmap(lambda e: e[1:], out_dims=1)), lambda y: y[:, :, 1:].mT),
    ],
)
def test_views_of_arguments_are_views(mapped: Any, by_hand: Any) -> None:
    def gradient(view: Any) -> tuple[ut.Tensor, ut.Tensor]:
        x = ut.arange(24, dtype=ut.float64).reshape(2, 3, 4).requires_grad_()
        y = x * 0.1
        z = view(y)
        z.mul_(2)  # changes y as well
        (y.exp().sum() + (z**2).sum()).backward()
        assert x.grad is not None
        return y.detach(), x.grad

    close(gradient(mapped), gradient(by_hand))


def test_what_is_returned_as_it_came_is_itself() -> None:
    x = ut.rand(3, 4)
    before = x.clone()
    assert vmap(lambda e: e)(x) is x
    assert vmap(lambda e: e.exp_())(x) is x
    close(x, before.exp())
    assert vmap(lambda e: e.exp())(x) is not x


def test_a_saved_argument_knows_of_changes_of_its_view() -> None:
    x = ut.ones(3, 2, requires_grad=True)
    y = x * 1
    square = (y * y).sum()
    vmap(lambda e: e[:1])(y).mul_(3)
    with pytest.raises(RuntimeError, match="in place"):
        square.backward()


class Doubled(ut.autograd.Function):
    answer: Any

    @staticmethod
    def forward(x: ut.Tensor) -> ut.Tensor:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: ut.Tensor) -> Any:
        return Doubled.answer(x)


@pytest.mark.parametrize(
    "answer", [lambda x: x, lambda x: (x, 0, 0), lambda x: (x, (0,)), lambda x: ((x, x), (0,))]
)
def test_a_rule_that_answers_wrongly_is_told(answer: Any) -> None:
    Doubled.answer = staticmethod(answer)
    with pytest.raises(RuntimeError, match=r"\[Doubled\] its vmap"):
        vmap(Doubled.apply)(ut.ones(2, 3))


def test_out_dims_of_one_are_for_one_tensor() -> None:
    assert vmap(lambda x: x, out_dims=(1,))(ut.ones(2, 3)).shape == (3, 2)
    with pytest.raises(ValueError, match="structure"):
        vmap(lambda x: (x, x), out_dims=(1,))(ut.ones(2, 3))


def test_functions_without_an_output_are_refused() -> None:
    x = ut.ones(2)
    for transform in (jacfwd, jacrev, lambda f: lambda x: jvp(f, (x,), (x,))):
        with pytest.raises(RuntimeError, match="must return"):
            transform(lambda x: ())(x)


def test_jacrev_takes_the_name_that_saves_memory() -> None:
    x = ut.rand(3)
    close(jacrev(ut.sin, _preallocate_and_copy=True, chunk_size=2)(x), x.cos().diag())


_EMPTY: dict[str, tuple[Callable[..., Any], Any]] = {
    "a map": (lambda x: x.sin(), (2,)),
    "in place": (lambda x: x.clone().mul_(2), (2,)),
    "kernels": (lambda w: F.conv2d(ut.ones(1, 2, 5, 5), w.view(4, 1, 3, 3), groups=2), (4, 9)),
    "inputs": (lambda x: F.conv1d(x, ut.ones(2, 1, 3)), (3, 1, 9)),
    "attention": (lambda q: F.scaled_dot_product_attention(q, q, q), (2, 3, 4, 5)),
    "a polynomial": (lambda x: ut.special.legendre_polynomial_p(x, x.round()), (3,)),
    "draws": (lambda x: ut.bernoulli(x) + ut.multinomial(x, 2)[0], (3,)),
    "an inverse": (lambda x: ut.linalg.inv(x + ut.eye(2)), (2, 2)),
    "a loss": (lambda x: F.cross_entropy(x[None], ut.tensor([1])), (3,)),
    "a hessian": (hessian(lambda x: (x**3).sum()), (2,)),
}


@pytest.mark.parametrize("name", _EMPTY)
def test_batch_of_size_0(name: str) -> None:
    """An empty result of the right shape, and of gradients and tangents, too."""
    function, shape = _EMPTY[name]
    expected = vmap(function, randomness="same", loop=False)(ut.ones(2, *shape)).shape[1:]
    none = ut.ones(0, *shape)
    assert vmap(function, randomness="same", loop=False)(none).shape == (0, *expected)
    assert vmap(function, randomness="same", chunk_size=3)(none).shape == (0, *expected)
    moved = vmap(lambda x: jvp(function, (x,), (x,))[1], randomness="same", loop=False)(none)
    assert moved.shape == (0, *expected)
    by = vmap(grad(lambda x: function(x).sum()), randomness="same", loop=False)(none)
    assert by.shape == (0, *shape)


def test_arguments_that_do_not_fit() -> None:
    """Errors that say which argument, and what was expected."""
    x = ut.ones(3, 2)
    for found, message in (
        (lambda: vmap(ut.sin, in_dims="a")(x), "in_dims are ints or None, got 'a'"),
        (lambda: vmap(ut.sin, in_dims=2)(x), "has no dimension 2"),
        (lambda: vmap(ut.sin, in_dims=(0, 0))(x), "another structure than the arguments"),
        (lambda: vmap(ut.add)(x, ut.ones(4)), "different sizes"),
        (lambda: vmap(ut.rand)(), "nothing to map"),
        (lambda: vmap(ut.sin, out_dims=3)(x), "out_dims is 3"),
        (lambda: jacrev(ut.sin, chunk_size=0)(x), "chunk_size must be None or above 0"),
        (lambda: jvp(ut.sin, (x,), (x[0],)), "a tangent of .* does not fit"),
        (lambda: jvp(ut.sin, (x,), (x.double(),)), "a tangent of .*float64 does not fit"),
        (lambda: vmap(lambda a, b: b.add_(a), (0, None))(x, ut.ones(2)), "that is not mapped"),
    ):
        with pytest.raises((ValueError, TypeError, IndexError, RuntimeError), match=message):
            found()
