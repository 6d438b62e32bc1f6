"""A program on two hosts, which are network namespaces of this machine, and a link that is cut."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hosts
from processes import finished, needs_mpi, started

BODY = """
from pathlib import Path

dist.init_process_group()
me, folder = dist.get_rank(), Path(sys.argv[1])
assert os.environ["LOCAL_RANK"] == "0" and os.environ["GROUP_RANK"] == str(me)
assert os.environ["MASTER_ADDR"] == "10.77.0.1"
x = ut.full((500_000,), float(me + 1))
dist.all_reduce(x)
assert (x == 3).all()
(folder / f"ready{me}").touch()
try:
    for _ in range(10**9):
        dist.all_reduce(x, label="weight")
        x.fill_(1.0)
except dist.DistributedError as error:
    (folder / f"told{me}.part").write_text(str(error))
    (folder / f"told{me}.part").rename(folder / f"told{me}")
    raise
"""


@needs_mpi
@pytest.mark.skipif(not hosts.available(), reason="network namespaces need root and Linux's ip")
def test_two_hosts_until_the_link_is_cut(tmp_path: Path) -> None:
    """Each side says that it does not hear the other, and the launcher ends."""
    import time

    with hosts.two(tmp_path) as pair:
        process = started(
            tmp_path,
            1,
            BODY,
            tmp_path,
            options=("--hosts", ",".join(hosts.ADDRESSES), "--master-addr", hosts.ADDRESSES[0]),
            wrap=lambda command: pair.inside(0, command),
            environment={**pair.environment, "UNDERTOW_SILENCE": "6"},
        )
        deadline = time.monotonic() + 120
        while not all((tmp_path / f"ready{rank}").exists() for rank in (0, 1)):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        pair.cut()
        out = finished(process, None)
        assert "undertow: rank 1 was lost" in out
        told = tmp_path / "told0"
        assert re.search(r"all_reduce \d+ .* 'weight': rank 1 is gone", told.read_text())
        other = tmp_path / "told1"  # nobody waits for the other side
        while not other.exists():
            assert time.monotonic() < deadline + 60
            time.sleep(0.05)
        assert "the connection to the launcher, or to rank 0, is lost" in other.read_text()
