"""Every layer of the table: its function, state, text, copies, modes, devices and derivatives."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import undertow as ut
from layer_table import OTHERS, TABLE, Case, Layer, made, outputs
from undertow.core.tensor import wrap

nn = ut.nn
CASES = [
    pytest.param(entry, case, id=f"{entry.name}-{case!r}")
    for entry in TABLE.values()
    for case in entry.cases
]
FIRST = [pytest.param(entry, entry.cases[0], id=entry.name) for entry in TABLE.values()]


def tensor(array: Any) -> ut.Tensor:
    return wrap(np.array(array))


def build(entry: Layer, case: Case) -> Any:
    ut.manual_seed(0)
    return made(nn, entry, case, tensor).double()


def arguments(case: Case, grad: bool = False) -> tuple[list[Any], dict[str, Any]]:
    """The inputs as tensors; one array that is given several times is one tensor."""
    seen: dict[int, ut.Tensor] = {}

    def one(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if id(value) not in seen:
            seen[id(value)] = tensor(value)
            seen[id(value)].requires_grad_(grad and value.dtype == np.float64)
        return seen[id(value)]

    return [one(v) for v in case.inputs], {n: one(v) for n, v in case.options.items()}


def call(module: Any, case: Case) -> list[ut.Tensor]:
    inputs, options = arguments(case)
    ut.manual_seed(1)
    return outputs(module(*inputs, **options))


def same(found: list[ut.Tensor], wanted: list[ut.Tensor]) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-9, 1e-11)


def test_every_class_is_in_the_table() -> None:
    """A public module class without an entry fails the suite; recurrent ones have their own."""
    public = {
        name
        for name in nn.modules.__all__
        if issubclass(getattr(nn, name), nn.Module)
        and not getattr(nn, name).__module__.startswith("undertow.nn.modules.rnn")
    }
    assert public - OTHERS == set(TABLE)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_documented(name: str) -> None:
    """A docstring with a runnable example, and annotations that an editor can show."""
    kind = getattr(nn, name)
    assert ">>>" in (kind.__doc__ or "")
    for method in (kind.__init__, kind.forward):
        given = [p for p in inspect.signature(method).parameters if p != "self"]
        assert all(p in method.__annotations__ for p in given), method


@pytest.mark.parametrize("entry, case", CASES)
def test_is_its_function(entry: Layer, case: Case) -> None:
    """The output is that of the function in nn.functional, given the layer's own parameters."""
    module = build(entry, case)
    found = call(module, case)
    assert type(module).__name__ == entry.becomes or not entry.becomes
    inputs, options = arguments(case)
    ut.manual_seed(1)
    same(found, outputs(entry.function(module, *inputs, **options)))


@pytest.mark.parametrize("entry, case", FIRST)
def test_state_round_trip(entry: Layer, case: Case) -> None:
    """A state_dict brings another module of the same kind to the same output."""
    module, other = build(entry, case), build(entry, case)
    before = call(module, case)
    with ut.no_grad():
        for value in module.state_dict().values():
            if value.is_floating_point():
                value.add_(0.25)
    state = module.state_dict()
    assert other.load_state_dict(state) == ([], [])
    call(other, case)  # a lazy one knows its class now
    other.load_state_dict(state)
    same(list(other.state_dict().values()), list(state.values()))
    assert repr(other) == repr(module)
    if not entry.random:
        module.load_state_dict(state)
        same(call(other, case), call(module, case))
    assert before is not None


@pytest.mark.parametrize("entry, case", FIRST)
def test_copies(entry: Layer, case: Case) -> None:
    """deepcopy and pickle give modules that compute the same and share nothing."""
    module = build(entry, case)
    copies = [copy.deepcopy(module), pickle.loads(pickle.dumps(module))]
    wanted = call(module, case)
    for other in copies:
        assert type(other) is getattr(nn, entry.name)
        assert not {id(p) for p in module.parameters()} & {id(p) for p in other.parameters()}
        found = call(other, case)
        if not entry.becomes:  # otherwise each has drawn values of its own
            same(found, wanted)
        assert repr(other) == repr(module)


