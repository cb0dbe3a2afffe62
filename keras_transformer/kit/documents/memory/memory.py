"""A translation memory: known translations, used instead of the model's.

Sentences match regardless of white space and placeholders (placeholders.py). The translation gets
the placeholders of the sentence:

    Delete  {name}?     finds     Delete {file}?  ->  {file} löschen?     {name} löschen?

A sentence that is not in the memory may resemble one that is: a fuzzy match. Its similarity is
1 - d / n, with the Levenshtein distance d and the length n of the longer sentence, in characters.

Fuzzy matches are only shown: adapting one to another sentence is the translator's work.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from keras_transformer.core.vocabulary.language_codes import CODE_PATTERN
from keras_transformer.kit.documents.tree import placeholders
from keras_transformer.kit.documents.tree.marked import UNSEEN
from keras_transformer.kit.documents.tree.sentences import is_unspaced

LEAST_SIMILARITY = 0.75  # of fuzzy matches, as in most programs for translators
_CODE = re.compile(rf"(?:{CODE_PATTERN} ?)?")
_WORD = re.compile(r"\w+\s*|\W\s*")


class _Form(NamedTuple):
    """A normalized text without its language code, and its distinct placeholders in order."""

    code: str
    text: str
    placeholders: tuple[str, ...]


class _Entry(NamedTuple):
    """A sentence and its translation, with white space normalized."""

    placeholders: tuple[str, ...]  # of the sentence
    source: str
    target: str


class Change(NamedTuple):
    """A part of the difference between two sentences."""

    kind: Literal["equal", "delete", "insert"]  # to get from the first to the second
    text: str


class Match(NamedTuple):
    """A sentence in the memory that resembles another one, with that one's placeholders."""

    source: str
    translation: str
    similarity: float  # from 0 to 1
    difference: list[Change]  # from the sentence in the memory to the other one
    is_correction: bool

    @property
    def rounded_similarity(self) -> float:
        """The similarity with three decimals, rounded down, as 1 is the sentence itself."""
        return math.floor(self.similarity * 1000) / 1000


class TranslationMemory:
    """Looks up translations by their sources.

    Args:
        translations: source -> translation, both one line. The source may begin with the code of a
            target language.
        has_corrections: whether they are corrections, as their matches then say.
    """

    def __init__(self, translations: Mapping[str, str], has_corrections: bool = False):
        self._has_corrections = has_corrections
        self.replace(translations)

    def replace(self, translations: Mapping[str, str]) -> None:
        """Replaces all translations at once; other threads may look up translations meanwhile."""
        entries: dict[str, dict[str, _Entry]] = {}  # by language code and normalized text
        for source, target in translations.items():
            form = _form(source)
            if form.text and target.strip():
                entry = _Entry(form.placeholders, _without_code(source), " ".join(target.split()))
                entries.setdefault(form.code, {})[form.text] = entry
        self._entries = entries

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def find(self, text: str, phrases: Iterable[str] = ()) -> str | None:
        """Finds the translation of a text, which has a language code if the sources do.

        Returns None if the text is not in the memory, or its translation lacks one of `phrases`.
        """
        form = _form(text)
        entry = self._entries.get(form.code, {}).get(form.text)
        if entry is None:
            return None
        found = _with_placeholders(entry.target, entry, form)
        return found if all(phrase in found for phrase in phrases) else None

    def matches(
        self, text: str, count: int = 1, least_similarity: float = LEAST_SIMILARITY
    ) -> list[Match]:
        """Finds the sentences that resemble a text most, which may be the text itself.

        Args:
            text: has a language code if the sources do.
            count: the most matches to return.
            least_similarity: the least similarity of a match, from 0 to 1.

        Returns:
            Matches with the same language code, the most similar ones first.
        """
        from rapidfuzz import process  # takes 10 ms
        from rapidfuzz.distance import Levenshtein

        form = _form(text)
        entries = self._entries.get(form.code, {})
        found = process.extract(
            form.text,
            entries.keys(),
            scorer=Levenshtein.normalized_similarity,
            score_cutoff=least_similarity,
            limit=count,
        )
        matches = []
        for known, similarity, _ in found:
            entry = entries[known]
            source = _with_placeholders(entry.source, entry, form)
            target = _with_placeholders(entry.target, entry, form)
            changes = difference(source, _without_code(text))
            matches.append(Match(source, target, similarity, changes, self._has_corrections))
        return matches


def best_matches(
    memories: Sequence[TranslationMemory],
    text: str,
    count: int = 1,
    least_similarity: float = LEAST_SIMILARITY,
) -> list[Match]:
    """Finds matches in several memories, as `TranslationMemory.matches` does.

    If several know a sentence, the first of them counts.
    """
    found: dict[str, Match] = {}
    for memory in memories:
        for match in memory.matches(text, count, least_similarity):
            found.setdefault(match.source, match)
    return sorted(found.values(), key=lambda match: -match.similarity)[:count]


def is_same_source(first: str, second: str) -> bool:
    """Whether a memory takes two sentences for the same."""
    return _form(first)[:2] == _form(second)[:2]


def difference(first: str, second: str) -> list[Change]:
    """Returns how one sentence becomes another, in words; deletions precede insertions.

    In scripts without spaces between words, each character counts as a word.
    """
    from rapidfuzz.distance import Indel

    before, after = _words(first), _words(second)
    changes: list[Change] = []
    deleted = inserted = ""
    for code in Indel.opcodes([word.strip() for word in before], [word.strip() for word in after]):
        old = "".join(before[code.src_start : code.src_end])
        new = "".join(after[code.dest_start : code.dest_end])
        if code.tag == "equal":
            changes += _changes(deleted, inserted)
            deleted = inserted = ""
            changes.append(Change("equal", new))
        else:
            deleted += old
            inserted += new
    return changes + _changes(deleted, inserted)


def _changes(deleted: str, inserted: str) -> list[Change]:
    """Returns the changes between two equal parts."""
    both = [Change("delete", deleted), Change("insert", inserted)]
    return [change for change in both if change.text]


def _words(text: str) -> list[str]:
    """Returns words and signs, with the spaces after them."""
    words: list[str] = []
    for word in _WORD.findall(text):
        words += word if is_unspaced(word[0]) else [word]
    return words


def _with_placeholders(text: str, entry: _Entry, form: _Form) -> str:
    """Replaces the placeholders of a sentence in the memory by those of a similar one."""
    own = dict(zip(entry.placeholders, form.placeholders, strict=False))
    return placeholders.replaced(text, lambda match: own.get(match[0], match[0]))


def _without_code(text: str) -> str:
    """Returns a text without its language code, with white space normalized."""
    return " ".join(UNSEEN.sub("", text[_CODE.match(text).end() :]).split())


def _form(text: str) -> _Form:
    numbers: dict[str, int] = {}

    def number(match: re.Match) -> str:
        return f"\0{numbers.setdefault(match[0], len(numbers))}\0"

    words = placeholders.replaced(_without_code(text), number)
    code = _CODE.match(text)[0].strip()
    return _Form(code, words, tuple(numbers))
