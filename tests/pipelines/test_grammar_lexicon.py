"""The table of words: what is read from it, and which rows are refused."""

import re

import pytest

from keras_transformer.errors import InputError
from pipelines.grammar.lexicon import NOUN, PATH, nouns_of, read_lexicon
from pipelines.grammar.table import COLUMNS

# Every other row is read after these two.
_FIRST = ["noun,boss,bosses,der Chef,Chefs/Chefs,person", "adverb,well,,gut,,manner"]


@pytest.fixture
def read(tmp_path):
    """Reads a table of the given lines; the line of the first one is 2."""

    def read_lines(*lines, header=COLUMNS, encoding="utf-8"):
        path = tmp_path / "words.csv"
        path.write_bytes("\n".join([header, *lines]).encode(encoding))
        return read_lexicon(path)

    return read_lines


def test_noun_with_listed_and_with_regular_forms(read):
    boss, house, milk, student = read(
        _FIRST[0],
        "noun,house,,das Haus,Häuser,building",
        "noun,milk,,die Milch,-,drink",
        "noun,student,,der Student,Studenten,person,weak",
    )["noun"]
    assert (boss.english_plural, boss.gender, boss.german_plural) == ("bosses", "m", "Chefs")
    assert (boss.genitive, house.genitive, milk.genitive) == ("Chefs", "Hauses", "Milch")
    assert (house.english_plural, milk.english_plural) == ("houses", "")
    assert (student.weak, boss.weak) == (True, False)
    assert (boss.is_person, house.is_person) == (True, False)


def test_verb_with_listed_and_with_regular_forms(read):
    fall, complain = read(
        *_FIRST,
        "verb,fall asleep,fell/fallen,ein|schlafen,schläft/schlief/geschlafen,intransitive,sein,"
        "person,,well",
        "verb,complain about,,sich beschweren über,,prepositional,,boss,person",
    )["verb"]
    assert (fall.base, fall.particle, fall.past, fall.participle) == (
        "fall", "asleep", "fell", "fallen",
    )  # fmt: skip
    german = fall.german
    assert (german.prefix, german.lemma, german.auxiliary) == ("ein", "einschlafen", "sein")
    assert (german.present, german.past, german.participle) == ("schläft", "schlief", "geschlafen")
    assert [adverb.german for adverb in fall.manners] == ["gut"]
    assert [noun.english for noun in fall.subjects] == ["boss"]
    assert (complain.past, complain.participle) == ("complained", "complained")
    assert (complain.german.reflexive, complain.preposition, complain.case) == (
        True, "über", "accusative",
    )  # fmt: skip
    assert (complain.german.past, complain.german.participle) == ("beschwerte", "beschwert")


def test_entries_that_lack_a_form_or_a_word(read):
    entries = read(
        "modal,may,-,dürfen,darf/durfte",
        "conjunction,to,,-,,,infinitive",
        "adjective,tired,-,müde,-/müd,,,person kin",
        "determiner,many,,viel,,dies,strong plural quantifier",
    )
    assert entries["modal"][0].past == ""
    assert entries["conjunction"][0].german == ""
    adjective, determiner = entries["adjective"][0], entries["determiner"][0]
    assert (adjective.english_comparative, adjective.german_comparative) == ("", "")
    assert (adjective.stem, adjective.kinds) == ("müd", ("person", "kin"))
    assert (determiner.name, determiner.english, determiner.english_plural) == ("many", "", "many")


