"""Generated kernels against torch: every workload, with the machine's own limits beside it.

    python benchmarks/kernels.py [NAME...] [--quick] [--memory] [--threads N] [--json FILE]
    python benchmarks/kernels.py NAME --profile

NAME is a pattern (`exp*`) or a part of the names (`train`, `float64`, `rows`); `--list` lists them.
Both libraries get the same data, and their results, gradients included, are compared before they
are timed. Times are the best of interleaved blocks; `limit` says how much of the machine's limit
(memory bandwidth or multiply-adds, whichever is closer) undertow reaches. Products and the chain
of small multiplies have scripts of their own, matmul.py and small_graphs.py. On a busy machine
`--threads 1` tells more: it counts only the time that this thread had a processor. `--isa avx2`
limits every library to these instructions, as in the other scripts.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from _race import agree, finish, header, mark, parser, problem, race, summary
from workloads import WORKLOADS, Workload, chosen

import undertow as ut

REPEAT, SECONDS = 45, 1.2  # timed runs of each library, and how long a workload may take


def checked(workload: Workload, torch: Any) -> tuple[Any, Any]:
    """The workload for both libraries, after their results have been compared."""
    shown = workload.compared or workload.make
    ours, theirs = (m[1](m[0]()) if isinstance(m, tuple) else m() for m in map(shown, (ut, torch)))
    agree(ours, theirs, condition=workload.condition and workload.condition())
    return workload.make(ut), workload.make(torch)


def timed(workload: Workload, torch: Any, limits: Any, asked: Any) -> dict[str, Any]:
    """One row of the table; with a "problem" instead of times where there are none."""
    row: dict[str, Any] = {"name": workload.name, "bar": workload.bar, "aim": workload.aim}
    try:
        ours, theirs = checked(workload, torch)
    except Exception as error:
        return row | problem(error)
    share = 0.2 if asked.quick else 1.0
    times = race(
        {"ours": ours, "torch": theirs}, int(REPEAT * share), SECONDS * share, asked.threads
    )
    least = limits.seconds(workload.read, workload.written, workload.flops, workload.resident)
    ratio = times["ours"] / times["torch"]
    return row | {
        "undertow_ms": 1e3 * times["ours"],
        "torch_ms": 1e3 * times["torch"],
        "ratio": ratio,
        "limit": least / times["ours"],
        "torch_limit": least / times["torch"],
        "mark": mark(ratio, workload.bar, workload.aim),
    }


def show(row: dict[str, Any]) -> None:
    """Print a row of times."""
    if "problem" in row:
        print(f"{row['name']:<25} {row['problem']}", flush=True)
        return
    print(
        f"{row['name']:<25} {row['undertow_ms']:>11.3f} {row['torch_ms']:>9.3f} "
        f"{row['ratio']:>6.2f} {row['bar']:>5.2f} {row['aim']:>5.2f} {row['limit']:>6.0%} "
        f"{row['torch_limit']:>6.0%}  {row['mark']}",
        flush=True,
    )


def profile(workloads: list[Workload]) -> None:
    """Print where undertow's time goes."""
    from _profile import report, watch

    watched = watch()
    for w in workloads:
        print(f"== {w.name}")
        report(watched, w.whole(ut))


def arguments(doc: str | None) -> argparse.Namespace:
    """What the command line asks for."""
    options = parser(doc)
    options.add_argument("--profile", action="store_true", help="show what undertow's time is")
    return options.parse_args()


def main(doc: str | None = __doc__, among: Sequence[Workload] = WORKLOADS) -> None:
    """Race what the command line asks for."""
    asked = arguments(doc)
    workloads = chosen(asked.names, among)
    ut.set_num_threads(asked.threads)
    if asked.list or asked.profile:
        if asked.profile:
            profile(workloads)
        else:
            print(*(w.name for w in workloads), sep="\n")
        return
    import torch
    from _limits import measure

    torch.set_num_threads(asked.threads)
    header(torch, threads=asked.threads)
    limits = measure(rounds=1 if asked.quick else 3)
    print(limits)
    print(
        f"\n{'workload':<25} {'undertow ms':>11} {'torch ms':>9} {'ratio':>6} {'bar':>5} "
        f"{'aim':>5} {'limit':>6} {'torch':>6}"
    )
    rows = []
    for w in workloads:
        rows.append(timed(w, torch, limits, asked))
        show(rows[-1])
    summary(rows)
    peaks = []
    if asked.memory:
        from _memory import compare

        print()
        peaks = compare(workloads)
    finish(asked.json, rows, limits=limits._asdict(), memory=peaks)


if __name__ == "__main__":
    main()
