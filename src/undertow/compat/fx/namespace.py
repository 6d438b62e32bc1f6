"""Names of values in generated code: one each, none twice, none that Python or a builtin has."""

from __future__ import annotations

import builtins
import keyword
import re
from typing import Any

# A name, and the number at its end if it has one.
_NAME = re.compile(r"^([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?$")
_NOT_IN_NAMES = re.compile("[^0-9a-zA-Z_]+")
_illegal_names: dict[str, Any] = {name: object() for name in keyword.kwlist}
_illegal_names.update(vars(builtins))


class _Namespace:
    """Which names are taken, and by which objects."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any | None) -> str:
        """A name like `candidate` that is free, and from now on that of `obj` if one is given."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        found = _NAME.match(candidate)
        if found is None:
            candidate = _NOT_IN_NAMES.sub("_", candidate) or "_unnamed"
            if candidate[0].isdigit():
                candidate = f"_{candidate}"
            found = _NAME.match(candidate)
            assert found is not None
        base, digits = found.group(1, 2)
        if digits is None or candidate in self._used_names:
            number = self._base_count.get(base, 0)
            if _illegal_names.get(candidate, obj) is not obj:
                number += 1
                candidate = f"{base}_{number}"
        else:
            number = int(digits)
        while candidate in self._used_names:
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Give an object a name that was made for it."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("[fx] the object has a name already")

    def _rename_object(self, obj: Any, name: str) -> None:
        if obj not in self._obj_to_name:
            raise AssertionError(f"[fx] {obj} has no name")
        self._obj_to_name[obj] = name
        self._used_names.add(name)