@pytest.mark.parametrize("entry, case", FIRST)
def test_modes(entry: Layer, case: Case) -> None:
    """train and eval reach every module below, and eval is not random."""
    module = build(entry, case)
    call(module, case)
    assert module.eval() is module
    assert not any(m.training for m in module.modules())
    same(call(module, case), call(module, case))
    module.train()
    assert all(m.training for m in module.modules())


@pytest.mark.parametrize("entry, case", FIRST)
def test_on_the_reference_device(entry: Layer, case: Case) -> None:
    """to(device) moves everything, and NumPy's backend agrees."""
    module = build(entry, case)
    wanted = call(copy.deepcopy(module), case) if not entry.becomes else call(module, case)
    module = module.to("reference")
    moved = [*module.parameters(), *module.buffers()]
    assert all(str(v.device) == "reference" for v in moved)
    inputs, options = arguments(case)
    inputs = [v.to("reference") if isinstance(v, ut.Tensor) else v for v in inputs]
    options = {n: v.to("reference") if isinstance(v, ut.Tensor) else v for n, v in options.items()}
    ut.manual_seed(1)
    found = outputs(module(*inputs, **options))
    assert all(str(v.device) == "reference" for v in found)
    if not entry.random:
        same([v.cpu() for v in found], wanted)


def differentiable(entry: Layer) -> bool:
    return not (entry.random or entry.name == "Identity")


@pytest.mark.parametrize("entry, case", FIRST)
def test_gradients(entry: Layer, case: Case) -> None:
    """The derivatives in inputs and parameters are those of finite differences."""
    if not differentiable(entry):
        return
    module = build(entry, case)
    call(module, case)
    names = [n for n, p in module.named_parameters()]
    inputs, options = arguments(case, grad=True)
    floats = [t for t in inputs if isinstance(t, ut.Tensor) and t.requires_grad]
    floats = list({id(t): t for t in floats}.values())
    start = {n: p.detach().clone().requires_grad_() for n, p in module.named_parameters()}
    buffers = {n: b.clone() for n, b in module.named_buffers()}

    def run(*values: Any) -> Any:
        given = dict(zip(map(id, floats), values, strict=False))
        own = dict(zip(names, values[len(floats) :], strict=True))
        args = [given.get(id(t), t) for t in inputs]
        fresh = {n: b.clone() for n, b in buffers.items()}
        out = nn.utils.stateless.functional_call(module, {**own, **fresh}, tuple(args), options)
        return tuple([t for t in outputs(out) if t.is_floating_point() and t.requires_grad])

    few = {"atol": 1e-5, "rtol": 1e-4}
    assert ut.autograd.gradcheck(run, (*floats, *start.values()), fast_mode=True, **few)


# What one layer only has ---------------------------------------------------------------------
def test_legacy_reductions() -> None:
    """size_average and reduce still mean what they meant, with a warning."""
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    with pytest.warns(UserWarning, match="reduction='none'"):
        assert nn.NLLLoss(reduce=False).reduction == "none"
    with pytest.warns(FutureWarning, match="NLLLoss2d"):
        assert isinstance(nn.NLLLoss2d(), nn.NLLLoss)


def test_running_statistics_count_and_reset() -> None:
    """A momentum of None is the mean over all batches; reset forgets them."""
    norm = nn.BatchNorm1d(2, momentum=None).double()
    batches = [wrap(np.random.default_rng(i).normal(size=(6, 2))) for i in range(3)]
    for batch in batches:
        norm(batch)
    assert norm.num_batches_tracked.item() == 3
    mean = np.mean([b.numpy().mean(0) for b in batches], 0)
    np.testing.assert_allclose(norm.running_mean.numpy(), mean)
    norm.eval()(batches[0])
    assert norm.num_batches_tracked.item() == 3
    norm.reset_running_stats()
    assert norm.running_mean.abs().sum() == 0
    assert norm.num_batches_tracked.item() == 0


