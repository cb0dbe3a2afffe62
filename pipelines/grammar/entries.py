"""The kinds of lexical entry.

An English item names exactly one German item, so every entry is a pair. Entries compare by
identity (`eq=False`): the tables hold each of them once, and hashing them stays cheap.
"""

from dataclasses import dataclass

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = "nominative", "accusative", "dative", "genitive"
CASES = (NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE)


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """A noun; an empty plural says that the noun is used in the singular only."""

    english: str
    english_plural: str
    german: str
    gender: str
    german_plural: str
    genitive: str
    weak: bool
    kind: str

    @property
    def is_person(self) -> bool:
        """Whether English refers to it with "who" instead of "which"."""
        return self.kind in ("person", "kin")


@dataclass(frozen=True, eq=False, slots=True)
class Adjective:
    """An adjective, its two comparatives ("" for none) and the noun kinds it describes.

    `stem` takes the attributive endings (teuer: teur-); an empty stem is never inflected (rosa).
    """

    english: str
    english_comparative: str
    german: str
    german_comparative: str
    stem: str
    kinds: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class GermanVerb:
    """Principal parts: `present` is the third person singular, `past` the first and third."""

    prefix: str
    infinitive: str
    present: str
    past: str
    participle: str
    auxiliary: str = "haben"
    reflexive: bool = False

    @property
    def lemma(self) -> str:
        """The dictionary form."""
        return self.prefix + self.infinitive


@dataclass(frozen=True, eq=False, slots=True)
class Verb:
    """A verb of both languages and the frame it is used in.

    `particle` is what follows the English verb (look *for*, turn *on*); it stands behind a
    pronoun when `movable` (turn them on). `case` and `preposition` govern the German object.
    """

    base: str
    past: str
    participle: str
    particle: str
    movable: bool
    german: GermanVerb
    frame: str
    subjects: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    case: str = ACCUSATIVE
    preposition: str = ""
    manners: tuple[str, ...] = ()

    @property
    def english(self) -> str:
        """The dictionary form."""
        return f"{self.base} {self.particle}".strip()

    @property
    def invariable(self) -> bool:
        """Whether past and present look alike in English (they read, they read)."""
        return self.past == self.base


@dataclass(frozen=True, eq=False, slots=True)
class Modal:
    """A modal; `past` is empty where English has none. `lexical` modals take do-support."""

    english: str
    past: str
    german: GermanVerb
    lexical: bool
    negatable: bool


@dataclass(frozen=True, eq=False, slots=True)
class Determiner:
    """A determiner. `pattern` names the German article pattern, `endings` the adjective one."""

    english: str
    english_plural: str
    german: str
    pattern: str
    endings: str
    definite: bool


@dataclass(frozen=True, eq=False, slots=True)
class Preposition:
    """A preposition; a two-way one takes the accusative where the verb names a direction."""

    english: str
    german: str
    case: str
    two_way: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Adverb:
    """An invariable adverbial and the tenses (and "modal") it goes with."""

    english: str
    german: str
    tenses: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Conjunction:
    """A subordinating conjunction. `german_past` is what it becomes in the past (wenn, als).

    `infinitive` ones introduce an infinitive clause; `english_comma` is a comma before a clause
    in final position (German always has one).
    """

    english: str
    german: str
    german_past: str
    infinitive: bool = False
    english_comma: bool = False
