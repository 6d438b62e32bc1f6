"""Files go from torch to Undertow and back: checkpoints new and old, and safetensors."""

from __future__ import annotations

import io
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.errors import UndertowError
from undertow.files.safetensors import load_file, safe_open, save_file

torch = pytest.importorskip("torch")
safetensors_torch = pytest.importorskip("safetensors.torch")
pytestmark = pytest.mark.conformance


def from_torch(obj: Any, **how: Any) -> Any:
    file = io.BytesIO()
    torch.save(obj, file, **how)
    file.seek(0)
    return ut.load(file)


def to_torch(obj: Any) -> Any:
    file = io.BytesIO()
    ut.save(obj, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


WAYS: list[dict[str, Any]] = [
    {},
    {"_use_new_zipfile_serialization": False},
    {"pickle_protocol": 4},
    {"pickle_protocol": 5},
]


def same(ours: Any, theirs: Any) -> bool:
    return (
        str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
        and ours.shape == tuple(theirs.shape)
        and ours.tolist() == theirs.tolist()
        and ours.requires_grad == theirs.requires_grad
    )


@pytest.mark.parametrize("how", WAYS, ids=str)
@pytest.mark.parametrize("dtype", [*ut.dtypes.ALL, *ut.dtypes.RARE], ids=lambda d: d.name)
def test_dtypes(dtype: Any, how: Any) -> None:
    for shape in [(), (0,), (2, 0, 3), (5,), (2, 3)]:
        t = (torch.arange(int(np.prod(shape))).reshape(shape) % 3).to(getattr(torch, dtype.name))
        assert same(from_torch([t], **how)[0], t)
        u = (ut.arange(int(np.prod(shape))).reshape(shape) % 3).to(dtype)
        assert same(u, to_torch([u])[0])


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_views_share_memory(how: Any) -> None:
    x = torch.arange(12.0).reshape(3, 4)
    views = [x, x.t(), x[1], x[:, 1::2], x[2, 3], x.expand(2, 3, 4)]
    found = from_torch(views, **how)
    for ours, theirs in zip(found, views, strict=True):
        assert same(ours, theirs)
        assert ours.stride() == theirs.stride()
        assert ours.storage_offset() == theirs.storage_offset()
    found[0].mul_(10)
    assert found[2].tolist() == [40, 50, 60, 70]
    back = to_torch(found)
    for again, theirs in zip(back, views, strict=True):
        assert again.stride() == theirs.stride()
        assert torch.equal(again, theirs * 10)
    back[0].zero_()
    assert not back[3].any()


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_nested_data(how: Any) -> None:
    obj = {
        "n": [1, -3, 2**40, -(2**90), 0.5, float("inf"), True, None, 1 + 2j],
        "s": ["", "täxt", b"\0\xff", bytearray(b"xy"), (1, (2, ())), {1, 2}],
        3: OrderedDict([("a", {}), ("b", [])]),
        (1, "k"): "v",
    }
    assert from_torch(obj, **how) == obj
    assert to_torch(obj) == obj
    found = from_torch([torch.float32, torch.device("cpu"), torch.Size([2, 3])], **how)
    assert found == [ut.float32, ut.device("cpu"), (2, 3)]
    assert type(found[2]) is ut.Size
    assert type(to_torch([ut.ones(2, 3).shape])[0]) is torch.Size
    assert to_torch([ut.bfloat16, ut.device("cuda:1")]) == [torch.bfloat16, torch.device("cuda:1")]


@pytest.mark.parametrize("how", WAYS[:2], ids=str)
def test_a_torch_training_goes_on_here(how: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU())
    optimizer = torch.optim.Adam(model.parameters(), 1e-2, betas=(0.8, 0.9))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(5, 3)).sum().backward()
        optimizer.step()
        scheduler.step()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "rng": torch.get_rng_state(),
    }
    found = from_torch(state, **how)
    assert list(found["model"]) == list(state["model"])
    assert found["model"]._metadata == state["model"]._metadata
    for name, t in state["model"].items():
        assert same(found["model"][name], t)
    assert found["optimizer"]["param_groups"] == state["optimizer"]["param_groups"]
    for i, moments in state["optimizer"]["state"].items():
        for name, t in moments.items():
            assert same(found["optimizer"]["state"][i][name], t)
    assert found["scheduler"] == state["scheduler"]
    # And back: torch goes on from what was saved here.
    back = to_torch(found)
    model.load_state_dict(back["model"])
    optimizer.load_state_dict(back["optimizer"])
    scheduler.load_state_dict(back["scheduler"])
    assert torch.equal(back["rng"], state["rng"])


