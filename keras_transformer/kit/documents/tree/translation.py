"""Translates documents of any length, a few thousand sentences at a time.

The model translates each distinct sentence once, without its marks (marked.py); sentences longer
than its limit are split (sentences.py). Marks are restored by alignment (placement.py), which the
search returns where it matters.
"""

import dataclasses
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

from keras_transformer.core.vocabulary.spans import Span
from keras_transformer.kit.documents.tree.case import CASE_RULES, Case, case_of, in_sentence_case
from keras_transformer.kit.documents.tree.marked import MarkedSentence
from keras_transformer.kit.documents.tree.placeholders import with_placeholders
from keras_transformer.kit.documents.tree.placement import place
from keras_transformer.kit.documents.tree.regions import regions
from keras_transformer.kit.documents.tree.segments import (
    Mark,
    Part,
    Piece,
    ReviewUnit,
    Segment,
    with_places,
)
from keras_transformer.kit.documents.tree.sentences import (
    MOST_CHARACTERS,
    cut,
    is_unspaced,
    split,
)
from keras_transformer.support.errors import require
from keras_transformer.use.translate.answers import Link

CHUNK_SENTENCES = 2048  # per call: enough to batch sentences of similar length, in little memory


class AlignedText(NamedTuple):
    """A translation, and its alignment with the source."""

    text: str
    links: Sequence[Link] = ()
    confidence: float | None = None  # the probability that it is good, if known
    without_terms: Sequence[str] = ()  # terms of the terminology that it lacks


class Model(NamedTuple):
    """A translator of sentences."""

    # Translates texts, and aligns those for which the second argument says so.
    translate: Callable[[Sequence[str], Sequence[bool]], list[AlignedText]]
    count_subwords: Callable[[Sequence[str]], list[int]]
    limit: int  # maximum subwords of a sentence
    # Whether a text is in the translation memory, and so is not translated by the model.
    knows: Callable[[str], bool] = lambda text: False


