"""A model of several target languages: the code before a text, wherever it comes from."""

import pytest

from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.vocabulary.language_codes import Direction, options_of
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.documents.formats import read_document
from keras_transformer.kit.documents.text_translator import TextTranslator
from pipelines.prepare.vocabulary import learn_subwords
from tests.given_answers import card_of
from tests.refusals import refused
from tests.small_models import engine_of, small_model

TEXT = ["the dog sees a cat. the cat sleeps.", "der Hund sieht eine Katze", "pes vidí kočku"] * 20
DIRECTIONS = [Direction("en", "de"), Direction("en", "cs"), Direction("de", "cs")]
OPTIONS = DecodingConfig(beam_size=2, extra_length=3, max_source_length=12)


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    shared = learn_subwords(TEXT, "bpe", 310, folder, seed=1, languages=["de", "cs"])
    return VocabularyPair(shared, shared)


@pytest.fixture(scope="module")
def model_and_engine(vocabularies):
    model = small_model(vocab_size=310)
    return model, engine_of(model, vocabularies, OPTIONS)


@pytest.fixture
def translator_of(model_and_engine, vocabularies):
    def make(directions):
        model, engine = model_and_engine
        options = options_of(directions) if directions else {}
        card = card_of(model.config, OPTIONS, task_options=options)
        return TextTranslator(engine, vocabularies, card)

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
            (">>de<< a", "de", "texts", '">>de<< a"', "must not"),
            ("a >>cs<< b", "de", "texts", '"a >>cs<< b"', "must not"),
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
        search = translator.search

        def recorded(request):
            given.extend(request.texts)
            return search(request)

        monkeypatch.setattr(translator, "search", recorded)
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


class TestMemories:
    def test_a_translation_is_that_into_the_language(self, translator):
        memory = {">>de<< the dog": "der Hund", ">>cs<< the dog": "pes"}
        translator = translator.with_memory(memory)
        for to, wanted in (("de", "der Hund"), ("cs", "pes")):
            ((answer,),) = translator.translate(["the  dog"], to=to)
            assert answer.text == wanted and answer.from_memory
            assert translator.translate_document(" the dog\n", to=to) == f" {wanted}\n"
        with refused("to", '"the dog"'):
            translator.with_memory({"the dog": "pes"})

    def test_the_only_language_need_not_be_named(self, translator_of):
        translator = translator_of(DIRECTIONS[:1]).with_memory({"the dog": "der Hund"})
        ((answer,),) = translator.translate(["the dog"])
        assert answer.from_memory and answer.text == "der Hund"
