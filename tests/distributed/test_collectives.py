"""Several real processes: collectives against NumPy, mismatches, faults, stores, the launcher."""

from __future__ import annotations

import os
import re
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import undertow as ut
from processes import finished, needs_mpi, run, started

dist = ut.distributed
RANDOM = Path(__file__).with_name("random_sequences.py")


@needs_mpi
@pytest.mark.parametrize("count, seed", [(2, 0), (3, 1), (4, 2), (10, 3)])
def test_random_sequences_against_numpy(count: int, seed: int, tmp_path: Path) -> None:
    """Every collective, in random order, on three groups, now and later: the same bits as NumPy."""
    out = run(tmp_path, count, RANDOM.read_text(), seed, 200 if count < 10 else 60)
    assert len(re.findall("fine", out)) == count


FAULTS = """
dist.init_process_group("gloo")
me, mode = dist.get_rank(), sys.argv[1]
x = ut.ones(3)
dist.all_reduce(x)
dist.group.WORLD.timeout = float(sys.argv[2])  # from here on, since a start may take long
try:
    if me == 1:
        if mode == "raise":
            raise ValueError("the boat is leaking")
        if mode == "exit":
            sys.exit(3)
        if mode == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if mode == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if mode == "order":
            dist.broadcast(x, 0)
        if mode == "shape":
            dist.all_reduce(ut.ones(4))
        if mode == "large":
            dist.all_reduce(ut.ones(100_000))
        if mode == "dtype":
            dist.all_reduce(ut.ones(3, dtype=ut.int32))
        if mode == "op":
            dist.all_reduce(x, dist.ReduceOp.MAX)
        if mode == "root":
            dist.broadcast(x, 1)
    if mode == "root":
        dist.broadcast(x, 0)
    dist.all_reduce(x, label="encoder.3.weight")
    dist.all_reduce(x)
except dist.DistributedError as error:
    line = " | ".join(str(error).splitlines())
    with open(f"{sys.argv[3]}/told{me}", "w") as file:  # mpiexec may mix what processes print
        file.write(line)
    raise
"""


# What another rank may hear first: that rank 1 ended, since it had found the difference itself.
SAID = r"rank 1 failed:.*rank \d is in all_reduce 2"


@needs_mpi
@pytest.mark.parametrize(
    "mode, code, words",
    [
        ("raise", 1, r"all_reduce 2 of float32 \(3,\) 'encoder.3.weight': rank 1 failed:.*leaking"),
        ("exit", 3, r"'encoder.3.weight': rank 1 has left"),
        ("kill", 137, r"'encoder.3.weight': rank 1 is gone: it was killed"),
        ("stop", None, r"'encoder.3.weight': no answer in 1 s; rank \d waits for rank 1"),
        ("order", None, r"rank \d is in all_reduce 2|rank 1 is in broadcast 2|rank 1 failed"),
        ("shape", None, r"rank 1 is in all_reduce 2 of float32 \(4,\)|" + SAID),
        ("large", None, r"rank 1 is in all_reduce 2 of float32 \(100000,\)|rank 1 failed"),
        ("dtype", None, r"rank 1 is in all_reduce 2 of int32|" + SAID),
        ("op", None, r"rank 1 is in all_reduce 2 .*: op 0 here, 4 there|" + SAID),
        ("root", None, r"rank \d is in (broadcast|all_reduce) \d|rank \d failed"),
    ],
)
def test_a_failure_is_an_answer(mode: str, code: int | None, words: str, tmp_path: Path) -> None:
    """Whatever happens to rank 1, every other rank has an error that says so, and all end."""
    limit, grace = (1, 3) if mode == "stop" else (200, 60)  # nothing waits for these
    out = run(tmp_path, 3, FAULTS, mode, limit, tmp_path, expect=code, grace=grace)
    told = {int(p.name[4:]): p.read_text() for p in tmp_path.glob("told*")}
    assert {0, 2} <= set(told), out
    assert all(re.search(words, told[rank]) for rank in (0, 2)), out
    if mode == "raise":
        assert "ValueError: the boat is leaking" in out
        assert "undertow: rank 1 failed" in out


