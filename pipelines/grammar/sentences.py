"""Random sentences: the constructions, and how often each is used."""

from random import Random

from pipelines.grammar import clauses, lexicon, phrases, tree

_TRANSITIVE = lexicon.VERBS_BY_FRAME["transitive"]
_WITH_OBJECT = _TRANSITIVE + lexicon.VERBS_BY_FRAME["prepositional"]
_EVENTFUL = [
    verb
    for verb in lexicon.VERBS_BY_FRAME["intransitive"] + _WITH_OBJECT
    if "stative" not in verb.features
]
_DONE_TO_PEOPLE = [verb for verb in _WITH_OBJECT if any(noun.is_person for noun in verb.objects)]
_DONE_TO_THINGS = [
    verb for verb in _TRANSITIVE if verb.case == lexicon.ACCUSATIVE and verb not in _DONE_TO_PEOPLE
]
# The verbs that take a noun as their subject, and those that take it as their object.
_DOES = {noun: [verb for verb in _EVENTFUL if noun in verb.subjects] for noun in lexicon.NOUNS}
_DONE_TO = {noun: [verb for verb in _WITH_OBJECT if noun in verb.objects] for noun in lexicon.NOUNS}
_STAYING = [lexicon.VERB[name] for name in ("live", "work", "sleep", "wait", "sit", "stay")]
_PUTTING = [lexicon.VERB[name] for name in ("go", "drive", "put", "place")]
_LOCATED = [*_STAYING, *(lexicon.VERB[name] for name in ("read", "buy", "meet", "rest"))]
_PURPOSEFUL = [lexicon.VERB[name] for name in ("go", "drive", "hurry", "get up", "wait")]
# The nouns found in a place, by the kind of the place.
_CONTENTS = {
    "room": lexicon.nouns_of("furniture device dish opening"),
    "area": lexicon.nouns_of("plant animal building"),
    "building": lexicon.nouns_of("furniture image instrument"),
    "open": lexicon.nouns_of("plant animal"),
    "waterside": lexicon.nouns_of("plant hotel restaurant"),
}
_CONTAINING = [
    noun
    for noun in lexicon.NOUNS
    if noun.kind in _CONTENTS and noun.english not in ("roof", "bridge", "station")
]
_REASONS = {
    "because": 30,
    "although": 15,
    "when": 20,
    "if": 8,
    "while": 10,
    "before": 9,
    "as soon as": 8,
}
# Only causes and conditions: nobody comes "before it is raining".
_WEATHER_REASONS = ("because", "although", "when", "while")
# The conjunctions used with a state: "because he is ill", but not "while he is ill".
_STATE_REASONS = ("because", "although")


def random_sentence(rng: Random) -> tree.Sentence:
    """Returns a tree drawn from all constructions."""
    return phrases.weighted_choice(rng, _CONSTRUCTIONS)(rng)


def _simple(rng: Random) -> tree.Sentence:
    """Returns one main clause with its subject first."""
    return tree.Statement(clauses.plain_clause(rng))


def _fronted(rng: Random) -> tree.Sentence:
    """Returns one main clause that begins with an adverbial of time or cause."""
    clause = clauses.until(
        lambda drawn: drawn.circumstance, lambda: clauses.plain_clause(rng, adverbials=1.0)
    )
    return tree.Statement(clause._replace(circumstance=None), clause.circumstance)


def _coordinated(rng: Random) -> tree.Sentence:
    """Returns two main clauses in the same tense."""
    tense = rng.choice(lexicon.TENSES)
    first = clauses.plain_clause(rng, tense, adverbials=0.15)
    second = clauses.until(
        lambda drawn: drawn.verb is not first.verb,
        lambda: clauses.plain_clause(rng, tense, adverbials=0.15),
    )
    return tree.Coordination(first, lexicon.CONJUNCTION[rng.choice(("and", "but"))], second)


def _existential(rng: Random) -> tree.Sentence:
    """Returns "There are three trees in the garden", or sometimes "Are there ...?"."""
    container = rng.choice(_CONTAINING)
    object = phrases.noun_phrase(
        rng, rng.choice(_CONTENTS[container.kind]), "indefinite", described=0.45
    )
    preposition = lexicon.PREPOSITION["in"]
    if container.kind != "building":
        preposition = rng.choice(phrases.LOCATIVES[container])
    place = phrases.landmark(rng, preposition, container, described=0.2)
    tense = "present" if rng.random() < 0.6 else "past"
    clause = tree.Clause(lexicon.EXPLETIVE, lexicon.EXISTENTIAL, tense, object=object, place=place)
    return tree.Statement(clause) if rng.random() < 0.85 else tree.Question(clause)


