"""A pickle read without running it: plain data, and calls of what is on a list.

Python's own unpickler runs what a file names. This one knows the words of the pickle language
that describe data, keeps every name that the file mentions as a name (`Global`), and calls only
those that stand on the list of checkpoints (`globals_`) or that the user has allowed.

Note [hostile pickles]
Whatever the bytes are, the outcome is data or a FileError: lengths are checked against what is
left; the memo is a dict, however large its numbers; what a call copies is limited by the size of
the pickle, so that repeating it fills no memory; and keys are measured before they are hashed,
since tuples that hold themselves many times over take for ever. There is no recursion.
"""

from __future__ import annotations

import pickletools
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..errors import FileError, UndertowError, UnsupportedError

_LONGEST_KEY = 10_000  # things inside a key
# Python 2's names, which protocol 2 uses.
_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_NAMES = {"builtins.long": "builtins.int", "builtins.unicode": "builtins.str"}
# What a call of the user's gets for a name on the list: defaultdict(set) wants the class itself.
_CLASSES = {
    f"{kind.__module__}.{kind.__qualname__}": kind
    for kind in (OrderedDict, Counter, bytearray, set, frozenset, complex)
}
_SIZED = (str, bytes, bytearray, list, tuple, dict)
# What words raise that are given nonsense.
_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
# What takes a state, by type: how it is checked and given. Filled by `rebuilding`.
BUILDS: dict[type, Callable[[Any, Any], None]] = {}
_FORBIDDEN = ("sys", "os", "posix", "nt", "subprocess", "builtins.eval", "builtins.exec")


class Global:
    """A name that the file mentions, and what a call of it does."""

    __slots__ = ("call", "name")

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        self.name = name
        self.call = call

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Missing(NamedTuple):
    """A name that is known, for something that Undertow does not have."""

    name: str
    what: str