def test_parameters() -> None:
    p = torch.nn.Parameter(torch.ones(2))
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    tagged = torch.nn.Parameter(torch.ones(2))
    tagged.tag = "x"  # an attribute of its own, which is left out here
    plain = torch.ones(2)
    plain.tag = "y"
    found = from_torch([p, frozen, tagged, plain, p])
    assert [type(t) for t in found] == [ut.nn.Parameter] * 3 + [ut.Tensor, ut.nn.Parameter]
    assert [t.requires_grad for t in found] == [True, False, True, False, True]
    assert found[0] is found[4]
    back = to_torch(found)
    assert [type(t) for t in back[:4]] == [torch.nn.Parameter] * 3 + [torch.Tensor]
    assert [t.requires_grad for t in back] == [True, False, True, False, True]


def test_our_state_dict_loads_into_torch() -> None:
    ours = ut.nn.Sequential(ut.nn.Linear(3, 4), ut.nn.Linear(4, 2))
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    theirs.load_state_dict(to_torch(ours.state_dict()))
    x = np.random.default_rng(0).standard_normal((5, 3), np.float32)
    expected = theirs(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(ours(ut.from_numpy(x)).detach().numpy(), expected, rtol=1e-5)


OPTIMISERS = """
SGD Adam AdamW Adamax NAdam RAdam Adagrad Adadelta RMSprop Rprop ASGD Adafactor LBFGS
""".split()  # noqa: SIM905


@pytest.mark.parametrize("name", OPTIMISERS)
def test_our_training_goes_on_in_torch(name: str) -> None:
    """The next step of torch, from our checkpoint, is the one that we make."""
    how = {"momentum": 0.9} if name == "SGD" else {}
    ours, theirs = (lib.nn.Sequential(lib.nn.Linear(3, 2)) for lib in (ut, torch))
    optimiser = getattr(ut.optim, name)(ours.parameters(), **how)

    def step(lib: Any, model: Any, optimiser: Any) -> None:
        def closure() -> Any:
            optimiser.zero_grad()
            loss = (model(lib.ones(2, 3)) ** 2).sum()
            loss.backward()
            return loss

        optimiser.step(closure)

    step(ut, ours, optimiser)
    state = {"model": ours.state_dict(), "optimiser": optimiser.state_dict()}
    file = io.BytesIO()
    ut.save(state, file)
    file.seek(0)
    found = torch.load(file, weights_only=True)
    theirs.load_state_dict(found["model"])
    follower = getattr(torch.optim, name)(theirs.parameters(), **how)
    follower.load_state_dict(found["optimiser"])
    file.seek(0)
    optimiser.load_state_dict(ut.load(file)["optimiser"])
    step(ut, ours, optimiser)
    step(torch, theirs, follower)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-6)


def test_mapped_by_torch(tmp_path: Path) -> None:
    x = ut.arange(1000).float()
    ut.save({"x": x, "y": x[5:]}, tmp_path / "f.pt")
    found = torch.load(tmp_path / "f.pt", weights_only=True, mmap=True)
    assert found["x"].tolist() == x.tolist()
    assert found["y"].data_ptr() == found["x"].data_ptr() + 20
    torch.save({"x": torch.arange(1000.0)}, tmp_path / "g.pt")
    assert ut.load(tmp_path / "g.pt", mmap=True)["x"].tolist() == x.tolist()


UNSUPPORTED = {
    "quantised": (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "quantis"),
    "complex32": (lambda: torch.ones(2).to(torch.complex32), "dtype"),
    "conjugate": (lambda: torch.ones(2, dtype=torch.complex64).conj(), "resolve_conj"),
    "module": (lambda: torch.nn.Linear(2, 2), "torch.nn.modules.linear.Linear"),
}


@pytest.mark.filterwarnings("ignore")  # quantised tensors are deprecated
@pytest.mark.parametrize("make, message", UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_unsupported(make: Any, message: str) -> None:
    with pytest.raises(UndertowError, match=rf"^\[load\].*{message}"):
        from_torch(make())


@pytest.mark.filterwarnings("ignore")
def test_scripts_are_refused() -> None:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), file)
    file.seek(0)
    with pytest.raises(UndertowError, match="TorchScript"):
        ut.load(file)


