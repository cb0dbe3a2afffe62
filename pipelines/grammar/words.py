"""Every entry that is neither a noun nor a verb."""

from dataclasses import dataclass

from pipelines.grammar.entries import (
    ACCUSATIVE,
    DATIVE,
    GENITIVE,
    Adjective,
    Adverb,
    Conjunction,
    Determiner,
    Preposition,
)

# english[/comparative], german[/comparative][/attributive stem], noun kinds.
# A comparative of "-" is one the corpus does without; a stem of "=" is never inflected.
_ADJECTIVES = """
    old/older, alt/älter, person animal text image garment vehicle furniture building plant
    young/younger, jung/jünger, person animal
    big/bigger, groß/größer, animal object vehicle furniture building room area plant dish
    small/smaller, klein/kleiner, animal object vehicle furniture building room area plant dish
    new/newer, neu/neuer, text image garment vehicle furniture device instrument building valuable
    good/better, gut/besser, person text food stuff drink instrument event topic
    beautiful/more beautiful, schön/schöner, image garment building area valuable instrument \
            open waterside
    expensive/more expensive, teuer/teurer/teur, garment vehicle device instrument valuable \
            furniture drink
    cheap/cheaper, billig/billiger, garment vehicle device instrument valuable furniture drink
    long/longer, lang/länger, text open event garment
    short/shorter, kurz/kürzer, text event
    heavy/heavier, schwer/schwerer, furniture device object
    light/lighter, leicht/leichter, object
    strong/stronger, stark/stärker, person animal cause
    friendly/friendlier, freundlich/freundlicher, person animal
    happy/happier, glücklich/glücklicher, person
    sad/sadder, traurig/trauriger, person
    tired/-, müde/-/müd, person animal
    ill/-, krank/-, person animal
    rich/richer, reich/reicher, person
    poor/poorer, arm/ärmer, person
    famous/more famous, berühmt/berühmter, person image building text
    clever/more clever, klug/klüger, person animal
    lazy/lazier, faul/fauler, person animal
    brave/braver, mutig/mutiger, person
    polite/more polite, höflich/höflicher, person
    honest/more honest, ehrlich/ehrlicher, person
    nervous/more nervous, nervös/nervöser, person
    angry/-, wütend/-, person
    curious/more curious, neugierig/neugieriger, person animal
    hungry/-, hungrig/-, person animal
    dangerous/more dangerous, gefährlich/gefährlicher, animal cause
    wild/wilder, wild/wilder, animal
    red/-, rot/-, garment vehicle object dish
    blue/-, blau/-, garment vehicle object dish
    green/-, grün/-, garment vehicle object dish
    white/-, weiß/-, animal garment vehicle object dish building
    black/-, schwarz/-, animal garment vehicle object dish
    pink/-, rosa/-/=, garment object
    warm/warmer, warm/wärmer, garment room drink
    cold/colder, kalt/kälter, drink room waterside
    fresh/fresher, frisch/frischer, food stuff drink
    sweet/sweeter, süß/süßer, food drink
    dirty/dirtier, schmutzig/schmutziger, garment vehicle dish room furniture opening
    empty/-, leer/-, dish building room open
    tall/taller, hoch/höher/hoh, plant building
    dark/darker, dunkel/dunkler/dunkl, room area
    modern/more modern, modern/moderner, device building vehicle furniture
    quiet/quieter, ruhig/ruhiger, area room waterside
    wide/wider, breit/breiter, open opening waterside
    interesting/more interesting, interessant/interessanter, text image topic event building
    boring/more boring, langweilig/langweiliger, text event topic
    important/more important, wichtig/wichtiger, text topic event
    difficult/more difficult, schwierig/schwieriger, text topic event
    strange/stranger, seltsam/seltsamer, text topic image person
    German/-, deutsch/-, person text topic
    French/-, französisch/-, person text stuff topic
    broken/-, kaputt/-, device vehicle instrument furniture dish valuable opening
"""


def _adjective(line: str) -> Adjective:
    english, german, kinds = (field.strip() for field in line.split(","))
    word, comparative = english.split("/")
    forms = german.split("/")
    stem = forms[2] if len(forms) > 2 else forms[0]
    # kin take the adjectives of people
    described = tuple(kinds.split()) + (("kin",) if "person" in kinds.split() else ())
    return Adjective(
        word,
        comparative.removeprefix("-"),
        forms[0],
        forms[1].removeprefix("-"),
        stem.removeprefix("="),
        described,
    )


ADJECTIVES = tuple(_adjective(line) for line in _ADJECTIVES.strip().splitlines())
ADJECTIVE = {adjective.english: adjective for adjective in ADJECTIVES}

