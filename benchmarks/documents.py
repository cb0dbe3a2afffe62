"""Measures how much of their structure documents keep when translated, and at what cost.

    python benchmarks/documents.py --model_dir=runs/mine/model \
        --markdown='pages/en/*.md' --html='docs/site/*.html' --po='catalogues/*.po' \
        --source=newstest2014.en.gz --target=newstest2014.de.gz

Prints one JSON line.

- `markdown`, `html`: numbers of documents, and of documents in which another parser finds the same
  structure as in their source (CommonMark tokens, or lxml's element tree); for Markdown, also of
  code spans and {{templates}} that were lost.
- `po`: numbers of entries without a translation, of those that were filled, of those that keep all
  placeholders and roles, and of entries that had a translation and changed.
- `paragraphs`: BLEU of paragraphs, translated as whole texts and sentence by sentence. --source and
  --target have one sentence per line; a paragraph is 1 to 8 lines, joined by spaces.
- `speed`: sentences per second, translating the lines one by one; in turn, as one document of
  one-line paragraphs; and as Markdown in which every fifth line has a bold word. The ratios of
  these to the first are medians over the rounds. `caller_us` is the processor time, in microseconds
  a sentence, of the thread that calls: all work that is not done for several batches at a time.
"""

import argparse
import glob
import json
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from timing import check_positive, log, require, run

# Placeholders of printf and str.format; roles, literals and links of reStructuredText.
KEPT_IN_CATALOGUES = re.compile(
    r"%\(\w+\)[sdif]|%[sdif]|\{\w*\}|:[\w:+.-]+:`[^`]+`|``[^`]+``|https?://[^\s>`)]+"
)
TEMPLATES = re.compile(r"\{\{.*?\}\}")
LONGEST = 8  # lines in a paragraph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--alpha", type=float, default=1.4)
    parser.add_argument("--beam_size", type=int, default=4)
    parser.add_argument("--markdown", help="file name pattern")
    parser.add_argument("--html", help="file name pattern")
    parser.add_argument("--po", help="file name pattern")
    parser.add_argument("--source", help="file with one sentence per line, plain or .gz")
    parser.add_argument("--target", help="translations of --source")
    parser.add_argument("--language", default="en", help="source language")
    parser.add_argument("--lines", type=int, default=10_000, help="number of lines for `speed`")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output_dir", type=Path, help="write translated documents here")
    arguments = parser.parse_args()
    check_positive(arguments, "beam_size", "lines", "rounds")
    are_both = (arguments.source is None) == (arguments.target is None)
    rule = "must be given with --source, and only with it"
    require(are_both, "--target", rule, arguments.target or "none")

    import keras_transformer as kt

    options = {"alpha": arguments.alpha, "beam_size": arguments.beam_size}
    translator = kt.load(arguments.model_dir, **options)
    found = {}
    for format, measure in MEASURES.items():
        pattern = getattr(arguments, format)
        if pattern is not None:
            pairs = translated_files(translator, format, pattern, arguments)
            found[format] = measure(pairs)
            log(f"{format}: {found[format]}")
    if arguments.source is not None:
        sources, targets = lines_of(arguments.source), lines_of(arguments.target)
        found["paragraphs"] = paragraph_scores(translator, sources, targets, arguments.language)
        log(f"paragraphs: {found['paragraphs']}")
        found["speed"] = speed(translator, sources, arguments)
    print(json.dumps(found))


def lines_of(path: str) -> list[str]:
    from keras_transformer.support.files.reading import opened, text_lines

    with opened(path) as file:
        return [line.strip() for line in text_lines(file, path) if line.strip()]


def paragraphs_of(lines: Sequence[str], seed: int = 1) -> Iterator[Sequence[str]]:
    generator, start = random.Random(seed), 0
    while start < len(lines):
        length = generator.randint(1, LONGEST)
        yield lines[start : start + length]
        start += length


