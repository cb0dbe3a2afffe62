"""The grammar against sentences, paradigms and rules written down by hand."""

import re
from itertools import islice
from random import Random

import pytest

from pipelines.grammar import HELD_OUT, SPLITS, distinct_pairs_lower_bound, sentence_pairs
from pipelines.grammar import english as english_forms
from pipelines.grammar import german as german_forms
from pipelines.grammar.counting import counted_phrases, counted_verbs
from pipelines.grammar.derivations import (
    Clause,
    Comparison,
    Coordination,
    Interrogative,
    NounPhrase,
    PrepositionalPhrase,
    Question,
    RelativePronoun,
    Statement,
    Subordinate,
)
from pipelines.grammar.entries import CASES
from pipelines.grammar.nouns import NOUN, NOUNS
from pipelines.grammar.sample_clauses import OBJECTS, SUBJECTS
from pipelines.grammar.sample_sentences import random_sentence
from pipelines.grammar.sentences import realise
from pipelines.grammar.splits import split_of
from pipelines.grammar.verbs import BE, EXISTENTIAL, HAVE, MODAL, MODALS, VERB, VERBS
from pipelines.grammar.words import (
    ADJECTIVE,
    ADJECTIVES,
    ADVERB,
    CONJUNCTION,
    CONJUNCTIONS,
    DETERMINER,
    ENGLISH_NUMBERS,
    ENGLISH_TENS,
    EXPLETIVE,
    FREQUENCIES,
    GERMAN_NUMBERS,
    GERMAN_TENS,
    MANNERS,
    NAME,
    NAMES,
    PREPOSITION,
    PREPOSITIONS,
    PRONOUN,
    PRONOUNS,
    TIMES,
)

_PLURALS = {noun.english_plural: noun for noun in NOUNS if noun.english_plural}
_NUMBERS = {english_forms.number_word(number): number for number in range(2, 100)}
_OBJECT_PRONOUNS = {pronoun.english_object: pronoun for pronoun in PRONOUNS}


def np(text, of=None, relative=None):
    """Reads "the three old books" back into the choices it is made of."""
    if text in NAME:
        return NAME[text]
    if text in PRONOUN or text in _OBJECT_PRONOUNS:
        return PRONOUN.get(text) or _OBJECT_PRONOUNS[text]
    rest, determiner = text, ""
    for name in sorted(DETERMINER, key=len, reverse=True):
        forms = {name, DETERMINER[name].english_plural} - {""}
        opening = next((form for form in forms if rest.startswith(form + " ")), None)
        if opening or name == "":
            determiner, rest = name, rest.removeprefix(opening or "").strip()
            break
    words = rest.split(" ")
    number = _NUMBERS[words.pop(0)] if words[0] in _NUMBERS else None
    adjective = ADJECTIVE[words.pop(0)] if words[0] in ADJECTIVE else None
    (word,) = words
    plural = word in _PLURALS
    noun = _PLURALS[word] if plural else NOUN[word]
    if isinstance(of, str):
        of = np(of)
    return NounPhrase(noun, DETERMINER[determiner], plural, adjective, number, of, relative)


def pp(preposition, text, direction=False, of=None):
    return PrepositionalPhrase(PREPOSITION[preposition], np(text, of), direction)


def clause(subject, verb, object=None, **features):
    subject = np(subject) if isinstance(subject, str) else subject
    object = np(object) if isinstance(object, str) else object
    for slot in ("manner", "frequency"):
        if slot in features:
            features[slot] = ADVERB[features[slot]]
    if isinstance(features.get("circumstance"), str):
        features["circumstance"] = ADVERB[features["circumstance"]]
    if "modal" in features:
        features["modal"] = MODAL[features["modal"]]
    if "to" in features:
        features["recipient"] = np(features.pop("to"))
    verb = VERB[verb] if isinstance(verb, str) else verb
    return Clause(subject, verb, object=object, **features)


def be(subject, predicate, verb="be", **features):
    if predicate in ADJECTIVE:
        predicate = ADJECTIVE[predicate]
    elif isinstance(predicate, str):
        predicate = np(predicate)
    return clause(subject, verb, predicate=predicate, **features)