def test_old_states_of_norms() -> None:
    """A state without version has no counter; old instance norms had statistics."""
    norm = nn.BatchNorm1d(2)
    state = {n: v for n, v in norm.state_dict().items() if n != "num_batches_tracked"}
    assert norm.load_state_dict(state) == ([], [])
    with pytest.raises(RuntimeError, match=r"running_mean.*track_running_stats=True"):
        nn.InstanceNorm1d(2).load_state_dict({"running_mean": ut.ones(2)})


def test_transformers_find_causal_masks() -> None:
    """A mask that is the causal one is recognised, as a boolean too."""
    from undertow.nn.modules.transformer import _is_causal

    mask = nn.Transformer.generate_square_subsequent_mask(4)
    assert _is_causal(mask, 4)
    assert _is_causal(mask != 0, 4)
    assert not _is_causal(mask, 5)
    assert not _is_causal(ut.zeros(4, 4), 4)
    assert not _is_causal(None, 4)


def test_attention_in_one_product() -> None:
    """Self-attention multiplies by the packed weight once, and cross-attention twice."""
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    x, memory = ut.rand(2, 5, 8), ut.rand(2, 4, 8)

    def products(*inputs: Any) -> int:
        node = attention(*inputs, need_weights=False)[0].grad_fn
        seen, stack = set(), [node]
        while stack:
            node = stack.pop()
            if node is not None and node not in seen:
                seen.add(node)
                stack += [parent for parent, _ in node.next_functions]
        return sum("Linear" in n.name() for n in seen)

    assert products(x, x, x) == 2  # and the one behind it
    assert products(x, memory, memory) == 3
    assert products(x, memory, ut.rand(2, 4, 8)) == 4