_WEAK, _MIXED, _STRONG = "weak", "mixed", "strong"
DETERMINERS = (
    Determiner("the", "the", "der", "der", _WEAK, True),
    Determiner("a", "", "ein", "ein", _MIXED, False),
    Determiner("this", "these", "dies", "dies", _WEAK, True),
    Determiner("every", "", "jed", "dies", _WEAK, True),
    Determiner("", "all", "all", "dies", _WEAK, True),
    Determiner("no", "no", "kein", "ein", _MIXED, False),
    Determiner("my", "my", "mein", "ein", _MIXED, True),
    Determiner("his", "his", "sein", "ein", _MIXED, True),
    Determiner("her", "her", "ihr", "ein", _MIXED, True),
    Determiner("our", "our", "unser", "ein", _MIXED, True),
    Determiner("their", "their", "ihr", "ein", _MIXED, True),
    Determiner("", "many", "viel", "dies", _STRONG, False),
    Determiner("", "some", "einig", "dies", _STRONG, False),
    Determiner("", "several", "mehrer", "dies", _STRONG, False),
    Determiner("which", "which", "welch", "dies", _WEAK, False),
    Determiner("", "how many", "wie viel", "dies", _STRONG, False),
)
BARE = Determiner("", "", "", "none", _STRONG, False)
DETERMINER = {entry.english or entry.english_plural: entry for entry in DETERMINERS} | {"": BARE}

PREPOSITIONS = (
    Preposition("in", "in", DATIVE, two_way=True),
    Preposition("on", "auf", DATIVE, two_way=True),
    Preposition("under", "unter", DATIVE, two_way=True),
    Preposition("behind", "hinter", DATIVE, two_way=True),
    Preposition("in front of", "vor", DATIVE, two_way=True),
    Preposition("next to", "neben", DATIVE, two_way=True),
    Preposition("at", "an", DATIVE),
    Preposition("into", "in", ACCUSATIVE),
    Preposition("onto", "auf", ACCUSATIVE),
    Preposition("to", "zu", DATIVE),
    Preposition("out of", "aus", DATIVE),
    Preposition("through", "durch", ACCUSATIVE),
    Preposition("around", "um", ACCUSATIVE),
    Preposition("with", "mit", DATIVE),
    Preposition("without", "ohne", ACCUSATIVE),
    Preposition("after", "nach", DATIVE),
    Preposition("before", "vor", DATIVE),
    Preposition("during", "während", GENITIVE),
    Preposition("because of", "wegen", GENITIVE),
    Preposition("despite", "trotz", GENITIVE),
)
PREPOSITION = {entry.english: entry for entry in PREPOSITIONS}

_LOCATIVES = {
    "building": "in, in front of, behind, next to",
    "room": "in",
    "area": "in",
    "open": "on",
    "waterside": "at",
    "opening": "at",
    "plant": "under, behind, next to",
    "furniture": "on, under, next to",
    "vehicle": "behind, in front of, next to",
}
LOCATIVES = {kind: tuple(names.split(", ")) for kind, names in _LOCATIVES.items()}
# Where a verb of movement may lead, by the noun's kind.
DIRECTIONS = {
    "building": ("into", "to", "out of", "around"),
    "room": ("into", "out of", "through"),
    "area": ("into", "through"),
    "open": ("onto",),
    "waterside": ("to", "around"),
    "plant": ("to", "around"),
    "person": ("to",),
}
# Where something can be put: on, under or next to a piece of furniture.
TARGETS = ("on", "under", "next to")

_PRESENT_PAST = ("present", "past")
_PAST_FUTURE = ("past", "modal")
_TIMES = {
    ("present", "past", "perfect", "modal"): "today=heute",
    ("past",): "yesterday=gestern, last week=letzte Woche, last year=letztes Jahr, "
    "this morning=heute Morgen",
    ("modal",): "tomorrow=morgen, next week=nächste Woche, next year=nächstes Jahr, soon=bald",
    _PRESENT_PAST: "every day=jeden Tag, in the morning=am Morgen, in the evening=am Abend, "
    "at night=in der Nacht, in spring=im Frühling, in summer=im Sommer, in autumn=im Herbst, "
    "in winter=im Winter",
    _PAST_FUTURE: "on Monday=am Montag, on Tuesday=am Dienstag, on Wednesday=am Mittwoch, "
    "on Thursday=am Donnerstag, on Friday=am Freitag, on Saturday=am Samstag, "
    "on Sunday=am Sonntag, in January=im Januar, in March=im März, in July=im Juli, "
    "in October=im Oktober, in December=im Dezember",
}
_FREQUENCIES = {
    _PRESENT_PAST: "always=immer, sometimes=manchmal, usually=meistens, rarely=selten",
    ("present", "past", "perfect"): "often=oft, never=nie",
    ("perfect",): "already=schon, just=gerade",
}
_MANNERS = (
    "quickly=schnell, slowly=langsam, carefully=vorsichtig, quietly=leise, loudly=laut, "
    "patiently=geduldig, happily=fröhlich, well=gut, badly=schlecht, secretly=heimlich, "
    "alone=allein"
)


