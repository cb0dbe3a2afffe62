"""Texts as ids."""

from keras_transformer.core.config import EOS_ID
from keras_transformer.use.translate.texts import encoded, with_eos


def test_texts_are_cut_into_subwords_and_end_in_eos(characters):
    texts = ["ab", "", "abcdef", " \t\u3000\u2029\x00", "abcd"]
    ids, truncated = with_eos(encoded(characters.source, texts), limit=4)
    a = ord("a") + 4
    assert [row.tolist() for row in ids] == [
        [a, a + 1, EOS_ID],
        [EOS_ID],
        [a, a + 1, a + 2, EOS_ID],
        [EOS_ID],
        [a, a + 1, a + 2, EOS_ID],
    ]
    assert truncated == [False, False, True, False, True]