def test_safetensors(tmp_path: Path) -> None:
    names = [d.name for d in ut.dtypes.ALL if d is not ut.complex128]
    theirs = {n: (torch.arange(6).reshape(2, 3) % 3).to(getattr(torch, n)) for n in names}
    theirs["empty"], theirs["scalar"] = torch.ones(0, 3), torch.tensor(2.0)
    safetensors_torch.save_file(theirs, tmp_path / "t", {"format": "pt"})
    ours = load_file(tmp_path / "t")
    assert set(ours) == set(theirs)
    assert all(same(ours[n], t) for n, t in theirs.items())
    save_file(ours, tmp_path / "u", {"format": "pt"})
    assert (tmp_path / "u").read_bytes() == (tmp_path / "t").read_bytes()
    back = safetensors_torch.load_file(tmp_path / "u")
    assert all(torch.equal(back[n], t) for n, t in theirs.items())
    with safe_open(tmp_path / "t", framework="pt") as file:
        assert file.metadata() == {"format": "pt"}
        assert same(file.get_slice("float32")[:, 1:], theirs["float32"][:, 1:])


@pytest.mark.filterwarnings("ignore")  # sparse tensors are in beta state
@pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])
def test_storages_and_tensors_of_other_kinds(new: bool) -> None:
    def things(lib: Any) -> list[Any]:
        sparse = [lib.eye(2).to_sparse(), lib.eye(2).to_sparse_csr(), lib.eye(2).to_sparse_csc()]
        return [
            lib.arange(6.0).reshape(2, 3),
            lib.ones(2, 3, dtype=lib.float64, device="meta").t(),
            lib.arange(3).storage(),
            lib.strided,
            *([*sparse, lib.ones(2, dtype=lib.uint16), lib.arange(6.0).untyped_storage()] * new),
        ]

    for writes, reads in [(ut, ut), (ut, torch), (torch, ut)]:
        file = io.BytesIO()
        writes.save(things(writes), file, _use_new_zipfile_serialization=new)
        writes.save("next", file, _use_new_zipfile_serialization=new)
        file.seek(0)
        if new:
            file = io.BytesIO()
            writes.save(things(writes), file)
            file.seek(0)
        found = reads.load(file)
        assert new or reads.load(file) == "next"
        for got, expected in zip(found, things(reads), strict=True):
            if new and got is found[-1] and reads is torch:  # which gives a TypedStorage of uint8
                got = got.untyped()
            assert type(got) is type(expected)
            if hasattr(expected, "layout") and expected.device.type != "meta":
                assert got.layout is expected.layout
                assert got.to_dense().tolist() == expected.to_dense().tolist()
        assert found[0].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert (found[1].shape, found[1].stride()) == ((3, 2), (1, 3))
        assert found[1].dtype is reads.float64
        assert found[1].device.type == "meta"
        assert (list(found[2]), found[2].dtype) == ([0, 1, 2], reads.int64)
        assert found[3] is reads.strided
        assert not new or len(found[-1]) == 24


@pytest.mark.filterwarnings("ignore")
def test_sparse_tensors_of_a_hostile_file_are_checked() -> None:
    bad = torch.sparse_coo_tensor(torch.tensor([[7]]), torch.ones(1), (9,))
    file = io.BytesIO()
    torch.save(bad, file)
    raw = file.getvalue()
    assert raw.count((7).to_bytes(8, "little")) == 1
    torch.serialization.set_crc32_options(True)
    with ut.serialization.skip_data():  # all indices are zeros
        assert ut.load(io.BytesIO(raw))._indices().tolist() == [[0]]
    import zipfile

    records = zipfile.ZipFile(io.BytesIO(raw))
    from undertow.files.archive import archive

    content = [(n, records.read(n)) for n in records.namelist()]
    hostile = [
        (n, c.replace((7).to_bytes(8, "little"), (99).to_bytes(8, "little"))) for n, c in content
    ]
    with pytest.raises(UndertowError, match="sparse tensor that cannot be"):
        ut.load(io.BytesIO(b"".join(archive(hostile))))


def test_switches(tmp_path: Path) -> None:
    import mmap

    ours, theirs = ut.serialization, torch.serialization
    for name in ("default_load_endianness", "crc32_options", "default_mmap_options"):
        got, expected = (getattr(s, f"get_{name}")() for s in (ours, theirs))
        assert got == expected
    ours.set_crc32_options(False)
    try:
        ut.save([ut.ones(3)], tmp_path / "unchecked")
    finally:
        ours.set_crc32_options(True)
    assert torch.load(tmp_path / "unchecked")[0].tolist() == [1, 1, 1]
    with ours.skip_data():
        ut.save([ut.ones(3)], tmp_path / "skipped")
    assert torch.load(tmp_path / "skipped")[0].tolist() == [0, 0, 0]
    with ours.set_default_mmap_options(mmap.MAP_SHARED):
        ut.load(tmp_path / "unchecked", mmap=True)[0].fill_(5)
    assert torch.load(tmp_path / "unchecked")[0].tolist() == [5, 5, 5]
    ut.load(tmp_path / "unchecked", mmap=True)[0].fill_(6)
    assert torch.load(tmp_path / "unchecked")[0].tolist() == [5, 5, 5]
    with pytest.raises(TypeError):
        ours.set_default_load_endianness("little")


