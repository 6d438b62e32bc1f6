"""Programs that tests start in several processes are no modules of tests."""

collect_ignore = ["random_sequences.py", "faults.py"]
