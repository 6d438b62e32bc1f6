"""Recurrent networks: kernels, modules, packed sequences; the functions' samples are a table's."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends.cpu.forms.recurrent import run_recurrent, run_recurrent_backward
from undertow.backends.reference import NumpyBackend
from undertow.devices import Device
from undertow.kernel.cells import CELLS
from undertow.nn.utils.rnn import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)

REFERENCE = NumpyBackend(Device("cpu"))
BOUND = {"f": 2e-5, "d": 1e-12}
KINDS = ["RNN", "LSTM", "GRU"]


def double(*shape: int, seed: int = 0, grad: bool = False) -> ut.Tensor:
    return ut.tensor(np.random.default_rng(seed).standard_normal(shape), requires_grad=grad)


def close(found: Any, expected: Any, bound: float = 1e-12) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            close(f, e, bound)
        return
    a, b = (np.asarray(t.detach()) if isinstance(t, ut.Tensor) else t for t in (found, expected))
    np.testing.assert_allclose(a, b, rtol=bound, atol=bound)


def states(last: Any) -> tuple[Any, ...]:
    return last if isinstance(last, tuple) else (last,)


def network(kind: str, *args: Any, **kwargs: Any) -> Any:
    ut.manual_seed(3)
    return getattr(ut.nn, kind)(*args, dtype=ut.float64, **kwargs)


# Kernels -----------------------------------------------------------------------------------------
# (steps, batch, width): one row, less than a block, several blocks, the last one short
SHAPES = [(1, 1, 1), (5, 3, 7), (2, 16, 16), (6, 37, 8), (3, 32, 33)]


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", CELLS)
def test_kernels_against_numpy(kind: str, shape: tuple[int, ...], dtype: str) -> None:
    """Every result of both kernels, in both directions, with and without lengths."""
    cell, (steps, batch, width) = CELLS[kind], shape
    random = np.random.default_rng(sum(shape))

    def normal(*sizes: int) -> Any:
        return random.standard_normal(sizes).astype(dtype)

    def compare(found: Any, expected: Any) -> None:
        for f, e in zip(found, expected, strict=True):
            assert (f is None) == (e is None)
            if f is not None:
                np.testing.assert_allclose(f, e, rtol=BOUND[dtype], atol=BOUND[dtype])

    weight = normal(cell.gates * width, width) / np.asarray(width**0.5, dtype)
    h, dh = normal(batch, width), normal(batch, width)
    c, dc = (normal(batch, width) if cell.memory else None for _ in range(2))
    bias = normal(cell.gates * width) if kind == "gru" else None
    g = normal(steps, batch, 2 * width)[:, :, :width]
    gates = normal(batch, steps, cell.gates * width).swapaxes(0, 1)
    for masked, reverse in itertools.product((False, True), repeat=2):
        lengths = random.integers(0, steps + 1, batch) if masked else None
        given = (h, c, weight, bias, lengths, reverse)
        found = run_recurrent(kind, gates.copy(), *given)
        expected: Any = REFERENCE.recurrent(kind, gates, *given)
        compare(found, expected)
        before = expected[4] if kind == "lstm" else expected[0]
        slopes = (kind, g, dh, dc, expected[3], before, weight, lengths, reverse)
        compare(run_recurrent_backward(*slopes), REFERENCE.recurrent_backward(*slopes))


def test_same_bits_for_any_number_of_threads() -> None:
    """Blocks of a batch do not depend on the number of threads."""
    x = ut.tensor(np.random.default_rng(0).standard_normal((9, 40, 24)).astype("f"))
    lstm = ut.nn.LSTM(24, 32, 2)
    found = []
    before = ut.get_num_threads()
    try:
        for threads in (1, 2, 3):
            ut.set_num_threads(threads)
            lstm.zero_grad()
            lstm(x)[0].square().sum().backward()
            found.append([np.array(p.grad) for p in lstm.parameters()])
    finally:
        ut.set_num_threads(before)
    for grads in found[1:]:
        for a, b in zip(found[0], grads, strict=True):
            np.testing.assert_array_equal(a, b)


def test_inputs_are_not_changed() -> None:
    x, h, c = double(5, 20, 16), double(1, 20, 16, seed=1), double(1, 20, 16, seed=2)
    copies = [t.clone() for t in (x, h, c)]
    lstm = network("LSTM", 16, 16)
    out = lstm(x, (h, c))[0]
    out.sum().backward()
    for t, before in zip((x, h, c), copies, strict=True):
        close(t, before)


@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_half_precision(kind: str, dtype: Any) -> None:
    """Computed in single precision, so no further off than the rounding of inputs and results."""
    exact = getattr(ut.nn, kind)(8, 16, 2)
    half = copy.deepcopy(exact).to(dtype)
    x = ut.tensor(np.random.default_rng(1).standard_normal((6, 4, 8)).astype("f"))
    out, last = half(x.to(dtype))
    assert out.dtype is dtype
    wanted, wanted_last = exact(x)
    bound = 0.01 if dtype is ut.float16 else 0.05
    for f, e in zip((out, *states(last)), (wanted, *states(wanted_last)), strict=True):
        close(f.float(), e, bound)
    out.float().sum().backward()
    wanted.sum().backward()
    for p, q in zip(half.parameters(), exact.parameters(), strict=True):
        assert p.grad.dtype is dtype
        a, b = np.asarray(p.grad.float()), np.asarray(q.grad)
        assert np.abs(a - b).max() <= 10 * bound * (1 + np.abs(b).max())


# Properties --------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_of_cells_is_a_network(kind: str) -> None:
    """One layer and its cell, with all gradients."""
    whole = network(kind, 5, 24)
    cell = getattr(ut.nn, f"{kind}Cell")(5, 24, dtype=ut.float64)
    cell.load_state_dict({n.removesuffix("_l0"): t for n, t in whole.state_dict().items()})
    x, g = double(7, 18, 5, grad=True), double(7, 18, 24, seed=1)
    out, last = whole(x)
    state: Any = None
    outs = []
    for row in x:
        state = cell(row, state)
        outs.append(states(state)[0])
    close(out, ut.stack(outs))
    close([t[0] for t in states(last)], states(state))
    leaves = [x, *whole.parameters()]
    expected = ut.autograd.grad(out, leaves, g)
    close(ut.autograd.grad(ut.stack(outs), [x, *cell.parameters()], g), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_bidirectional_is_two_runs(kind: str) -> None:
    """The second half of the result is a run over the reversed input."""
    both = network(kind, 5, 6, bidirectional=True)
    ahead, back = network(kind, 5, 6), network(kind, 5, 6)
    weights = both.state_dict()
    ahead.load_state_dict({n: t for n, t in weights.items() if "reverse" not in n})
    back.load_state_dict(
        {n.removesuffix("_reverse"): t for n, t in weights.items() if "reverse" in n}
    )
    x = double(4, 3, 5)
    out, last = both(x)
    first, h1 = ahead(x)
    second, h2 = back(x.flip(0))
    close(out, ut.cat([first, second.flip(0)], 2))
    for found, a, b in zip(states(last), states(h1), states(h2), strict=True):
        close(found, ut.cat([a, b]))


@pytest.mark.parametrize("kind", KINDS)
def test_batch_first_and_unbatched_are_views(kind: str) -> None:
    plain, turned = network(kind, 5, 6, 2), network(kind, 5, 6, 2, batch_first=True)
    x = double(4, 3, 5)
    out, last = plain(x)
    found, found_last = turned(x.transpose(0, 1))
    close(found.transpose(0, 1), out)
    close(states(found_last), states(last))
    for net in (plain, turned):  # without a batch both are (steps, features)
        one, one_last = net(x[:, 1])
        close(one, out[:, 1])
        close(states(one_last), [t[:, 1] for t in states(last)])
        zeros = tuple(ut.zeros(2, 6, dtype=ut.float64) for _ in states(last))
        close(net(x[:, 1], zeros if kind == "LSTM" else zeros[0])[0], one)


LENGTHS = [3, 5, 1, 5]


@pytest.mark.parametrize(
    "kind, options",
    [
        *itertools.product(KINDS, [{}, {"bidirectional": True, "num_layers": 2}]),
        ("LSTM", {"bidirectional": True, "num_layers": 2, "proj_size": 4}),
    ],
)
def test_packed_sequences_are_their_own(kind: str, options: dict[str, Any]) -> None:
    """Each sequence of a packed batch gives what it gives alone, with the same gradients."""
    net = network(kind, 5, 6, **options)
    sequences = [double(n, 5, seed=i, grad=True) for i, n in enumerate(LENGTHS)]
    packed, last = net(pack_sequence(sequences, enforce_sorted=False))
    assert isinstance(packed, PackedSequence)
    outs = unpack_sequence(packed)
    for i, x in enumerate(sequences):
        out, h = net(x)
        close(outs[i], out)
        close([t[:, i] for t in states(last)], states(h))
    loss = sum((o * o).sum() for o in outs) + sum((t * t * t).sum() for t in states(last))
    alone: Any = 0.0
    for x in sequences:
        out, h = net(x)
        alone = alone + (out * out).sum() + sum((t * t * t).sum() for t in states(h))
    leaves = [*sequences, *net.parameters()]
    close(ut.autograd.grad(loss, leaves), ut.autograd.grad(alone, leaves), 1e-11)


def test_packed_states_are_in_the_order_of_the_sequences() -> None:
    net = network("LSTM", 5, 6)
    sequences = [double(n, 5, seed=i) for i, n in enumerate(LENGTHS)]
    first = double(1, 4, 6, seed=9), double(1, 4, 6, seed=10)
    packed, last = net(pack_sequence(sequences, enforce_sorted=False), first)
    outs = unpack_sequence(packed)
    for i, x in enumerate(sequences):
        out, h = net(x, tuple(t[:, i] for t in first))
        close(outs[i], out)
        close([t[:, i] for t in last], h)


def test_padding_is_never_seen() -> None:
    """What stands behind the end of a sequence changes nothing, whatever it is."""
    net = network("GRU", 5, 20, 2, bidirectional=True)
    x = double(6, 3, 5)
    lengths = [6, 4, 2]
    found = []
    for filler in (0.0, np.inf):
        padded = x.clone()
        for i, n in enumerate(lengths):
            padded[n:, i] = filler
        net.zero_grad()
        out, last = net(pack_padded_sequence(padded, lengths))
        (out.data.sum() + last.sum()).backward()
        found.append([out.data, last, *(p.grad for p in net.parameters())])
    close(found[1], found[0])


@pytest.mark.parametrize("kind", KINDS)
def test_second_order(kind: str) -> None:
    """Gradients of gradients by finite differences, through layers, directions and lengths."""
    net = network(kind, 2, 3, 2, bidirectional=True)
    x = double(6, 2, grad=True)
    sizes = ut.tensor([3, 2, 1])

    def run(x: ut.Tensor, *weights: ut.Tensor) -> Any:
        out, last = net(PackedSequence(x, sizes))
        return (out.data, *states(last))

    assert ut.autograd.gradgradcheck(run, [x, *net.parameters()], atol=1e-5, fast_mode=True)


def test_third_order() -> None:
    cell = network("GRUCell", 1, 2)

    def f(x: ut.Tensor) -> ut.Tensor:
        return cell(cell(x)[:, :1]).sum()

    def derivative(g: Any) -> Any:
        def run(x: ut.Tensor) -> ut.Tensor:
            (found,) = ut.autograd.grad(g(x), x, create_graph=True)
            return found.sum()

        return run

    x = double(1, 1, grad=True)
    assert ut.autograd.gradcheck(derivative(derivative(f)), [x], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_last_state_is_used(kind: str) -> None:
    """No cotangent arrives at the results of the steps, or at the memory."""
    net = network(kind, 5, 20)
    x = double(4, 17, 5, grad=True)
    out, last = net(x)
    wanted = ut.autograd.grad(out[-1].square().sum(), [x, *net.parameters()])
    out, last = net(x)
    found = ut.autograd.grad(states(last)[0].square().sum(), [x, *net.parameters()])
    close(found, wanted)
    if kind == "LSTM":
        out, (_, c) = net(x)
        (by_memory,) = ut.autograd.grad(c.square().sum(), x)
        assert np.isfinite(np.asarray(by_memory)).all()
        assert by_memory.abs().sum() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_empty_batch(kind: str) -> None:
    net = network(kind, 5, 6, 2, bidirectional=True)
    out, last = net(ut.zeros(3, 0, 5, dtype=ut.float64))
    assert out.shape == (3, 0, 12)
    assert all(t.shape == (4, 0, 6) for t in states(last))
    out.sum().backward()
    assert all(not p.grad.any() for p in net.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_reference_device(kind: str) -> None:
    """The same network on a device that has no kernels, with lengths."""
    net = network(kind, 5, 6, 2, bidirectional=True)
    there = copy.deepcopy(net).to("reference")
    sequences = [double(n, 5, seed=i) for i, n in enumerate(LENGTHS)]
    packed = pack_sequence(sequences, enforce_sorted=False)
    out, last = net(packed)
    found, found_last = there(packed.to("reference"))
    close(found.data.cpu(), out.data)
    close([t.cpu() for t in states(found_last)], states(last))
    out.data.square().sum().backward()
    found.data.square().sum().backward()
    for p, q in zip(there.parameters(), net.parameters(), strict=True):
        close(p.grad.cpu(), q.grad)


def test_dropout_stands_between_layers() -> None:
    """Neither before the first layer nor behind the last; none when evaluating."""
    net = network("RNN", 4, 50, 2, dropout=0.5, nonlinearity="relu")
    with ut.no_grad():
        for p in net.parameters():
            p.zero_()
        net.weight_ih_l0.fill_(1.0)
        net.weight_ih_l1.copy_(ut.eye(50, dtype=ut.float64))
    x = ut.ones(40, 20, 4, dtype=ut.float64)
    out, _ = net(x)
    values = np.asarray(out.detach())
    assert set(np.unique(values)) == {0.0, 8.0}  # dropped, or doubled
    assert abs((values == 0).mean() - 0.5) < 0.02
    assert not np.array_equal(np.asarray(net(x)[0].detach()), values)
    net.eval()
    assert (np.asarray(net(x)[0].detach()) == 4.0).all()
    all_gone = network("GRU", 4, 5, 2, dropout=1.0)
    a, b = double(3, 2, 4), double(3, 2, 4, seed=1)
    close(all_gone(a)[0], all_gone(b)[0])


# Modules -----------------------------------------------------------------------------------------
def test_names_and_repr() -> None:
    net = ut.nn.LSTM(3, 4, 2, bias=True, bidirectional=True, proj_size=2, batch_first=True)
    stems = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
    ends = [f"l{layer}{way}" for layer in (0, 1) for way in ("", "_reverse")]
    assert list(net.state_dict()) == [f"{stem}_{end}" for end in ends for stem in stems]
    assert repr(net) == (
        "LSTM(3, 4, proj_size=2, num_layers=2, batch_first=True, bidirectional=True)"
    )
    assert repr(ut.nn.RNNCell(2, 3, bias=False, nonlinearity="relu")) == (
        "RNNCell(2, 3, bias=False, nonlinearity=relu)"
    )
    assert [len(w) for w in net.all_weights] == [5] * 4
    assert net.all_weights[1][0] is net.weight_ih_l0_reverse
    assert net.flatten_parameters() is None
    relu = ut.nn.RNN(3, 4, 1, "relu", False)
    assert (relu.mode, relu.nonlinearity, relu.bias) == ("RNN_RELU", "relu", False)


@pytest.mark.parametrize("kind", KINDS)
def test_initial_values(kind: str) -> None:
    net = getattr(ut.nn, kind)(7, 100, 2)
    for p in net.parameters():
        values = np.asarray(p.detach())
        assert np.abs(values).max() <= 0.1
        assert np.abs(values).max() > 0.09
        assert abs(values.mean()) < 0.03


def test_copies_and_pickles() -> None:
    net = network("GRU", 5, 6, 2)
    x = double(4, 3, 5)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        close(other(x), net(x))
        assert other.weight_ih_l0 is not net.weight_ih_l0


def test_weights_that_are_replaced_are_used() -> None:
    net = network("LSTM", 5, 6)
    x = double(4, 3, 5)
    net.weight_ih_l0 = ut.nn.Parameter(ut.zeros(24, 5, dtype=ut.float64))
    close(net(x)[0], net(x * 7)[0])


X = ut.zeros(4, 3, 5)
WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: ut.nn.LSTM(5, 0), ValueError, r"\[LSTM\] hidden_size and num_layers must be greater"),
    (lambda: ut.nn.LSTM(5, 6.0), TypeError, r"\[LSTM\] hidden_size must be an integer, got 6\.0"),
    (lambda: ut.nn.GRU(5, 6, 0), ValueError, "num_layers must be greater than zero, got 6 and 0"),
    (lambda: ut.nn.GRU(5, 6, 2, dropout=2), ValueError, "dropout must be a probability.*got 2"),
    (lambda: ut.nn.GRU(5, 6, proj_size=2), ValueError, "only supported for LSTM"),
    (lambda: ut.nn.LSTM(5, 6, proj_size=6), ValueError, "proj_size must be smaller than hidden"),
    (lambda: ut.nn.RNN(5, 6, nonlinearity="gelu"), ValueError, "'tanh' or 'relu', got 'gelu'"),
    (lambda: ut.nn.RNNCell(5, 6, nonlinearity="gelu"), ValueError, "'tanh' or 'relu', got 'gelu'"),
    (lambda: ut.nn.RNNBase("MGU", 5, 6), ValueError, "mode must be one of RNN_TANH|LSTM"),
    (lambda: ut.nn.LSTM(7, 6)(X), ValueError, "equal to input_size, expected 7, got 5"),
    (lambda: ut.nn.LSTM(5, 6)(X[0, 0]), ValueError, "Expected input to be 2D or 3D, got 1D"),
    (lambda: ut.nn.LSTM(5, 6)([1.0]), ValueError, "a Tensor or a PackedSequence, got list"),
    (lambda: ut.nn.LSTM(5, 6)(X, ut.zeros(1, 3, 6)), ValueError, r"a pair \(h_0, c_0\)"),
    (
        lambda: ut.nn.LSTM(5, 6)(X, (ut.zeros(1, 3, 6), ut.zeros(1, 3, 7))),
        ValueError,
        r"Expected hidden\[1\] size \(1, 3, 6\), got \[1, 3, 7\]",
    ),
    (
        lambda: ut.nn.GRU(5, 6)(X, ut.zeros(1, 4, 6)),
        RuntimeError,
        r"Expected hidden size \(1, 3, 6\), got \[1, 4, 6\]",
    ),
    (lambda: ut.nn.GRU(5, 6)(X, ut.zeros(3, 6)), RuntimeError, "batched 3-D input, hx should"),
    (lambda: ut.nn.GRU(5, 6)(X[0], X), RuntimeError, "unbatched 2-D input, hx should also be 2-D"),
    (lambda: ut.nn.GRU(5, 6)(X[:0]), ValueError, "at least one step"),
    (lambda: ut.nn.GRUCell(5, 6)(X), ValueError, "Expected input to be 1D or 2D, got 3D"),
    (lambda: ut.nn.GRUCell(7, 6)(X[0]), ValueError, "input has 5 features, expected input_size=7"),
    (
        lambda: ut.nn.GRUCell(5, 6)(X[0], ut.zeros(4, 6)),
        ValueError,
        r"\[GRUCell\] hx must have shape \(3, 6\)",
    ),
    (lambda: ut.nn.LSTMCell(5, 6)(X[0], X), ValueError, r"hx must be a pair \(h_0, c_0\)"),
]


@pytest.mark.parametrize("make, error, match", WRONG)
def test_wrong_arguments(make: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match) as caught:
        make()
    assert isinstance(caught.value, ut.errors.UndertowError)


def test_dropout_of_one_layer_warns() -> None:
    with pytest.warns(UserWarning, match="no effect with num_layers=1"):
        ut.nn.GRU(5, 6, dropout=0.5)


# Packing -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_and_padding_are_inverse(batch_first: bool) -> None:
    sequences = [double(n, 2, 3, seed=n, grad=True) for n in (3, 1, 4)]
    padded = pad_sequence(sequences, batch_first, padding_value=-1.0)
    assert padded.shape == ((3, 4, 2, 3) if batch_first else (4, 3, 2, 3))
    packed = pack_padded_sequence(padded, [3, 1, 4], batch_first, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 2, 1]
    assert packed.sorted_indices is not None
    assert packed.sorted_indices.tolist() == [2, 0, 1]
    again, lengths = pad_packed_sequence(packed, batch_first, -1.0)
    close(again, padded)
    assert lengths.tolist() == [3, 1, 4]
    assert lengths.dtype is ut.int64
    longer, _ = pad_packed_sequence(packed, batch_first, 9.0, total_length=6)
    assert longer.shape[1 if batch_first else 0] == 6
    assert (longer.sum() - again.sum()).item() == pytest.approx(6 * (3 * 6 - 8) * 9.0 + 6 * 4)
    for found, x in zip(unpad_sequence(again, lengths, batch_first), sequences, strict=True):
        close(found, x)
    for found, x in zip(unpack_sequence(packed), sequences, strict=True):
        close(found, x)
    weights = double(*padded.shape, seed=7)
    grads = ut.autograd.grad((again * weights).sum(), sequences)
    wanted = unpad_sequence(weights, lengths, batch_first)
    close(grads, wanted)


def test_padding_side() -> None:
    given = [ut.tensor([1, 2]), ut.tensor([3])]
    assert pad_sequence(given, True, 9, "left").tolist() == [[1, 2], [9, 3]]


def test_packed_sequence_converts() -> None:
    packed = pack_sequence([ut.tensor([1.0, 2.0]), ut.tensor([3.0])])
    assert packed.to(ut.float32) is packed
    assert packed.cpu() is packed
    assert packed.double().data.dtype is ut.float64
    assert packed.long().data.dtype is ut.int64
    there = packed.to("reference")
    assert there.data.device.type == "reference"
    assert there.batch_sizes.device.type == "cpu"
    assert not packed.is_cuda
    assert not packed.is_pinned()
    assert packed.pin_memory() is packed
    again = pickle.loads(pickle.dumps(packed))
    assert isinstance(again, PackedSequence)
    close(again.data, packed.data)
    made = PackedSequence((packed.data, packed.batch_sizes))
    assert made.batch_sizes is packed.batch_sizes
    assert invert_permutation(None) is None


PADDED = ut.zeros(4, 3)
WRONG_PACKING: list[tuple[Any, str]] = [
    (lambda: pack_padded_sequence(PADDED, [4, 3]), "equal to batch_size 3, got 2"),
    (lambda: pack_padded_sequence(PADDED, [4, 3, 0]), "has to be greater than 0"),
    (lambda: pack_padded_sequence(PADDED, [3, 4, 1]), "sorted in decreasing order"),
    (lambda: pack_padded_sequence(PADDED, [5, 3, 1]), "5 is more than the 4 steps"),
    (lambda: pack_padded_sequence(PADDED[0], [1]), r"input must be \(steps, batch"),
    (lambda: pad_sequence([]), "empty list"),
    (lambda: pad_sequence(3), "Expected iterable"),  # type: ignore[arg-type]
    (lambda: pad_sequence([PADDED, PADDED[0]]), "alike but for their length"),
    (lambda: pad_sequence([PADDED], padding_side="top"), "left or right, got 'top'"),
    (lambda: unpad_sequence(PADDED, [1]), "3 sequences need as many lengths, got 1"),
    (lambda: PackedSequence(PADDED), "expects data and batch_sizes"),
    (
        lambda: PackedSequence(PADDED, ut.tensor([4]).to("reference")),
        "batch_sizes should always be on CPU",
    ),
    (
        lambda: pad_packed_sequence(pack_sequence([PADDED]), total_length=3),
        "got total_length=3 and max sequence length being 4",
    ),
    (lambda: pad_packed_sequence(PackedSequence(PADDED, ut.tensor([3]))), "add up to the 4 rows"),
]


@pytest.mark.parametrize("make, match", WRONG_PACKING)
def test_wrong_packing(make: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match) as caught:
        make()
    assert isinstance(caught.value, ut.errors.UndertowError)


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q"]))


@pytest.mark.parametrize("make", [ut.nn.RNNCell, ut.nn.LSTMCell, ut.nn.GRUCell])
def test_a_state_of_no_elements(make: Any) -> None:
    out = make(10, 0)(ut.ones(3, 10, requires_grad=True))
    state = out[0] if isinstance(out, tuple) else out
    assert state.shape == (3, 0)
    state.sum().backward()


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_weights_in_their_order_by_torchs_name() -> None:
    lstm = ut.nn.utils.weight_norm(ut.nn.LSTM(3, 2, proj_size=1), name="weight_hr_l0")
    assert [isinstance(p, ut.nn.Parameter) for p in lstm._flat_weights] == [True] * 4 + [False]
    lstm = ut.nn.utils.remove_weight_norm(lstm, name="weight_hr_l0")
    assert all(isinstance(p, ut.nn.Parameter) for p in lstm._flat_weights)
