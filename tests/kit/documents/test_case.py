import pytest

from keras_transformer.kit.documents.tree.case import Case, case_of, in_sentence_case


@pytest.mark.parametrize(
    "text, language, case",
    [
        ("THE DOG SLEEPS.", "en", Case.CAPITALS),
        ("L'ÉTÉ EST LÀ: 3 X!", "fr", Case.CAPITALS),
        ("NATO", "en", Case.SENTENCE),
        ("The NATO and the EU", "en", Case.SENTENCE),
        ("狗 睡觉", "zh", Case.SENTENCE),
        ("3 4 5", "en", Case.SENTENCE),
        ("A Young Man Plays with His Little Dog", "en-GB", Case.TITLE),
        ("A Young Man Plays with His Little Dog", "de", Case.SENTENCE),
        ("Dr. John Smith, Kaltenhof", "en", Case.SENTENCE),
        ("East Jerusalem Holds World Diabetes Day.", "en", Case.TITLE),
        ("The Old Man And the Boy Play with a Dog.", "en", Case.TITLE),
        ("President John Smith Jr. met Queen Anna Brown.", "en", Case.SENTENCE),
        ("A Young Man smiles with His Little Dog", "en", Case.SENTENCE),
        ("", "en", Case.SENTENCE),
    ],
)
def test_case(text, language, case):
    assert case_of(text, language) is case


def test_sentence_case_keeps_the_first_letter_and_the_length():
    assert in_sentence_case('"THE DOG" SLEEPS') == '"The dog" sleeps'
    assert in_sentence_case("İSTANBUL İ") == "İstanbul İ", "i with a dot above has two characters"
    assert in_sentence_case("") == ""
