"""The word classes: the rules for a row of lexicon.csv, and the entry made from it.

Every entry pairs one English item with its only German translation. lexicon.csv explains the
features and forms of each class. Entries compare by identity: each is in the lexicon only once.
"""

from typing import Any

from pipelines.grammar.table import Row

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = "nominative", "accusative", "dative", "genitive"
CASES = (NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE)
TENSES = ("present", "past", "perfect")
# The entries built so far, by word class.
Known = dict[str, tuple[Any, ...]]

_GENDERS = {"der": "m", "die": "f", "das": "n"}
_VOWELS = "aeiouyäöü"
_INSEPARABLE = ("be", "er", "ver", "ent", "zer", "ge", "über")
# Stems that need an e before -t and -te: arbeitet, öffnet, regnet.
_LINKING_E = ("d", "t", "ffn", "gn")


class Entry:
    """An English item and its German translation; "" if a language has no word."""

    # The words allowed in the cells, and the minimum and maximum number of forms.
    KINDS = FEATURES = ""
    ENGLISH_FORMS = GERMAN_FORMS = (0, 0)
    NOUN_COLUMNS: tuple[str, ...] = ()

    def __init__(self, row: Row, known: Known) -> None:
        for column in ("english", "german"):
            row.require(row[column], column, "not be empty")
        rule = f"be one of these: {self.KINDS}" if self.KINDS else "be empty"
        row.require(row["kind"] in (self.KINDS.split() or [""]), "kind", rule)
        row.require_words("features", self.FEATURES)
        for column in {"subjects", "objects", "manners"}.difference(self.NOUN_COLUMNS):
            row.require(not row[column], column, "be empty")
        self.name: str = row["english"].removeprefix("-")
        self.english = self.name
        self.german: Any = row["german"].removeprefix("-")
        self.english_forms = row.forms("english_forms", *self.ENGLISH_FORMS)
        self.german_forms = row.forms("german_forms", *self.GERMAN_FORMS)
        self.kind = row["kind"]
        self.features = frozenset(row["features"].split())
        self._read(row, known)

    def _read(self, row: Row, known: Known) -> None:
        """Sets and checks the attributes specific to the word class."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.english!r}, {self.german!r})"


class Noun(Entry):
    """A noun; an empty plural means that the noun is only used in the singular."""

    KINDS = (
        "person kin animal food stuff drink text image garment vehicle furniture dish object "
        "valuable device opening instrument building room area open waterside plant event cause "
        "topic"
    )
    FEATURES = "weak no-profession"
    ENGLISH_FORMS, GERMAN_FORMS = (0, 1), (1, 2)

    def _read(self, row: Row, known: Known) -> None:
        article, _, self.german = self.german.partition(" ")
        rule = "be a noun with its article (der, die or das)"
        row.require(article in _GENDERS and self.german, "german", rule)
        self.gender = _GENDERS[article]
        self.german_plural, genitive = self.german_forms
        english_plural = self.english_forms[0] or self.english + "s"
        self.english_plural = english_plural if self.german_plural else ""
        self.weak = "weak" in self.features
        row.require(self.german_plural or not self.weak, "german_forms", "name the plural")
        self.genitive = genitive or _regular_genitive(self.german, self.gender)
        # Whether English refers to it by "who" rather than "which".
        self.is_person = self.kind in ("person", "kin")


def _regular_genitive(german: str, gender: str) -> str:
    """Returns the genitive of a noun; feminine nouns have no ending.

    It is -es after a sibilant and on one-syllable nouns that end in a consonant, otherwise -s.
    """
    if gender == "f":
        return german
    if german[-1] in "sßxz" or german.endswith("sch"):
        return german + "es"
    syllables = sum(
        letter in _VOWELS and (index == 0 or german[index - 1].lower() not in _VOWELS)
        for index, letter in enumerate(german.lower())
    )
    return german + ("es" if syllables == 1 and german[-1] not in _VOWELS else "s")


class GermanVerb:
    """The principal parts of a verb; empty ones are regular: lernt, lernte, gelernt.

    `present` is the third person singular, `past` the first and third person singular.
    """

    def __init__(
        self, infinitive: str, present: str, past: str, participle: str, marks: str = ""
    ) -> None:
        self.prefix, _, self.infinitive = infinitive.rpartition("|")
        self.lemma = self.prefix + self.infinitive
        stem = self.infinitive.removesuffix("n").removesuffix("e")
        regular = stem + ("et" if stem.endswith(_LINKING_E) else "t")
        bare = self.infinitive.startswith(_INSEPARABLE) or self.infinitive.endswith("ieren")
        self.present = present or regular
        self.past = past or regular + "e"
        self.participle = participle or ("" if bare else "ge") + regular
        self.auxiliary = "sein" if "sein" in marks.split() else "haben"
        self.reflexive = "sich" in marks.split()


class Adverb(Entry):
    """An invariable adverbial, and the tenses (and "modal") with which it is used."""

    KINDS = "time frequency manner question"
    FEATURES = " ".join((*TENSES, "modal"))

    def _read(self, row: Row, known: Known) -> None:
        has_tenses = self.kind in ("time", "frequency")
        rule = f"{'not ' if has_tenses else ''}be empty for the kind {self.kind}"
        row.require(bool(self.features) == has_tenses, "features", rule)


class Verb(Entry):
    """A verb in both languages, with its frame (its kind): the constituents it is used with.

    `particle` follows the English verb (look *for*). `case` and `preposition` govern the German
    object.
    """

    KINDS = (
        "intransitive transitive ditransitive prepositional motion position placement clausal "
        "control copula weather existential"
    )
    FEATURES = "sein dative movable stative no-place unplanned definite-object"
    ENGLISH_FORMS, GERMAN_FORMS = (0, 2), (0, 3)
    NOUN_COLUMNS = ("subjects", "objects", "manners")

    def _read(self, row: Row, known: Known) -> None:
        self.frame = self.kind
        self.base, _, self.particle = self.english.partition(" ")
        past, participle = self.english_forms
        self.past = past or self.base + ("d" if self.base.endswith("e") else "ed")
        self.participle = participle or self.past
        # Whether past and present look alike in English (they read, they read).
        self.invariable = self.past == self.base
        words = [*self.german.removeprefix("sich ").split(), ""]
        rule = "be an infinitive, followed by a preposition where the kind is prepositional"
        row.require(len(words) == 2 + (self.frame == "prepositional"), "german", rule)
        marks = f"{row['features']} {self.german}"
        self.german = GermanVerb(words[0], *self.german_forms, marks)
        self.preposition = words[1]
        self.case = DATIVE if "dative" in self.features else ACCUSATIVE
        objects = self.frame in ("transitive", "ditransitive", "prepositional", "placement")
        subjects = self.frame not in ("copula", "weather", "existential")
        for column, needed in (("subjects", subjects), ("objects", objects)):
            rule = f"{'not ' if needed else ''}be empty for the kind {self.frame}"
            row.require(bool(row[column]) == needed, column, rule)
        self.subjects = _participants(row, "subjects", known["noun"])
        self.objects = _participants(row, "objects", known["noun"])
        manners = {adverb.english: adverb for adverb in known["adverb"] if adverb.kind == "manner"}
        row.require_words("manners", " ".join(manners))
        self.manners = tuple(manners[name] for name in row["manners"].split())


def _participants(row: Row, column: str, nouns: tuple[Noun, ...]) -> tuple[Noun, ...]:
    """Returns the nouns that the cell names, individually or by kind, each once."""
    found: dict[Noun, None] = {}
    for name in row[column].replace("people", "person kin").split():
        named = [noun for noun in nouns if name in (noun.kind, noun.english)]
        row.require(named, column, f"name nouns and kinds of nouns, unlike {name!r}")
        found.update(dict.fromkeys(named))
    return tuple(found)


class Modal(Entry):
    """A modal verb; `past` is empty if English has none."""

    FEATURES = "lexical not-negatable"
    ENGLISH_FORMS, GERMAN_FORMS = (1, 1), (2, 2)

    def _read(self, row: Row, known: Known) -> None:
        (self.past,) = self.english_forms
        self.german = GermanVerb(self.german, *self.german_forms, "")
        self.lexical = "lexical" in self.features
        self.negatable = "not-negatable" not in self.features


class Adjective(Entry):
    """An adjective, its two comparatives ("" for none), and the kinds of nouns it describes.

    `stem` takes the endings (teuer: teur-); with an empty stem, it is never inflected (rosa).
    """

    FEATURES = "attributive uninflected"
    ENGLISH_FORMS, GERMAN_FORMS = (1, 1), (1, 2)
    NOUN_COLUMNS = ("subjects",)

    def _read(self, row: Row, known: Known) -> None:
        (self.english_comparative,) = self.english_forms
        self.german_comparative, stem = self.german_forms
        self.stem = "" if "uninflected" in self.features else stem or self.german
        row.require_words("subjects", Noun.KINDS)
        self.kinds = tuple(row["subjects"].split())


class Determiner(Entry):
    """A determiner. `pattern` names the German article's pattern, `endings` the adjective's."""

    KINDS = "der ein dies none"
    FEATURES = "weak mixed strong singular plural definite quantifier"
    ENGLISH_FORMS = (0, 1)

    def _read(self, row: Row, known: Known) -> None:
        self.pattern = self.kind
        self.english_plural = self.english_forms[0] or self.english
        if "singular" in self.features:
            self.english_plural = ""
        elif "plural" in self.features:
            self.english = ""
        self.endings = row.one_of("features", "weak mixed strong")
        self.definite = "definite" in self.features


class Preposition(Entry):
    """A preposition, and the nouns it is used with."""

    KINDS = "place direction company occasion"
    FEATURES = " ".join((*CASES[1:], "two-way"))
    NOUN_COLUMNS = ("subjects",)

    def _read(self, row: Row, known: Known) -> None:
        self.case = row.one_of("features", " ".join(CASES[1:]))
        self.nouns = _participants(row, "subjects", known["noun"])


class Conjunction(Entry):
    """A conjunction. `german_past` replaces `german` in the past (als instead of wenn)."""

    FEATURES = "infinitive english-comma"
    GERMAN_FORMS = (0, 1)

    def _read(self, row: Row, known: Known) -> None:
        self.german_past = self.german_forms[0] or self.german
        self.infinitive = "infinitive" in self.features


class Pronoun(Entry):
    """A personal pronoun with its English object form and its German forms."""

    KINDS = "1sg 3sg 1pl 3pl"
    ENGLISH_FORMS, GERMAN_FORMS = (1, 1), (3, 3)

    def _read(self, row: Row, known: Known) -> None:
        (self.english_object,) = self.english_forms
        self.accusative, self.dative, self.reflexive = self.german_forms
        self.person, self.plural = int(self.kind[0]), self.kind.endswith("pl")


class Name(Entry):
    """A person's name; its kind is the gender."""

    KINDS = "m f"


class Number(Entry):
    """The words for a cardinal number; its kind is the value."""

    KINDS = " ".join(map(str, range(1, 100)))
