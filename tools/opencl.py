"""Print the OpenCL devices of this machine; exit with 1 if there are none, or no pyopencl."""

from __future__ import annotations

import sys


def names() -> list[str]:
    """The devices' names."""
    try:
        import pyopencl as cl

        return [d.name for p in cl.get_platforms() for d in p.get_devices()]
    except Exception as error:  # no pyopencl, no loader, or no driver
        print(f"no OpenCL: {error}", file=sys.stderr)
        return []


if __name__ == "__main__":
    found = names()
    print("\n".join(found))
    sys.exit(not found)
