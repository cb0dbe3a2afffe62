"""A model of several target languages: the code before a text, wherever it comes from."""

import pytest
import tensorflow as tf

from keras_transformer.config import EOS_ID
from keras_transformer.decoding.compiled_model import compile_model
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.decoding.graphs import Graphs
from keras_transformer.decoding.translator import Translator
from keras_transformer.documents.formats import read_document
from keras_transformer.language_codes import Direction, options_of
from keras_transformer.model_card import ModelOrigin
from keras_transformer.vocabulary.pair import VocabularyPair
from pipelines.vocabulary import learn_subwords
from tests.decoding.conftest import card_of, small_model
from tests.refusals import refused

TEXT = ["the dog sees a cat. the cat sleeps.", "der Hund sieht eine Katze", "pes vidí kočku"] * 20
DIRECTIONS = [Direction("en", "de"), Direction("en", "cs"), Direction("de", "cs")]
OPTIONS = DecodingConfig(beam_size=2, extra_length=3, max_source_length=12)


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    shared = learn_subwords(TEXT, "bpe", 310, folder, seed=1, languages=["de", "cs"])
    return VocabularyPair(shared, shared)


@pytest.fixture(scope="module")
def graphs(vocabularies):
    model = small_model(vocab_size=310)
    return Graphs([compile_model(model)], vocabularies, OPTIONS), model.config


@pytest.fixture
def translator_of(graphs):
    def make(directions):
        graph, config = graphs
        options = options_of(directions) if directions else {}
        return Translator(graph, card_of(config, OPTIONS, origin=ModelOrigin(task_options=options)))

    return make


@pytest.fixture
def translator(translator_of):
    return translator_of(DIRECTIONS)


class TestCodes:
    def test_the_language_is_put_before_texts_that_are_not_blank(self, translator):
        assert translator.target_languages == ("de", "cs")
        texts = ["the dog", " ", "", "a >>fr<<"]
        assert translator.with_codes(texts, "cs") == [
            ">>cs<< the dog",
            " ",
            "",
            ">>cs<< a >>fr<<",
        ]
        assert translator.with_codes([">>de<< the dog", ""]) == [">>de<< the dog", ""]

    @pytest.mark.parametrize(
        ("text", "to", "argument", "received", "about"),
        [
            ("a", "fr", "to", '"fr"', "de, cs"),
            ("a", "", "to", '""', "de, cs"),
            ("a dog", None, "to", '"a dog"', "given"),
            (" >>de<< a", None, "to", '" >>de<< a"', "given"),
            (">>fr<< a", None, "to", '">>fr<< a"', "given"),
            (">>de<< a", "de", "texts", '">>de<< a"', "without"),
            ("a >>cs<< b", "de", "texts", '"a >>cs<< b"', "without"),
            (">>de<< >>cs<< b", None, "texts", '">>de<< >>cs<< b"', "beginning"),
        ],
    )
    def test_a_language_that_cannot_be(self, translator, text, to, argument, received, about):
        with refused(argument, received, about=about):
            translator.translate([text], to=to)

    def test_the_only_language_need_not_be_named(self, translator_of):
        translator = translator_of(DIRECTIONS[1:])  # both into Czech
        assert translator.with_codes(["a"]) == translator.with_codes(["a"], "cs") == [">>cs<< a"]
        assert translator.with_codes([">>cs<< a"]) == [">>cs<< a"]

    def test_models_of_one_direction_have_no_codes(self, translator_of):
        translator = translator_of([])
        assert translator.with_codes(["a", ">>de<< a"]) == ["a", ">>de<< a"]
        with refused("to", '"de"', about="none"):
            translator.translate(["a"], to="de")


class TestTranslations:
    def test_they_are_those_of_the_text_with_its_code(self, translator):
        texts = ["the dog", "", "a cat sleeps"]
        for language in ("de", "cs"):
            coded = [f">>{language}<< {text}" if text else "" for text in texts]
            assert translator.translate(texts, to=language) == translator.translate(coded)
        german, czech = (translator.translate(texts[:1], to=to) for to in ("de", "cs"))
        assert german != czech
        (score,) = translator.score(["the dog"], [german[0][0].text], to="de")
        assert score == translator.score([">>de<< the dog"], [german[0][0].text])[0]

    def test_the_code_is_no_word_of_the_source(self, translator):
        (pair,) = translator.align(["the dog"], ["der Hund"], to="de")
        assert pair.source_pieces[0] == ">>de<<" and pair.source_words[0] == -1
        assert max(pair.source_words) == 1
        spans = {link.source for link in pair.links("the dog", "der Hund")}
        assert spans <= {(place, end) for place in range(7) for end in range(place, 8)}
        attention = translator.attention("the dog", "der Hund", to="cs")
        assert attention.source_pieces[0] == ">>cs<<"

    def test_every_sentence_of_a_document_gets_the_code(self, translator, monkeypatch):
        given = []
        translate = translator._translate

        def recorded(texts, *others, **options):
            given.extend(texts)
            return translate(texts, *others, **options)

        monkeypatch.setattr(translator, "_translate", recorded)
        translator.translate_document("The dog. A cat.\n\nThe cat.", to="cs")
        assert given == [">>cs<< The dog.", ">>cs<< A cat.", ">>cs<< The cat."]
        with refused("to", '"The dog."', about="given"):
            translator.translate_document("The dog.")
        with refused("to", '"fr"', about="de, cs"):
            translator.translate_document("", to="fr")

    def test_long_sentences_are_cut_with_room_for_the_code(self, translator):
        counts = translator.new_counts()
        documents = translator.document_translator(to="de", counts=counts)
        text = " ".join(["the dog sees a cat"] * 6)
        list(documents.translate(read_document(text, "text", "en").parts))
        assert counts.truncated == 0
        assert documents.model.limit == 12 - 2


class TestGraphs:
    def test_a_text_of_a_code_alone_is_blank(self, graphs):
        graph, _ = graphs
        found = graph["serving_default"](tf.constant([">>de<<", ">>cs<<  ", "", ">>de<< dog"]))
        assert found["translation"].numpy()[:3].tolist() == [b"", b"", b""]
        assert found["score"].numpy()[3] < 0

    def test_the_code_of_a_document_is_that_of_all_its_parts(self, graphs, vocabularies):
        graph, _ = graphs
        read = []
        translate_ids = graph._translate_ids

        def recorded(source_ids, *others, **options):
            read.append(source_ids)
            return translate_ids(source_ids, *others, **options)

        graph._translate_ids = recorded
        try:
            text = ">>cs<< The dog.\n\nThe cat. The dog sees a cat and the dog sees a cat."
            Graphs.document.python_function(graph, tf.constant([text, "The dog.", ">>de<< "]))
        finally:
            del graph._translate_ids
        rows = read[0].to_list()
        (german,), (czech,) = vocabularies.source.encode([">>de<<", ">>cs<<"])
        assert max(map(len, rows)) <= 12 and all(row[-1] == EOS_ID for row in rows)
        firsts = [row[0] for row in rows if row != [EOS_ID]]
        assert len(firsts) > 4 and set(firsts[:-1]) == {czech}
        assert firsts[-1] not in (german, czech)  # of the text without a code
        assert german not in firsts  # its text is blank
