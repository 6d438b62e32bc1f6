"""Settings of every test run."""

import os

os.environ.setdefault("UNDERTOW_CHECK_IR", "1")  # every generated kernel is checked
