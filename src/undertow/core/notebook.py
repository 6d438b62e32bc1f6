"""What notebooks show of our objects: a line on what it is, and its text below."""

from __future__ import annotations

from html import escape


def as_html(caption: str, text: str) -> str:
    """A box that is open; its text is what `repr` gives.

    >>> as_html("two", "a < b")
    '<details open><summary>two</summary><pre>a &lt; b</pre></details>'
    """
    body = f"<pre>{escape(text)}</pre>"
    return f"<details open><summary>{escape(caption)}</summary>{body}</details>"