@needs_mpi
def test_the_group_is_unusable_after_an_error(tmp_path: Path) -> None:
    """A second call does not hang on what the first left behind."""
    body = """
    dist.init_process_group(timeout=0.5)
    told = sys.argv[1]
    if dist.get_rank() == 0:
        for _ in range(2):
            try:
                dist.all_reduce(ut.ones(2))
            except dist.DistributedError as error:
                print("ERROR", str(error).splitlines()[0], flush=True)
        open(told, "w").close()
    else:
        while not os.path.exists(told):
            time.sleep(0.05)
    """
    out = run(tmp_path, 2, body, tmp_path / "told")
    assert "no answer in 0.5 s; rank 0 waits for rank 1" in out
    assert "the group cannot be used after an error" in out


@needs_mpi
def test_a_failure_before_the_group_is_made(tmp_path: Path) -> None:
    """The others wait inside MPI, where nobody can tell them; the launcher ends them."""
    body = """
    if os.environ["RANK"] == "1":
        raise KeyError("no such file")
    dist.init_process_group()
    """
    begun = time.monotonic()
    out = run(tmp_path, 3, body, expect=1)
    assert "KeyError: 'no such file'" in out
    assert time.monotonic() - begun < 60


@needs_mpi
def test_a_process_that_ends_before_the_group_is_made(tmp_path: Path) -> None:
    """It is an error, also if it ends in peace, since the others would wait for it."""
    body = """
    if os.environ["RANK"] == "1":
        sys.exit(0)
    dist.init_process_group()
    """
    assert "rank 1 ended before init_process_group" in run(tmp_path, 2, body, expect=1)
    assert "RANK 0" in run(tmp_path, 2, 'print("RANK", os.environ["RANK"], flush=True)')