def translated_files(translator, format: str, pattern: str, arguments) -> list[tuple[str, str]]:
    """Translates all files that match a pattern: [(document, translation), ...]."""
    paths = sorted(Path(path) for path in glob.glob(pattern, recursive=True))
    require(paths, f"--{format}", "must be a pattern of files", pattern)
    pairs = []
    for path in paths:
        text = path.read_bytes().decode("utf-8")
        translation = translator.translate_document(
            text, format=format, language=arguments.language
        )
        pairs.append((text, translation))
        if arguments.output_dir is not None:
            arguments.output_dir.mkdir(parents=True, exist_ok=True)
            (arguments.output_dir / path.name).write_bytes(translation.encode("utf-8"))
    return pairs


def markdown_measure(pairs: Sequence[tuple[str, str]]) -> dict[str, int]:
    code = [(code_spans(text), code_spans(translation)) for text, translation in pairs]
    templates = [(TEMPLATES.findall(a), TEMPLATES.findall(b)) for a, b in pairs]
    return {
        "documents": len(pairs),
        "same_structure": sum(markdown_blocks(a) == markdown_blocks(b) for a, b in pairs),
        "code_spans": sum(len(a) for a, _ in code),
        "code_spans_lost": lost(code),
        "templates": sum(len(a) for a, _ in templates),
        "templates_lost": lost(templates),
    }


def markdown_blocks(text: str) -> list[list[tuple]]:
    """Returns a document's blocks, each with its sorted inline elements but without its text."""
    from markdown_it import MarkdownIt

    blocks: list[list[tuple]] = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        if token.type == "inline":
            blocks.append(sorted(inline_kinds(token.children)))
        else:
            blocks.append([(token.type, token.tag, token.markup, token.content)])
    return blocks


def inline_kinds(tokens) -> list[tuple]:
    """Returns emphasis, links, images and code: their kind, and content that is not language."""
    kinds = []
    for token in tokens:
        if token.type not in ("text", "text_special", "softbreak", "hardbreak"):
            attributes = {name: value for name, value in token.attrs.items() if name != "alt"}
            content = "" if token.type == "image" else token.content
            kinds.append((token.type, token.tag, str(attributes), content))
    return kinds


def code_spans(text: str) -> list[str]:
    from markdown_it import MarkdownIt

    spans = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        spans += [child.content for child in token.children or [] if child.type == "code_inline"]
    return spans


