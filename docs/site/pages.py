"""Writes the pages of the documentation site to runs/docs: the first step of `make docs`.

They are made from what the repository says already. README, BUILD_NOTES, CONTRIBUTING, the lab
diary, the guides, and what docs/site/reference.py has written of the code, are pages, and their
links become links among pages; the programs describe their flags; the pages of the library name the
modules whose docstrings mkdocstrings shows. A link without a page ends the build with one line.

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
import xml.etree.ElementTree as ElementTree
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
# Pages that list others, which the navigation leaves out: title, introduction, and their pages.
LISTS = {
    "library.md": (
        "Reference of the library",
        "For use from Python, and for exports. [The guide](guides/library.md) has the samples.",
        [
            *("reference/translator.md", "reference/preparation.md", "reference/configuration.md"),
            *("reference/signatures.md", "reference/onnx.md", "api/index.md"),
        ],
    ),
}
PROGRAMS = [
    *("prepare_data", "train", "evaluate", "translate", "export", "serve"),
    *("import_model", "adapt", "average_checkpoints", "attention", "paper_tables", "sweep"),
    "quickstart",
]


def main() -> None:
    """Writes all pages, and the pictures, styles and examples beside them."""
    sys.path.insert(0, str(ROOT))
    pages = {page: with_links(document) for document, page in documents().items()}
    pages |= {"programs.md": programs_page(), "tables.md": tables_page(), **api_pages()}
    pages |= tutorials() | list_pages()
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


def list_pages() -> dict[str, str]:
    """The pages of LISTS."""
    pages = {}
    for name, (title, introduction, listed) in LISTS.items():
        text = f"# {title}\n\n{introduction}\n\n"
        for document, page in documents().items():
            if any(page.startswith(each) for each in listed):
                heading = (ROOT / document).read_text(encoding="utf-8").splitlines()[0]
                text += f"- [{heading.removeprefix('# ')}]({page})\n"
        if "api/index.md" in listed:
            text += "- [Public names, and all modules](api/index.md)\n"
        pages[name] = text
    return pages


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
    """All programs with all their flags, as absl describes them (--helpxml)."""
    from bin.__main__ import PROGRAM_FILES

    if set(PROGRAM_FILES) != set(PROGRAMS):
        sys.exit(f"error: docs/site/pages.py: PROGRAMS must be {list(PROGRAM_FILES)}")
    text = "# Programs and flags\n\nAfter installation, `keras-transformer PROGRAM` is the same as "
    text += "`python bin/PROGRAM.py`. A program prints its result as one line of JSON.\n"
    for name in PROGRAMS:
        described = ElementTree.fromstring(output_of(f"bin/{name}.py", "--helpxml"))
        summary, _, rest = described.findtext("usage").strip().partition("\n\n")
        text += f"\n## {name}\n\n{summary}\n\n{rest}\n\n"
        own = [flag for flag in described.iter("flag") if flag.findtext("key") == "yes"]
        own.sort(key=lambda flag: flag.findtext("name") == "verbosity")  # which all have: last
        text += "".join(flag_text(flag) for flag in own)
    return text


# absl's names of the kinds of flags, in words for readers.
KINDS = {
    "bool": "true or false",
    "int": "whole number",
    "float": "number",
    "string": "text",
    "comma separated list of strings": "separated by commas",
    "multi string": "text, can be repeated",
}


def flag_text(flag: ElementTree.Element) -> str:
    """A flag as an entry of a list of definitions."""
    name, kind = flag.findtext("name"), flag.findtext("type")
    default = flag.findtext("default")
    given = f", {default} by default" if default not in (None, "", "None") else ""
    values = [value.text for value in flag.iter("enum_value")]
    kind = " or ".join(values) or KINDS.get(kind, kind)
    # absl writes the values of an enumeration first: <a|b>: ...
    meaning = re.sub(r"^<[^>]*>: ", "", " ".join(flag.findtext("meaning").split()))
    meaning = meaning.partition("; repeat this option")[0]
    return f"`--{name}` ({kind}{given})\n:   {meaning}\n\n"


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

    packages = ["keras_transformer", *_folders(ROOT / "keras_transformer"), "pipelines"]
    pages = {}
    for package in packages:
        folder = ROOT.joinpath(*package.split("."))
        options = "{members: false, show_root_heading: false}"
        text = f"# {package}\n\n::: {package}\n    options: {options}\n"
        for path in sorted(folder.glob("*.py")):
            if path.name != "__init__.py":
                text += f"\n::: {package}.{path.stem}\n"
        pages[f"api/{package}.md"] = text
    text = "# The library's public names\n\n`import keras_transformer as kt`, and:\n\n"
    for name in sorted(keras_transformer.__all__, key=str.lower):
        if name == "PRESETS":  # a constant stands in the description of its module
            target = "keras_transformer.core.presets"
        else:
            target = f"{getattr(keras_transformer, name).__module__}.{name}"
        text += f"- [`kt.{name}`][{target}]\n"
    text += "\nEvery module has a place on one of these pages:\n\n"
    text += "".join(f"- [{package}]({package}.md)\n" for package in packages)
    return pages | {"api/index.md": text}


def _folders(library: Path) -> list[str]:
    return [f"{library.name}.{path.parent.name}" for path in sorted(library.glob("*/__init__.py"))]


if __name__ == "__main__":
    main()
