"""Generated kernels against torch: every workload, with the machine's own limits beside it.

    python benchmarks/kernels.py [NAME...] [--quick] [--memory] [--threads N] [--json FILE]
    python benchmarks/kernels.py NAME --profile

NAME is a pattern (`exp*`) or a part of the names (`train`, `float64`, `rows`); `--list` lists them.
Both libraries get the same data, and their results, gradients included, are compared before they
are timed. Times are the best of interleaved blocks; `limit` says how much of the machine's limit
(memory bandwidth or multiply-adds, whichever is closer) undertow reaches. Products and the chain
of small multiplies have scripts of their own, matmul.py and small_graphs.py. On a busy machine
`--threads 1` tells more: it counts only the time that this thread had a processor.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from _race import cpu_name, header, race

import undertow as ut

import numpy as np  # isort: skip
from workloads import Workload, chosen

REPEAT, SECONDS = 45, 1.2  # timed runs of each library, and how long a workload may take
TOLERANCE = {"float32": 3e-5, "float64": 1e-12}


class WrongResult(Exception):
    """The two libraries do not agree."""


def agree(ours: Any, theirs: Any) -> None:
    """Raise WrongResult if the results of the libraries differ by more than rounding."""
    if len(ours) != len(theirs):
        raise WrongResult(f"{len(ours)} results, torch has {len(theirs)}")
    for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        a, b = mine.numpy(), other.numpy()
        if a.shape != b.shape or a.dtype != b.dtype:
            raise WrongResult(f"result {i} is {a.dtype}{a.shape}, torch's {b.dtype}{b.shape}")
        if not np.isfinite(b).all():
            raise WrongResult(f"result {i} of torch is not finite, so this is no benchmark")
        tolerance = TOLERANCE.get(b.dtype.name, 0.0)
        scale = np.abs(b).max(initial=0)
        wrong = np.abs(a - b) > tolerance * (np.abs(b) + scale)
        if wrong.any() or not np.isfinite(a).all():
            at = tuple(int(k) for k in np.argwhere(wrong | ~np.isfinite(a))[0])
            raise WrongResult(
                f"{int(wrong.sum())} of {b.size} elements of result {i} differ, the first at "
                f"{at}: {a[at]!r}, torch {b[at]!r}"
            )


def checked(workload: Workload, torch: Any) -> tuple[Any, Any]:
    """The workload for both libraries, after their results have been compared."""
    made = [workload.make(module) for module in (ut, torch)]
    agree(*(m[1](m[0]()) if isinstance(m, tuple) else m() for m in made))
    return made[0], made[1]


def timed(workload: Workload, torch: Any, limits: Any, asked: Any) -> dict[str, Any]:
    """One row of the table; with a "problem" instead of times where there are none."""
    row: dict[str, Any] = {"name": workload.name, "bar": workload.bar, "aim": workload.aim}
    try:
        ours, theirs = checked(workload, torch)
    except (AttributeError, NotImplementedError) as error:
        return row | {"problem": f"not available yet: {error}"}
    except WrongResult as error:
        return row | {"problem": f"WRONG RESULT: {error}"}
    except Exception as error:
        return row | {"problem": f"FAILED: {type(error).__name__}: {error}"}
    share = 0.2 if asked.quick else 1.0
    times = race(
        {"ours": ours, "torch": theirs}, int(REPEAT * share), SECONDS * share, asked.threads
    )
    least = limits.seconds(workload.read, workload.written, workload.flops, workload.resident)
    ratio = times["ours"] / times["torch"]
    mark = "aim" if ratio <= workload.aim else "ok" if ratio <= workload.bar else "MISSED"
    return row | {
        "undertow_ms": 1e3 * times["ours"], "torch_ms": 1e3 * times["torch"], "ratio": ratio,
        "limit": least / times["ours"], "torch_limit": least / times["torch"], "mark": mark,
    }  # fmt: skip


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


def summary(rows: list[dict[str, Any]]) -> None:
    """Print how many bars and aims were met, and the losses."""
    raced = [r for r in rows if "ratio" in r]
    met = [r for r in raced if r["mark"] != "MISSED"]
    aims = sum(r["mark"] == "aim" for r in raced)
    print(f"\n{len(met)} of {len(rows)} bars met, {aims} aims")
    for r in sorted((r for r in raced if r not in met), key=lambda r: r["bar"] / r["ratio"]):
        print(f"  lost: {r['name']}, {r['ratio']:.2f} where {r['bar']:.2f} was asked")
    for r in rows:
        if "problem" in r:
            print(f"  {r['name']}: {r['problem']}")


def profile(workloads: list[Workload]) -> None:
    """Print where undertow's time goes."""
    from _profile import report, watch

    watched = watch()
    for w in workloads:
        print(f"== {w.name}")
        report(watched, w.whole(ut))


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="pattern or part of a name")
    parser.add_argument("--list", action="store_true", help="list the names and stop")
    parser.add_argument("--quick", action="store_true", help="fewer runs, less exact")
    parser.add_argument("--memory", action="store_true", help="measure peak memory as well")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="of each library")
    parser.add_argument("--json", metavar="FILE", help="write all figures to a file")
    parser.add_argument("--profile", action="store_true", help="show what undertow's time is")
    return parser.parse_args()


def main() -> None:
    """Race what the command line asks for."""
    asked = arguments()
    workloads = chosen(asked.names)
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
    print(f"\n{'workload':<25} {'undertow ms':>11} {'torch ms':>9} {'ratio':>6} {'bar':>5} "
          f"{'aim':>5} {'limit':>6} {'torch':>6}")  # fmt: skip
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
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump(
                {"cpu": cpu_name(), "limits": limits._asdict(), "rows": rows, "memory": peaks},
                file, indent=1,
            )  # fmt: skip
    if any(r.get("problem", "").startswith(("WRONG", "FAILED")) for r in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