def _adverbs(listing: str, tenses: tuple[str, ...] = ()) -> tuple[Adverb, ...]:
    pairs = (pair.split("=") for pair in listing.split(", "))
    return tuple(Adverb(english, german, tenses) for english, german in pairs)


TIMES = tuple(adverb for tenses, text in _TIMES.items() for adverb in _adverbs(text, tenses))
FREQUENCIES = tuple(
    adverb for tenses, text in _FREQUENCIES.items() for adverb in _adverbs(text, tenses)
)
MANNERS = _adverbs(_MANNERS)
ADVERB = {adverb.english: adverb for adverb in TIMES + FREQUENCIES + MANNERS}

CONJUNCTIONS = (
    Conjunction("because", "weil", "weil"),
    Conjunction("although", "obwohl", "obwohl", english_comma=True),
    Conjunction("when", "wenn", "als"),
    Conjunction("if", "falls", "falls"),
    Conjunction("while", "während", "während"),
    Conjunction("before", "bevor", "bevor"),
    Conjunction("as soon as", "sobald", "sobald"),
    Conjunction("that", "dass", "dass"),
    Conjunction("whether", "ob", "ob"),
    Conjunction("in order to", "um", "um", infinitive=True),
    Conjunction("to", "", "", infinitive=True),
)
CONJUNCTION = {entry.english: entry for entry in CONJUNCTIONS}
COORDINATORS = {"and": "und", "but": "aber"}

# The adverbial question words; "where" asks for a direction after verbs of movement.
QUESTION_ADVERBS = {"where": "wo", "where (direction)": "wohin", "when": "wann", "why": "warum"}


@dataclass(frozen=True, eq=False, slots=True)
class Pronoun:
    """A personal pronoun with its English object form and German accusative, dative, reflexive.

    The second person is left out because English "you" has three German readings, and "it"
    because its German gender is that of an unnamed noun; "it" is only the empty subject here.
    """

    english: str
    english_object: str
    german: str
    accusative: str
    dative: str
    reflexive: str
    person: int
    plural: bool


PRONOUNS = (
    Pronoun("I", "me", "ich", "mich", "mir", "mich", 1, False),
    Pronoun("he", "him", "er", "ihn", "ihm", "sich", 3, False),
    Pronoun("she", "her", "sie", "sie", "ihr", "sich", 3, False),
    Pronoun("we", "us", "wir", "uns", "uns", "uns", 1, True),
    Pronoun("they", "them", "sie", "sie", "ihnen", "sich", 3, True),
)
EXPLETIVE = Pronoun("it", "it", "es", "es", "", "sich", 3, False)
PRONOUN = {pronoun.english: pronoun for pronoun in (*PRONOUNS, EXPLETIVE)}


@dataclass(frozen=True, eq=False, slots=True)
class Name:
    """A proper name, spelled alike in both languages."""

    spelling: str
    gender: str


NAMES = tuple(Name(spelling, "m") for spelling in ("Peter", "Paul", "Martin", "David")) + tuple(
    Name(spelling, "f") for spelling in ("Anna", "Maria", "Julia", "Laura")
)
NAME = {name.spelling: name for name in NAMES}

# 2 to 12 and the tens are words of their own; the other numbers are built from them.
_UNITS = """
    two=zwei, three=drei, four=vier, five=fünf, six=sechs, seven=sieben, eight=acht, nine=neun,
    ten=zehn, eleven=elf, twelve=zwölf
"""
_TENS = """
    twenty=zwanzig, thirty=dreißig, forty=vierzig, fifty=fünfzig, sixty=sechzig,
    seventy=siebzig, eighty=achtzig, ninety=neunzig
"""


def _number_words(listing: str) -> tuple[dict[int, str], dict[int, str]]:
    """The English and the German words, counted from two."""
    pairs = [pair.strip().split("=") for pair in listing.split(",")]
    english = {number: pair[0] for number, pair in enumerate(pairs, start=2)}
    german = {number: pair[1] for number, pair in enumerate(pairs, start=2)}
    return english, german


ENGLISH_NUMBERS, GERMAN_NUMBERS = _number_words(_UNITS)
ENGLISH_TENS, GERMAN_TENS = _number_words(_TENS)
