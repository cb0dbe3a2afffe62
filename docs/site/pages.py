"""Writes the pages of the documentation site to runs/docs: the first step of `make docs`.

They are made from what the repository says already. README, BUILD_NOTES, CONTRIBUTING, the lab
diary, the guides and the reference are pages, and their links become links among pages; the
programs print their flags; the pages of the library name the modules whose docstrings and fields
mkdocstrings shows. A link without a page ends the build with one line.

    python docs/site/pages.py

Pages are plain Markdown, so another generator can take over: Material for MkDocs gets bug fixes
only until May 2027, and Zensical, its successor, reads the same mkdocs.yml.
"""

import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "runs" / "docs"
# Document -> its page; one in a folder of FOLDERS keeps its name.
PAGES = {
    "README.md": "index.md",
    "BUILD_NOTES.md": "design.md",
    "CONTRIBUTING.md": "contributing.md",
    "keras_transformer/README.md": "reading-order.md",
    "docs/diary.md": "diary.md",
}
FOLDERS = ("guides", "reference")  # in docs/
FENCE = re.compile(r"(^```.*?^```\n)", re.M | re.DOTALL)
# The beginnings of pages, and their weights in the search; the first one that matches counts.
# Guides come first: the library has headings of one word, such as docx, which the search prefers.
BOOSTS = {
    "guides/code.md": 0.2,
    "guides/": 8,
    "tutorials/": 2,
    "api/": 0.001,
    "diary.md": 0.2,
    "design.md": 0.2,
}


def main() -> None:
    """Writes all pages, and the pictures, styles and examples beside them."""
    sys.path.insert(0, str(ROOT))
    pages = {page: with_links(document) for document, page in documents().items()}
    pages |= {"programs.md": programs_page(), "tables.md": tables_page(), **api_pages()}
    pages |= tutorials()
    for name in [name for name in pages if name.endswith(".md")]:
        pages[name] = with_boost(name, pages[name])
    shutil.rmtree(TARGET, ignore_errors=True)
    for page, text in pages.items():
        (TARGET / page).parent.mkdir(parents=True, exist_ok=True)
        (TARGET / page).write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    pictures = [file for file in ROOT.glob("docs/*.*") if file.suffix != ".md"]
    for file in [*pictures, ROOT / "docs" / "site" / "site.css"]:
        shutil.copy(file, TARGET)
    shutil.copytree(ROOT / "docs" / "examples", TARGET / "examples")


def documents() -> dict[str, str]:
    """The repository's documents, with the page of each."""
    pages = dict(PAGES)
    for folder in FOLDERS:
        names = sorted(path.name for path in (ROOT / "docs" / folder).glob("*.md"))
        pages |= {f"docs/{folder}/{name}": f"{folder}/{name}" for name in names}
    return pages


def with_boost(page: str, text: str) -> str:
    """The text of a page, with its weight in the search if it has one."""
    for beginning, boost in BOOSTS.items():
        if page.startswith(beginning):
            return f"---\nsearch:\n  boost: {boost}\n---\n\n{text}"
    return text


def outside_code(text: str, pattern: str, replacement) -> str:
    """The text with the pattern replaced everywhere but in blocks of code."""
    parts = FENCE.split(text)
    for number in range(0, len(parts), 2):
        parts[number] = re.sub(pattern, replacement, parts[number], flags=re.M)
    return "".join(parts)


def with_links(document: str, text: str | None = None) -> str:
    """A document's text, as it stands unless it is given, with its links leading to pages."""
    pages = documents()
    page = pages[document]

    def target(link: str) -> str:
        path, _, anchor = link.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(document), path or "."))
        if path in pages or link.startswith("#"):
            return pages.get(path, page) + (f"#{anchor}" if anchor else "")
        if path.startswith("docs/notebooks/"):
            return f"tutorials/{Path(path).stem}.md"
        if path.startswith("docs/"):
            return path.removeprefix("docs/")
        if path == "keras_transformer/kit/paper/measured.json":
            return "tables.md"
        if path.startswith("bin/"):
            return f"programs.md#{Path(path).stem}"
        if path.endswith(".py"):
            folder = ".".join(Path(path).parts[:-1])
            return f"api/{folder}.md#{path.removesuffix('.py').replace('/', '.')}"
        sys.exit(f"error: {document}: a link leads to no page of the site. Received: {link}")

    def relative(link: re.Match) -> str:
        if link[1].startswith("https://"):
            return link[0]
        return f"]({posixpath.relpath(target(link[1]), posixpath.dirname(page) or '.')})"

    if text is None:
        text = (ROOT / document).read_text(encoding="utf-8")
    return outside_code(text, r"\]\(([^)\s]+)\)", relative)