class Unpickler:
    """Reads pickles, one after the other, from `content`."""

    def __init__(
        self,
        content: memoryview,
        globals_: Mapping[str, Any],
        persistent: Callable[[Any], Any] | None = None,
        allowed: Mapping[str, Any] | None = None,
        encoding: str = "utf-8",
        position: int = 0,
    ) -> None:
        self.position = position
        self._content = content
        self._globals = globals_
        self._allowed = {} if allowed is None else allowed
        self._persistent = persistent
        self._encoding = encoding
        self._budget = 64 * len(content) + (1 << 20)  # bytes that calls may copy

    def load(self) -> Any:
        """The next object."""
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        while True:
            code = self._read(1)[0]
            if code == _STOP:
                return self._pop()
            word = _WORDS.get(code)
            if word is None:
                raise FileError(
                    f"[load] the pickle in the file has the word {bytes([code])!r}, which is "
                    "for no data: it is damaged, or no checkpoint"
                )
            try:
                word(self)
            except UndertowError:
                raise
            except _DAMAGE as error:
                raise FileError(
                    f"[load] the pickle in the file is damaged, at byte {self.position:,}: {error}"
                ) from error

    # Reading ----------------------------------------------------------------------------------
    def _read(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self._content):
            raise FileError(
                f"[load] the file is truncated: {count:,} bytes are wanted at {self.position:,}, "
                f"of {len(self._content):,}"
            )
        found = bytes(self._content[self.position : end])
        self.position = end
        return found

    def _number(self, size: int) -> int:
        return int.from_bytes(self._read(size), "little")

    def _line(self) -> str:
        start = self.position
        chunk = bytes(self._content[start : start + 1000])
        end = chunk.find(b"\n")
        if end < 0:
            raise FileError("[load] the pickle in the file is damaged: a name has no end")
        self.position = start + end + 1
        return chunk[:end].decode()

    # The stack --------------------------------------------------------------------------------
    def _pop(self) -> Any:
        if not self._stack:
            raise FileError("[load] the pickle in the file is damaged: something is missing")
        return self._stack.pop()

    def _top(self, *kinds: type) -> Any:
        top = self._pop()
        self._stack.append(top)
        known = type(top) in kinds or (isinstance(top, kinds) and self._is_allowed(type(top)))
        if kinds and not known:
            raise FileError(f"[load] the pickle in the file adds items to a {type(top).__name__}")
        return top

    def _push(self, thing: Any) -> None:
        self._stack.append(thing)

    def _mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def _marked(self) -> list[Any]:
        if not self._marks:
            raise FileError("[load] the pickle in the file is damaged: a mark is missing")
        items, self._stack = self._stack, self._marks.pop()
        return items

    def _several(self, count: int) -> tuple[Any, ...]:
        return tuple([self._pop() for _ in range(count)][::-1])

    # Words ------------------------------------------------------------------------------------
    def _protocol(self) -> None:
        if (version := self._read(1)[0]) > 5:
            raise FileError(
                f"[load] the pickle in the file has protocol {version}; up to 5 is read"
            )

    def _string(self, size: int) -> None:
        self._push(self._read(size).decode(self._encoding))

    def _text(self, size: int) -> None:
        self._push(self._read(size).decode("utf-8", "surrogatepass"))

    def _integer(self, size: int) -> None:
        self._push(int.from_bytes(self._read(size), "little", signed=True))

    def _remember(self, number: int) -> None:
        self._memo[number] = self._top()

    def _recall(self, number: int) -> None:
        if number not in self._memo:
            raise FileError(f"[load] the pickle in the file recalls item {number}, which is none")
        self._push(self._memo[number])

    def _add(self, items: list[Any]) -> None:
        self._top(list).extend(items)

    def _add_members(self) -> None:
        items = self._marked()
        self._top(set).update([checked_key(item) for item in items])

    def _set_items(self, items: list[Any]) -> None:
        if len(items) % 2:
            raise FileError("[load] the pickle in the file is damaged: a key has no value")
        target = self._top(dict, OrderedDict, Counter)
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[checked_key(key)] = value

    def _look_up(self, module: str, name: str) -> None:
        full = f"{_MODULES.get(module, module)}.{name}"
        full = _NAMES.get(full, full)
        found = self._globals.get(full)
        if isinstance(found, Missing):
            raise UnsupportedError(
                f"[load] the file has {found.what} ({full}), which Undertow does not have; convert "
                "it to a dense tensor of a common dtype before saving"
            )
        if found is not None:
            self._push(found)
        elif full in self._allowed and not full.startswith(_FORBIDDEN):
            self._push(self._allowed[full])
        else:
            raise refused(full)

    def _look_up_strings(self) -> None:
        module, name = self._several(2)
        if not (isinstance(module, str) and isinstance(name, str)):
            raise FileError("[load] the pickle in the file is damaged: a name is no string")
        self._look_up(module, name)

    def _is_allowed(self, thing: Any) -> bool:
        return any(thing is a for a in self._allowed.values())

    def _spend(self, args: tuple[Any, ...]) -> None:
        """Count what is copied; see Note [hostile pickles]."""
        self._budget -= sum(len(a) for a in args if isinstance(a, _SIZED))
        if self._budget < 0:
            raise FileError("[load] the pickle in the file would fill the memory with copies")

    def _call(self) -> None:
        function, args = self._several(2)
        if type(args) is not tuple:
            raise FileError("[load] the pickle in the file is damaged: a call without arguments")
        if isinstance(function, Global):
            self._spend(args)
            self._push(function.call(*args))
        elif self._is_allowed(function):
            self._push(
                function(*(_CLASSES.get(a.name, a) if isinstance(a, Global) else a for a in args))
            )
        else:
            raise FileError(f"[load] the pickle in the file calls a {type(function).__name__}")

    def _new(self) -> None:
        kind, args = self._several(2)
        if isinstance(kind, type) and self._is_allowed(kind) and type(args) is tuple:
            self._push(kind.__new__(kind, *args))
        else:
            self._stack += [kind, args]
            self._call()

    def _build(self) -> None:
        state = self._pop()
        target = self._top()
        if type(target) is OrderedDict and type(state) is dict:
            # The state of a state_dict is the versions of its modules; nothing else is taken.
            if "_metadata" in state:
                target._metadata = state["_metadata"]  # type: ignore[attr-defined]
        elif type(target) in BUILDS:
            self._spend(state if type(state) is tuple else ())
            BUILDS[type(target)](target, state)
        elif self._is_allowed(type(target)):
            if hasattr(target, "__setstate__"):
                target.__setstate__(state)
            else:
                values, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
                if values:
                    vars(target).update(values)
                for name, value in (slots or {}).items():
                    setattr(target, name, value)
        else:
            raise FileError(f"[load] the pickle in the file changes a {type(target).__name__}")

    def _load_persistent(self) -> None:
        if self._persistent is None:
            raise FileError("[load] the pickle in the file has a storage where none can be")
        self._push(self._persistent(self._pop()))


def mentioned(content: memoryview) -> list[str]:
    """The names of classes and functions in a pickle, of which nothing is run."""
    found: list[str] = []
    texts: list[str] = []
    try:
        for code, arg, _ in pickletools.genops(bytes(content)):
            if isinstance(arg, str) and code.name != "GLOBAL":
                texts.append(arg)
            elif code.name == "GLOBAL":
                found.append(str(arg).replace(" ", "."))
            elif code.name == "STACK_GLOBAL":
                found.append(".".join(texts[-2:]))
    except ValueError as error:
        raise FileError(f"[load] the pickle in the file is damaged: {error}") from error
    pairs = [name.partition(".") for name in found]
    names = [f"{_MODULES.get(module, module)}.{rest}" for module, _, rest in pairs]
    return [_NAMES.get(name, name) for name in names]


