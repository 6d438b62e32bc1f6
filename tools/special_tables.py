"""The coefficients of undertow.kernel's Bessel, Airy and normal functions: how they were made.

Each entry is a function that is smooth on an interval, interpolated at the interval's Chebyshev
nodes by a polynomial, or by a quotient of two, in 60 digits; coefficients run from the highest
power down, a quotient's denominator ends with 1. `python tools/special_tables.py` writes
src/undertow/kernel/special_tables.py, and prints the largest relative error of each fit as a
power of two. It needs mpmath.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mpmath as mp

mp.mp.dps = 60
Real = Callable[[mp.mpf], mp.mpf]
TARGET = Path(__file__).parents[1] / "src" / "undertow" / "kernel" / "special_tables.py"
HEAD = '''"""Coefficients of special functions, written and explained by tools/special_tables.py."""

from __future__ import annotations


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split()))

'''


def nodes(low: mp.mpf, high: mp.mpf, count: int) -> list[mp.mpf]:
    """The Chebyshev nodes of an interval."""
    middle, half = (high + low) / 2, (high - low) / 2
    return [middle + half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]


def interpolate(f: Real, low: mp.mpf, high: mp.mpf, above: int, below: int) -> list[list[mp.mpf]]:
    """The coefficients of a polynomial (`below` 1) or of a quotient's two polynomials."""
    size = above + below - 1
    rows, right = mp.matrix(size, size), mp.matrix(size, 1)
    for i, x in enumerate(nodes(low, high, size)):
        right[i] = f(x)
        for j in range(above):
            rows[i, j] = x ** (above - 1 - j)
        for j in range(below - 1):
            rows[i, above + j] = -right[i] * x ** (below - 1 - j)
    found = list(mp.lu_solve(rows, right))
    return [found[:above], [*found[above:], mp.mpf(1)]]


def zero(f: Real, near: float) -> mp.mpf:
    """The zero of a function near a number."""
    return mp.findroot(f, near)


def bessel(kind: str, order: int) -> Real:
    """A Bessel function as a function of x alone."""
    return lambda x: getattr(mp, f"bessel{kind}")(order, x)


def phase(order: int, part: int, edge: float) -> Real:
    """P, or x Q, of Hankel's J = sqrt(2 / (pi x)) (P cos c - Q sin c), by (edge / x)**2."""

    def f(z: mp.mpf) -> mp.mpf:
        x = edge / mp.sqrt(z)
        c = x - order * mp.pi / 2 - mp.pi / 4
        scale = mp.sqrt(mp.pi * x / 2)
        j, y = mp.besselj(order, x) * scale, mp.bessely(order, x) * scale
        p, q = j * mp.cos(c) + y * mp.sin(c), y * mp.cos(c) - j * mp.sin(c)
        return x * q if part else p

    return f


def airy_phase(derivative: int, part: int, edge: float) -> Real:
    """The same of Ai(-y), by (edge / zeta)**2, zeta = 2/3 y**(3/2); of Ai' with its sign."""

    def f(z: mp.mpf) -> mp.mpf:
        zeta = edge / mp.sqrt(z)
        y = mp.cbrt(mp.mpf(3) / 2 * zeta) ** 2
        power = mp.sqrt(mp.sqrt(y))
        c = zeta - mp.pi / 4
        scale = mp.sqrt(mp.pi) * (1 / power if derivative else power)
        a = mp.airyai(-y, derivative=derivative) * scale
        b = mp.airybi(-y, derivative=derivative) * scale
        if derivative:  # Ai' = P sin c - Q cos c, Bi' = P cos c + Q sin c
            p, q = a * mp.sin(c) + b * mp.cos(c), b * mp.sin(c) - a * mp.cos(c)
        else:  # Ai = P cos c + Q sin c, Bi = -P sin c + Q cos c
            p, q = a * mp.cos(c) - b * mp.sin(c), a * mp.sin(c) + b * mp.cos(c)
        return zeta * q if part else p - 1

    return f


