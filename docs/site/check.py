"""Checks the site that was built.

No page loads anything from elsewhere, no link is broken, and no formula ends its paragraph.

python docs/site/check.py runs/site     # the last step of make docs
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself; a link to another site is only followed by the reader.
LOADED = {"audio", "embed", "iframe", "img", "script", "source", "video"}
LINKS_LOADED = {"icon", "manifest", "modulepreload", "preload", "stylesheet"}


EMPTY = {"br", "hr", "img", "input", "link", "meta", "source"}  # they have no end
BLOCKS = (["article"], ["body"], ["div"], ["main"], ["section"])  # a formula's text is in none


class Page(HTMLParser):
    """A page's anchors, and what it loads and links to."""

    def __init__(self, path: Path):
        super().__init__()
        self.path, self.anchors, self.loads, self.links = path, {"", "__search"}, [], []
        self.formulas_alone = 0  # formulas of a line of text that are in no paragraph
        self._open = []  # tags
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        around = [name for name in self._open if name != "span"][-1:]
        if tag == "math" and found.get("display") == "inline" and around in BLOCKS:
            self.formulas_alone += 1
        if tag not in EMPTY:
            self._open.append(tag)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag in LOADED and found.get("src"):
            self.loads.append(found["src"])
        elif tag == "link" and LINKS_LOADED & set(found.get("rel", "").split()):
            self.loads.append(found["href"])
        elif tag == "a" and found.get("href"):
            self.links.append(found["href"])

    def handle_endtag(self, tag):
        while tag in self._open and self._open.pop() != tag:
            pass


def errors(site: Path) -> list[str]:
    """Every link that leads nowhere, address elsewhere that a page loads, and formula alone."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        if page.formulas_alone:
            found.append(f"{name} has a paragraph that ends before a formula in its text")
        elsewhere = [link for link in page.loads if urlsplit(link).netloc]
        found += [f"{name} loads {link}" for link in elsewhere]
        for link in [*page.loads, *page.links]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or name.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{name} links to {link}, which does not exist")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name} links to {link}, where no such place is")
    return found


def main(site: str) -> None:
    """Ends with one line for each error."""
    found = errors(Path(site).resolve())
    if found:
        sys.exit("\n".join(f"error: {line}" for line in found))


if __name__ == "__main__":
    main(*sys.argv[1:])
