"""Small, made-up versions of the files that the documentation's commands and samples read."""

import gzip
from pathlib import Path

from keras_transformer.kit.exchange.argos import write_zip
from pipelines.sample_text import sample_pairs
from tests.kit.documents.archives import archive
from tests.kit.exchange.ctranslate2_files import write_package
from tests.kit.exchange.marian_files import write_model, write_vocabulary
from tests.small_text import write_small_text

ROOT = Path(__file__).resolve().parents[2]
LINKED = (
    "bin",
    "benchmarks",
    "tests",
    "pipelines",
    "keras_transformer",
    "constraints.txt",
    "runtime.txt",
)


def write(folder: Path) -> None:
    """Fills an empty folder with programs, text, documents, trees and models."""
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    (folder / "docs").mkdir()
    (folder / "docs/examples").symlink_to(ROOT / "docs/examples")
    activate = folder / ".venv/bin/activate"  # the environment is active already
    activate.parent.mkdir(parents=True)
    activate.touch()
    (activate.parent / "python").symlink_to(folder / "shims" / "python")
    write_text(folder)
    write_documents(folder)
    write_trees(folder)
    write_marian_model(folder / "opus-mt-de-en")
    write_package(folder / "translate-en_de", "en", "de")
    write_zip(folder / "translate-en_de", folder / "translate-en_de.argosmodel")


def write_text(folder: Path) -> None:
    """Writes sentence pairs under all the names that the pages use."""
    write_small_text(folder / "sample_text", 40)
    pairs = [pair for pair in sample_pairs("train") if len(pair[0]) < 60][:60]
    # Splits for validation and tests include pairs short enough for any --max_length on the pages.
    of_all_lengths = [*sorted(pairs, key=lambda pair: len(pair[0]))[:4], *pairs[:4]]
    # Czech and French are German under other names.
    for language, number in (("en", 0), ("de", 1), ("cs", 1), ("fr", 1)):
        lines = [f"{pair[number]}\n" for pair in pairs]
        mixed = [f"{pair[number]}\n" for pair in of_all_lengths]
        for name in ("train", "web", "news", "more", "general", "general.train", "own.train"):
            write_lines(folder / f"{name}.{language}", lines)
        for name in (
            *("test", "test_2016", "test_2016_flickr", "newstest2014"),
            *("general.val", "general.test", "own.test"),
        ):
            write_lines(folder / f"{name}.{language}", mixed)
        write_lines(folder / f"val.{language}", mixed * 13)  # enough to calibrate confidence
    write_lines(folder / "sentences.txt", ["A man rides a bike.\n", "He is old.\n"])
    write_lines(folder / "text.txt", ["A man rides a bike.\n", "He is old.\n"])
    write_lines(folder / "phrases.txt", ["Hund\n"])
    for name in ("terms.txt", "legal.txt", "medical.txt"):
        write_lines(folder / name, ["dog\tHund\n"])
    write_lines(folder / "corpus.tsv", [f"{source}\t{target}\n" for source, target in pairs])
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{a}</seg></tuv><tuv xml:lang="de"><seg>{b}</seg></tuv></tu>'
        for a, b in pairs
    )
    memory = f'<?xml version="1.0"?><tmx version="1.4"><header/><body>{units}</body></tmx>'
    (folder / "memory.tmx").write_text(memory, encoding="utf-8")
    (folder / "corrections.tmx").write_text(memory, encoding="utf-8")
    entries = "".join(f'msgid "{a}"\nmsgstr "{b}"\n\n' for a, b in pairs[:5])
    (folder / "catalogue.po").write_text(CATALOGUE_HEAD + entries, encoding="utf-8")


def write_lines(path: Path, lines: list[str]) -> None:
    """Writes lines to a file, and to a compressed one beside it."""
    content = "".join(lines).encode()
    path.write_bytes(content)
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(content))


CATALOGUE_HEAD = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'


def write_documents(folder: Path) -> None:
    """Writes documents in all formats, under the names that the pages use."""
    page = "# A *red* dog\n\nIt sleeps. See [the page](https://example.com/).\n"
    names = (
        "README.md",
        "notes.md",
        "guide.md",
        "letter.txt",
        "mail.txt",
        "letter.md",
        "docs/one.md",
    )
    for name in (*names, "pages/en/one.md"):
        write_document(folder / name, page)
    html = "<!doctype html><title>A dog</title><p>A <b>red</b> dog sleeps.</p>"
    for name in ("page.html", "docs/page.html", "runs/site/index.html"):
        write_document(folder / name, html)
    for name in ("fr.po", "po/fr/one.po"):
        write_document(folder / name, CATALOGUE_HEAD + 'msgid "a red dog"\nmsgstr ""\n')
    table = 'id,name,description\n1,dog,"A red dog. It sleeps."\n'
    write_document(folder / "products.csv", table)
    cue = "1\n00:00:01,000 --> 00:00:03,500\nA red dog\nsleeps.\n"
    write_document(folder / "film.srt", cue)
    letter = archive("docx", "<w:p><w:r><w:t>A red dog sleeps.</w:t></w:r></w:p>")
    (folder / "letter.docx").write_bytes(letter)
    (folder / "talk.odp").write_bytes(archive("odp", "<text:p>A red dog sleeps.</text:p>"))


def write_document(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_trees(folder: Path) -> None:
    """Writes treebanks of sixteen trees."""
    tree = "(S (NP (DT the) (NN {})) (VP (VBZ {})) (. .))\n"
    nouns, verbs = ("dog", "cat", "bird", "child"), ("sleeps", "sings", "runs", "reads")
    trees = "".join(tree.format(noun, verb) for noun in nouns for verb in verbs)
    names = ("02-21.mrg", "22.mrg", "23.mrg", "agreed.mrg", "train.ptb", "dev.ptb", "test.ptb")
    for name in names:
        (folder / f"{name}.gz").write_bytes(gzip.compress(trees.encode()))


def write_marian_model(folder: Path) -> None:
    """Writes a small model in Marian's format, with random weights."""
    vocabulary = folder.with_name("marian-vocabulary")
    vocabulary.mkdir()
    write_vocabulary(vocabulary)
    write_model(vocabulary, folder)