def test_masks_of_another_dtype() -> None:
    """A mask follows the queries, also where autocast narrows them."""
    attention, x = nn.MultiheadAttention(8, 2, batch_first=True), ut.rand(2, 5, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    for need_weights in (True, False):
        with ut.autocast("cpu", dtype=ut.bfloat16):
            out, _ = attention(x, x, x, attn_mask=mask * 0.5, need_weights=need_weights)
        assert out.dtype is ut.bfloat16
        double = copy.deepcopy(attention).double()
        out, _ = double(*[x.double()] * 3, attn_mask=mask, need_weights=need_weights)
        assert out.dtype is ut.float64


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: nn.Conv1d(3, 4, 3, groups=2), r"\[Conv1d\] in_channels.*divisible.*3 and 2"),
        (lambda: nn.Conv1d(4, 3, 3, groups=2), r"\[Conv1d\] out_channels.*divisible"),
        (lambda: nn.Conv2d(4, 4, 3, groups=0), "groups must be a positive"),
        (lambda: nn.Conv2d(4, 4, 3, padding="some"), "'same' or 'valid', got 'some'"),
        (lambda: nn.Conv2d(4, 4, 3, 2, padding="same"), "not supported for strided"),
        (lambda: nn.Conv3d(4, 4, 3, padding_mode="mirror"), "padding_mode must be one of"),
        (lambda: nn.ConvTranspose1d(4, 4, 3, padding_mode="circular"), 'only "zeros"'),
        (
            lambda: nn.ConvTranspose1d(2, 2, 3, stride=2)(ut.ones(1, 2, 4), output_size=[12]),
            r"valid sizes range from \[9\] to \[10\]",
        ),
        (
            lambda: nn.ConvTranspose2d(2, 2, 3)(ut.ones(1, 2, 4, 4), output_size=[12]),
            "2 or 4 elements",
        ),
        (lambda: nn.LazyConv1d(4, 3)(ut.ones(2, 3, 4, 5)), r"\[LazyConv1d\].*\(2, 3, 4, 5\)"),
        (lambda: nn.LazyConv1d(4, 3, groups=2)(ut.ones(2, 3, 4)), "divisible by groups, got 3"),
        (lambda: nn.BatchNorm2d(3)(ut.ones(2, 3)), r"\[BatchNorm2d\] expected 4D.*got 2D"),
        (lambda: nn.BatchNorm1d(3)(ut.ones(3)), "expected 2D or 3D"),
        (lambda: nn.SyncBatchNorm(3)(ut.ones(3)), "at least 2D"),
        (lambda: nn.InstanceNorm1d(3, affine=True)(ut.ones(2, 4, 5)), r"\(3\), but got: 4"),
        (lambda: nn.GroupNorm(3, 4), "divisible by num_groups"),
        (lambda: nn.CrossMapLRN2d(3)(ut.ones(2, 3)), r"\(N, C, H, W\), got shape \(2, 3\)"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), "padding_idx must be within"),
        (lambda: nn.Embedding(3, 2, _weight=ut.ones(2, 2)), "does not match"),
        (lambda: nn.Embedding.from_pretrained(ut.ones(3)), "2-dimensional"),
        (lambda: nn.Dropout(1.5), r"\[Dropout\].*between 0 and 1, got 1.5"),
        (lambda: nn.Hardtanh(1, -1), "max_val must be greater"),
        (lambda: nn.Softmax2d()(ut.ones(2, 3)), r"\[Softmax2d\]"),
        (lambda: nn.MultiheadAttention(8, 3), "divisible by num_heads"),
        (lambda: nn.TransformerEncoderLayer(8, 2, activation="tanh"), "relu/gelu"),
        (lambda: nn.Transformer(8, 2, 1, 1, 8)(ut.ones(3, 2, 8), ut.ones(3, 1, 8)), "batch"),
        (lambda: nn.Transformer(8, 2, 1, 1, 8)(ut.ones(3, 2, 6), ut.ones(3, 2, 8)), "d_model"),
        (lambda: nn.FractionalMaxPool2d(2), "either an output_size or an output_ratio"),
        (lambda: nn.FractionalMaxPool2d(2, output_ratio=2), "between 0 and 1"),
        (lambda: nn.MultiMarginLoss(p=3), "p == 1 and p == 2"),
        (lambda: nn.TripletMarginLoss(margin=0), "margin must be positive"),
        (lambda: nn.Unflatten(1, (2, 2.5)), "tuple of ints"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(16, 10, [5, 5]), "cutoffs"),
        (
            lambda: nn.AdaptiveLogSoftmaxWithLoss(16, 10, [5])(ut.ones(1, 16), ut.tensor([10])),
            r"in \[0, 9\], but values in range \[10, 10\]",
        ),
        (lambda: nn.LinearCrossEntropyLoss(2, 3, label_smoothing=2), "label_smoothing"),
    ],
)
def test_errors(make: Any, error: str) -> None:
    """Each names the layer, the values and what would fit."""
    with pytest.raises((ValueError, TypeError), match=error):
        make()


@pytest.mark.parametrize("affine", [False, True])
def test_a_batch_without_samples_leaves_running_statistics(affine: bool) -> None:
    norm = ut.nn.InstanceNorm2d(2, affine=affine, track_running_stats=True)
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    assert norm(ut.zeros(0, 2, 4, 4)).shape == (0, 2, 4, 4)
    assert all(ut.equal(value, before[name]) for name, value in norm.state_dict().items())


def test_a_refused_batch_is_not_counted() -> None:
    norm = ut.nn.BatchNorm1d(2)
    for refused in (ut.ones(1, 2), ut.ones(3, 5)):
        with pytest.raises(ValueError, match="batch_norm"):
            norm(refused)
    assert norm.num_batches_tracked.item() == 0
    norm(ut.ones(3, 2))
    assert norm.num_batches_tracked.item() == 1
