"""PTX as C: `python ptx.py kernel.ptx kernel.so`. The C is compiled for the fake driver, libcuda.c.

Registers are unsigned integers of their width, and an instruction reads them as its type says.
What is not known is an error: nothing is guessed.
"""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CTYPES = {f"s{n}": f"int{n}_t" for n in (8, 16, 32, 64)}
CTYPES |= {f"{k}{n}": f"uint{n}_t" for k in "ub" for n in (8, 16, 32, 64)}
CTYPES |= {"f32": "float", "f64": "double", "pred": "uint8_t", "f16": "uint16_t"}
SPECIAL = {f"%{k}.{x}": f"c->{k}[{i}]" for k in ("ctaid", "nctaid") for i, x in enumerate("xyz")}
SPECIAL |= {"%tid.x": "c->tid", "%ntid.x": "c->ntid", "%tid.y": "0", "%tid.z": "0"}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
COMPARE |= {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
INFIX = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}
ROUND = {"rni": "rint", "rmi": "floor", "rpi": "ceil", "rzi": "trunc"}
FLAGS = ("-Og", "-w", "-fPIC", "-shared", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing")


class Unknown(Exception):
    """An instruction that this translator does not know."""


def width(kind: str) -> int:
    return 8 if kind == "pred" else int(kind[1:])


class Kernel:
    """The translation of one entry."""

    def __init__(self) -> None:
        self.registers: dict[str, str] = {}
        self.params: dict[str, int] = {}
        self.shared: dict[str, int] = {}
        self.shared_size = 0
        self.lines: list[str] = []
        self.tops: list[str] = []
        self.sites = 0

    # Operands ---------------------------------------------------------------------------------
    def name(self, text: str) -> str:
        return "R" + re.sub(r"\W", "_", text[1:])

    def get(self, text: str, kind: str) -> str:
        """An operand as a C value of a type."""
        if text in SPECIAL:
            bits, wide = SPECIAL[text], 32
        elif text[0] == "%":
            found = next(r for r in (text, text.rstrip("0123456789")) if r in self.registers)
            bits, wide = self.name(text), width(self.registers[found])
        elif text[:2] in ("0f", "0F"):
            return f"f_(0x{text[2:]}u)"
        elif text[:2] in ("0d", "0D"):
            return f"d_(0x{text[2:]}ull)"
        elif re.match(r"-?\d", text):
            return f"(({CTYPES[kind]}) {text.removesuffix('U')}{'' if '-' in text else 'u'}ll)"
        elif text in self.params:
            return f"((uint64_t) c->param + {self.params[text]})"
        elif text in self.shared:
            return f"{self.shared[text]}u"
        else:
            return f"((uint64_t) {text.replace('$', '_')})"
        if kind == "f32":
            return f"f_({bits})"
        if kind == "f64":
            return f"d_({bits})"
        return f"(({CTYPES[kind]}) {bits})" if wide else bits

    def put(self, text: str, kind: str, value: str) -> None:
        """A register gets a C value of a type."""
        if kind == "f32":
            value = f"fb({value})"
        elif kind == "f64":
            value = f"db({value})"
        elif kind != "pred":
            value = f"({CTYPES[kind]}) ({value})"
        self.lines.append(f"{self.name(text)} = {value};")

    def place(self, text: str, space: str, size: int, write: bool) -> str:
        base, _, more = text[1:-1].partition("+")
        offset = int(more or 0)
        if space == "param" and base in self.params:
            return f"(c->param + {self.params[base] + offset})"
        at = f"{self.get(base, 'b64' if space != 'shared' else 'u32')} + ({offset})"
        if space == "shared":
            return f"SH(c, {at}, {size}, {int(write)})"
        return at if space == "param" else f"GL(c, {at}, {size})"

    # Instructions -----------------------------------------------------------------------------
    def instruction(self, text: str) -> None:
        guard = re.match(r"@(!?)(%\w+)\s+(.*)", text)
        if guard:
            self.lines.append(f"if ({guard[1]}{self.name(guard[2])}) {{")
            text = guard[3]
        head, _, rest = text.partition(" ")
        op, *parts = head.strip().split(".")
        args = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s|]+", rest)
        method = getattr(self, f"do_{op}", None)
        if method is None:
            raise Unknown(text)
        kinds = [p for p in parts if p in CTYPES]
        method(parts, kinds, args)
        if guard:
            self.lines.append("}")

    def do_ld(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        self.move_memory(parts, kinds[0], args[0], args[1], False)

    do_ldu = do_ld

    def do_st(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        self.move_memory(parts, kinds[0], args[1], args[0], True)

    def move_memory(self, parts: list[str], kind: str, given: str, where: str, write: bool) -> None:
        space = next((p for p in parts if p in ("param", "global", "shared", "const", "local")), "")
        values = given.strip("{}").replace(" ", "").split(",")
        size = width(kind) // 8
        at = self.place(where, space, size * len(values), write)
        self.lines.append(f"{{ uint8_t *at = (uint8_t *) ({at});")
        for i, value in enumerate(values):
            bits = "u" + kind[1:] if kind[0] in "fb" else kind
            if write:
                source = self.get(value, bits) if value[0] == "%" else self.raw(value, kind)
                self.lines.append(f"{CTYPES[bits]} v{i} = {source};")
                self.lines.append(f"memcpy(at + {i * size}, &v{i}, {size});")
            else:
                self.lines.append(f"{CTYPES[bits]} v{i}; memcpy(&v{i}, at + {i * size}, {size});")
        for i, value in enumerate(values):
            if not write:
                self.lines.append(f"{self.name(value)} = v{i};")
        self.lines.append("}")

    def raw(self, value: str, kind: str) -> str:
        return (
            f"0x{value[2:]}ull" if value[:2] in ("0f", "0d", "0F", "0D") else self.get(value, kind)
        )

    def do_mov(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        to, source = args
        kind = kinds[0]
        if to[0] == "{" or source[0] == "{":
            packed = to if to[0] == "{" else source
            pieces = packed.strip("{}").replace(" ", "").split(",")
            step = width(kind) // len(pieces)
            if to[0] == "{":
                for i, piece in enumerate(pieces):
                    if piece != "_":
                        self.put(
                            piece, f"u{step}", f"{self.get(source, 'u' + kind[1:])} >> {i * step}"
                        )
            else:
                whole = [
                    f"(uint64_t) {self.get(p, f'u{step}')} << {i * step}"
                    for i, p in enumerate(pieces)
                ]
                self.put(to, "u" + kind[1:], " | ".join(whole))
            return
        bits = "pred" if kind == "pred" else "u" + kind[1:]
        self.put(to, bits, self.raw(source, bits))

    def do_cvta(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        if "shared" in parts:
            raise Unknown("a generic address of shared memory")
        self.put(args[0], kinds[0], self.get(args[1], kinds[0]))

    def infix(self, parts: list[str], kinds: list[str], args: list[str], op: str) -> None:
        a, b = (self.get(x, kinds[0]) for x in args[1:])
        self.put(args[0], kinds[0], f"{a} {op} {b}")

    def do_mul(self, parts: list[str], kinds: list[str], args: list[str], plus: str = "") -> None:
        kind = kinds[0]
        a, b = (self.get(x, kind) for x in args[1:3])
        n = width(kind)
        if "wide" in parts:
            kind = f"{kind[0]}{2 * n}"
            a = f"({CTYPES[kind]}) {a}"
        elif "hi" in parts:
            wide = "__int128" if kind[0] == "s" else "unsigned __int128"
            a, b = f"((({wide}) {a} *", f"{b}) >> {n})"
            self.put(args[0], kind, f"{a} {b}" + (f" + {self.get(plus, kind)}" if plus else ""))
            return
        elif kind[0] in "su":
            a = f"(uint64_t) {a}"
        self.put(args[0], kind, f"{a} * {b}" + (f" + {self.get(plus, kind)}" if plus else ""))

    def do_mad(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        self.do_mul(parts, kinds, args[:3], args[3])

    def do_div(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        kind = kinds[0]
        a, b = (self.get(x, kind) for x in args[1:])
        if kind[0] == "f" and "rn" not in parts:
            raise Unknown("a division that is not exact")
        self.put(args[0], kind, f"{a} / {b}" if kind[0] == "f" else f"div_{CTYPES[kind]}({a}, {b})")

    def do_rem(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        a, b = (self.get(x, kinds[0]) for x in args[1:])
        self.put(args[0], kinds[0], f"rem_{CTYPES[kinds[0]]}({a}, {b})")

    def extreme(self, parts: list[str], kinds: list[str], args: list[str], op: str) -> None:
        kind = kinds[0]
        a, b = (self.get(x, kind) for x in args[1:3])
        if "NaN" in parts or len(args) > 3:
            raise Unknown(f"{op}.NaN")
        if kind[0] == "f":
            self.put(args[0], kind, f"{op}_{CTYPES[kind]}({a}, {b})")
        else:
            self.put(args[0], kind, f"{a} {'<' if op == 'min' else '>'} {b} ? {a} : {b}")

    def do_min(self, *given: list[str]) -> None:
        self.extreme(*given, "min")

    def do_max(self, *given: list[str]) -> None:
        self.extreme(*given, "max")

    def do_fma(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        given = ", ".join(self.get(x, kinds[0]) for x in args[1:])
        self.put(args[0], kinds[0], f"fma{'f' if kinds[0] == 'f32' else ''}({given})")

    def do_sqrt(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        if "rn" not in parts:
            raise Unknown("a root that is not exact")
        f = "f" if kinds[0] == "f32" else ""
        self.put(args[0], kinds[0], f"sqrt{f}({self.get(args[1], kinds[0])})")

    def do_rcp(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        if "rn" not in parts:
            raise Unknown("a reciprocal that is not exact")
        self.put(args[0], kinds[0], f"1 / {self.get(args[1], kinds[0])}")

    def do_abs(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        kind, x = kinds[0], self.get(args[1], kinds[0])
        if kind[0] == "f":
            self.put(args[0], kind, f"fabs{'f' if kind == 'f32' else ''}({x})")
        else:
            self.put(args[0], kind, f"{x} < 0 ? -{x} : {x}")

    def do_neg(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        self.put(args[0], kinds[0], f"-{self.get(args[1], kinds[0])}")

    def do_copysign(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        sign, size = (self.get(x, kinds[0]) for x in args[1:])
        self.put(args[0], kinds[0], f"copysign{'f' if kinds[0] == 'f32' else ''}({size}, {sign})")

    def do_not(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        sign = "!" if kinds[0] == "pred" else "~"
        self.put(args[0], kinds[0], f"{sign}{self.get(args[1], kinds[0])}")

    def shift(self, kinds: list[str], args: list[str], op: str) -> None:
        kind = kinds[0]
        x, by, n = self.get(args[1], kind), self.get(args[2], "u32"), width(kind)
        beyond = "0" if op == "<<" or kind[0] != "s" else f"({x} < 0 ? -1 : 0)"
        self.put(args[0], kind, f"{by} >= {n} ? {beyond} : {x} {op} {by}")

    def do_shl(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        self.shift(kinds, args, "<<")

    def do_shr(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        self.shift(kinds, args, ">>")

    def do_shf(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        low, high, by = (self.get(x, "u32") for x in args[1:])
        by = f"({by} & 31)" if "wrap" in parts else f"({by} > 32 ? 32 : {by})"
        both = f"((uint64_t) {high} << 32 | {low})"
        self.put(args[0], "u32", f"{both} << {by} >> 32" if "l" in parts else f"{both} >> {by}")

    def do_prmt(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        given = ", ".join(self.get(x, "u32") for x in args[1:])
        self.put(args[0], "u32", f"prmt({given})")

    def do_lop3(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        given = ", ".join(self.get(x, "u32") for x in args[1:])
        self.put(args[0], "u32", f"lop3({given})")

    def do_bfe(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        if kinds[0][0] != "u":
            raise Unknown("bfe of signed numbers")
        x = self.get(args[1], kinds[0])
        at, count = (self.get(a, "u32") for a in args[2:])
        cut = f"({at} > 63 ? 0 : (uint64_t) {x} >> {at})"
        self.put(args[0], kinds[0], f"{cut} & ({count} > 63 ? ~0ull : (1ull << {count}) - 1)")

    def do_bfi(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        kind = "u" + kinds[0][1:]
        bits, x = (self.get(a, kind) for a in args[1:3])
        at, count = (int(a) for a in args[3:])
        mask = ((1 << count) - 1) << at & ((1 << width(kind)) - 1)
        self.put(args[0], kind, f"({x} & ~{mask}ull) | ({bits} << {at} & {mask}ull)")

    def do_clz(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        x, n = self.get(args[1], "u" + kinds[0][1:]), width(kinds[0])
        self.put(args[0], "u32", f"{x} ? __builtin_clzll({x}) - {64 - n} : {n}")

    def do_popc(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        self.put(args[0], "u32", f"__builtin_popcountll({self.get(args[1], 'u' + kinds[0][1:])})")

    def do_selp(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        bits = "u" + kinds[0][1:]
        a, b = (self.raw(x, bits) for x in args[1:3])
        self.put(args[0], bits, f"{self.name(args[3])} ? {a} : {b}")

    def do_setp(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        kind, how = kinds[0], parts[0]
        # `setp.lt.s32 p|q, …` has two results; the second is not used by compilers here.
        a, b = (self.get(x, kind) for x in args[1:3])
        if how in ("nan", "num"):
            text = f"({'!' if how == 'num' else ''}({a} != {a} || {b} != {b}))"
        elif kind[0] == "f" and how in ("equ", "neu", "ltu", "leu", "gtu", "geu"):
            text = f"({a} != {a} || {b} != {b} || {a} {COMPARE[how[:-1]]} {b})"
        elif kind[0] == "f" and how == "ne":
            text = f"({a} == {a} && {b} == {b} && {a} != {b})"
        else:
            text = f"({a} {COMPARE[how]} {b})"
        joined = next((p for p in parts[1:] if p in ("and", "or", "xor")), "")
        if joined:
            other = args[3]
            sign = "!" if other[0] == "!" else ""
            text += f" {INFIX[joined]} ({sign}{self.name(other.lstrip('!'))})"
        self.put(args[0], "pred", text)

    def do_cvt(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        to, source = kinds
        how = next((p for p in parts if p in ROUND), "")
        if "sat" in parts:
            raise Unknown("cvt.sat")
        x = f"half_({self.get(args[1], 'u16')})" if source == "f16" else self.get(args[1], source)
        if how:
            x = f"{ROUND[how]}{'f' if source == 'f32' else ''}({x})"
        if source[0] == "f" and to[0] in "su":
            x = f"to_{CTYPES[to]}({x})"
        elif to == "f16":
            x = f"hb({x})"
        elif to[0] == "f":
            x = f"({CTYPES[to]}) {x}"
        self.put(args[0], to, x)

    def do_bra(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        self.lines.append(f"goto {args[0].replace('$', 'L')};")

    def do_ret(self, *_: list[str]) -> None:
        self.lines.append("return;")

    do_exit = do_ret

    def do_bar(self, parts: list[str], kinds: list[str], args: list[str]) -> None:
        self.sites += 1
        self.lines.append(f"c->wait(c, {self.sites});")

    do_barrier = do_bar

    # The whole --------------------------------------------------------------------------------
    def variable(self, text: str) -> None:
        """A declaration: `.shared .align 4 .b8 name[1024]`, with values perhaps."""
        head, _, values = text.partition("=")
        space = next(s for s in ("shared", "const", "global", "local") if f".{s}" in head)
        pattern = r"\.(\w+)\s+([\w$]+)(?:\[(\d*)\])?\s*$"
        kind, name, count = re.search(pattern, head.strip()).groups()
        align = int((re.search(r"\.align (\d+)", head) or [0, 8])[1])
        size = width(kind) // 8 * int(count or 1)
        if space == "shared":
            start = -(-self.shared_size // align) * align
            self.shared[name] = start
            self.shared_size = start + size
            return
        entries = [v.strip() for v in values.strip(" {}").split(",") if v.strip()]
        numbers = ", ".join(f"0x{v[2:]}u" if v[:2] in ("0f", "0d") else v for v in entries)
        held = CTYPES["u" + kind[1:]]
        filled = f" = {{{numbers}}}" if entries else ""
        array = f"{held} {name.replace('$', '_')}[{count or 1}]"
        line = f"{array} __attribute__((aligned({align}))){filled};"
        (self.lines if space == "local" else self.tops).append(
            line if space == "local" else "static " + line
        )

    def translated(self, ptx: str) -> str:
        ptx = re.sub(r"//.*", "", ptx).replace("\0", "")
        head, entry, params, body = re.match(
            r"(.*?)\.entry\s+(\w+)\s*\((.*?)\)[^{]*\{(.*)\}\s*$", ptx, re.S
        ).groups()
        for line in re.findall(r"\.(?:const|global|shared)\s[^;]*;", head):
            self.variable(line.rstrip(";"))
        offset = 0
        for p in params.split(","):
            kind, name, count = re.search(r"\.(\w+)\s+(\w+)(?:\[(\d+)\])?\s*$", p.strip()).groups()
            align = int((re.search(r"\.align (\d+)", p) or [0, width(kind) // 8])[1])
            offset = -(-offset // align) * align
            self.params[name] = offset
            offset += width(kind) // 8 * int(count or 1)
        declared = []
        flat = re.sub(r"\{([^{}]*)\}", lambda m: m[0].replace("\n", " "), body)
        for line in re.split(r"[;\n]", flat):
            text = " ".join(line.split())
            label = re.match(r"(\$?\w+):\s*(.*)", text)
            if label:
                self.lines.append(f"{label[1].replace('$', 'L')}:;")
                text = label[2]
            if not text or text in "{}" or text.startswith((".loc", ".pragma", ".file")):
                continue
            if text.startswith(".reg"):
                for kind, name, count in re.findall(r"\.(\w+) (%\w+)(?:<(\d+)>)?", text):
                    self.registers[name] = kind
                    held = CTYPES["u" + kind[1:] if kind[0] in "fbs" else kind]
                    names = [f"{name}{i}" for i in range(int(count))] if count else [name]
                    declared.append(f"{held} {', '.join(map(self.name, names))};")
            elif text.startswith("."):
                self.variable(text)
            else:
                self.instruction(text)
        return "\n".join(
            [
                f'#include "{HERE / "prelude.c"}"',
                *self.tops,
                f'const char *fake_entry = "{entry}";',
                f"const uint32_t fake_shared = {self.shared_size}, fake_waits = {self.sites};",
                f"const uint32_t fake_params = {offset};",
                "void fake_run(struct Ctx *c) {",
                *dict.fromkeys(declared),  # inner blocks declare theirs again
                *self.lines,
                "}\n",
            ]
        )


for _op, _sign in INFIX.items():
    setattr(
        Kernel,
        f"do_{_op}",
        lambda self, parts, kinds, args, sign=_sign: self.infix(parts, kinds, args, sign),
    )


def translate(source: Path, target: Path) -> None:
    """PTX of one kernel as a library for the fake driver."""
    text = Kernel().translated(source.read_text())
    c = target.with_suffix(f".{target.stem[-4:]}.c")
    c.write_text(text)
    new = target.with_suffix(".new.so")
    subprocess.run(["gcc", *FLAGS, "-march=native", "-o", str(new), str(c), "-lm"], check=True)
    new.rename(target)


if __name__ == "__main__":
    translate(Path(sys.argv[1]), Path(sys.argv[2]))