def refused(name: str) -> FileError:
    """The error for a name that a file mentions and that is on no list."""
    short = name.removeprefix("builtins.")
    if name.startswith(("torch.nn.", "torch.optim.", "torch.utils.data.")):
        return FileError(
            f"[load] the file asks for {name}: it holds a module or the like, and not its "
            "state_dict(). Nothing of it was run. If you trust the file, ut.load(…, "
            "weights_only=False) reads it; classes of your own have to be allowed besides: "
            "ut.serialization.add_safe_globals([...])"
        )
    return FileError(
        f"[load] the file asks for {name}, which is no part of a checkpoint; nothing of it was "
        f"run. If you trust the file and that name, allow it: "
        f"ut.serialization.add_safe_globals([{short}])"
    )


def brief(thing: Any) -> str:
    """A few words for an error: never all of it, since it may hold itself many times over."""
    if isinstance(thing, (str, bytes)):
        return repr(thing[:60])
    if type(thing) in (int, float, bool, type(None)):
        return repr(thing) if abs(thing or 0) < 10**30 else "a huge number"
    if type(thing) in (tuple, list) and len(thing) <= 8 and all(type(t) is int for t in thing):
        return f"({', '.join(map(brief, thing))})"
    size = f" of {len(thing)}" if isinstance(thing, _SIZED) else ""
    return f"a {type(thing).__name__}{size}"


def checked_key(key: Any) -> Any:
    """`key`, unless hashing it takes for ever; see Note [hostile pickles]."""
    if type(key) is tuple or type(key) is frozenset:
        waiting, seen = [key], 0
        while waiting:
            thing = waiting.pop()
            seen += 1
            if type(thing) is tuple or type(thing) is frozenset:
                waiting += thing
            if seen + len(waiting) > _LONGEST_KEY:
                raise FileError("[load] the pickle in the file has a key that is too long")
    return key


_STOP = ord(".")
# The words of protocols 2 to 5 that describe data.
_WORDS: dict[int, Callable[[Unpickler], Any]] = {
    0x80: Unpickler._protocol,
    0x95: lambda u: u._read(8),  # FRAME: the size of what follows
    ord("("): Unpickler._mark,
    ord("0"): Unpickler._pop,
    ord("1"): Unpickler._marked,
    ord("N"): lambda u: u._push(None),
    0x88: lambda u: u._push(True),
    0x89: lambda u: u._push(False),
    ord("J"): lambda u: u._integer(4),
    ord("K"): lambda u: u._push(u._number(1)),
    ord("M"): lambda u: u._push(u._number(2)),
    0x8A: lambda u: u._integer(u._number(1)),
    0x8B: lambda u: u._integer(u._number(4)),
    ord("G"): lambda u: u._push(struct.unpack(">d", u._read(8))[0]),
    ord("U"): lambda u: u._string(u._number(1)),
    ord("T"): lambda u: u._string(u._number(4)),
    ord("X"): lambda u: u._text(u._number(4)),
    0x8C: lambda u: u._text(u._number(1)),
    0x8D: lambda u: u._text(u._number(8)),
    ord("C"): lambda u: u._push(u._read(u._number(1))),
    ord("B"): lambda u: u._push(u._read(u._number(4))),
    0x8E: lambda u: u._push(u._read(u._number(8))),
    0x96: lambda u: u._push(bytearray(u._read(u._number(8)))),
    ord(")"): lambda u: u._push(()),
    ord("t"): lambda u: u._push(tuple(u._marked())),
    0x85: lambda u: u._push(u._several(1)),
    0x86: lambda u: u._push(u._several(2)),
    0x87: lambda u: u._push(u._several(3)),
    ord("]"): lambda u: u._push([]),
    ord("l"): lambda u: u._push(u._marked()),
    ord("a"): lambda u: u._add([u._pop()]),
    ord("e"): lambda u: u._add(u._marked()),
    ord("}"): lambda u: u._push({}),
    ord("s"): lambda u: u._set_items(list(u._several(2))),
    ord("u"): lambda u: u._set_items(u._marked()),
    0x8F: lambda u: u._push(set()),
    0x90: Unpickler._add_members,
    0x91: lambda u: u._push(frozenset([checked_key(m) for m in u._marked()])),
    ord("q"): lambda u: u._remember(u._number(1)),
    ord("r"): lambda u: u._remember(u._number(4)),
    0x94: lambda u: u._remember(len(u._memo)),
    ord("h"): lambda u: u._recall(u._number(1)),
    ord("j"): lambda u: u._recall(u._number(4)),
    ord("c"): lambda u: u._look_up(u._line(), u._line()),
    0x93: Unpickler._look_up_strings,
    ord("R"): Unpickler._call,
    0x81: Unpickler._new,
    ord("b"): Unpickler._build,
    ord("Q"): Unpickler._load_persistent,
}
