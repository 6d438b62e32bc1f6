"""`undertow.hub`: folders with a hubconf.py, and checkpoints at an address."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

import undertow as ut


def test_a_local_folder(tmp_path: Path) -> None:
    """What a hubconf.py offers is listed, explained and called; it may import its neighbours."""
    (tmp_path / "neighbour_of_hubconf.py").write_text("import undertow as ut\nsize = 3\n")
    (tmp_path / "hubconf.py").write_text(
        "from neighbour_of_hubconf import size, ut\n"
        "def layer(width=1):\n    'A layer.'\n    return ut.nn.Linear(size, width)\n"
        "def _hidden(): pass\n"
    )
    before = list(sys.path)
    assert ut.hub.list(tmp_path, source="local") == ["layer"]
    assert ut.hub.help(tmp_path, "layer", source="local") == "A layer."
    assert ut.hub.load(tmp_path, "layer", width=2, source="local").weight.shape == (2, 3)
    assert sys.path == before
    with pytest.raises(ValueError, match=r"\[hub\.load\] .* has no function 'nothing'"):
        ut.hub.load(tmp_path, "nothing", source="local")
    with pytest.raises(ValueError, match=r"\[hub\.load\] .* has no hubconf"):
        ut.hub.load(tmp_path / "nowhere", "layer", source="local")
    with pytest.raises(NotImplementedError, match="code is not downloaded from 'github'"):
        ut.hub.load("pytorch/vision", "resnet18")


def test_checkpoints_are_downloaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time the file is read from the folder; a wrong hash leaves no file."""
    ut.save({"w": ut.arange(3)}, tmp_path / "w.pt")
    content = (tmp_path / "w.pt").read_bytes()
    name = f"w-{hashlib.sha256(content).hexdigest()[:8]}.pt"
    (tmp_path / "w.pt").rename(tmp_path / name)
    address = (tmp_path / name).as_uri()
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    assert ut.hub.get_dir() == str(tmp_path / "home" / "hub")
    found = ut.hub.load_state_dict_from_url(address, check_hash=True)
    assert found["w"].tolist() == [0, 1, 2]
    (tmp_path / name).unlink()
    assert ut.hub.load_state_dict_from_url(address)["w"].tolist() == [0, 1, 2]
    (tmp_path / "w-0000.pt").write_bytes(content)
    with pytest.raises(ValueError, match="does not begin with 0000"):
        ut.hub.load_state_dict_from_url(
            (tmp_path / "w-0000.pt").as_uri(), tmp_path / "other", check_hash=True
        )
    assert list((tmp_path / "other").iterdir()) == []
