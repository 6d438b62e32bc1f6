"""`ut.compile`: calls that are recorded, and then run as programs; see docs/compile.md."""
