"""What pytest needs before it imports a file of the library for its doctests."""

import os
from importlib import import_module
from pathlib import Path

os.environ.setdefault("UNDERTOW_CHECK_IR", "1")  # every generated kernel is checked

# What pytest asks packages for: `undertow.ops` has an answer to every name, as `torch.ops` has.
_SETUP = ("setUpModule", "setup_module", "tearDownModule", "teardown_module")


def pytest_configure() -> None:
    """Import the library as a user does: pytest's loader would run its files a second time.

    Rooms that are open to torch's names have a loader of their own, which pytest's goes round.
    """
    import undertow.stand_in  # after the setting above

    source = Path(undertow.__file__).parent
    for room in sorted(undertow.stand_in._SHARED):
        for init in sorted((source / room).rglob("__init__.py")):
            import_module(".".join(["undertow", *init.parent.relative_to(source).parts]))
    vars(undertow.ops).update(dict.fromkeys(_SETUP), pytestmark=[], pytest_plugins=[])