def _weather(rng: Random) -> tree.Sentence:
    """Returns "It was raining yesterday", with the time in front or at the end."""
    tense = rng.choice(lexicon.TENSES)
    time = rng.choice(lexicon.ADVERBS_IN["time", tense]) if tense != "present" else None
    clause = clauses.weather_clause(rng, tense)
    if time and rng.random() < 0.5:
        return tree.Statement(clause, time)
    return tree.Statement(clause._replace(circumstance=time))


def _with_reason(rng: Random) -> tree.Sentence:
    """Returns a main clause, and an adverbial clause before or after it in the same tense."""
    tense = rng.choice(("present", "past"))
    if rng.random() < 0.25:
        name = rng.choice(_WEATHER_REASONS)
        inner = clauses.weather_clause(rng, tense)
    else:
        name = phrases.weighted_choice(rng, _REASONS)
        inner = _inner(rng, tense, with_state=name in _STATE_REASONS)
    if name in ("if", "as soon as") and tense == "past":
        name = "when"
    clause = clauses.until(
        lambda drawn: drawn.verb.frame != "copula" or name in _STATE_REASONS,
        lambda: clauses.plain_clause(rng, tense, adverbials=0.1),
    )
    subordinate = tree.Subordinate(lexicon.CONJUNCTION[name], inner)
    if rng.random() < 0.35:
        return tree.Statement(clause, subordinate)
    return tree.Statement(clause._replace(tail=subordinate))


def _inner(rng: Random, tense: str, with_state: bool) -> tree.Clause:
    """Returns a short clause about somebody, to be embedded in another."""
    if with_state and rng.random() < 0.25:
        return clauses.copula_clause(rng, tense)
    subject = phrases.somebody(rng)
    verb = clauses.until(
        lambda drawn: clauses.tense_is_clear(drawn, tense, subject), lambda: _verb_of_people(rng)
    )
    return clauses.verb_clause(rng, verb, tense, 0.1, subject=subject)


def _suits_people(verb: lexicon.Verb) -> bool:
    """Whether any person can be the subject of the verb."""
    return verb.subjects[0].kind == "person"


def _verb_of_people(rng: Random) -> lexicon.Verb:
    return clauses.until(_suits_people, lambda: rng.choice(_EVENTFUL))


def _reported(rng: Random) -> tree.Sentence:
    """Returns a sentence whose verb has a clause as its content: say that, ask whether."""
    verb = rng.choice(lexicon.VERBS_BY_FRAME["clausal"])
    tense = rng.choice(("present", "past"))
    inner_tense = rng.choice(("present", "perfect")) if tense == "present" else "past"
    inner = clauses.plain_clause(rng, inner_tense, adverbials=0.15)
    subject = phrases.participant(rng, lexicon.NOUNS_BY_KIND["person"], "definite")
    negated = verb.base in ("believe", "say") and rng.random() < 0.15
    tail = tree.Subordinate(lexicon.CONJUNCTION[verb.particle], inner)
    return tree.Statement(tree.Clause(subject, verb, tense, negated=negated, tail=tail))


def _infinitive(rng: Random) -> tree.Sentence:
    """Returns "tries to open the door" or "goes to the station in order to help him"."""
    subject = phrases.participant(rng, lexicon.NOUNS_BY_KIND["person"], "subject")
    verb = clauses.until(
        lambda drawn: "unplanned" not in drawn.features, lambda: _verb_of_people(rng)
    )
    inner = clauses.verb_clause(rng, verb, "present", subject=subject)._replace(negated=False)
    if rng.random() < 0.6:
        tense = rng.choice(lexicon.TENSES)
        control = rng.choice(lexicon.VERBS_BY_FRAME["control"])
        tail = tree.Subordinate(lexicon.CONJUNCTION["to"], inner)
        return tree.Statement(tree.Clause(subject, control, tense, tail=tail))
    clause = clauses.verb_clause(rng, rng.choice(_PURPOSEFUL), subject=subject)
    tail = tree.Subordinate(lexicon.CONJUNCTION["in order to"], inner)
    return tree.Statement(clause._replace(negated=False, tail=tail))


def _with_relative(rng: Random) -> tree.Sentence:
    """Returns a sentence with a relative clause on its subject or its final object."""
    while True:
        tense = rng.choice(lexicon.TENSES)
        verb = rng.choice(_EVENTFUL)
        on_object = bool(verb.objects) and rng.random() < 0.5
        noun = rng.choice(verb.objects if on_object else verb.subjects)
        if noun.kind in ("kin", "cause", "stuff", "drink"):
            continue
        antecedent = _antecedent(rng, noun, "present" if tense == "perfect" else tense)
        if antecedent is None or antecedent.relative.verb is verb:
            continue
        if on_object:
            clause = clauses.verb_clause(rng, verb, tense, object=antecedent)
            return tree.Statement(clause._replace(negated=clause.negated and antecedent.definite))
        if clauses.tense_is_clear(verb, tense, antecedent):
            return tree.Statement(clauses.verb_clause(rng, verb, tense, subject=antecedent))