class _Sentence(MarkedSentence):
    """A sentence of a segment, and its translation.

    Attributes:
        is_known: whether it is in the translation memory.
        is_whole: whether the memory has it with its placeholders, which then need not be placed.
        case: how its words are capitalized.
        given: the text to translate; for a known sentence, the text as found in the memory.
        translated: its translation; the sentence itself until it is translated.
        is_changed: whether it differs from the sentence.
        confidence: the probability that its translation is good, if known.
        without_terms: terms of the terminology that its translation lacks.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        find_case: Callable[[str], Case],
        knows: Callable[[str], bool],
    ):
        super().__init__(pieces)
        marks = _marks_in(pieces)
        self.is_whole = self.is_known = False
        if any(mark.source is None for mark in marks):
            self.is_whole = self.is_known = _is_plain(marks) and knows(self.text)
        elif not any(mark.text.strip() for mark in marks):
            self.is_known = knows(self.model_text)
        self.given = self.text if self.is_whole else self.model_text
        self.case = Case.SENTENCE if self.is_known else find_case(self.model_text)
        if self.case is not Case.SENTENCE:
            self.given = in_sentence_case(self.model_text)
        self.translated = pieces
        self.is_changed = False
        self.confidence: float | None = None
        self.without_terms: Sequence[str] = ()

    @property
    def needs_alignment(self) -> bool:
        return not self.is_whole and super().needs_alignment

    def take(self, translation: AlignedText) -> None:
        """Takes the translation of `given`; an empty or equal one leaves the sentence unchanged."""
        self.confidence = translation.confidence
        self.without_terms = translation.without_terms
        if translation.text == self.given or not translation.text.strip():
            return
        text = re.sub("[\r\n]", " ", translation.text)  # it must not add a line break
        pieces = [text] if self.is_whole else place(self, text, translation.links)
        if self.case is Case.CAPITALS:
            pieces = [piece if isinstance(piece, Mark) else piece.upper() for piece in pieces]
        self.is_changed = pieces != self.pieces
        self.translated = pieces


@dataclasses.dataclass(frozen=True)
class SentenceAnswer:
    """A sentence of a document, and the position of its translation."""

    source: Annotated[str, "The sentence."]
    translation: Annotated[str, "Its translation."]
    start: Annotated[int, "Unicode code points before its translation."]
    end: Annotated[int, "Unicode code points up to its end."]
    from_memory: Annotated[bool, "From the translation memory."]
    without_terms: Annotated[list[str], "Terms that it lacks: the model found them too improbable."]
    confidence: Annotated[
        float | None, "The probability that it is good; absent without a calibration of the model."
    ] = None


@dataclasses.dataclass
class _Paragraph:
    """A segment, split into sentences.

    `between` has the pieces before, between and after the sentences, one item more than there are
    sentences. `inner` has the parts of the marks that contain language.
    """

    segment: Segment
    spans: list[Span]
    sentences: list[_Sentence]
    between: list[list[Piece]]
    inner: dict[Mark, list["_Part"]]


@dataclasses.dataclass
class _Unit:
    """A review unit, whose segments are split into sentences."""

    unit: ReviewUnit
    parts: list["_Part"]


_Part = str | _Paragraph | _Unit


class DocumentTranslator:
    """Translates documents in one language.

    Args:
        model: translates the sentences.
        language: the language of the text, such as "en", which determines where sentences end.
        case: "auto" translates sentences in capitals, and titles, as if they were written in
            sentence case; "keep" passes the text to the model as written.
        target: the language of the translations, if known.
        review_below: the confidence below which documents mark a translation as doubtful.

    Raises:
        InputError: for any other `case`.
    """

    def __init__(
        self,
        model: Model,
        language: str,
        case: str = "auto",
        target: str | None = None,
        review_below: float = 0.0,
    ):
        require(case in CASE_RULES, "case", f"must be one of {', '.join(CASE_RULES)}", repr(case))
        self.model = model
        self.language = language
        self.case = case
        self.target = target
        self.review_below = review_below

    def translate(self, parts: Iterable[Part]) -> Iterator[str]:
        """Yields strings unchanged and others translated, a few thousand sentences at a time."""
        chunk: list[_Part] = []
        count = 0
        for part in map(self._split, parts):
            count += sum(len(paragraph.sentences) for paragraph in _paragraphs([part]))
            chunk.append(part)
            if count >= CHUNK_SENTENCES:
                yield from self._translated(chunk)
                chunk, count = [], 0
        yield from self._translated(chunk)

    def translate_sentences(
        self, parts: Iterable[str | Segment]
    ) -> tuple[str, list[SentenceAnswer]]:
        """Translates a whole text at once, and lists its sentences.

        Args:
            parts: the parts of plain text (plain.py, wrapped.py), whose segments write each piece
                independently of its neighbours.

        Returns:
            The translation of the text, and its sentences in order.
        """
        chunk = [self._split(part) for part in parts]
        self._translate_paragraphs(list(_paragraphs(chunk)))
        text, answers = "", []
        for part in chunk:
            if isinstance(part, str):
                text += part
                continue
            for sentence, pieces in _pieces(part):
                written = part.segment.written(pieces)
                if sentence is not None:
                    answer = SentenceAnswer(
                        source=sentence.text,
                        translation=written,
                        start=len(text),
                        end=len(text) + len(written),
                        from_memory=sentence.is_known,
                        without_terms=list(sentence.without_terms),
                        confidence=sentence.confidence,
                    )
                    answers.append(answer)
                text += written
        return text, answers

    def _split(self, part: Part) -> _Part:
        """Splits the segments of a part into sentences."""
        if isinstance(part, ReviewUnit):
            return _Unit(part, [self._split(inner) for inner in part.parts])
        return part if isinstance(part, str) else self._paragraph(part)

    def _paragraph(self, segment: Segment) -> _Paragraph:
        """Splits a segment into sentences; none begins within a mark."""
        segment = with_placeholders(segment)
        text = segment.text
        within, tabs = _places_within(segment.pieces), _places_after_tabs(segment.pieces)
        spans: list[Span] = []
        found = split(text, self.language, tabs)
        is_plain = len(found) > 1 and _is_plain(_marks_in(segment.pieces))
        if is_plain and self.model.knows(text):  # the memory has them as one sentence
            found = [(found[0][0], found[-1][1])]
        for start, end in found:
            if spans and start in within:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((start, end))
        inner = {
            mark: [self._split(part) for part in mark.parts]
            for mark in _marks_in(segment.pieces)
            if mark.parts
        }
        return _Paragraph(segment, spans, *self._sentences(segment, spans), inner)

    def _sentences(
        self, segment: Segment, spans: list[Span]
    ) -> tuple[list[_Sentence], list[list[Piece]]]:
        """Returns the sentences of a segment, and the pieces before, between and after them."""
        found = regions(segment.pieces, spans)
        knows = self.model.knows
        return [_Sentence(pieces, self._case_of, knows) for pieces in found[1::2]], found[::2]

    def _case_of(self, text: str) -> Case:
        return Case.SENTENCE if self.case == "keep" else case_of(text, self.language)

    def _translated(self, chunk: Sequence[_Part]) -> Iterator[str]:
        """Translates the paragraphs of a chunk, and yields its parts."""
        self._translate_paragraphs(list(_paragraphs(chunk)))
        yield from map(self._written, chunk)

    def _written(self, part: _Part) -> str:
        """Returns a part as written in its document's format."""
        if isinstance(part, str):
            return part
        if isinstance(part, _Unit):
            text = "".join(map(self._written, part.parts))
            return part.unit.written(text, _confidence(part.parts), self.review_below)
        return self._written_paragraph(part)

    def _written_paragraph(self, paragraph: _Paragraph) -> str:
        inner = {
            mark: "".join(map(self._written, parts)) for mark, parts in paragraph.inner.items()
        }
        is_changed = any(sentence.is_changed for sentence in paragraph.sentences) or any(
            written != mark.source for mark, written in inner.items()
        )
        if paragraph.segment.source and not is_changed:
            return paragraph.segment.source
        pieces = [piece for _, some in _pieces(paragraph) for piece in some]
        return paragraph.segment.written(
            [
                dataclasses.replace(piece, source=inner[piece]) if piece in inner else piece
                for piece in pieces
            ]
        )

    def _translate_paragraphs(self, paragraphs: Sequence[_Paragraph]) -> None:
        """Translates the sentences of paragraphs."""
        self._fit(paragraphs)
        sentences = [sentence for paragraph in paragraphs for sentence in paragraph.sentences]
        sentences = [sentence for sentence in sentences if sentence.has_language]
        for start in range(0, len(sentences), CHUNK_SENTENCES):
            self._translate(sentences[start : start + CHUNK_SENTENCES])

    def _fit(self, paragraphs: Sequence[_Paragraph]) -> None:
        """Splits sentences that are too long for the model."""
        limit = self.model.limit
        sentences = [sentence for paragraph in paragraphs for sentence in paragraph.sentences]
        texts = {sentence.given for sentence in sentences}
        # An ASCII character has at most one subword; there may be one more for the beginning.
        fitting = {text for text in texts if text.isascii() and len(text) < limit}
        fitting.update(sentence.given for sentence in sentences if sentence.is_known)
        counted = [text for text in texts - fitting if len(text) <= limit * MOST_CHARACTERS]
        counts = zip(counted, self.model.count_subwords(counted), strict=True)
        fitting.update(text for text, count in counts if count <= limit)
        for paragraph in paragraphs:
            if not all(sentence.given in fitting for sentence in paragraph.sentences):
                self._cut(paragraph, fitting)

    def _cut(self, paragraph: _Paragraph, fitting: Container[str]) -> None:
        """Splits the sentences of a paragraph that are too long."""
        text = paragraph.segment.text
        within = _places_within(paragraph.segment.pieces)

        def count_subwords(spans: list[Span]) -> list[int]:
            return self.model.count_subwords([text[start:end] for start, end in spans])

        spans: list[Span] = []
        for span, sentence in zip(paragraph.spans, paragraph.sentences, strict=True):
            if sentence.given in fitting:
                spans.append(span)
            else:
                spans += cut(text, span, self.model.limit, count_subwords, within)
        paragraph.spans = spans
        paragraph.sentences, paragraph.between = self._sentences(paragraph.segment, spans)

    def _translate(self, sentences: Sequence[_Sentence]) -> None:
        """Translates sentences, each distinct one once."""
        aligned: dict[str, bool] = {}
        for each in sentences:
            aligned[each.given] = aligned.get(each.given, False) or each.needs_alignment
        answers = self.model.translate(list(aligned), list(aligned.values()))
        found = dict(zip(aligned, answers, strict=True))
        for sentence in sentences:
            sentence.take(found[sentence.given])