def tutorials() -> dict[str, str | bytes]:
    """The pages of docs/notebooks, with their pictures."""
    from docs.site import notebooks

    files = {}
    for name in notebooks.names():
        files |= {f"tutorials/{file}": content for file, content in notebooks.page(name).items()}
    return files


def output_of(*command: str) -> str:
    """The output of a program of this checkout."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    # absl ends with 1 after a help text.
    if not done.stdout:
        sys.exit(f"error: {' '.join(command)} printed nothing: {done.stderr[-500:]}")
    return done.stdout


def programs_page() -> str:
    """All programs with all their flags: --helpfull without the flags of libraries."""
    from bin.__main__ import PROGRAM_FILES

    text = "# Programs and flags\n\nAfter installation, `keras-transformer PROGRAM` is the same as "
    text += "`python bin/PROGRAM.py`. A program prints its result as [one line of "
    text += "JSON](reference/results.md).\n"
    for name in PROGRAM_FILES:
        own, _, _ = output_of(f"bin/{name}.py", "--helpfull").partition("\nabsl.app:\n")
        text += f"\n## {name}\n\n```text\n{own.strip()}\n```\n"
    return text


def tables_page() -> str:
    """The paper's tables beside ours (bin/paper_tables.py)."""
    text = "# The paper's tables and ours\n\nMade by `python bin/paper_tables.py`.\n"
    printed = output_of("bin/paper_tables.py")
    for line in printed.splitlines():
        if re.fullmatch(r"Table \d", line):
            text += f"\n## {line}\n"
        elif line.startswith("|"):
            text += re.sub(r"(?<=[\w.])\|(?=\w+:)", "; ", line) + "\n"
        elif line.startswith("  "):
            text += f"\n```text\n{line.strip()}\n```\n"
        else:
            text += f"{line}\n"
    text = text.replace("```\n\n```text\n", "")
    return re.sub(r"(^\|.*\n)(?=[^|\n])", r"\1\n", text, flags=re.M)


def api_pages() -> dict[str, str]:
    """A page for each folder of the library, with all its modules, and one of the public names."""
    import keras_transformer

    pages = {}
    for library in ("keras_transformer", "pipelines"):
        for path in sorted(ROOT.glob(f"{library}/**/__init__.py")):
            package = ".".join(path.relative_to(ROOT).parts[:-1])
            # The public names stand in the modules that define them.
            members = "members: false, " if package == "keras_transformer" else ""
            text = f"# {package}\n\n::: {package}\n"
            text += f"    options: {{{members}show_root_heading: false}}\n"
            modules = [file.stem for file in sorted(path.parent.glob("*.py")) if file != path]
            text += "".join(f"\n::: {package}.{module}\n" for module in modules)
            pages[f"api/{package}.md"] = text
    text = "# The library\n\nThe public names, `import keras_transformer as kt`:\n\n"
    for name in sorted(keras_transformer.__all__, key=str.lower):
        if name == "PRESETS":  # a constant does not know its module
            target = "keras_transformer.core.presets.PRESETS"
        else:
            target = f"{getattr(keras_transformer, name).__module__}.{name}"
        text += f"- [`kt.{name}`][{target}]\n"
    text += "\nAll modules, by folder:\n\n"
    text += "".join(f"- [{Path(page).stem}]({page})\n" for page in pages)
    return {**pages, "library.md": text}


if __name__ == "__main__":
    main()