def _antecedent(rng: Random, noun: lexicon.Noun, tense: str) -> tree.NounPhrase | None:
    """Returns the noun with a relative clause, or None if the draws do not make a good one."""
    phrase = phrases.noun_phrase(rng, noun, "antecedent", described=0.2)
    pronoun = tree.RelativePronoun(noun, phrase.plural)
    if noun.kind in ("building", "area") and rng.random() < 0.5:
        inside = tree.PrepositionalPhrase(lexicon.PREPOSITION["in"], pronoun)
        verb = rng.choice(_STAYING)
        clause = tree.Clause(phrases.somebody(rng), verb, tense, complement=inside)
        return phrase._replace(relative=clause)
    does, done_to = _DOES[noun], _DONE_TO[noun]
    if does and (not done_to or rng.random() < 0.5):
        verb = rng.choice(does)
        if not clauses.tense_is_clear(verb, tense, pronoun):
            return None
        clause = clauses.verb_clause(rng, verb, tense, 0.2, subject=pronoun)
    else:
        verb = rng.choice(done_to)
        subject = phrases.somebody(rng)
        is_clear = clauses.tense_is_clear(verb, tense, subject)
        if not _suits_people(verb) or not is_clear or clauses.clashes(subject, pronoun):
            return None
        clause = clauses.verb_clause(rng, verb, tense, subject=subject, object=pronoun)
    return phrase._replace(relative=clause._replace(circumstance=None, negated=False))


def _question(clause: tree.Clause, asked: str = "") -> tree.Question:
    """Returns an affirmative question; nobody asks about their own actions."""
    subject = clause.subject
    if subject is lexicon.PRONOUN["I"]:
        subject = lexicon.PRONOUN["he"]
    elif subject is lexicon.PRONOUN["we"]:
        subject = lexicon.PRONOUN["they"]
    return tree.Question(clause._replace(subject=subject, negated=False), asked)


def _yes_no(rng: Random) -> tree.Sentence:
    """Returns a yes/no question: Does the man read the book?"""
    return _question(clauses.plain_clause(rng, adverbials=0.2))


def _asking_who(rng: Random) -> tree.Sentence:
    """Returns a question about the subject.

    Who reads the book? Which student ...? How many children ...?
    """
    verb = _verb_of_people(rng)
    subject: tree.Nominal = tree.Interrogative(is_person=True)
    if rng.random() < 0.5:
        subject = phrases.noun_phrase(
            rng, rng.choice(lexicon.NOUNS_BY_KIND["person"]), "which", described=0.1
        )
    return _question(clauses.verb_clause(rng, verb, adverbials=0.15, subject=subject), "subject")


def _asking_for_object(rng: Random) -> tree.Sentence:
    """Returns a question about the object.

    What does he read? Whom does she help? Which book ...? How many apples ...?
    """
    choice = rng.random()
    asked: tree.Nominal
    if choice < 0.35:
        verb, asked = rng.choice(_DONE_TO_THINGS), tree.Interrogative(is_person=False)
    elif choice < 0.65:
        verb, asked = rng.choice(_DONE_TO_PEOPLE), tree.Interrogative(is_person=True)
    else:
        verb = rng.choice(_WITH_OBJECT)
        nouns = [noun for noun in verb.objects if noun.german_plural]
        if not nouns or any(noun.kind == "kin" for noun in nouns):
            return _asking_for_object(rng)
        asked = phrases.noun_phrase(rng, rng.choice(nouns), "which", described=0.15)
    return _question(clauses.verb_clause(rng, verb, object=asked), "object")


def _asking_adverb(rng: Random) -> tree.Sentence:
    """Returns a question with where, when or why."""
    choice = rng.random()
    if choice < 0.3:
        clause = clauses.verb_clause(rng, rng.choice(_PUTTING))
        return _question(clause._replace(complement=None), "where (direction)")
    if choice < 0.6:
        clause = clauses.verb_clause(rng, rng.choice(_LOCATED))
        return _question(clause._replace(complement=None), "where")
    if choice < 0.8:
        verb = rng.choice(_EVENTFUL)
        return _question(clauses.verb_clause(rng, verb, rng.choice(("present", "past"))), "when")
    clause = clauses.plain_clause(rng, rng.choice(("present", "past")), adverbials=0.0)
    return _question(clause, "why")


# How often each construction is drawn.
_CONSTRUCTIONS = {
    _simple: 33,
    _fronted: 10,
    _with_reason: 14,
    _reported: 8,
    _infinitive: 6,
    _with_relative: 10,
    _coordinated: 4,
    _existential: 4,
    _weather: 1,
    _yes_no: 5,
    _asking_who: 2,
    _asking_for_object: 4,
    _asking_adverb: 3,
}
