"""Convolutions, batch norm and pooling against torch and JAX: forward and all gradients.

    python benchmarks/convolution.py [NAME...] [--quick] [--threads N] [--no-jax] [--json FILE]
    python benchmarks/convolution.py [NAME...] --split
    python benchmarks/convolution.py [NAME...] --first | --memory

NAME is a pattern (`conv2d*`) or a part of the names (`depthwise`, `k3`); `--list` lists them. All
libraries get the same data, float32 with a random cotangent, and their results are compared before
they are timed: torch as it is, JAX as one compiled function that returns the output and the
gradients. Times are the best of interleaved blocks; `ratio` is to the better rival; `peak` is the
part of the machine's multiply-adds that undertow uses, of those that the layer needs, and `limit`
the same for whichever of multiply-adds and memory bandwidth is closer.

`--split` times the forward pass and each gradient by itself, undertow's and torch's. `--first`
times the first run in a process, compiled and from the disk cache (see _first.py), and `--memory`
measures peak memory beside torch's (see _memory.py); either comes after the race, or by itself with
`--no-race`. On a busy machine `--threads 1` tells more: it counts only processor time.
`--isa avx2` limits every library to these instructions.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from _race import agree, finish, header, mark, parser, problem, race, summary
from workloads import CONVOLUTION, LAYERS, chosen
from workloads.convolution import Layer

import undertow as ut

REPEAT, SECONDS = 60, 3.0  # timed runs of each library, and how long a workload may take


def raced(runners: dict[str, Any], asked: argparse.Namespace) -> dict[str, float]:
    """The best seconds of each runner."""
    share = 0.2 if asked.quick else 1.0
    # Of one thread, processor time; but of the process, since XLA computes on a thread of its own.
    clock = time.process_time if asked.threads == 1 else time.perf_counter
    return race(runners, int(REPEAT * share), SECONDS * share, asked.threads, clock)


def timed(layer: Layer, rivals: dict[str, Any], limits: Any, asked: Any) -> dict[str, Any]:
    """One row of the table; with a "problem" instead of times where there are none."""
    row: dict[str, Any] = {"name": layer.name, "bar": layer.bar, "aim": layer.aim}
    try:
        ours = layer.make(ut)
        theirs = {
            name: layer.make_jax(module) if name == "jax" else layer.make(module)
            for name, module in rivals.items()
        }
        results = ours()
        for name, run in theirs.items():
            agree(results, run(), name)
        times = raced({"undertow": ours, **theirs}, asked)
    except Exception as error:
        return row | problem(error)
    w = layer.workload
    ratio = times["undertow"] / min(times[name] for name in theirs)
    return row | {
        **{f"{name}_ms": 1e3 * spent for name, spent in times.items()},
        "ratio": ratio,
        "peak": w.flops / limits.flops / times["undertow"],
        "limit": limits.seconds(w.read, w.written, w.flops, w.resident) / times["undertow"],
        "mark": mark(ratio, layer.bar, layer.aim),
    }


def show(row: dict[str, Any], width: int) -> None:
    """Print a row of times."""
    if "problem" in row:
        print(f"{row['name']:<{width}} {row['problem']}", flush=True)
        return
    times = [
        f"{row[f'{name}_ms']:>9.3f}" if f"{name}_ms" in row else f"{'–':>9}"
        for name in ("torch", "jax")
    ]
    peak = f"{row['peak']:>6.0%}" if row["peak"] else f"{'–':>6}"
    print(
        f"{row['name']:<{width}} {row['undertow_ms']:>11.3f} {' '.join(times)} "
        f"{row['ratio']:>6.2f} {row['bar']:>5.2f} {row['aim']:>5.2f} {peak} {row['limit']:>6.0%}"
        f"  {row['mark']}",
        flush=True,
    )


def whole(layers: list[Layer], rivals: dict[str, Any], limits: Any, asked: Any) -> Any:
    """Race the layers, print the table, and return its rows."""
    width = max(len(layer.name) for layer in layers)
    print(
        f"\n{'forward and all gradients':<{width}} {'undertow ms':>11} {'torch ms':>9} "
        f"{'jax ms':>9} {'ratio':>6} {'bar':>5} {'aim':>5} {'peak':>6} {'limit':>6}"
    )
    rows = []
    for layer in layers:
        rows.append(timed(layer, rivals, limits, asked))
        show(rows[-1], width)
    summary(rows)
    return rows


def split(layers: list[Layer], torch: Any, limits: Any, asked: Any) -> Any:
    """Time forward pass and gradients each by itself, print them, and return them as rows."""
    print(
        f"\n{'layer':<24} {'undertow ms':>11} {'torch ms':>9} {'ratio':>6} {'peak':>6} {'torch':>6}"
    )
    rows = []
    for layer in layers:
        print(layer.name)
        try:
            ours, theirs = layer.parts(ut), layer.parts(torch)
        except Exception as error:
            rows.append({"name": layer.name, **problem(error)})
            print(f"  {rows[-1]['problem']}")
            continue
        for part in ours:
            row: dict[str, Any] = {"name": layer.name, "part": part}
            rows.append(row)
            try:
                agree(ours[part](), theirs[part]())
                times = raced({"undertow": ours[part], "torch": theirs[part]}, asked)
            except Exception as error:
                row |= problem(error)
                print(f"  {part:<22} {row['problem']}", flush=True)
                continue
            flops = layer.flops if part != "gradient of bias" else 0
            row |= {f"{name}_ms": 1e3 * spent for name, spent in times.items()}
            peaks = [flops / limits.flops / spent for spent in times.values()]
            row |= {"peak": peaks[0], "torch_peak": peaks[1]}
            shares = " ".join(f"{p:>6.0%}" if p else f"{'–':>6}" for p in peaks)
            print(
                f"  {part:<22} {row['undertow_ms']:>11.3f} {row['torch_ms']:>9.3f} "
                f"{times['undertow'] / times['torch']:>6.2f} {shares}",
                flush=True,
            )
    return rows


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    options = parser(__doc__)
    options.add_argument("--no-jax", action="store_true", help="race against torch alone")
    options.add_argument("--no-race", action="store_true", help="only --first or --memory")
    options.add_argument("--split", action="store_true", help="time each gradient by itself")
    options.add_argument("--first", action="store_true", help="time first runs as well")
    return options.parse_args()


def race_all(layers: list[Layer], asked: argparse.Namespace) -> tuple[Any, Any]:
    """The race that the command line asks for: its rows, and the machine's limits."""
    import torch
    from _jax import load
    from _limits import measure

    jax = None if asked.no_jax or asked.split else load(asked.threads)
    rivals = {"torch": torch} | ({"jax": jax} if jax else {})
    torch.set_num_threads(asked.threads)
    header(*rivals.values(), threads=asked.threads)
    if not (jax or asked.no_jax or asked.split):
        print("# jax is not installed: against torch alone")
    limits = measure(rounds=1 if asked.quick else 3)
    print(limits)
    if asked.split:
        return split(layers, torch, limits, asked), limits
    return whole(layers, rivals, limits, asked), limits


def main() -> None:
    """Race what the command line asks for."""
    asked = arguments()
    workloads = chosen(asked.names, CONVOLUTION)
    names = {w.name for w in workloads}
    layers = [layer for layer in LAYERS if layer.name in names]
    if asked.list or not layers:
        print(*[layer.name for layer in layers] or ["no such workload; see --list"], sep="\n")
        return
    ut.set_num_threads(asked.threads)
    rows: list[dict[str, Any]] = []
    figures: dict[str, Any] = {}
    if not asked.no_race:
        rows, limits = race_all(layers, asked)
        figures["limits"] = limits._asdict()
    if asked.first:
        import _first

        print()
        figures["first"] = _first.compare(workloads, asked.threads, repeat=1 if asked.quick else 3)
    if asked.memory:
        import _memory

        print()
        figures["memory"] = _memory.compare(workloads)
    finish(asked.json, rows, **figures)


if __name__ == "__main__":
    main()
