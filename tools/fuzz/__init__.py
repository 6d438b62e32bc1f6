"""Fuzzers: random programs beside torch, and faults that the library must survive.

    python -m fuzz --seconds 600            everything, for ten minutes (`make fuzz SECONDS=600`)
    python -m fuzz windows --seed 7 --count 1    one fuzzer, one case

Every case is the text of a Python function, made from a seed; `case` runs that text with either
library and compares. A failure is shrunk and printed as a script that runs by itself. The last line
is JSON with counts.
"""
