"""`undertow.hub`: models that a folder offers in its `hubconf.py`, and checkpoints out of the net.

Code is never downloaded: a repository that is to be run is fetched by its user, and loaded with
`source="local"`.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from ..errors import ArgumentError, UnsupportedError
from ..files import load as load_file
from ..files.atomic import write_file
from .refusals import find

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the hash in a file's name
_directory: str | None = None


def __getattr__(name: str) -> Any:
    """`hub.tqdm`, which some take from here."""
    if name != "tqdm":
        return find(__name__, name)
    from tqdm import tqdm

    return tqdm


def get_dir() -> str:
    """The folder of what was downloaded: `set_dir`, or `hub` in $TORCH_HOME, or in the cache.

    >>> import undertow as ut
    >>> ut.hub.set_dir("/tmp/hub")
    >>> ut.hub.get_dir()
    '/tmp/hub'
    >>> ut.hub.set_dir(None)
    """
    return os.path.join(_get_torch_home(), "hub") if _directory is None else _directory


def _get_torch_home() -> str:
    """The folder for everything that is downloaded: $TORCH_HOME, or one in the cache."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "undertow")))


def set_dir(d: str | os.PathLike[str] | None) -> None:
    """Download to this folder from now on; None goes back to the usual one."""
    global _directory
    _directory = None if d is None else os.path.expanduser(d)


def download_url_to_file(
    url: str, dst: str | os.PathLike[str], hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Fetch what is at an address into a file, which appears when it is complete.

    With `hash_prefix`, the SHA256 of the content must begin with it. Nothing is drawn for
    `progress`.
    """
    from urllib.request import Request, urlopen

    with urlopen(Request(url, headers={"User-Agent": "undertow.hub"})) as answer:
        content = answer.read()
    found = hashlib.sha256(content).hexdigest()
    if hash_prefix is not None and not found.startswith(hash_prefix):
        raise ArgumentError(
            f"[hub.download_url_to_file] {url} has the SHA256 {found}, which does not begin with "
            f"{hash_prefix}; the file was cut off or changed"
        )
    write_file(dst, [content])


def load_state_dict_from_url(
    url: str,
    model_dir: str | os.PathLike[str] | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """The checkpoint at an address, which is downloaded once and then read from `model_dir`.

    `check_hash=True` holds it against the hash in a name such as `resnet18-f37072fd.pth`.

    >>> import pathlib, tempfile
    >>> import undertow as ut
    >>> folder = tempfile.mkdtemp()
    >>> ut.save({"w": ut.ones(2)}, folder + "/there.pt")
    >>> address = pathlib.Path(folder, "there.pt").as_uri()
    >>> ut.hub.load_state_dict_from_url(address, model_dir=folder + "/here")
    {'w': tensor([1., 1.])}
    """
    folder = Path(os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir)
    name = file_name or os.path.basename(urlparse(url).path)
    file = folder / name
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        stated = re.search(r"-([a-f0-9]*)\.", name) if check_hash else None
        download_url_to_file(url, file, stated and stated.group(1), progress)
    return load_file(file, map_location, weights_only=weights_only)


def _offers(op: str, folder: Any, source: str) -> ModuleType:
    """The `hubconf.py` of a folder, as a module."""
    if source != "local":
        raise UnsupportedError(
            f"[hub.{op}] code is not downloaded from {source!r}; fetch {folder} yourself, and give "
            'its folder with source="local"'
        )
    file = Path(folder, "hubconf.py")
    if not file.is_file():
        raise ArgumentError(f"[hub.{op}] {folder} has no hubconf.py")
    spec = spec_from_file_location("hubconf", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.path.insert(0, str(folder))  # what it imports stands beside it
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def _entry(op: str, folder: Any, name: str, source: str) -> Callable[..., Any]:
    found = getattr(_offers(op, folder, source), name, None)
    if not callable(found):
        raise ArgumentError(f"[hub.{op}] the hubconf.py of {folder} has no function {name!r}")
    return found


def list(github: Any, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    """The names of the functions that a folder offers (`source="local"`)."""
    offers = vars(_offers("list", github, source))
    return [name for name, found in offers.items() if callable(found) and name[0] != "_"]


def help(github: Any, model: str, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    """The docstring of a function that a folder offers (`source="local"`)."""
    return _entry("help", github, model, source).__doc__


def load(
    repo_or_dir: Any,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a function that a folder offers in its `hubconf.py` (`source="local"`).

    >>> import pathlib, tempfile
    >>> import undertow as ut
    >>> folder = tempfile.mkdtemp()
    >>> _ = pathlib.Path(folder, "hubconf.py").write_text("def twice(x): return 2 * x")
    >>> ut.hub.load(folder, "twice", ut.ones(2), source="local")
    tensor([2., 2.])
    """
    return _entry("load", repo_or_dir, model, source)(*args, **kwargs)
