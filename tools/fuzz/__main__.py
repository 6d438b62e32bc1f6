"""The command: which fuzzers, which seeds, for how long."""

from __future__ import annotations

import argparse
import json
import sys
import time

FUZZERS = ("programs", "windows", "edges", "faults", "compiled")


def main() -> int:
    """Run fuzzers; 1 if one of them finds something."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("fuzzers", nargs="*", metavar="fuzzer", help=f"of {', '.join(FUZZERS)}")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--count", type=int, help="cases of each fuzzer")
    parser.add_argument("--seconds", type=float, help="time for all of them together")
    parser.add_argument("--guard", action="store_true", help="stop at accesses beyond arrays")
    options = parser.parse_args()
    chosen = options.fuzzers or list(FUZZERS)
    unknown = set(chosen) - set(FUZZERS)
    if unknown:
        parser.error(f"unknown fuzzers {sorted(unknown)}; there are {', '.join(FUZZERS)}")
    if options.count is None and options.seconds is None:
        options.seconds = 60.0

    from .hunt import hunt  # after the arguments, since torch takes its time

    counts = {}
    end = time.monotonic() + options.seconds if options.seconds else None
    for left, name in zip(range(len(chosen), 0, -1), chosen, strict=True):
        share = end and time.monotonic() + (end - time.monotonic()) / left
        counts[name] = hunt(name, options.seed, options.count, share, options.guard)
    print(json.dumps({"seed": options.seed, **counts}))
    return int(any(c["failures"] for c in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
