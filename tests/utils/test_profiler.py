"""The profiler: what it sees, that it leaves nothing behind, and the files that it writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.autograd import engine
from undertow.backends import debug
from undertow.backends.cpu.backend import CpuBackend
from undertow.backends.cpu.calls import launch
from undertow.backends.registry import CPU
from undertow.profiler import ProfilerAction, profile, record_function, schedule


def model() -> tuple[Any, Any]:
    """A small network and its step."""
    ut.manual_seed(0)
    net = ut.nn.Sequential(
        ut.nn.Conv1d(3, 8, 5), ut.nn.ReLU(), ut.nn.Flatten(), ut.nn.Linear(8 * 60, 4)
    )
    optimizer = ut.optim.SGD(net.parameters(), lr=0.1)
    x, y = ut.randn(16, 3, 64), ut.randint(0, 4, (16,))

    def step() -> Any:
        optimizer.zero_grad()
        loss = ut.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return net, step


def by_key(prof: Any, **options: Any) -> dict[str, Any]:
    return {e.key: e for e in prof.key_averages(**options)}


# What it sees -------------------------------------------------------------------------------------
def test_counts_of_a_training_step() -> None:
    """Calls, backward steps, leaves and the optimiser are counted as often as they happen."""
    _, step = model()
    with profile() as prof:
        step()
        step()
    found = by_key(prof)
    for name in ("conv1d", "relu", "linear", "cross_entropy", "flatten"):
        assert found[name].count == 2, name
    for name in ("ConvBackward0", "ReluBackward0", "LinearBackward0"):
        assert found[name].count == 2, name
    assert found["AccumulateGrad"].count == 8
    assert found["Optimizer.step#SGD.step"].count == 2


def test_the_result_is_the_same_with_a_profiler() -> None:
    """Bit for bit: losses and weights of a training with everything watched, and without."""
    results = []
    for options in (None, {}, {"profile_memory": True, "with_stack": True, "with_flops": True}):
        net, step = model()
        if options is None:
            losses = [step() for _ in range(3)]
        else:
            with profile(record_shapes=True, with_modules=True, **options):
                losses = [step() for _ in range(3)]
        results.append([*losses, *(p.detach().clone() for p in net.parameters())])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert np.array_equal(a.numpy(), b.numpy())


def test_nesting_and_times() -> None:
    """Marks hold what ran in them; self times add up to the whole."""
    x = ut.ones(50, 50)
    with profile() as prof, record_function("outer"):
        with record_function("inner"):
            x @ x
        x.exp()
    events = {e.name: e for e in prof.events(["mark", "op"])}
    assert [c.name for c in events["outer"].cpu_children] == ["inner", "exp"]
    assert events["matmul"].cpu_parent is events["inner"]
    outer = events["outer"]
    total = sum(e.self_cpu_time_total for e in events.values())
    assert total == pytest.approx(outer.cpu_time_total)
    assert 0 <= outer.self_cpu_time_total <= outer.cpu_time_total


def test_shapes_and_grouping() -> None:
    """Calls of different shapes are rows of their own, if asked."""
    with profile(record_shapes=True) as prof:
        for n in (2, 3, 3):
            ut.ones(n, n).matmul(ut.ones(n, n))
    rows = [e for e in prof.key_averages(group_by_input_shape=True) if e.key == "matmul"]
    assert {(str(e.input_shapes), e.count) for e in rows} == {
        ("[(2, 2), (2, 2)]", 1),
        ("[(3, 3), (3, 3)]", 2),
    }
    assert by_key(prof)["matmul"].count == 3


def test_flops_of_products_and_convolutions() -> None:
    """Twice the number of multiplications, forward and backward."""
    a, b = ut.ones(30, 40, requires_grad=True), ut.ones(40, 50, requires_grad=True)
    x, w = ut.ones(2, 3, 20, requires_grad=True), ut.ones(8, 3, 5, requires_grad=True)
    with profile(with_flops=True) as prof:
        (a @ b).backward(ut.ones(30, 50))
        ut.nn.functional.conv1d(x, w).backward(ut.ones(2, 8, 16))
    found = by_key(prof)
    assert found["matmul"].flops == 2 * 30 * 40 * 50
    assert found["MatmulBackward0"].flops == 2 * 2 * 30 * 40 * 50
    assert found["conv1d"].flops == 2 * 2 * 8 * 16 * 3 * 5
    assert found["ConvBackward0"].flops == 2 * found["conv1d"].flops


def test_launches_have_bytes_and_operations() -> None:
    """A product of matrices is a launch, which read and wrote what its buffers hold."""
    x = ut.ones(300, 400)
    x @ x.T
    with profile() as prof:
        x @ x.T
    (row,) = [e for e in prof.key_averages(kinds=["launch"]) if e.key.startswith("gemm")]
    assert row.flops == 2 * 300 * 300 * 400
    assert row.bytes >= 4 * (300 * 400 * 2 + 300 * 300)
    table = prof.key_averages(kinds=["launch"]).table()
    assert "B/s" in table
    assert "FLOP/s" in table


def test_kernels_and_where_they_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is needed for the first time is an event; the second time it is none."""
    code = (
        "import undertow as ut\n"
        "x = ut.ones(200, 301)\n"
        "def run():\n"
        "    with ut.profiler.profile() as prof:\n"
        "        (x * 0.731 + x.sin()).cumsum(1)\n"
        "    return [e.name for e in prof.events(['kernel'])]\n"
        "first, second = run(), run()\n"
        "assert first and all(n.split(':')[0] in ('compiled', 'from disk') for n in first), first\n"
        "assert not second, second\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_memory_over_time() -> None:
    """Results count until they are freed, and what holds them is known."""
    x = ut.ones(256, 256)
    with profile(profile_memory=True) as prof:
        y = x.exp()
        y = None  # noqa: F841
        z = x.sin()
    del z
    size = 256 * 256 * 4
    found = by_key(prof)
    assert found["exp"].cpu_memory_usage == size
    assert found["sin"].cpu_memory_usage == size
    held = [bytes for _, bytes in prof.memory_timeline()]
    assert max(held) - held[0] == size  # never both
    assert held[-1] - held[0] == size
    peak = prof.memory_at_peak()
    assert peak["exp"] == size
    assert peak["before"] >= size


def test_threads_are_told_apart() -> None:
    """Events of two threads do not nest in each other."""

    def work() -> None:
        ut.ones(64, 64).exp()

    with profile() as prof:
        thread = threading.Thread(target=work, name="other")
        with record_function("here"):
            thread.start()
            thread.join()
    (exp,) = [e for e in prof.events(["op", "mark"]) if e.name == "exp"]
    assert exp.cpu_parent is None
    assert exp.thread != threading.get_ident()


def test_function_modes_are_asked_as_well() -> None:
    """A mode inside of a profile answers, and both see the call."""
    from undertow.overrides import TorchFunctionMode

    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with profile() as prof, Mode():
        ut.ones(2).exp()
    assert seen == ["ones", "exp"]
    assert by_key(prof)["exp"].count >= 1


def test_errors_pass_through() -> None:
    """A failing call raises its own error, is an event, and the profiler goes off."""
    with pytest.raises(ut.errors.ShapeError):  # noqa: SIM117
        with profile() as prof:
            ut.ones(2, 3) @ ut.ones(2, 3)
    assert by_key(prof)["matmul"].count == 1
    with profile():
        pass


# Off ----------------------------------------------------------------------------------------------
def test_nothing_is_left_behind() -> None:
    """Code, classes, globals and launches are those of before."""
    _, step = model()
    step()

    def state() -> list[Any]:
        steps = [getattr(engine, n) for n in ("_fused_step", "_rule_step", "_full_step")]
        codes = [ut.matmul.__code__, ut.exp.__code__, ut.Tensor.__mul__.__code__]
        calls = [ut.nn.Module.__call__, engine.accumulate, debug.kernel]
        return [*steps, *codes, *calls, type(CPU)]

    with profile(with_modules=True, profile_memory=True):
        step()
    before = state()
    with profile(with_modules=True, profile_memory=True):
        step()
        assert all(a is not b for a, b in zip(state(), before, strict=True))
    assert all(a is b for a, b in zip(state(), before, strict=True))
    assert type(CPU) is CpuBackend
    assert all(found.run is found.bare for found in launch._launches)


def test_inside_of_another() -> None:
    """Only one at a time; the outer one goes on."""
    with profile() as outer:
        with pytest.raises(ut.errors.ArgumentError, match="on already"), profile():
            pass
        ut.ones(2).exp()
    assert by_key(outer)["exp"].count == 1


def test_steps_of_a_profiler_that_is_not_on() -> None:
    """They switch nothing on."""
    prof = profile()
    for _ in range(2):
        with pytest.raises(ut.errors.ArgumentError, match="between start"):
            prof.step()
        with prof:
            prof.step()
    with profile():
        pass


def test_record_function_decorates() -> None:
    """Functions keep their names; recursion is counted; without a profiler nothing happens."""

    @record_function("fact")
    def fact(n: int) -> int:
        return 1 if n < 2 else n * fact(n - 1)

    assert fact(3) == 6
    with profile() as prof:
        assert fact(3) == 6
    row = by_key(prof)["fact"]
    assert row.count == 3
    outer = max(e.cpu_time_total for e in prof.events(["mark"]))
    assert row.cpu_time_total == pytest.approx(outer)  # the inner ones are in it


# Steps --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "given",
    [
        {"wait": 1, "warmup": 1, "active": 2},
        {"wait": 0, "warmup": 0, "active": 1, "repeat": 2},
        {"wait": 2, "warmup": 1, "active": 3, "repeat": 2, "skip_first": 4},
        {"wait": 2, "warmup": 1, "active": 1, "skip_first": 3, "skip_first_wait": 1},
    ],
)
def test_schedules_are_those_of_torch(given: dict[str, int]) -> None:
    """Step by step."""
    torch = pytest.importorskip("torch")
    ours = schedule(**given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without a warm-up torch warns
        theirs = torch.profiler.schedule(**given)
    assert [ours(i).name for i in range(30)] == [theirs(i).name for i in range(30)]


def test_schedule_records_the_active_steps() -> None:
    """`on_trace_ready` gets a cycle each, with the steps that were active."""
    got = []

    def ready(prof: Any) -> None:
        steps = [e.name for e in prof.events(["step"])]
        got.append((steps, by_key(prof)["exp"].count))

    x = ut.ones(10)
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(10):
            x.exp()
            prof.step()
    assert got == [
        (["ProfilerStep#2", "ProfilerStep#3"], 2),
        (["ProfilerStep#6", "ProfilerStep#7"], 2),
    ]
    assert prof._action is ProfilerAction.NONE


def test_without_a_schedule_the_trace_is_ready_at_the_end() -> None:
    """Once."""
    calls = []
    with profile(on_trace_ready=calls.append):
        ut.ones(2).exp()
    assert len(calls) == 1


@pytest.mark.parametrize("given", [{"active": 0}, {"active": 1, "wait": -1}])
def test_bad_schedules(given: dict[str, int]) -> None:
    """No step, or a negative number."""
    with pytest.raises(ut.errors.ArgumentError, match="schedule"):
        schedule(**{"wait": 0, "warmup": 0, **given})


# Tables -------------------------------------------------------------------------------------------
def test_tables() -> None:
    """Sorted, cut, with a header; an unknown key is an error that lists the others."""
    with profile(record_shapes=True) as prof:
        for _ in range(3):
            ut.ones(4).exp()
        ut.ones(4).sin()
    averages = prof.key_averages()
    table = averages.table(sort_by="count", row_limit=1, header="mine")
    lines = table.splitlines()
    assert lines[0] == "mine"
    assert "Self CPU %" in lines[2]
    assert lines[4].split()[0] == "ones"
    assert "2 more rows" in lines[-1]
    with pytest.raises(ut.errors.ArgumentError, match="cpu_time_total"):
        averages.table(sort_by="colour")
    assert averages.total_average().count == 8


def test_before_there_is_anything() -> None:
    """Asking too early is an error that says when to ask."""
    with pytest.raises(ut.errors.ArgumentError, match="nothing was recorded"):
        profile().key_averages()
    with pytest.raises(ut.errors.ArgumentError, match="ProfilerActivity"):
        profile(activities=["cpu"])  # type: ignore[list-item]


# Files --------------------------------------------------------------------------------------------
def check_trace(text: str) -> dict[str, Any]:
    """Hold a file against the trace-event format; returns what was read."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    data: dict[str, Any] = json.loads(text, parse_constant=refuse)
    slices: dict[Any, list[Any]] = {}
    flows: dict[Any, dict[str, Any]] = {}
    for e in data["traceEvents"]:
        assert e["ph"] in "XMCsf"
        assert isinstance(e["name"], str)
        assert type(e["pid"]) is int
        assert type(e["tid"]) is int
        if e["ph"] == "M":
            assert isinstance(e["args"]["name"], str)
            continue
        assert isinstance(e["ts"], (int, float))
        assert e["ts"] >= 0
        if e["ph"] == "X":
            assert e["dur"] >= 0
            slices.setdefault(e["tid"], []).append((e["ts"], e["ts"] + e["dur"], e))
        elif e["ph"] == "C":
            assert all(isinstance(v, (int, float)) for v in e["args"].values())
        else:
            flows.setdefault(e["id"], {})[e["ph"]] = e
    for spans in slices.values():  # slices of one thread nest
        spans.sort(key=lambda s: (s[0], -s[1]))
        open_: list[float] = []
        for begin, end, _ in spans:
            while open_ and open_[-1] <= begin + 1e-6:
                open_.pop()
            assert not open_ or end <= open_[-1] + 1e-3
            open_.append(end)
    for pair in flows.values():
        assert set(pair) == {"s", "f"}
        assert pair["s"]["ts"] <= pair["f"]["ts"]
        assert pair["f"]["bp"] == "e"
        for e in pair.values():  # each binds to a slice of its thread
            assert any(a <= e["ts"] <= b for a, b, _ in slices[e["tid"]])
    data["flows"] = flows
    data["slices"] = slices
    return data


def test_trace_events(tmp_path: Path) -> None:
    """The file is valid, and arrows lead from calls to their backward steps."""
    _, step = model()
    step()
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        prof.add_metadata("run", "7")
        step()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    data = check_trace(path.read_text())
    assert data["run"] == "7"
    at = {(tid, s[0]): s[2] for tid, spans in data["slices"].items() for s in spans}
    kinds = {s[2]["cat"] for spans in data["slices"].values() for s in spans}
    assert {"op", "backward", "form", "launch", "optimizer"} <= kinds
    pairs = set()
    for flow in data["flows"].values():
        f = flow["f"]
        ends = [
            s[2]["name"]
            for s in data["slices"][f["tid"]]
            if s[0] == f["ts"] and s[2]["cat"] == "backward"
        ]
        starts = [
            s[2]["name"]
            for s in data["slices"][flow["s"]["tid"]]
            if s[0] == flow["s"]["ts"] and s[2]["cat"] == "op"
        ]
        pairs |= {(a, b) for a in starts for b in ends}
    assert ("conv1d", "ConvBackward0") in pairs
    assert ("linear", "LinearBackward0") in pairs
    assert ("relu", "ReluBackward0") in pairs
    assert at
    prof.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    import gzip

    with gzip.open(tmp_path / "trace.json.gz", "rt") as file:
        check_trace(file.read())


def test_stacks(tmp_path: Path) -> None:
    """Lines of frames and microseconds, of the user's files only."""

    def mine() -> None:
        ut.ones(300, 300).exp()

    with profile(with_stack=True) as prof:
        for _ in range(5):
            mine()
    path = tmp_path / "stacks.txt"
    prof.export_stacks(str(path), "self_cpu_time_total")
    lines = path.read_text().splitlines()
    exp = next(line for line in lines if ";exp " in line)
    frames, _, spent = exp.rpartition(" ")
    assert int(spent) > 0
    assert frames.split(";")[-2].endswith("mine")
    assert "undertow/core" not in frames
    with profile() as other:
        pass
    with pytest.raises(ut.errors.ArgumentError, match="with_stack"):
        other.export_stacks(str(path))


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    """An error that names the path and the reason."""
    with profile(with_stack=True, profile_memory=True) as prof:
        ut.ones(2).exp()
    path = str(tmp_path / "absent" / "file")
    for export in (
        prof.export_chrome_trace,
        prof.export_stacks,
        prof.export_html,
        prof.export_memory_timeline,
    ):
        with pytest.raises(ut.errors.ArgumentError, match=r"cannot write .*absent.*: No such file"):
            export(path)
    handler = ut.profiler.tensorboard_trace_handler(str(tmp_path / "traces"))
    handler(prof)
    (written,) = (tmp_path / "traces").iterdir()
    check_trace(written.read_text())


def test_the_page_is_self_contained(tmp_path: Path) -> None:
    """One file with the data of all events and the table, and no address of anything else."""
    _, step = model()
    with profile(profile_memory=True) as prof, record_function("</script> & more"):
        step()
    path = tmp_path / "p.html"
    prof.export_html(str(path))
    text = path.read_text()
    assert "http:" not in text
    assert "https:" not in text
    assert text.count("</script>") == 2
    assert "Self CPU %" in text
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert len(data["events"]) == len(prof.events())
    assert "</script> & more" in data["names"]
    assert data["arrows"]
    assert data["memory"]


# The older interface, and the command -------------------------------------------------------------
def test_autograd_profiler() -> None:
    """`enabled=False` records nothing; events, averages and tables as properties."""
    with ut.autograd.profiler.profile(enabled=False):
        ut.ones(2).exp()
    with ut.autograd.profiler.profile(record_shapes=True) as prof:
        ut.ones(2).exp()
    assert any(e.name == "exp" for e in prof.function_events)
    assert "exp" in prof.table()
    assert prof.self_cpu_time_total > 0
    assert ut.autograd.profiler.record_function is record_function


def test_the_command(tmp_path: Path) -> None:
    """Prints the table, writes the page, and gives the program its arguments and exit code."""
    script = tmp_path / "program.py"
    script.write_text(
        "import sys\nimport torch\nx = torch.ones(100, 100)\n(x @ x).exp()\n"
        "print('got', sys.argv[1:])\nsys.exit(3)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(ut.__file__).parents[1])}
    command = [sys.executable, "-m", "undertow", "profile", "--memory", "-o", "out.html"]
    done = subprocess.run(
        [*command, "--trace", "t.json", str(script), "--epochs", "1"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 3, done.stderr
    assert "got ['--epochs', '1']" in done.stdout
    assert "matmul" in done.stdout
    assert "Most memory was held by" in done.stdout
    assert "matmul" in (tmp_path / "out.html").read_text()
    check_trace((tmp_path / "t.json").read_text())
    for arguments, message in (
        (["absent.py"], "there is no file 'absent.py'"),
        (["-o", "absent/x.html", str(script)], "cannot write 'absent/x.html'"),
        ([], "expects a script"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "undertow", "profile", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=300,
        )
        assert done.returncode == 1
        assert message in done.stderr


def test_launches_tell_their_share_of_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from undertow.utils.profiler import events, limits

    x = ut.ones(300_000)
    (x + x).sum()
    with ut.profiler.profile(with_flops=True) as prof:
        x + x
    rows = prof.key_averages(kinds=["launch"])
    monkeypatch.setattr(events, "limits", lambda: limits.Limits(1e12, 1e30))
    (row,) = [r for r in rows if r.bytes >= 3_600_000]
    share = 100 * row.bytes / 1e12 / (row.cpu_time_total / 1e6)
    assert "% of limit" in rows.table()
    assert f"{share:.1f}%" in rows.table()


def test_limits_are_measured_and_plausible() -> None:
    from undertow.utils.profiler.limits import limits

    found = limits()
    assert 1e8 < found.bytes < 1e13
    assert 1e8 < found.flops < 1e15
    assert limits() is found


def test_parameters_without_a_shape_have_no_memory() -> None:
    lazy = ut.nn.LazyLinear(3)
    with profile(profile_memory=True) as watched:
        lazy(ut.ones(2, 4))
    assert watched.key_averages()