def lost(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> int:
    """Counts the items of the first lists that are missing from the second ones."""
    return sum((Counter(before) - Counter(after)).total() for before, after in pairs)


def html_measure(pairs: Sequence[tuple[str, str]]) -> dict[str, int]:
    same = sum(element_tree(text) == element_tree(translation) for text, translation in pairs)
    with_text = [(blocks_with_text(a), blocks_with_text(b)) for a, b in pairs]
    return {
        "documents": len(pairs),
        "same_tree": same,
        "blocks_with_text": sum(a for a, _ in with_text),
        "blocks_without_it_after": sum(max(0, a - b) for a, b in with_text),
    }


def element_tree(page: str) -> list[list]:
    """Returns the elements in each block of a page, with their attributes, sorted.

    Within a sentence, tags follow the words they enclose, so their order may change.
    """
    from lxml.html import defs, document_fromstring

    inline = defs.special_inline_tags | defs.phrase_tags | defs.font_style_tags | {"math"}
    blocks: list[list] = [[]]
    for element in document_fromstring(page.encode("utf-8")).iter():
        if any(parent.tag == "math" for parent in element.iterancestors()):
            continue  # a formula moves as a whole
        attributes = dict(element.attrib)
        for name in ("alt", "title", "placeholder"):  # these are translated
            attributes.pop(name, None)
        if element.tag not in inline:
            blocks.append([])
        blocks[-1].append((str(element.tag), sorted(attributes.items())))
    return [sorted(block) for block in blocks]


def blocks_with_text(page: str) -> int:
    from lxml.html import document_fromstring

    blocks = ("p", "li", "td", "th", "h1", "h2", "h3", "h4", "dt", "dd", "title")
    elements = document_fromstring(page.encode("utf-8")).iter(*blocks)
    return sum(bool(element.text_content().strip()) for element in elements)


def po_measure(pairs: Sequence[tuple[str, str]]) -> dict[str, int]:
    import polib

    counts = Counter()
    for text, translation in pairs:
        before, after = polib.pofile(text), polib.pofile(translation)
        rule = f"must keep the {len(before)} entries of the catalogue"
        require(len(before) == len(after), "translation", rule, len(after))
        for old, new in zip(before, after, strict=True):
            if (
                old.msgstr
                or (old.msgstr_plural and any(old.msgstr_plural.values()))
                or old.obsolete
            ):
                counts["changed"] += str(old) != str(new)
                continue
            counts["untranslated"] += 1
            filled = new.msgstr or all(new.msgstr_plural.values() or [""])
            counts["filled"] += bool(filled)
            wanted = Counter(KEPT_IN_CATALOGUES.findall(old.msgid))
            given = Counter(KEPT_IN_CATALOGUES.findall(new.msgstr or new.msgstr_plural.get(0, "")))
            counts["with_all_placeholders"] += wanted == given
    names = ("untranslated", "filled", "with_all_placeholders", "changed")
    return {"documents": len(pairs), **{name: counts[name] for name in names}}


MEASURES: dict[str, Callable] = {
    "markdown": markdown_measure,
    "html": html_measure,
    "po": po_measure,
}


def paragraph_scores(
    translator, sources: Sequence[str], targets: Sequence[str], language: str
) -> dict[str, float]:
    import sacrebleu

    lines = [beams[0].text for beams in translator.translate(sources)]
    text = "\n".join(" ".join(paragraph) for paragraph in paragraphs_of(sources))
    documents = translator.translate_document(text, language=language).split("\n")
    references = [" ".join(paragraph) for paragraph in paragraphs_of(targets)]
    by_sentence = [" ".join(paragraph) for paragraph in paragraphs_of(lines)]

    def bleu(translations):
        return round(sacrebleu.corpus_bleu(translations, [references]).score, 2)

    return {
        "paragraphs": len(references),
        "sentences": len(sources),
        "bleu_of_documents": bleu(documents),
        "bleu_of_sentences": bleu(by_sentence),
    }


def speed(translator, sources: Sequence[str], arguments) -> dict[str, float]:
    from keras_transformer.use.translate.search_request import SearchRequest

    repeats = -(-arguments.lines // len(sources))
    # A document's repeated sentences are translated only once: a number makes each one unique.
    lines = [f"{number} {line}" for number in range(repeats) for line in sources]
    lines = lines[: arguments.lines]
    text = "\n".join(lines)
    marked = "\n\n".join(with_bold(line) if i % 5 == 0 else line for i, line in enumerate(lines))
    language = arguments.language
    calls = {
        # As documents do it: without scores, and only the best translation.
        "lines": lambda: translator.search(SearchRequest(lines, guaranteed=1, scores=False)),
        "documents": lambda: translator.translate_document(text, language=language),
        "marked": lambda: translator.translate_document(marked, "markdown", language),
    }
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    of_caller: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(arguments.rounds + 1):
        for name, call in calls.items():
            begun, begun_in_thread = time.perf_counter(), time.thread_time()
            call()
            taken = time.perf_counter() - begun
            taken_in_thread = time.thread_time() - begun_in_thread
            log(f"round {number} of {arguments.rounds}, {name}: {taken:.1f} s")
            if number > 0:  # the first round traces graphs
                seconds[name].append(taken)
                of_caller[name].append(taken_in_thread)

    def ratio(name):
        pairs = zip(seconds["lines"], seconds[name], strict=True)
        return round(statistics.median(lines / other for lines, other in pairs), 3)

    return {
        "sentences": len(lines),
        **{name: round(len(lines) / statistics.median(each)) for name, each in seconds.items()},
        "ratios": {name: ratio(name) for name in ("documents", "marked")},
        "caller_us": {name: round(min(of_caller[name]) / len(lines) * 1e6) for name in calls},
    }


def with_bold(line: str) -> str:
    """Makes the middle word of a line bold in Markdown."""
    words = line.split()
    words[len(words) // 2] = f"**{words[len(words) // 2]}**"
    return " ".join(words)


if __name__ == "__main__":
    run(main)
