"""A program that tests start in several processes is no module of tests."""

collect_ignore = ["random_sequences.py"]
