"""Translates a file or a stream of any length line by line, in bounded memory.

Output line i answers input line i (see files/reading.py); with `n_best` > 1, up to that many lines
do, best first. The columns are separated by tabs:

    [number of the input line, from 1, if n_best > 1] [requested columns] translation

The columns on request are `matches`, three columns: the similarity of the most similar sentence in
the translation memory, that sentence, and its translation, all empty if none is similar; `scores`,
a number; `alignments`, the aligned words as "0-0 1-2", from 0 (Pharaoh format); and `token_scores`,
two columns: the subwords and their log-probabilities, both separated by spaces. With
`target_prefixes`, an input line may contain a tab followed by the beginning of its translation.
"""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keras_transformer.kit.documents.file_translation import (
    CHUNK_LINES,
    WITHOUT_TERMS,
    FileConfig,
    FileTranslation,
    in_chunks,
    lines_of,
)
from keras_transformer.support.errors import require
from keras_transformer.support.fields import option
from keras_transformer.support.output_files import one_line
from keras_transformer.use.translate.answers import Translation

if TYPE_CHECKING:  # it imports TensorFlow, which is not needed to check flags
    from keras_transformer.kit.documents.memory.memory import Match
    from keras_transformer.kit.documents.text_translator import TextTranslator
    from keras_transformer.use.translate.translator import Translator

SHOWN_NUMBERS = 10  # line numbers in a warning


@dataclasses.dataclass(frozen=True)
class LinesConfig(FileConfig):
    """The input, output and options for translating line by line."""

    n_best: int = option(
        1,
        "Translations per line; above 1, each output line begins with the number of its input "
        "line.",
    )
    scores: bool = option(False, "Write the score before each translation, separated by a tab.")
    alignments: bool = option(False, "Write word alignments such as 0-0 1-2 before it.")
    token_scores: bool = option(
        False, "Write its subwords and their log-probabilities, as two columns, before it."
    )
    confidence: bool = option(
        False,
        "Write the probability that the translation is good before it. The model needs a "
        "calibration, by evaluate.",
    )
    matches: bool = option(
        False,
        "Write the most similar sentence of the translation memory before it, as three columns: "
        "the similarity, from 0.75 to 1, the sentence and its translation.",
    )
    target_prefixes: bool = option(
        False,
        "Input lines may contain a tab followed by the beginning of their translation.",
    )

    def __post_init__(self):
        require(self.n_best >= 1, "n_best", "must be at least 1", self.n_best)
        super().__post_init__()


def translate_lines(translator: "Translator", config: LinesConfig) -> dict[str, Any]:
    """Translates all lines of the input; on a terminal, each before the next is read.

    At the end, warnings on stderr list the lines that were truncated, those whose translation
    reached the length limit, and those whose translation lacks a term; or one says that no line has
    a term.

    Returns:
        {"lines"}, and the report of a FileTranslation, for lines.

    Raises:
        InputError: names a line that is not UTF-8; the lines before it are written if the output is
            stdout. An output file is written whole or not at all.
    """
    count = 0
    truncated: list[int] = []  # numbers of lines
    unfinished: list[int] = []
    without_terms: list[int] = []
    counts = translator.new_counts()
    file = FileTranslation(config, counts, translator.checkpoint)
    if config.confidence:
        translator.require_calibration("confidence", True)
    if config.terminology:
        translator.check_terms(config.terminology)
    translator.with_codes([], config.to)  # rejects an unknown language before reading anything
    with file.opened("lines") as (source, target, bar, is_terminal):
        lines = lines_of(source, config.name)
        for chunk in in_chunks(lines, 1 if is_terminal else CHUNK_LINES):
            file.look_for_terms(chunk)
            answers = translate_chunk(translator, chunk, config)
            counts.add(translations[0] for translations in answers)
            matches = matches_of(translator, chunk, config)
            rows = zip(answers, matches, strict=True)
            for number, (translations, similar) in enumerate(rows, count + 1):
                line = format_answer(number, translations, similar, config)
                target.write(line.encode("utf-8"))
                if translations[0].truncated:
                    truncated.append(number)
                if translations[0].unfinished:
                    unfinished.append(number)
                if translations[0].without_terms:
                    without_terms.append(number)
            target.flush()
            count += len(chunk)
            bar.update(len(chunk))
    warn(file, truncated, "the text is longer than the model's limit; its end is not translated")
    warn(file, unfinished, "the translation reached its length limit; its end may be missing")
    warn(file, without_terms, WITHOUT_TERMS)
    file.warn_without_terms()
    return file.result({"lines": count})


def warn(file: FileTranslation, numbers: Sequence[int], reason: str) -> None:
    """Prints a warning about lines of a file on stderr, if there are any."""
    if not numbers:
        return
    listed = ", ".join(map(str, numbers[:SHOWN_NUMBERS]))
    more = len(numbers) - SHOWN_NUMBERS
    if more > 0:
        listed += f" and {more} more"
    file.warn(f"{'line' if len(numbers) == 1 else 'lines'} {listed}: {reason}")


def translate_chunk(
    translator: "Translator", lines: Sequence[str], config: LinesConfig
) -> list[list[Translation]]:
    """Translates lines, which may contain the beginnings of their translations."""
    texts, prefixes = parts_of(lines, config)
    return translator.translate(
        texts,
        target_prefixes=prefixes,
        aligned=config.alignments or config.token_scores,
        scores=config.scores or config.token_scores,
        to=config.to,
        confidence=config.confidence,
        terminology=config.terminology,
    )


def parts_of(lines: Sequence[str], config: LinesConfig) -> tuple[list[str], list[str] | None]:
    """Returns the texts in lines, and the beginnings of their translations, if they have them."""
    if not config.target_prefixes:
        return list(lines), None
    parts = [line.partition("\t") for line in lines]
    return [text for text, _, _ in parts], [prefix for _, _, prefix in parts]


def matches_of(
    translator: "TextTranslator", lines: Sequence[str], config: LinesConfig
) -> list[list["Match"]]:
    """Returns the most similar sentence of the memory for each line, if one is similar."""
    if not config.matches:
        return [[] for _ in lines]
    texts, _ = parts_of(lines, config)
    return translator.matches(texts, to=config.to)


def format_answer(
    number: int,
    translations: Sequence[Translation],
    matches: Sequence["Match"],
    config: LinesConfig,
) -> str:
    """Formats the output for one input line, including line ends."""
    rows = []
    for answer in translations[: config.n_best]:
        columns = [str(number)] if config.n_best > 1 else []
        if config.matches:
            columns += match_columns(matches)
        if config.scores:
            columns.append(f"{answer.score:.6f}")
        if config.confidence:
            columns.append("" if answer.confidence is None else f"{answer.confidence:.3f}")
        if config.alignments:
            columns.append(answer.pair.pharaoh)
        if config.token_scores:
            columns.append(" ".join(answer.pair.target_pieces))
            columns.append(" ".join(f"{score:.6f}" for score in answer.pair.log_probs))
        rows.append("\t".join([*columns, one_line(answer.text)]))
    return "".join(rows)


def match_columns(matches: Sequence["Match"]) -> list[str]:
    """Returns the columns of the most similar sentence in the memory; empty if there is none."""
    if not matches:
        return ["", "", ""]
    best = matches[0]
    return [f"{best.rounded_similarity:.3f}", best.source, best.translation]
