"""The lexicon: the entries of lexicon.csv by name, kind and frame."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from keras_transformer.errors import InputError
from pipelines.grammar.entries import TENSES, Entry, GermanVerb, Known, Noun
from pipelines.grammar.table import Row, read_rows

PATH = Path(__file__).with_name("lexicon.csv")
# In the order in which they are built: verbs refer to nouns and adverbs.
_CLASSES = {word_class.__name__.lower(): word_class for word_class in Entry.__subclasses__()}


def read_lexicon(path: Path) -> Known:
    """Reads the table, and returns the entries of each class in the order of the table.

    Raises:
        InputError: if a line is invalid. The error gives the line, the rule and the value.
    """
    rows: dict[str, dict[tuple[str, str], Row]] = {name: {} for name in _CLASSES}
    for row in read_rows(path):
        row.require(row["class"] in rows, "class", f"be one of {', '.join(rows)}")
        first = rows[row["class"]].setdefault((row["english"], row["kind"]), row)
        row.require(first is row, "english", f"be new for its class and kind, unlike {first.where}")
    known: Known = {}
    for name, word_class in _CLASSES.items():
        known[name] = tuple(word_class(row, known) for row in rows[name].values())
    return known


class _Words(dict[Any, Any]):
    """Entries by name; looking up a name that the lexicon lacks raises an InputError."""

    def __missing__(self, name: object) -> Any:
        raise InputError(None, "must have every word that the rules name", f"no {name!r}", PATH)


def _by_name(word_class: str) -> _Words:
    """Returns the first entry with each name: of the two frames of "be", the copula."""
    return _Words({entry.name: entry for entry in reversed(_LEXICON[word_class])})


def _by_kind(word_class: str) -> _Words:
    groups = _Words()
    for entry in _LEXICON[word_class]:
        groups[entry.kind] = (*groups.get(entry.kind, ()), entry)
    return groups


_LEXICON = read_lexicon(PATH)
NOUNS, NOUN, NOUNS_BY_KIND = _LEXICON["noun"], _by_name("noun"), _by_kind("noun")
PEOPLE = NOUNS_BY_KIND["person"] + NOUNS_BY_KIND["kin"]
VERBS, VERB, VERBS_BY_FRAME = _LEXICON["verb"], _by_name("verb"), _by_kind("verb")
EXISTENTIAL = VERBS_BY_FRAME["existential"][0]
BE, HAVE = VERB["be"].german, GermanVerb("haben", "hat", "hatte", "gehabt")
MODALS, MODAL = _LEXICON["modal"], _by_name("modal")
ADJECTIVES, ADJECTIVE = _LEXICON["adjective"], _by_name("adjective")
ADJECTIVES_OF = {
    kind: tuple(adjective for adjective in ADJECTIVES if kind in adjective.kinds)
    for kind in NOUNS_BY_KIND
}
ADVERB, ADVERBS_BY_KIND = _by_name("adverb"), _by_kind("adverb")
ADVERBS_IN = {
    (kind, tense): tuple(adverb for adverb in ADVERBS_BY_KIND[kind] if tense in adverb.features)
    for kind in ("time", "frequency")
    for tense in (*TENSES, "modal")
}
DETERMINER = _by_name("determiner")
BARE = DETERMINER[""]
PREPOSITION, PREPOSITIONS_BY_KIND = _by_name("preposition"), _by_kind("preposition")
CONJUNCTION = _by_name("conjunction")
PRONOUN = _by_name("pronoun")
EXPLETIVE = PRONOUN["it"]
PRONOUNS = tuple(pronoun for pronoun in _LEXICON["pronoun"] if pronoun is not EXPLETIVE)
NAMES, NAME = _LEXICON["name"], _by_name("name")
NUMBER = _Words({int(number.kind): number for number in _LEXICON["number"]})


def nouns_of(names: Iterable[str]) -> tuple[Noun, ...]:
    """Returns the nouns given individually or by kind, each once."""
    groups = (NOUNS_BY_KIND[name] if name in NOUNS_BY_KIND else (NOUN[name],) for name in names)
    return tuple(dict.fromkeys(noun for group in groups for noun in group))
