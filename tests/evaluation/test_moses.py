"""Sentences and their tokens as the Moses tokenizer gives them, worked out from its rules."""

import pytest

from keras_transformer.evaluation.moses import moses_tokens


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [
        ("Ein Hund, zwei Katzen.", "Ein Hund , zwei Katzen ."),
        ("Was (und wo)?", "Was ( und wo ) ?"),
        # Hyphens, grave accents and underscores: the first two stay.
        ("EU-Rat a`b a_b", "EU-Rat a`b a _ b"),
        # Commas stay between numbers only.
        ("5.300,50 Euro, 20,- und A,B,C 3,x", "5.300,50 Euro , 20 , - und A , B , C 3 , x"),
        # Full stops: last word, abbreviation, dotted letters, ordinal, before a small letter.
        ("Das sah Dr. Weiss am 5. Mai.", "Das sah Dr. Weiss am 5. Mai ."),
        ("Das U.S. Amt schloss. Niemand kam etc.", "Das U.S. Amt schloss . Niemand kam etc ."),
        ("Der XI. Kongress der Firma. er tagt", "Der XI. Kongress der Firma. er tagt"),
        ("Wir haben 100. Und 07. Und 12. Siege", "Wir haben 100 . Und 07 . Und 12. Siege"),
        ("Er kam... und ging.. .", "Er kam ... und ging .. ."),
        ("Nr. 5 und Art. 7", "Nr. 5 und Art. 7"),
        # Apostrophes stand alone in German.
        ("Ich hab's", "Ich hab ' s"),
        # Letters and digits of any script; other numbers and combining accents are marks.
        ("2m² ½ Привет e\u0301", "2m ² ½ Привет e \u0301"),
        ("<b>&amp;", "< b > & amp ;"),
        (" a\t b\u00a0c\x01d ", "a b cd"),
        ("", ""),
        (" ", ""),
    ],
)
def test_german(sentence, tokens):
    assert " ".join(moses_tokens(sentence, "de")) == tokens


def test_punctuation_of_other_scripts_becomes_ascii():
    assert moses_tokens("„Ja“ ”so” 1，2 ５％ … ’", "de") == [
        *("„", "Ja", '"', '"', "so", '"', "1,2", "5", "%", "...", "'"),
    ]


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [
        ("I don't, it's the dogs' 1990's '50s", "I don 't , it 's the dogs ' 1990 's ' 50s"),
        ("Mr. Fox saw No. 5 and No. Nothing.", "Mr. Fox saw No. 5 and No . Nothing ."),
        ("On 5. May", "On 5 . May"),
    ],
)
def test_english(sentence, tokens):
    assert " ".join(moses_tokens(sentence, "en")) == tokens


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [
        ("L'eau d’un 'a' 3'5", "L' eau d' un ' a ' 3 ' 5"),
        ("M. Noir, cf. Blanc. Puis moi", "M. Noir , cf. Blanc . Puis moi"),
    ],
)
def test_french(sentence, tokens):
    assert " ".join(moses_tokens(sentence, "fr")) == tokens


def test_other_languages_have_no_abbreviations():
    tokens = moses_tokens("Sn. Ali J. Can geldi'", "tr")
    assert " ".join(tokens) == "Sn . Ali J. Can geldi '"