@needs_mpi
def test_nothing_is_left_when_the_launcher_is_killed(tmp_path: Path) -> None:
    """Keepers notice, and kill their processes."""
    body = """
    dist.init_process_group()
    dist.barrier()
    open(os.path.join(sys.argv[1], f"pid{dist.get_rank()}"), "w").write(str(os.getpid()))
    time.sleep(300)
    """
    process = started(tmp_path, 2, body, tmp_path)
    pids = [tmp_path / f"pid{rank}" for rank in (0, 1)]
    deadline = time.monotonic() + 60
    while not all(p.exists() and p.read_text() for p in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.communicate()
    numbers = [int(p.read_text()) for p in pids]
    while any(_lives(n) for n in numbers):
        assert time.monotonic() < deadline + 30
        time.sleep(0.05)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


@needs_mpi
def test_an_interrupt_reaches_every_process(tmp_path: Path) -> None:
    """Ctrl-C at the launcher is Ctrl-C in the program."""
    body = """
    dist.init_process_group()
    dist.barrier()
    open(os.path.join(sys.argv[1], f"ready{dist.get_rank()}"), "w").close()
    try:
        if dist.get_rank():
            time.sleep(300)
        dist.barrier()
    except KeyboardInterrupt:
        print("INTERRUPTED", dist.get_rank())
    """
    process = started(tmp_path, 2, body, tmp_path)
    deadline = time.monotonic() + 60
    while not all((tmp_path / f"ready{rank}").exists() for rank in (0, 1)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out = finished(process, 130)
    assert "INTERRUPTED 0" in out
    assert "INTERRUPTED 1" in out


# The launcher -----------------------------------------------------------------------------------
@needs_mpi
def test_the_environment_is_that_of_torchrun(tmp_path: Path) -> None:
    body = """
    names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR".split()
    print("ENV", *(os.environ[n] for n in names), sys.argv[1:], flush=True)
    assert os.environ["MASTER_PORT"].isdigit() and dist.is_torchelastic_launched()
    """
    out = run(tmp_path, 2, body, "--epochs", "3")
    for rank in (0, 1):
        assert f"ENV {rank} 2 {rank} 2 0 127.0.0.1 ['--epochs', '3']" in out


@needs_mpi
def test_restarts_and_logs(tmp_path: Path) -> None:
    """A program that fails once is started again; each process has its own files."""
    body = """
    dist.init_process_group()
    attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
    print("attempt", attempt, "rank", dist.get_rank(), flush=True)
    if attempt == "0" and dist.get_rank() == 1:
        raise RuntimeError("once")
    dist.barrier()
    """
    logs = tmp_path / "logs"
    out = finished(
        started(tmp_path, 2, body, options=("--max-restarts", "2", "--log-dir", str(logs)))
    )
    assert "restarting, 2 restarts left" in out
    assert "RuntimeError: once" in out  # of the log of the one that failed
    assert (logs / "attempt_0" / "1" / "stdout.log").read_text() == "attempt 0 rank 1\n"
    assert (logs / "attempt_1" / "0" / "stdout.log").read_text() == "attempt 1 rank 0\n"


ELASTIC = """
from undertow.distributed import checkpoint
from undertow.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group()
me, n, place = dist.get_rank(), dist.get_world_size(), sys.argv[1] + "/last"
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
ut.manual_seed(0)
model, state = DDP(ut.nn.Linear(4, 1)), {"step": 0}
state["model"] = model.module
if os.path.exists(place):
    checkpoint.load(state, checkpoint_id=place)
for step in range(state["step"], 6):
    model.zero_grad()
    (model(ut.full((2, 4), float(step))) ** 2).mean().backward()
    with ut.no_grad():
        for p in model.parameters():
            p -= 0.001 * p.grad
    state["step"] = step + 1
    checkpoint.save(state, checkpoint_id=place)
    if me == 1 and step == 2 and attempt == 0:
        os.kill(os.getpid(), signal.SIGSTOP if sys.argv[2] == "stop" else signal.SIGKILL)
    if step == 2 and sys.argv[2] == "stop" and attempt == 0:
        dist.group.WORLD.timeout = 1.0
if me == 0:
    print("END", n, attempt, [round(x, 5) for x in model.module.weight.flatten().tolist()])
"""


@needs_mpi
@pytest.mark.parametrize("way", ["kill", "stop"])
def test_elastic_goes_on_without_who_is_lost(way: str, tmp_path: Path) -> None:
    """With the last checkpoint, and to the end."""
    ut.manual_seed(0)
    model = ut.nn.Linear(4, 1)
    optimizer = ut.optim.SGD(model.parameters(), lr=0.001)
    for step in range(6):
        optimizer.zero_grad()
        (model(ut.full((2, 4), float(step))) ** 2).mean().backward()
        optimizer.step()
    options = ("--elastic", "2:3") if way == "stop" else ("--elastic", "2:3", "--max-restarts", "1")
    grace = 10 if way == "stop" else 60  # in which all others end
    words = tmp_path, way
    out = finished(started(tmp_path, 3, ELASTIC, *words, options=options, grace=grace))
    assert "undertow: going on with 2 processes" in out
    found = re.search(r"END 2 1 \[(.*)\]", out)
    assert found is not None
    wanted = model.weight.flatten().tolist()
    assert [float(x) for x in found[1].split(", ")] == pytest.approx(wanted, abs=2e-5)


def test_what_elastic_and_hosts_ask_for() -> None:
    """Who is lost takes the rest of its host along."""
    import argparse

    from undertow.distributed import launch
    from undertow.distributed import run as command

    def planned(*words: str) -> launch.Plan:
        parser = argparse.ArgumentParser()
        command.add_options(parser)
        return command.plan(parser.parse_args(words), ["train.py"], {})

    plan = planned("--elastic", "2:8")
    assert (plan.count, plan.least, plan.restarts) == (8, 2, 6)
    assert launch.without(plan, {3, 5}).count == 6
    plan = planned("--elastic", "2:6", "-n", "2", "--hosts", "a,b,c")
    assert (plan.count, plan.hosts) == (6, ["a", "b", "c"])
    left = launch.without(plan, {2, 3})
    assert (left.count, left.hosts) == (4, ["a", "c"])
    for words in ("3", "3:2", "0:2", "a:b"):
        with pytest.raises(ValueError, match="is MIN:MAX"):
            planned("--elastic", words)
    with pytest.raises(ValueError, match="does not allow 5 processes"):
        planned("--elastic", "2:4", "-n", "5")


# Stores -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["hash", "file", "tcp", "prefix"])
def test_stores(kind: str, tmp_path: Path) -> None:
    """They have one meaning, wherever the values are."""
    store: dist.Store
    if kind == "hash":
        store = dist.HashStore()
    elif kind == "file":
        store = dist.FileStore(str(tmp_path / "store"), 2)
    elif kind == "tcp":
        store = dist.TCPStore("127.0.0.1", 0, 1, True)
    else:
        store = dist.PrefixStore("part", dist.HashStore())
    store.set("a", "1")
    store.set("b", b"\x00\xff")
    assert (store.get("a"), store.get("b")) == (b"1", b"\x00\xff")
    assert (store.add("n", 5), store.add("n", -2), store.get("n")) == (5, 3, b"3")
    assert store.check(["a", "b"])
    assert not store.check(["a", "c"])
    assert store.compare_set("a", "2", "3") == b"1"
    assert store.compare_set("a", "1", "3") == b"3"
    assert store.compare_set("new", "", "first") == b"first"
    assert store.compare_set("lacking", "x", "y") == b"x"
    assert not store.check(["lacking"])
    store.append("a", "4")
    assert store.multi_get(["a", "new"]) == [b"34", b"first"]
    assert store.delete_key("a")
    assert not store.delete_key("a")
    assert {"b", "n", "new"} <= set(store.list_keys())
    store.set_timeout(timedelta(seconds=0.05))
    with pytest.raises(dist.DistStoreError, match=r"nobody has set 'a' in 0\.05 s"):
        store.get("a")
    with pytest.raises(dist.DistStoreError, match="'a'"):
        store.wait(["b", "a"], timedelta(seconds=0.05))


def test_a_store_of_several_clients() -> None:
    """One that waits is woken by another that sets; a server that is gone is an error."""
    import threading

    store = dist.TCPStore("127.0.0.1", 0, None, True)
    other = store.clone()
    timer = threading.Timer(0.05, lambda: other.set("late", "here"))
    timer.start()
    assert store.get("late") == b"here"
    timer.join()
    with pytest.raises(dist.DistNetworkError, match="no server answers"):
        dist.TCPStore("127.0.0.1", 1, timeout=timedelta(seconds=0.1))


def test_a_server_that_is_closed_frees_its_port() -> None:
    from undertow.distributed import protocol

    server = protocol.Server("127.0.0.1")
    time.sleep(0.05)  # its thread waits for connections
    server.close()
    with pytest.raises(OSError, match="refused"):
        protocol.connect("127.0.0.1", server.port, 0.0)
    protocol.Server("127.0.0.1", server.port).close()


@needs_mpi
def test_who_is_not_in_a_group_does_nothing(tmp_path: Path) -> None:
    """Collectives of a group that others are in warn, and leave the world's order as it is."""
    body = """
    import warnings
    dist.init_process_group(timeout=200)
    me, group, x = dist.get_rank(), dist.new_group([0]), ut.full((2,), 100.0)
    if me == 1:
        assert group is dist.GroupMember.NON_GROUP_MEMBER and group is not None
        assert (dist.get_rank(group), dist.get_world_size(group)) == (-1, -1)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert dist.all_reduce(x, group=group) is None
            assert dist.all_gather_object([None], 3, group) is None
            assert dist.recv(x, 0, group) == -1
        assert len(told) == 3 and "not in the group" in str(told[0].message)
    else:
        dist.all_reduce(x, group=group)
    dist.destroy_process_group(group)
    y = ut.ones(2)
    dist.all_reduce(y)
    assert y.tolist() == [2, 2] and x.tolist() == [100, 100]
    print("fine", flush=True)
    """
    assert run(tmp_path, 2, body).count("fine") == 2


@needs_mpi
def test_memory_of_an_operation_that_ended_early_is_not_used_again(tmp_path: Path) -> None:
    """MPI still has it: what comes after the deadline is written there, and nowhere else."""
    body = """
    import numpy as np
    dist.init_process_group(timeout=200)
    me, late = dist.get_rank(), dist.new_group(timeout=0.2)
    dist.barrier()
    pool = []
    if me == 0:
        try:
            dist.all_reduce(ut.zeros(900), group=late)
        except dist.DistributedError:
            pool = [np.zeros(4096, np.uint8) for _ in range(2000)]
        assert pool
    dist.barrier()
    if me == 1:
        dist.all_reduce(ut.full((900,), 7.0), group=late)
    for _ in range(3):
        dist.barrier()
    print("overwritten", sum(p.any() for p in pool), flush=True)
    """
    assert run(tmp_path, 2, body).count("overwritten 0") == 2


@pytest.mark.parametrize("hears", [True, False])
def test_bytes_that_mpi_cannot_move(hears: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other side is gone: who hears that says so, and MPI is not asked about it again."""
    from types import SimpleNamespace

    from undertow.distributed import work
    from undertow.distributed.wire import Broken

    asked = []

    def done(requests: list[object]) -> bool:
        asked.extend(requests)
        if requests:
            raise Broken("MPI: no such process")
        return True

    def steps() -> work.Steps:
        pending = work.Pending()
        pending.add("request", 1)
        yield pending

    heard = SimpleNamespace(failure=None, left={})
    group: Any = SimpleNamespace(
        wire=SimpleNamespace(done=done, rank=0), watch=heard, error=None, members=2
    )
    operation = work.Work(group, steps(), "[all_reduce] all_reduce 3", 60)
    assert not operation.advance()
    assert not operation.advance()
    if hears:
        heard.failure = ("lost", 1, "SIGKILL")
    else:
        monkeypatch.setattr(work, "_HEARSAY", 0.0)
    assert operation.advance()
    words = "rank 1 is gone" if hears else "a message from or to rank 1 failed: MPI: no such"
    assert words in str(operation.exception())
    assert asked == ["request"]


@needs_mpi
def test_messages_keep_their_order_and_none_hinders_the_end(tmp_path: Path) -> None:
    """`send` does not overtake `isend`; a message that never comes is given up with the group."""
    body = """
    dist.init_process_group(timeout=200)
    me = dist.get_rank()
    for _ in range(100):
        a, b = ut.full((2,), 1.0), ut.full((2,), 2.0)
        if me == 0:
            work = dist.isend(a, 1)
            dist.send(b, 1)
            work.wait()
        else:
            a.zero_(), b.zero_()
            dist.recv(a, 0), dist.recv(b, 0)
            assert (a[0].item(), b[0].item()) == (1, 2)
    never = dist.irecv(ut.zeros(3), 1 - me, tag=5)
    dist.barrier()
    if me == 0:
        dist.destroy_process_group()
        try:
            never.wait(10)
        except dist.DistributedError as error:
            print("TOLD", error, flush=True)
    """
    assert re.search(r"TOLD \[irecv\] .* the group has been destroyed", run(tmp_path, 2, body))