def test_a_file_without_its_byte_order() -> None:
    import zipfile

    from undertow.files.archive import archive

    file = io.BytesIO()
    torch.save(torch.tensor([1], dtype=torch.int32), file)
    records = zipfile.ZipFile(file)
    kept = [n for n in records.namelist() if not n.endswith("byteorder")]
    raw = b"".join(archive([(n, records.read(n)) for n in kept]))
    assert ut.load(io.BytesIO(raw)).tolist() == [1]
    for lib in (torch, ut):
        lib.serialization.set_default_load_endianness(lib.serialization.LoadEndianness.BIG)
        try:
            assert lib.load(io.BytesIO(raw)).tolist() == [1 << 24]
        finally:
            lib.serialization.set_default_load_endianness(None)


def test_a_file_that_is_unpacked_while_it_is_read(tmp_path: Path) -> None:
    import gzip

    with gzip.open(tmp_path / "x.gz", "wb") as file:
        ut.save(ut.zeros(10_000), file)
    with gzip.open(tmp_path / "x.gz", "rb") as file:
        assert ut.load(file).shape == (10_000,)


@pytest.mark.parametrize("way", ["ours", "theirs", "own"])
@pytest.mark.parametrize("kind", ["tensor", "parameter", "meta"])
def test_attributes_of_tensors_are_kept(way: str, kind: str) -> None:
    writes, reads = {"ours": (ut, torch), "theirs": (torch, ut), "own": (ut, ut)}[way]
    x = writes.ones(2, device="meta" if kind == "meta" else None)
    x = writes.nn.Parameter(x) if kind == "parameter" else x
    x.axes, x.note = ["batch", {"of": 3}], "kept"
    x.beside = writes.zeros(1)
    file = io.BytesIO()
    writes.save({"x": x, "again": x}, file)
    file.seek(0)
    found = reads.load(file)
    assert found["x"] is found["again"]
    assert type(found["x"]) is (reads.nn.Parameter if kind == "parameter" else reads.Tensor)
    assert (found["x"].axes, found["x"].note) == (["batch", {"of": 3}], "kept")
    assert found["x"].beside.tolist() == [0.0]


def test_attributes_do_not_hide_what_a_tensor_has() -> None:
    x = torch.ones(2)
    vars(x).update(numel="mine", shape=(9,), note=1)
    found = from_torch(x)
    assert (found.numel(), found.shape, found.note) == (2, (2,), 1)


@pytest.mark.filterwarnings("ignore")  # nested tensors are in beta state
@pytest.mark.parametrize("way", ["ours", "theirs", "own"])
@pytest.mark.parametrize("layout", ["jagged", "strided"])
@pytest.mark.parametrize("turned", [False, True])
def test_nested_tensors(layout: str, way: str, turned: bool) -> None:
    writes, reads = {"ours": (ut, torch), "theirs": (torch, ut), "own": (ut, ut)}[way]
    parts = [writes.arange(6.0).reshape(2, 3), writes.ones(1, 3), writes.zeros(4, 3)]
    x = writes.nested.nested_tensor(parts, layout=getattr(writes, layout))
    x = x.transpose(1, 2) if turned else x
    file = io.BytesIO()
    writes.save([x, x], file)
    file.seek(0)
    if reads is torch:
        pytest.importorskip("torch._dynamo")  # it refuses nested tensors without it
    found, again = reads.load(file)
    assert found is again
    assert found.layout is getattr(reads, layout)
    assert [t.tolist() for t in found.unbind()] == [t.tolist() for t in x.unbind()]


@pytest.mark.filterwarnings("ignore")
def test_nested_tensors_of_a_hostile_file_are_checked() -> None:
    import zipfile

    from undertow.files.archive import archive

    for layout, old, new in (("jagged", 5, 77), ("strided", 5, 77)):
        x = torch.nested.nested_tensor(
            [torch.ones(5), torch.ones(2)], layout=getattr(torch, layout)
        )
        file = io.BytesIO()
        torch.save(x, file)
        records = zipfile.ZipFile(file)
        word = old.to_bytes(8, "little")
        content = [
            (n, records.read(n).replace(word, new.to_bytes(8, "little")))
            for n in records.namelist()
        ]
        with pytest.raises(UndertowError, match="nested tensor"):
            ut.load(io.BytesIO(b"".join(archive(content))))
