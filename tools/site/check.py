"""Check a built site without a browser: no dead link inside, nothing from elsewhere.

python tools/site/check.py build/site
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page can be linked to by, what it links to, and what a browser would load for it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect addresses and anchors."""
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(filter(None, (given.get("id"), given.get("name"))))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in ("img", "script", "iframe", "source") and given.get("src"):
            self.loads.append(given["src"])
        elif tag == "link" and given.get("rel") not in ("canonical", "author"):
            self.loads.append(given.get("href", ""))


def wrong(site: Path) -> list[str]:
    """One line for each dead link, and for each file that would come from elsewhere."""
    pages = {path.resolve(): Page(path.read_text()) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        here = path.relative_to(site.resolve())
        for address in [*page.links, *page.loads]:
            split = urlsplit(address)
            if split.scheme or split.netloc:
                if address in page.loads and split.scheme != "data":
                    found.append(f"{here}: loads {address} from elsewhere")
                continue
            target = (path.parent / unquote(split.path)).resolve() if split.path else path
            if not target.exists():
                found.append(f"{here}: dead link {address}")
            elif (
                split.fragment
                and target in pages
                and unquote(split.fragment) not in pages[target].anchors
            ):
                found.append(f"{here}: no such place {address}")
    return found


if __name__ == "__main__":
    site = Path(sys.argv[1])
    if not (site / "index.html").exists():
        raise SystemExit(f"{site} has no index.html: build it with `make docs`")
    bad = wrong(site)
    print("\n".join(bad[:50]))
    count = sum(1 for _ in site.rglob("*.html"))
    print(f"{count} pages, {len(bad)} wrong links")
    raise SystemExit(bool(bad))