def _marks_in(pieces: Iterable[Piece]) -> list[Mark]:
    return [piece for piece in pieces if isinstance(piece, Mark)]


def _is_plain(marks: Sequence[Mark]) -> bool:
    """Whether all marks are placeholders or line breaks of plain text."""
    return all(mark.source is None or mark.source.isspace() for mark in marks)


def _places_within(pieces: Iterable[Piece]) -> set[int]:
    """Returns the places within marks in the text of pieces, where no sentence may begin."""
    return {
        place
        for piece, start, end in with_places(pieces)
        if isinstance(piece, Mark)
        for place in range(start + 1, end)
    }


def _places_after_tabs(pieces: Iterable[Piece]) -> list[int]:
    """Returns the places after tabs, which separate columns and thus sentences."""
    return [
        end
        for piece, _, end in with_places(pieces)
        if isinstance(piece, Mark) and piece.text == "\t"
    ]


def _paragraphs(parts: Iterable[_Part]) -> Iterator[_Paragraph]:
    """Yields the paragraphs among parts, and those within their units and marks."""
    for part in parts:
        if isinstance(part, _Unit):
            yield from _paragraphs(part.parts)
        elif isinstance(part, _Paragraph):
            yield part
            for inner in part.inner.values():
                yield from _paragraphs(inner)


def _confidence(parts: Iterable[_Part]) -> float | None:
    """Returns the least confidence in the translation of a sentence, if any is known."""
    sentences = [sentence for paragraph in _paragraphs(parts) for sentence in paragraph.sentences]
    known = [each.confidence for each in sentences if each.confidence is not None]
    return min(known, default=None)


def _pieces(paragraph: _Paragraph) -> Iterator[tuple[_Sentence | None, list[Piece]]]:
    """Yields the output in order: each sentence with its pieces, and None with those between."""
    yield None, paragraph.between[0]
    for sentence, after in zip(paragraph.sentences, paragraph.between[1:], strict=True):
        yield sentence, sentence.translated
        if _needs_space(sentence, after) and sentence is not paragraph.sentences[-1]:
            yield None, [" "]
        yield None, after


def _needs_space(sentence: _Sentence, after: Sequence[Piece]) -> bool:
    """Whether a translation needs a space after it that its source, as in Chinese, does not."""
    if any(isinstance(piece, str) for piece in after) or not sentence.is_changed:
        return False
    texts = [piece for piece in sentence.translated if isinstance(piece, str)]
    last = "".join(texts)[-1:]
    return is_unspaced(sentence.text[-1]) and last != "" and not is_unspaced(last)