def test_comments_empty_lines_and_what_spreadsheets_add_are_passed_over(read):
    lines = ("# words", "", ",,,,,,,,,", '"# ""quoted"", too",,,,,,,,,', _FIRST[0] + ",,,,")
    plain = read(_FIRST[0])["noun"][0]
    padded = read(*lines, encoding="utf-8-sig")["noun"][0]
    assert (padded.english, padded.german, padded.kind) == (plain.english, plain.german, "person")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("nouns,boss,,der Chef,Chefs,person",
         "class must be one of noun, adverb, verb, .*. Received: 'nouns'"),
        ("noun,,,der Chef,Chefs,person", "english must not be empty. Received: ''"),
        ("noun,chief,,,Chefs,person", "german must not be empty. Received: ''"),
        ("noun,chief,,Chef,Chefs,person", "german must be a noun with its article .*: 'Chef'"),
        ("noun,chief,,der Chef,,person", "german_forms must hold 1 to 2 forms, .*Received: ''"),
        ("noun,chief,,der Chef,a/b/c,person", "german_forms must hold 1 to 2 forms, .* 'a/b/c'"),
        ("noun,bear,,der Bär,-,animal,weak", "german_forms must name the plural. Received: '-'"),
        ("noun,chief,,der Chef,Chefs,persn", "kind must be one of these: person .*: 'persn'"),
        ("noun,chief,,der Chef,Chefs,person,week", "features must hold only these words: .*'week'"),
        ("noun,chief,,der Chef,Chefs,person,,boss", "subjects must be empty. Received: 'boss'"),
        ("noun,boss,bosses,der Boss,Bosse,person", "english must be new for its .*: 'boss'"),
        ("noun,a,b,c,d,e,f,g,h,i,j", "a row must have at most 10 cells. Received: 11"),
        ("verb,see,saw/seen,sehen,,transitive,,people", "objects must not be empty for the kind"),
        ("verb,rain,,regnen,,weather,,people", "subjects must be empty for the kind weather"),
        ("verb,wait for,,warten,,prepositional,,people,people", "german must be an infinitive, .*"),
        ("verb,laugh,,lachen an,,intransitive,,people", "german must be an infinitive, .*'lachen"),
        ("verb,laugh,,lachen,,intransitive,,folk",
         "subjects must name nouns and kinds of nouns, unlike 'folk'. Received: 'folk'"),
        ("verb,laugh,,lachen,,intransitive,,boss,,loud", "manners must hold only .* 'loud'"),
        ("adverb,today,,heute,,time", "features must not be empty for the kind time"),
        ("preposition,in,,in,,place,two-way,person", "features must hold one of these words: acc"),
        ("determiner,the,,der,,der,weak mixed", "features must hold one of these words: weak .*"),
        ("adjective,old,older,alt,älter,,,boss", "subjects must hold only these words: person"),
        ("pronoun,I,me,ich,mich/mir,1sg", "german_forms must hold 3 forms, .* 'mich/mir'"),
        ("number,hundred,,hundert,,100", "kind must be one of these: 1 2 3 .*: '100'"),
    ],
)  # fmt: skip
def test_wrong_row_is_refused_with_its_line_the_rule_and_the_value(read, tmp_path, row, message):
    with pytest.raises(InputError, match=message) as refused:
        read(*_FIRST, "# a comment", row)
    assert str(refused.value).startswith(f"{tmp_path / 'words.csv'}:5: ")
    assert "\n" not in str(refused.value)


def test_line_that_is_not_utf8_and_wrong_column_names_are_refused(read):
    with pytest.raises(InputError, match=r"words.csv:3: a line must be UTF-8 CSV. Received: b'"):
        read(_FIRST[0], "noun,bear,,der Bär,Bären,animal", encoding="latin-1")
    with pytest.raises(InputError, match=r"words.csv:1: the first row must be class,.*: 'class,e'"):
        read(_FIRST[0], header="class,e")


def test_word_that_the_rules_name_and_the_table_lacks_is_refused():
    with pytest.raises(InputError, match=r"lexicon.csv must have every word .*: no 'dragon'"):
        nouns_of(("house", "dragon"))
    assert nouns_of(("house", "plant", "tree")) == (NOUN["house"], NOUN["tree"], NOUN["bush"])


def test_table_is_one_entry_a_line():
    entries = read_lexicon(PATH)
    rows = re.findall("^(?!#|class,)(.+)$", PATH.read_text("utf-8"), flags=re.MULTILINE)
    assert len(rows) == sum(map(len, entries.values()))
