"""Running reductions: cumsum, cumprod, cummax, logcumsumexp, diff, trapezoid."""