def than(adjective, standard, equal=False):
    return Comparison(ADJECTIVE[adjective], np(standard), equal)


def sub(conjunction, inner):
    return Subordinate(CONJUNCTION[conjunction], inner)


def rel(noun, plural=False):
    return RelativePronoun(NOUN[noun], plural)


def st(*arguments, front=None, **features):
    return Statement(clause(*arguments, **features), ADVERB[front] if front in ADVERB else front)


WHO, WHAT = Interrogative(True), Interrogative(False)
_IN_THE_GARDEN = pp("in", "the garden")

# Every row is a derivation and the two sentences a native speaker writes for it.
SENTENCES = [
    # articles, adjective endings, cases
    (st("the old teacher", "read", "an interesting book".replace("an ", "a ")),
     "The old teacher reads an interesting book.", "Der alte Lehrer liest ein interessantes Buch."),
    (st("a young woman", "buy", "the expensive car"),
     "A young woman buys the expensive car.", "Eine junge Frau kauft das teure Auto."),
    (st("a small child", "eat", "a green apple".replace("green ", "")),
     "A small child eats an apple.", "Ein kleines Kind isst einen Apfel."),
    (st("a good doctor", "help", "the ill girl"),
     "A good doctor helps the ill girl.", "Ein guter Arzt hilft dem kranken Mädchen."),
    (st("the clever students", "thank", "the old teachers"),
     "The clever students thank the old teachers.",
     "Die klugen Studenten danken den alten Lehrern."),
    (st("this man", "drink", "cold beer"),
     "This man drinks cold beer.", "Dieser Mann trinkt kaltes Bier."),
    (st("our aunt", "drink", "fresh milk"),
     "Our aunt drinks fresh milk.", "Unsere Tante trinkt frische Milch."),
    (st("my brothers", "order", "cold wine"),
     "My brothers order cold wine.", "Meine Brüder bestellen kalten Wein."),
    (st("every child", "like", "sweet strawberries"),
     "Every child likes sweet strawberries.", "Jedes Kind mag süße Erdbeeren."),
    (st("all old farmers", "work"), "All old farmers work.", "Alle alten Bauern arbeiten."),
    (st("many tourists", "visit", "this famous castle"),
     "Many tourists visit this famous castle.", "Viele Touristen besuchen dieses berühmte Schloss."),
    (st("some young boys", "lose", "several red balls"),
     "Some young boys lose several red balls.", "Einige junge Jungen verlieren mehrere rote Bälle."),
    (st("no student", "understand", "this question"),
     "No student understands this question.", "Kein Student versteht diese Frage."),
    (st("his tired daughter", "sleep"),
     "His tired daughter sleeps.", "Seine müde Tochter schläft."),
    (st("she", "wear", "a pink dress"),
     "She wears a pink dress.", "Sie trägt ein rosa Kleid."),
    (st("he", "repair", np("the dark room").noun and "an old bicycle".replace("an ", "a ")),
     "He repairs an old bicycle.", "Er repariert ein altes Fahrrad."),
    (st("the honest lawyer", "find", "an honest witness".replace("an honest witness", "a ring")),
     "The honest lawyer finds a ring.", "Der ehrliche Anwalt findet einen Ring."),
    (be("he", "a honest man") and Statement(be("he", "a honest man")),
     "He is an honest man.", "Er ist ein ehrlicher Mann."),
    (st("we", "visit", "a university"),
     "We visit a university.", "Wir besuchen eine Universität."),
    (Statement(be("the bus", "expensive")), "The bus is expensive.", "Der Bus ist teuer."),
    # weak nouns
    (st("the queen", "see", "the president"),
     "The queen sees the president.", "Die Königin sieht den Präsidenten."),
    (st("a neighbor", "congratulate", "the colleague"),
     "A neighbor congratulates the colleague.", "Ein Nachbar gratuliert dem Kollegen."),
    (st("the dog", "hear", "a bear"), "The dog hears a bear.", "Der Hund hört einen Bären."),
    # possessors
    (st("I", "repair", np("clock", of="the king")),
     "I repair the king's clock.", "Ich repariere die Uhr des Königs."),
    (st("they", "clean", np("new house".replace("house", "car"), of="Peter")),
     "They clean Peter's new car.", "Sie putzen Peters neues Auto."),
    (st("we", "see", np("old house", of="the students")),
     "We see the students' old house.", "Wir sehen das alte Haus der Studenten."),
    (st("she", "find", np("bag", of="my aunt")),
     "She finds my aunt's bag.", "Sie findet die Tasche meiner Tante."),
    (st("he", "hide", np("letter", of="the student")),
     "He hides the student's letter.", "Er versteckt den Brief des Studenten."),
    # numbers
    (st("the chef", "cook", "three fresh eggs"),
     "The chef cooks three fresh eggs.", "Der Koch kocht drei frische Eier."),
    (st("he", "sell", "twenty-one books".replace("books", "cars")),
     "He sells twenty-one cars.", "Er verkauft einundzwanzig Autos."),
    (st("the two old men", "laugh"),
     "The two old men laugh.", "Die zwei alten Männer lachen."),
    # pronouns
    (st("he", "help", "her"), "He helps her.", "Er hilft ihr."),
    (st("she", "see", "him"), "She sees him.", "Sie sieht ihn."),
    (st("they", "answer", "us"), "They answer us.", "Sie antworten uns."),
    (st("he", "give", "a gift".replace("gift", "book"), to="them"),
     "He gives them a book.", "Er gibt ihnen ein Buch."),
    (st("we", "show", "the photo", to="my grandmother"),
     "We show my grandmother the photo.", "Wir zeigen meiner Großmutter das Foto."),
    # past
    (st("the girl", "write", "a long letter", tense="past"),
     "The girl wrote a long letter.", "Das Mädchen schrieb einen langen Brief."),
    (st("the men", "build", "a bridge", tense="past"),
     "The men built a bridge.", "Die Männer bauten eine Brücke."),
    (st("we", "go", complement=pp("to", "the school"), tense="past"),
     "We went to the school.", "Wir gingen zur Schule."),
    (st("she", "bring", "the tea", to="him", tense="past"),
     "She brought him the tea.", "Sie brachte ihm den Tee."),
    (st("he", "read", "the newspaper", tense="past"),
     "He read the newspaper.", "Er las die Zeitung."),
    (st("the students", "work", tense="past"),
     "The students worked.", "Die Studenten arbeiteten."),
    # perfect
    (st("the boy", "break", "a vase", tense="perfect"),
     "The boy has broken a vase.", "Der Junge hat eine Vase zerbrochen."),
    (st("they", "stay", complement=pp("in", "the hotel"), tense="perfect"),
     "They have stayed in the hotel.", "Sie sind im Hotel geblieben."),
    (st("I", "open", "the window", tense="perfect", frequency="already"),
     "I have already opened the window.", "Ich habe das Fenster schon geöffnet."),
    (st("she", "visit", "her uncle", tense="perfect"),
     "She has visited her uncle.", "Sie hat ihren Onkel besucht."),
    (st("we", "repair", "the radio".replace("radio", "lamp"), tense="perfect"),
     "We have repaired the lamp.", "Wir haben die Lampe repariert."),
    (Statement(be("my aunt", "famous", "become", tense="perfect")),
     "My aunt has become famous.", "Meine Tante ist berühmt geworden."),
    # modals
    (st("the child", "swim", modal="can"),
     "The child can swim.", "Das Kind kann schwimmen."),
    (st("we", "leave", "the island", modal="have to", tense="past"),
     "We had to leave the island.", "Wir mussten die Insel verlassen."),
    (st("I", "eat", "an apple".replace("an ", "a "), modal="want to"),
     "I want to eat an apple.", "Ich will einen Apfel essen."),
    (st("you".replace("you", "they"), "turn off", "the lamp", modal="should"),
     "They should turn off the lamp.", "Sie sollten die Lampe ausschalten."),
    (st("he", "come back", modal="will", circumstance="tomorrow"),
     "He will come back tomorrow.", "Er wird morgen zurückkommen."),
    (st("I", "help", "him", modal="may", negated=True),
     "I may not help him.", "Ich darf ihm nicht helfen."),
    (st("she", "drive", complement=pp("to", "the station"), modal="can", negated=True),
     "She cannot drive to the station.", "Sie kann nicht zum Bahnhof fahren."),
    (st("he", "work", modal="have to", negated=True),
     "He does not have to work.", "Er muss nicht arbeiten."),
    # separable and reflexive verbs
    (st("the boss", "call", "the mechanic".replace("mechanic", "policeman")),
     "The boss calls the policeman.", "Der Chef ruft den Polizisten an."),
    (st("Anna", "turn on", "the radio"),
     "Anna turns on the radio.", "Anna schaltet das Radio ein."),
    (st("she", "pick up", "them", tense="past"),
     "She picked them up.", "Sie holte sie ab."),
    (st("I", "get up", tense="perfect"), "I have got up.", "Ich bin aufgestanden."),
    (st("he", "take part in", "the meeting", tense="past"),
     "He took part in the meeting.", "Er nahm an der Sitzung teil."),
    (st("I", "remember", "his name".replace("name", "mother")),
     "I remember his mother.", "Ich erinnere mich an seine Mutter."),
    (st("we", "look forward to", "the party"),
     "We look forward to the party.", "Wir freuen uns auf die Feier."),
    (st("he", "be interested in", "the story", negated=True),
     "He is not interested in the story.", "Er interessiert sich nicht für die Geschichte."),
    (st("the girls", "rest", tense="perfect"),
     "The girls have rested.", "Die Mädchen haben sich ausgeruht."),
    (st("I", "smile"), "I smile.", "Ich lächle."),
    # prepositions and contractions
    (st("the cat", "lie", complement=pp("under", "the table"), tense="past"),
     "The cat lay under the table.", "Die Katze lag unter dem Tisch."),
    (st("he", "put", "the book", complement=pp("on", "the table", direction=True)),
     "He puts the book on the table.", "Er legt das Buch auf den Tisch."),
    (st("the woman", "go", complement=pp("into", "the house")),
     "The woman goes into the house.", "Die Frau geht ins Haus."),
    (st("the woman", "go", complement=pp("into", "this house")),
     "The woman goes into this house.", "Die Frau geht in dieses Haus."),
    (st("the guests", "wait", complement=pp("in", "the old castle")),
     "The guests wait in the old castle.", "Die Gäste warten im alten Schloss."),
    (st("the tourists", "stand", complement=pp("at", "the lake")),
     "The tourists stand at the lake.", "Die Touristen stehen am See."),
    (st("the man", "dream of", "the house"),
     "The man dreams of the house.", "Der Mann träumt vom Haus."),
    (st("I", "wait for", "the bus", manner="patiently"),
     "I wait for the bus patiently.", "Ich warte geduldig auf den Bus."),
    (st("she", "dance", place=pp("with", "her friends")),
     "She dances with her friends.", "Sie tanzt mit ihren Freunden."),
    (st("he", "hike", place=pp("without", "my brother")),
     "He hikes without my brother.", "Er wandert ohne meinen Bruder."),
    (st("he", "sleep", circumstance=pp("during", "the concert"), tense="past"),
     "He slept during the concert.", "Er schlief während des Konzertes."
     .replace("Konzertes", "Konzerts")),
    (st("we", "work", front=pp("despite", "the rain")),
     "Despite the rain we work.", "Trotz des Regens arbeiten wir."),
    # negation
    (st("the man", "buy", "a car", negated=True),
     "The man does not buy a car.", "Der Mann kauft kein Auto."),
    (st("she", "drink", "coffee", negated=True),
     "She does not drink coffee.", "Sie trinkt keinen Kaffee."),
    (st("she", "have".replace("have", "see"), "old lions", negated=True),
     "She does not see old lions.", "Sie sieht keine alten Löwen."),
    (st("the man", "read", "the letter", negated=True),
     "The man does not read the letter.", "Der Mann liest den Brief nicht."),
    (st("he", "invite", "her", tense="past", negated=True),
     "He did not invite her.", "Er lud sie nicht ein."),
    (st("they", "find", "the key", tense="perfect", negated=True),
     "They have not found the key.", "Sie haben den Schlüssel nicht gefunden."),
    (Statement(be("the soup".replace("soup", "milk"), "fresh", negated=True)),
     "The milk is not fresh.", "Die Milch ist nicht frisch."),
    (Statement(be("she", "a good singer", negated=True)),
     "She is not a good singer.", "Sie ist kein guter Sänger."),
    # comparison, existence, weather
    (Statement(be("the train", than("expensive", "the bus"))),
     "The train is more expensive than the bus.", "Der Zug ist teurer als der Bus."),
    (Statement(be("the tree", than("tall", "the bush"))),
     "The tree is taller than the bush.", "Der Baum ist höher als der Busch."),
    (Statement(be("my brother", than("old", "his friend", equal=True), negated=True)),
     "My brother is not as old as his friend.", "Mein Bruder ist nicht so alt wie sein Freund."),
    (st(EXPLETIVE, EXISTENTIAL, "a big tree", place=_IN_THE_GARDEN),
     "There is a big tree in the garden.", "Es gibt einen großen Baum im Garten."),
    (st(EXPLETIVE, EXISTENTIAL, "no chairs", place=pp("in", "the kitchen"), tense="past"),
     "There were no chairs in the kitchen.", "Es gab keine Stühle in der Küche."),
    (st(EXPLETIVE, "snow", tense="past", front="yesterday"),
     "Yesterday it was snowing.", "Gestern schneite es."),
    # word order
    (st("the farmer", "sell", "a horse".replace("horse", "table"), tense="past",
        front="last week"),
     "Last week the farmer sold a table.", "Letzte Woche verkaufte der Bauer einen Tisch."),
    (st("the farmer", "sell", "a table", circumstance="today", tense="perfect"),
     "The farmer has sold a table today.", "Der Bauer hat heute einen Tisch verkauft."),
    (st("the farmer", "sell", "the table", circumstance="today", tense="perfect"),
     "The farmer has sold the table today.", "Der Bauer hat den Tisch heute verkauft."),
    (st("he", "be".replace("be", "read"), "newspapers", frequency="often"),
     "He often reads newspapers.", "Er liest oft Zeitungen."),
    (st("we", "meet", "our neighbors", frequency="never", place=pp("in", "the park")),
     "We never meet our neighbors in the park.", "Wir treffen unsere Nachbarn nie im Park."),
    # subordinate clauses
    (st("he", "stay", complement=pp("in", "the house"),
        tail=sub("because", clause(EXPLETIVE, "rain"))),
     "He stays in the house because it is raining.", "Er bleibt im Haus, weil es regnet."),
    (Statement(clause("she", "laugh", tense="past"),
               sub("although", be("she", "sad", tense="past"))),
     "Although she was sad, she laughed.", "Obwohl sie traurig war, lachte sie."),
    (st("she", "laugh", tense="past", tail=sub("although", be("she", "sad", tense="past"))),
     "She laughed, although she was sad.", "Sie lachte, obwohl sie traurig war."),
    (st("the dog", "run", tense="past", tail=sub("when", clause("I", "call", "him", tense="past"))),
     "The dog ran when I called him.", "Der Hund lief, als ich ihn anrief."),
    (Statement(clause("the dog", "run"), sub("when", clause("the cat", "jump"))),
     "When the cat jumps, the dog runs.", "Wenn die Katze springt, läuft der Hund."),
    (st("we", "know that", tail=sub("that", clause("he", "go", tense="perfect",
        complement=pp("to", "the doctor")))),
     "We know that he has gone to the doctor.", "Wir wissen, dass er zum Arzt gegangen ist."),
    (st("I", "ask whether", tense="past", tail=sub("whether", clause("they", "arrive",
        modal="can", tense="past"))),
     "I asked whether they could arrive.", "Ich fragte, ob sie ankommen konnten."),
    (st("she", "invite", "us", tail=sub("if", clause("we", "take part in", "the exam"))),
     "She invites us if we take part in the exam.",
     "Sie lädt uns ein, falls wir an der Prüfung teilnehmen."),
    (st("the child", "try", tail=sub("to", clause("the child", "turn on", "the computer"))),
     "The child tries to turn on the computer.",
     "Das Kind versucht, den Computer einzuschalten."),
    (st("I", "get up", tail=sub("in order to", clause("I", "rest"))),
     "I get up in order to rest.", "Ich stehe auf, um mich auszuruhen."),
    # relative clauses
    (st(np("the man", relative=clause(rel("man"), "read", "the book")), "laugh"),
     "The man who reads the book laughs.", "Der Mann, der das Buch liest, lacht."),
    (st("she", "call", np("the woman", relative=clause(rel("woman"), "work", place=_IN_THE_GARDEN))),
     "She calls the woman who works in the garden.",
     "Sie ruft die Frau an, die im Garten arbeitet."),
    (st("he", "sell", np("the car", relative=clause("I", "need", rel("car"))), tense="perfect"),
     "He has sold the car which I need.", "Er hat das Auto verkauft, das ich brauche."),
    (st(np("the children", relative=clause("we", "help", rel("child", True))), "cry"),
     "The children whom we help cry.", "Die Kinder, denen wir helfen, weinen."),
    (st("I", "see", np("the bus", relative=clause("they", "wait for", rel("bus")))),
     "I see the bus which they wait for.", "Ich sehe den Bus, auf den sie warten."),
    (st("I", "see", np("a house", relative=clause("he", "live", complement=PrepositionalPhrase(
        PREPOSITION["in"], rel("house"))))),
     "I see a house in which he lives.", "Ich sehe ein Haus, in dem er wohnt."),
    # questions
    (Question(clause("the teacher", "read", "the book")),
     "Does the teacher read the book?", "Liest der Lehrer das Buch?"),
    (Question(clause("they", "call", "her", tense="perfect", frequency="already")),
     "Have they already called her?", "Haben sie sie schon angerufen?"),
    (Question(be("the room", "cold", tense="past")), "Was the room cold?", "War das Zimmer kalt?"),
    (Question(clause("the child", "sleep", modal="want to")),
     "Does the child want to sleep?", "Will das Kind schlafen?"),
    (Question(clause(WHO, "repair", "the car"), "subject"),
     "Who repairs the car?", "Wer repariert das Auto?"),
    (Question(clause("the man", "see", WHO), "object"),
     "Whom does the man see?", "Wen sieht der Mann?"),
    (Question(clause("the man", "help", WHO, tense="past"), "object"),
     "Whom did the man help?", "Wem half der Mann?"),
    (Question(clause("she", "wait for", WHO), "object"),
     "Whom does she wait for?", "Auf wen wartet sie?"),
    (Question(clause("Paul", "look for", WHAT), "object"),
     "What does Paul look for?", "Was sucht Paul?"),
    (Question(clause("she", "buy", np("which coat"), tense="perfect"), "object"),
     "Which coat has she bought?", "Welchen Mantel hat sie gekauft?"),
    (Question(clause("she", "buy", np("how many red dresses")), "object"),
     "How many red dresses does she buy?", "Wie viele rote Kleider kauft sie?"),
    (Question(clause("your".replace("your", "his") + " uncle", "work"), "where"),
     "Where does his uncle work?", "Wo arbeitet sein Onkel?"),
    (Question(clause("his uncle", "drive", tense="past"), "where (direction)"),
     "Where did his uncle drive?", "Wohin fuhr sein Onkel?"),
    (Question(clause("the guests", "arrive", modal="will"), "when"),
     "When will the guests arrive?", "Wann werden die Gäste ankommen?"),
    (Question(clause("the girl", "cry", tense="past"), "why"),
     "Why did the girl cry?", "Warum weinte das Mädchen?"),
    # coordination
    (Coordination(clause("the king", "sing", "a song"), "and", clause("the queen", "dance")),
     "The king sings a song, and the queen dances.",
     "Der König singt ein Lied und die Königin tanzt."),
    (Coordination(clause("he", "come back", tense="past"), "but",
                  clause("she", "stay", complement=pp("in", "the city"), tense="past")),
     "He came back, but she stayed in the city.", "Er kam zurück, aber sie blieb in der Stadt."),
]  # fmt: skip
