"""The loop IR as C-like text, as `UNDERTOW_DEBUG=ir` prints it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .ir import Barrier, Branch, Each, Function, Invoke, Moved, Prefetch, Set, State, Store, Value

SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "rem": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "shr": ">>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
}


def render(f: Function) -> str:
    """The kernel as C-like text; GPU dialects are made from the same walk."""
    arguments = [f"{'' if b.written else 'const '}{b.dtype}* {b.name}" for b in f.buffers]
    arguments += [f"{p.dtype} {p.name}" for p in f.params]
    tiles = [f"  shared {t.dtype} {t.name}[{t.count}];" for t in f.tiles]
    lines = [f"void {f.name}({', '.join(arguments)}) {{", *tiles, *_block(f.body, "  "), "}"]
    return "\n".join(lines)


def _block(body: Sequence[Any], indent: str) -> list[str]:
    lines: list[str] = []
    for s in body:
        if isinstance(s, Value):
            lines.append(f"{indent}{s.dtype} {s.name} = {_formula(s)};")
        elif isinstance(s, Store):
            past = "  // streamed" if s.stream else ""
            lines.append(f"{indent}{s.buffer.name}[{s.offset!r}] = {s.value!r};{past}")
        elif isinstance(s, Moved):
            to = f"({s.dtype}*) ((char*) {s.origin.name} + {s.bytes!r})"
            lines.append(f"{indent}{s.dtype}* {s.name} = {to};")
        elif isinstance(s, Prefetch):
            lines.append(f"{indent}prefetch({s.buffer.name} + {s.offset!r});")
        elif isinstance(s, Barrier):
            lines.append(f"{indent}barrier();")
        elif isinstance(s, Invoke):
            given = [f"{a[0].name} + {a[1]!r}" if isinstance(a, tuple) else repr(a) for a in s.args]
            lines.append(f"{indent}((kernel) {s.address!r})({', '.join(given)});")
        elif isinstance(s, State):
            for i, init in enumerate(s.inits):
                lines.append(f"{indent}{init.dtype} {s.name}_{i} = {init!r};")
        elif isinstance(s, Set):
            for i, value in enumerate(s.values):
                lines.append(f"{indent}{s.state.name}_{i} = {value!r};")
        elif isinstance(s, Branch):
            lines += [
                f"{indent}if ({s.condition!r}) {{",
                *_block(s.body, indent + "  "),
                indent + "}",
            ]
        elif isinstance(s, Each):
            head = f"{indent}for (each {s.index.dtype} {s.index.name} with {s.condition!r}) {{"
            lines += [head, *_block(s.body, indent + "  "), indent + "}"]
        else:
            i, n = s.index.name, s.extent
            kind = "" if s.kind == "loop" else s.kind + " "
            lines.append(f"{indent}{kind}for ({s.index.dtype} {i} = 0; {i} < {n!r}; {i}++) {{")
            lines += [*_block(s.body, indent + "  "), indent + "}"]
    return lines


def _formula(v: Value) -> str:
    if v.op == "load":
        ahead = f" + {v.args[2]}" if v.args[2] else ""
        return f"{v.args[0].name}[{v.args[1]!r}{ahead}]"
    if v.op == "get":
        return f"{v.args[0].name}_{v.args[1]}"
    if v.op == "lookup":
        entries = ", ".join(str(entry) for entry in v.args[0])
        return f"({v.dtype}[]) {{{entries}}}[{v.args[1]!r}]"
    if v.op == "select":
        return f"{v.args[0]!r} ? {v.args[1]!r} : {v.args[2]!r}"
    if v.op in ("cast", "bitcast"):
        return f"{'(' if v.op == 'cast' else 'bits('}{v.dtype}) {v.args[0]!r}"
    if v.op in SYMBOLS and len(v.args) == 2:
        return f"{v.args[0]!r} {SYMBOLS[v.op]} {v.args[1]!r}"
    sign = {"neg": "-", "not": "!"}.get(v.op)
    if sign:
        return f"{sign}{v.args[0]!r}"
    return f"{v.op}({', '.join(map(repr, v.args))})"
