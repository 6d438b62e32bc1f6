"""Products in few bits, and functions that torch has beside their public form."""

from __future__ import annotations

import pytest

import undertow as ut
from undertow.errors import DTypeError, ShapeError, UnsupportedError


def test_scaled_products() -> None:
    ut.manual_seed(0)
    a, b = ut.randn(4, 8).to(ut.float8_e4m3fn), ut.randn(8, 6).to(ut.float8_e5m2)
    plain = a.float() @ b.float()
    one = ut._scaled_mm(a, b, ut.tensor(0.5), ut.tensor(4.0), out_dtype=ut.float32)
    assert ut.equal(one, plain * 2)
    rows, columns, bias = ut.rand(4, 1), ut.rand(1, 6), ut.rand(6)
    found = ut._scaled_mm(a, b, rows, columns, bias, out_dtype=ut.bfloat16)
    ut.testing.assert_close(found, (plain * rows * columns + bias).bfloat16())
    assert ut._scaled_mm(a, b, rows, columns).dtype is ut.float8_e4m3fn
    with pytest.raises(ShapeError, match="scale_a must be"):
        ut._scaled_mm(a, b, ut.rand(3, 1), columns)
    with pytest.raises(DTypeError, match="float8"):
        ut._scaled_mm(a.float(), b, rows, columns)


def test_whole_numbers() -> None:
    a, b = (ut.randint(-128, 128, s, dtype=ut.int8) for s in ((3, 2000), (2000, 4)))
    assert ut.equal(ut._int_mm(a, b), (a.long() @ b.long()).int())
    x, w, scales = ut.randn(2, 5), ut.randint(-9, 9, (3, 5), dtype=ut.int8), ut.rand(3)
    ut.testing.assert_close(ut._weight_int8pack_mm(x, w, scales), x @ w.float().T * scales)
    with pytest.raises(DTypeError, match="int8"):
        ut._int_mm(a, b.float())
    with pytest.raises(UnsupportedError, match="unpack"):
        ut._weight_int4pack_mm(x, w, 32, scales)


def test_grouped_by_position() -> None:
    a, b = ut.rand(4, 2), ut.rand(2, 2, 3)
    ends = ut.tensor([1, 4])
    found = ut._grouped_mm(a, b, ends)
    assert ut.equal(found, ut.nn.functional.grouped_mm(a, b, offs=ends))
    assert ut.nn.functional.grouped_mm(a, b, offs=ends, out_dtype="float64").dtype is ut.float64


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_bags(mode: int) -> None:
    table = ut.rand(6, 2, requires_grad=True)
    indices, offsets = ut.tensor([0, 2, 2, 5, 1]), ut.tensor([0, 2, 2])
    out, bag, size, most = ut.embedding_bag(table, indices, offsets, False, mode)
    plain = ut.nn.functional.embedding_bag(
        indices, table, offsets, mode=("sum", "mean", "max")[mode]
    )
    assert ut.equal(out, plain)
    assert bag.tolist() == [0, 0, 2, 2, 2]
    assert size.tolist() == [2, 0, 3]
    if mode == 2:
        for i in (0, 2):
            assert [table[r, c] for c, r in enumerate(most[i].tolist())] == list(out[i])
    out, _, size, _ = ut.embedding_bag(table, indices, offsets, False, mode, padding_idx=-1)
    assert size.tolist() == [2, 0, 2]  # the last row of the table is left out


def test_hashes() -> None:
    assert ut.hash_tensor(ut.tensor([1.0, 2.0, 3.0])).item() == 4609434218613702656  # as torch's
    assert ut.hash_tensor(ut.tensor([[1, 2], [5, 4]]), dim=1).tolist() == [3, 1]
    assert ut.hash_tensor(ut.tensor([1.0, 2.0]).half(), keepdim=True).tolist() == [
        9218868437227405312
    ]
    x = ut.randint(0, 1 << 40, (7, 5, 3))
    expected = ut.zeros(5, dtype=ut.int64)
    for i in range(7):
        for k in range(3):
            expected ^= x[i, :, k]
    assert ut.hash_tensor(x, dim=(0, 2)).long().tolist() == expected.tolist()
