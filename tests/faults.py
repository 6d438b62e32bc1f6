"""Faults at random points of random collectives, with a watchdog: `python faults.py 1000`.

One process of three is killed, stopped, raises, exits or calls another collective. The others must
have an error that names rank, collective and tensor, within 2 s, or 3 s after the deadline if the
process was stopped. Everything must end: a hang is what the watchdog sees.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import time
from pathlib import Path

from processes import finished, started

WAYS = ("kill", "stop", "raise", "exit", "order")
DEADLINE = 2.0  # seconds of a collective, when the victim is stopped

PROGRAM = """
import random, threading

way, victim, seed, when, limit, folder = sys.argv[1:]
victim, when = int(victim), float(when)
dist.init_process_group()
me = dist.get_rank()
rng = random.Random(int(seed))
dist.barrier()
dist.group.WORLD.timeout = float(limit)  # from here on, since a start may take long


def note(name, text):
    with open(f"{folder}/{name}.part", "w") as file:
        file.write(f"{time.time()}\\n{text}")
    os.rename(f"{folder}/{name}.part", f"{folder}/{name}")


def strike():
    time.sleep(when)
    note("struck", way)
    os.kill(os.getpid(), signal.SIGKILL if way == "kill" else signal.SIGSTOP)


if me == victim and way in ("kill", "stop"):
    threading.Thread(target=strike, daemon=True).start()
begun = time.monotonic()
try:
    for i in range(10**9):
        size = rng.choice([1, 1000, 300_000])
        kind = rng.choice(["all_reduce", "broadcast"])
        x = ut.ones(size)
        if me == victim and time.monotonic() - begun > when and way in ("raise", "exit", "order"):
            note("struck", way)
            if way == "raise":
                raise ValueError("the boat is leaking")
            if way == "exit":
                sys.exit(3)
            dist.all_gather([ut.ones(size + 1) for _ in range(3)], ut.ones(size + 1))
        if kind == "all_reduce":
            dist.all_reduce(x, label=f"tensor{i}")
        else:
            dist.broadcast(x, rng.randrange(3), label=f"tensor{i}")
except dist.DistributedError as error:
    note(f"told{me}", str(error))
    raise
"""


def inject(seed: int, folder: Path, slack: float = 0.0) -> str:
    """Do one; what was wrong, or nothing. `slack` is more seconds, for a busy machine."""
    rng = random.Random(seed)
    way, victim = WAYS[seed % len(WAYS)], rng.randrange(3)
    limit = DEADLINE + slack / 4 if way == "stop" else 60
    words = way, victim, seed, rng.uniform(0, 0.3), limit, folder
    process = started(folder, 3, PROGRAM, *words, grace=3 + (0 if way == "stop" else slack))
    case = f"{way} of rank {victim}, seed {seed}"
    try:
        out = finished(process, None, 60 + 10 * slack)
    except AssertionError as error:
        return f"{case}: {error}"
    struck = float((folder / "struck").read_text().splitlines()[0])
    allowed = (limit + 3 if way == "stop" else 2) + slack
    for rank in {0, 1, 2} - {victim}:
        told = folder / f"told{rank}"
        if not told.exists():
            return f"{case}: rank {rank} had no error\n{out}"
        when, text = told.read_text().split("\n", 1)
        if float(when) - struck > allowed:
            return f"{case}: rank {rank} was told after {float(when) - struck:.1f} s"
        if not re.search(r"(all_reduce|broadcast) \d+ of float32 \(\d+,\) 'tensor\d+'", text):
            return f"{case}: rank {rank} does not name collective and tensor: {text}"
        if not re.search(r"ranks? \d", text.split(":", 1)[1]):
            return f"{case}: rank {rank} does not name a rank: {text}"
    return ""


def main(count: int, first: int = 0) -> int:
    """Do many; how many went wrong."""
    wrong = 0
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            said = inject(seed, Path(folder))
            if said:
                wrong += 1
                print(f"WRONG {said}", flush=True)
            elif seed % 50 == 0:
                print(f"{seed}: fine, {time.monotonic() - begun:.1f} s", flush=True)
    print(f"{count} faults, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