class Tables:
    """The text that is written, table by table."""

    def __init__(self) -> None:
        self.text = HEAD

    def put(self, name: str, comment: str, coefficients: list[mp.mpf]) -> None:
        """One tuple."""
        words = [repr(float(c)) for c in coefficients]
        lines = [" ".join(words[i : i + 4]) for i in range(0, len(words), 4)]
        self.text += f"# {comment}\n" if comment else ""
        self.text += f'{name} = _numbers("""\n' + "".join(f"    {x}\n" for x in lines) + '""")\n'

    def fit(
        self, name: str, comment: str, f: Real, low: float, high: float, above: int, below: int = 1
    ) -> None:
        """Interpolate, say how well, and write."""
        ends = mp.mpf(low), mp.mpf(high)
        numerator, denominator = interpolate(f, *ends, above, below)
        worst = mp.mpf(2) ** -99
        for i in range(41):
            x = ends[0] + (ends[1] - ends[0]) * (i + mp.mpf(1) / 3) / 41
            found = mp.polyval(numerator, x) / mp.polyval(denominator, x)
            worst = max(worst, abs(found / f(x) - 1))
        print(f"{name:12} 2**{float(mp.log(worst, 2)):.1f}")
        self.put(name, comment, numerator)
        if below > 1:
            self.put(f"{name}_Q", "", denominator)

    def point(self, name: str, comment: str, z: mp.mpf) -> None:
        """A number in three parts, the first two exact in float32."""
        parts, rest = [], z
        for bits in (24, 24, 53):
            mantissa, exponent = mp.frexp(rest)
            parts.append(mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), exponent - bits))
            rest -= parts[-1]
        self.put(name, comment, parts)

    def around(
        self, name: str, f: Real, near: float, low: float, high: float, above: int
    ) -> mp.mpf:
        """A zero z near a number, and f(z + t) / t."""
        z = zero(f, near)
        self.point(
            f"{name}_AT", f"A zero, and the function over its distance, in {low} to {high}", z
        )
        self.fit(name, "", lambda t: f(z + t) / t if t else mp.diff(f, z), low - z, high - z, above)
        return z


