"""The table of words: what is read from it, and which rows are refused."""

import re

import pytest

from pipelines.grammar.lexicon import NOUN, PATH, nouns_of, read_lexicon
from pipelines.grammar.table import COLUMNS
from tests.refusals import refused

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
    ("row", "argument", "received"),
    [
        ("nouns,boss,,der Chef,Chefs,person", "class", "'nouns'"),
        ("noun,,,der Chef,Chefs,person", "english", "''"),
        ("noun,chief,,,Chefs,person", "german", "''"),
        ("noun,chief,,Chef,Chefs,person", "german", "'Chef'"),
        ("noun,chief,,der Chef,,person", "german_forms", "''"),
        ("noun,chief,,der Chef,a/b/c,person", "german_forms", "'a/b/c'"),
        ("noun,bear,,der Bär,-,animal,weak", "german_forms", "'-'"),
        ("noun,chief,,der Chef,Chefs,persn", "kind", "'persn'"),
        ("noun,chief,,der Chef,Chefs,person,week", "features", "'week'"),
        ("noun,chief,,der Chef,Chefs,person,,boss", "subjects", "'boss'"),
        ("noun,boss,bosses,der Boss,Bosse,person", "english", "'boss'"),
        ("noun,a,b,c,d,e,f,g,h,i,j", None, "11"),
        ("verb,see,saw/seen,sehen,,transitive,,people", "objects", "''"),
        ("verb,rain,,regnen,,weather,,people", "subjects", "'people'"),
        ("verb,wait for,,warten,,prepositional,,people,people", "german", "'warten'"),
        ("verb,laugh,,lachen an,,intransitive,,people", "german", "'lachen an'"),
        ("verb,laugh,,lachen,,intransitive,,folk", "subjects", "'folk'"),
        ("verb,laugh,,lachen,,intransitive,,boss,,loud", "manners", "'loud'"),
        ("adverb,today,,heute,,time", "features", "''"),
        ("preposition,in,,in,,place,two-way,person", "features", "'two-way'"),
        ("determiner,the,,der,,der,weak mixed", "features", "'weak mixed'"),
        ("adjective,old,older,alt,älter,,,boss", "subjects", "'boss'"),
        ("pronoun,I,me,ich,mich/mir,1sg", "german_forms", "'mich/mir'"),
        ("number,hundred,,hundert,,100", "kind", "'100'"),
    ],
)  # fmt: skip
def test_wrong_row_is_refused_with_its_line_the_rule_and_the_value(
    read, tmp_path, row, argument, received
):
    with refused(argument, received, f"{tmp_path / 'words.csv'}:5") as error:
        read(*_FIRST, "# a comment", row)
    assert "\n" not in str(error.value)


def test_line_that_is_not_utf8_and_wrong_column_names_are_refused(read):
    with refused(None, "b'", place="words.csv:3"):
        read(_FIRST[0], "noun,bear,,der Bär,Bären,animal", encoding="latin-1")
    with refused(None, "'class,e'", place="words.csv:1"):
        read(_FIRST[0], header="class,e")


def test_word_that_the_rules_name_and_the_table_lacks_is_refused():
    with refused(None, "no 'dragon'", place="lexicon.csv"):
        nouns_of(("house", "dragon"))
    assert nouns_of(("house", "plant", "tree")) == (NOUN["house"], NOUN["tree"], NOUN["bush"])


def test_table_is_one_entry_a_line():
    entries = read_lexicon(PATH)
    rows = re.findall("^(?!#|class,)(.+)$", PATH.read_text("utf-8"), flags=re.MULTILINE)
    assert len(rows) == sum(map(len, entries.values()))
