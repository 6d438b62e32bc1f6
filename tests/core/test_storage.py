"""`untyped_storage()` and `storage()`: where a tensor's memory is, how large, what it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut


@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (300, 400)])
def test_bytes_of_fresh_memory(shape: Any) -> None:
    x = ut.zeros(shape)
    memory = x.untyped_storage()
    assert memory.nbytes() == len(memory) == 4 * x.numel()
    assert memory.data_ptr() == x.data_ptr()
    assert memory.device == x.device
    assert ut.is_storage(memory)
    assert isinstance(x.storage(), ut.TypedStorage)
    assert len(x.storage()) == x.numel()


def test_views_have_the_memory_of_their_base_and_copies_do_not() -> None:
    x = ut.arange(12, dtype=ut.float32).reshape(3, 4)
    c = ut.ones(3, dtype=ut.complex64)
    for view, base in [(x[1:, 2], x), (x.T, x), (x.flip(0).T[0:0], x.flip(0)), (c.imag, c)]:
        memory = view.untyped_storage()
        assert memory.nbytes() == base.untyped_storage().nbytes()
    assert x[1:].untyped_storage().data_ptr() == x.data_ptr()
    assert c.imag.untyped_storage().data_ptr() == c.data_ptr()
    assert x.clone().untyped_storage().data_ptr() != x.data_ptr()


def test_elements_can_be_read_and_written() -> None:
    x = ut.arange(4)
    memory = x[2:].storage()
    assert (memory.size(), memory.dtype, memory.element_size()) == (4, ut.int64, 8)
    assert (memory[1], memory.tolist(), list(memory)) == (1, [0, 1, 2, 3], [0, 1, 2, 3])
    memory[0] = 7
    assert x.tolist() == [7, 1, 2, 3]
    assert memory.untyped().nbytes() == 32


def test_set_of_parameters() -> None:
    """The memory of a tensor that requires gradients can be changed where nothing is recorded."""
    layer = ut.nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="no_grad"):
        layer.weight.set_(ut.ones(2, 2))
    with ut.no_grad():
        layer.weight.set_(layer.weight.detach() * 0 + 3)
    assert layer.weight.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert layer.weight.requires_grad
    assert layer.weight.is_leaf


def test_set_takes_storages() -> None:
    x = ut.arange(6)
    y = ut.empty(0, dtype=ut.int64).set_(x.storage(), 1, (2, 2), (1, 2))
    assert y.tolist() == [[1, 3], [2, 4]]
    assert y.data_ptr() == x.data_ptr() + 8
    z = ut.empty(0, dtype=ut.int32).set_(x.untyped_storage())
    assert z.shape == (12,)


# Storages that are made ---------------------------------------------------------------------
def test_storages_of_sizes_numbers_and_files(tmp_path) -> None:
    assert ut.FloatStorage([1, 2]).tolist() == [1.0, 2.0]
    assert ut.LongStorage(3).tolist() == [0, 0, 0]
    assert ut.TypedStorage([1, 2], dtype=ut.int16).dtype is ut.int16
    memory = ut.UntypedStorage(4)
    memory[1] = 7
    assert memory[1:3].tolist() == [7, 0]
    assert memory.clone().fill_(3).tolist() == [3] * 4
    assert list(ut.UntypedStorage(4).copy_(memory)) == [0, 7, 0, 0]
    assert ut.asarray(memory, dtype=ut.uint8).tolist() == [0, 7, 0, 0]
    assert ut.UntypedStorage.from_buffer(b"ab").tolist() == [97, 98]
    wrapped = ut.TypedStorage(wrap_storage=memory, dtype=ut.int32)
    assert wrapped.tolist() == [7 << 8]
    assert memory.resize_(4) is memory
    with pytest.raises(ut.errors.UnsupportedError, match="cannot become"):
        memory.resize_(5)
    with pytest.raises(ut.errors.UnsupportedError, match="shared=True"):
        memory.share_memory_()
    path = tmp_path / "numbers"
    x = ut.from_file(path, shared=True, size=3, dtype=ut.int64)
    x.copy_(ut.tensor([1, 2, 3]))
    assert ut.from_file(path, size=2, dtype=ut.int64).tolist() == [1, 2]
    private = ut.LongStorage.from_file(path, size=3)
    private[0] = 9  # the file stays as it is
    assert ut.UntypedStorage.from_file(path, nbytes=8).tolist() == [1] + [0] * 7
    with pytest.raises(ut.errors.FileError, match="24 bytes, and 4 elements"):
        ut.from_file(path, size=4, dtype=ut.int64)


@pytest.mark.parametrize("order", ["big", "little", "native"])
def test_elements_of_a_buffer(order: Any) -> None:
    data = bytearray([1, 2, 3, 4, 5, 6])
    found = ut.ShortStorage.from_buffer(data, order)
    named = "little" if order == "native" else order
    assert found.tolist() == [int.from_bytes(data[i : i + 2], named) for i in (0, 2, 4)]
    assert ut.ShortStorage.from_buffer(data, order, 1, 2).tolist() == found.tolist()[1:2]
    assert ut.ByteStorage.from_buffer(data).tolist() == list(data)
    assert ut.IntStorage.from_buffer(b"").tolist() == []
    with pytest.raises(ValueError, match="not whole elements"):
        ut.IntStorage.from_buffer(data, order)
    with pytest.raises(ValueError, match="not 4 elements"):
        ut.ShortStorage.from_buffer(data, order, 4)


def test_old_constructors_share_a_storage() -> None:
    x = ut.tensor([1.0, 2.0])
    for y in (ut.FloatTensor(x.storage()), x.new(x.storage()), x.new(x.untyped_storage())):
        assert y.data_ptr() == x.data_ptr()
        assert y.tolist() == [1, 2]
    with pytest.raises(TypeError, match="shares the memory"):
        ut.DoubleTensor(x.storage())


def test_a_tensor_takes_memory_of_its_own_dtype_only() -> None:
    x = ut.tensor([1.0, 2.0])
    assert ut.tensor([]).set_(x.storage()).data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match=r"\[set_\].*int64.*float32"):
        ut.tensor([]).set_(ut.arange(2).storage())
    bytes_ = x.untyped_storage()
    assert ut.tensor(bytes_, dtype=ut.float32).tolist() == [1, 2]
    assert ut.tensor(bytes_, dtype=ut.int32).tolist() == x.view(ut.int32).tolist()
    assert ut.FloatStorage(np.int16(3)).size() == 3