def main() -> None:
    """Everything."""
    t = Tables()
    j0, j1, y0, y1 = bessel("j", 0), bessel("j", 1), bessel("y", 0), bessel("y", 1)
    root = mp.sqrt
    t.fit("J0", "J0(x) by x*x, x to 1.5", lambda z: j0(root(z)), 0, 2.25, 9)
    t.around("J0_1", j0, 2.4, 1.5, 3.96, 17)
    t.around("J0_2", j0, 5.5, 3.96, 7, 18)
    t.fit("J0_P", "P and x Q by (7/x)**2", phase(0, 0, 7), 0, 1, 16)
    t.fit("J0_Q", "", phase(0, 1, 7), 0, 1, 14)
    t.fit("J1", "J1(x) / x by x*x, x to 2", lambda z: j1(root(z)) / root(z), 0, 4, 10)
    t.around("J1_1", j1, 3.8, 2, 5.4, 17)
    t.around("J1_2", j1, 7.0, 5.4, 8.5, 18)
    t.fit("J1_P", "P and x Q by (8.5/x)**2", phase(1, 0, 8.5), 0, 1, 14)
    t.fit("J1_Q", "", phase(1, 1, 8.5), 0, 1, 12)
    z = zero(y0, 0.9)
    t.point("Y0_AT", "The first zero z of Y0", z)
    t.fit("Y0_J", "J0(x) by x*x, x to 2.2", lambda s: j0(root(s)), 0, 4.84, 11)
    t.fit(
        "Y0",
        "(Y0(x) - 2/pi log(x/z) J0(x)) / (x*x - z*z) by x*x",
        lambda s: (y0(root(s)) - 2 / mp.pi * mp.log(root(s) / z) * j0(root(s))) / (s - z * z),
        0,
        4.84,
        10,
    )
    t.around("Y0_1", y0, 3.96, 2.2, 5.5, 26)
    t.around("Y0_2", y0, 7.09, 5.5, 8.5, 18)
    t.fit("Y0_P", "P and x Q by (8.5/x)**2", phase(0, 0, 8.5), 0, 1, 14)
    t.fit("Y0_Q", "", phase(0, 1, 8.5), 0, 1, 12)
    w = zero(y1, 2.2)
    t.point("Y1_AT", "The first zero z of Y1", w)
    t.fit("Y1_J", "J1(x) / x by x*x, x to 3.5", lambda s: j1(root(s)) / root(s), 0, 12.25, 12)
    t.fit(
        "Y1",
        "x (Y1(x) - 2/pi log(x/z) J1(x)) / (x*x - z*z) by x*x",
        lambda s: (
            (y1(root(s)) - 2 / mp.pi * mp.log(root(s) / w) * j1(root(s))) * root(s) / (s - w * w)
        ),
        0,
        12.25,
        12,
    )
    t.around("Y1_1", y1, 5.4, 3.5, 7, 24)
    t.fit("Y1_P", "P and x Q by (7/x)**2", phase(1, 0, 7), 0, 1, 16)
    t.fit("Y1_Q", "", phase(1, 1, 7), 0, 1, 14)
    k0, k1, i0, i1 = bessel("k", 0), bessel("k", 1), bessel("i", 0), bessel("i", 1)
    scale = mp.exp(mp.euler) / 2
    t.fit("K_I0", "I0(x) by x*x, x to 1", lambda s: i0(root(s)), 0, 1, 8)
    t.fit(
        "K0",
        "(K0(x) + log(x e**gamma / 2) I0(x)) / (x*x) by x*x",
        lambda s: (k0(root(s)) + mp.log(root(s) * scale) * i0(root(s))) / s,
        0,
        1,
        8,
    )
    t.fit("K_I1", "I1(x) / x by x*x", lambda s: i1(root(s)) / root(s), 0, 1, 8)
    t.fit(
        "K1",
        "(K1(x) - log(x e**gamma / 2) I1(x) - 1/x) / x by x*x",
        lambda s: (k1(root(s)) - mp.log(root(s) * scale) * i1(root(s)) - 1 / root(s)) / root(s),
        0,
        1,
        8,
    )
    for order, k, offset in ((0, k0, 1.1875), (1, k1, 1.4375)):
        t.fit(
            f"K{order}_FAR",
            f"sqrt(x) exp(x) K{order}(x) - {offset} by 1/x, x from 1",
            lambda s, k=k, offset=offset: k(1 / s) * mp.exp(1 / s) / root(s) - offset,
            0,
            1,
            12,
            12,
        )
    for name, d in (("AI", 0), ("AIP", 1)):

        def ai(x: mp.mpf, d: int = d) -> mp.mpf:
            return mp.airyai(x, derivative=d)

        text = "Ai'" if d else "Ai"
        if d:
            t.around(f"{name}_LOW", ai, -1.02, -2.1, 0, 19)
        else:
            comment = "Ai(x) by x + 1, x from -2.1 to 0"
            t.fit(f"{name}_LOW", comment, lambda s, ai=ai: ai(s - 1), -1.1, 1, 20)
        t.fit(f"{name}_MID", f"{text}(x) by x, x from 0 to 1", ai, 0, 1, 15)

        def grown(s: mp.mpf, d: int = d) -> mp.mpf:
            zeta = 1 / s
            x = mp.cbrt(mp.mpf(3) / 2 * zeta) ** 2
            power = mp.sqrt(mp.sqrt(x))
            value = mp.airyai(x, derivative=d) * mp.exp(zeta)
            return value / power + 0.296875 if d else value * power - 0.28125

        comment = (
            f"{text}(x) x**({'-' if d else ''}1/4) exp(zeta) {'+ 0.296875' if d else '- 0.28125'}"
        )
        t.fit(f"{name}_HIGH", f"{comment} by 1/zeta, x from 1", grown, 0, 1.5, 14, 14)
        edge = mp.mpf(2) / 3 * mp.mpf(2.1) ** 1.5
        ends = 0, (2 / edge) ** 2
        comment = "P - 1 and zeta Q by (2/zeta)**2, x to -2.1"
        t.fit(f"{name}_P", comment, airy_phase(d, 0, 2), *ends, 14, 13)
        t.fit(f"{name}_W", "", airy_phase(d, 1, 2), *ends, 13, 13)
    t.fit(
        "ERFCX",
        "(1 + 2x) exp(x*x) erfc(x) by q = 1 - 7/(x + 3.5), x from 0",
        lambda q: (lambda x: (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x))(7 / (1 - q) - 3.5),
        -1,
        1 - mp.mpf(10) ** -4,
        26,
    )

    def quantile(s: mp.mpf) -> mp.mpf:
        """sqrt(2) s + ndtri(exp(-s*s)), by Newton's method."""
        x = mp.sqrt(2) * s
        for _ in range(60):
            step = (mp.log(mp.ncdf(-x)) + s * s) * mp.ncdf(-x) / mp.npdf(x)
            x += step
            if abs(step) < mp.mpf(10) ** -45:
                break
        return mp.sqrt(2) * s - x

    comment = "sqrt(2) s + ndtri(p) by s - {}, s = sqrt(-log(p)) from there to {}"
    for name, low, high in (("NDTRI", 1.5, 5), ("NDTRI_FAR", 5, 27.5)):
        t.fit(
            name,
            comment.format(low, high),
            lambda u, low=low: quantile(low + u),
            0,
            high - low,
            11,
            11,
        )
    t.fit(
        "INVERSE_FACTORIAL",
        "(1 / gamma(1 + t) - 1) / (t (1 - t)) by t up to 1",
        lambda x: (mp.rgamma(1 + x) - 1) / (x * (1 - x)),
        0,
        1,
        15,
    )
    count = 32
    roots, slopes = [], []
    for i in range(count, 0, -1):
        x = mp.cos(mp.pi * (i - 0.25) / (count + 0.5))
        for _ in range(8):
            slope = count * (mp.legendre(count - 1, x) - x * mp.legendre(count, x)) / (1 - x * x)
            x -= mp.legendre(count, x) / slope
        roots.append(x)
        slopes.append(slope)
    weights = [1 / ((1 - r * r) * d * d) for r, d in zip(roots, slopes, strict=True)]
    t.put("GAUSS", "Gauss's nodes between 0 and 1, and their weights", [(1 + r) / 2 for r in roots])
    t.put("GAUSS_WEIGHT", "", weights)
    TARGET.write_text(t.text)


if __name__ == "__main__":
    main()
