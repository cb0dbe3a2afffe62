"""From texts to answers, with models of random weights."""

import collections
import copy
import dataclasses
import gc
import math
import weakref
from xml.etree import ElementTree

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import EOS_ID
from keras_transformer.core.search.compiled_model import compile_model
from keras_transformer.core.search.config import DecodingConfig, SamplingConfig
from keras_transformer.core.search.hypotheses import Hypotheses
from keras_transformer.core.search.weights import variables_of
from keras_transformer.core.training.checkpoint_files import CheckpointInfo
from keras_transformer.core.training.model_directory import describe_unknown_training
from keras_transformer.core.vocabulary.language_codes import Direction
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.core.vocabulary.subwords import TERM_MARKS
from keras_transformer.kit.documents.document_file import DocumentConfig, translate_file
from keras_transformer.kit.documents.formats import read_document
from keras_transformer.kit.documents.memory.corrections import Corrections
from keras_transformer.support.markup import well_formed
from keras_transformer.use.store.calibration import Calibration, Evidence
from keras_transformer.use.store.languages import ModelLanguages
from keras_transformer.use.store.stored_model import trained_model
from keras_transformer.use.translate import terminology
from keras_transformer.use.translate.answers import Translation, translations
from keras_transformer.use.translate.batches import length_batches
from keras_transformer.use.translate.confidence import evidence
from keras_transformer.use.translate.search_request import SearchRequest
from keras_transformer.use.translate.translator import Translator
from tests.kit.documents.archives import archive, content_of
from tests.refusals import refused
from tests.small_models import (
    VOCAB_SIZE,
    Characters,
    engine_of,
    log_probs_of,
    small_model,
    translator_with,
)


@pytest.fixture(scope="module")
def model(make_model):
    return make_model(num_layers=1)


@pytest.fixture(scope="module")
def endless():
    """A model that never ends a translation."""
    model = small_model(num_layers=1, logits_bias=True)
    bias = np.zeros(VOCAB_SIZE, "float32")
    bias[EOS_ID] = -1e4
    model.logits_embedding.bias.assign(bias)
    return model


@pytest.fixture(scope="module")
def translator_of(characters):
    """Makes translators; those whose graphs do not differ share them, as tracing takes seconds."""
    traced = {}

    def make(model, batch_tokens=DecodingConfig.batch_tokens, n_best=None, **options):
        defaults = {"beam_size": 2, "extra_length": 5, "max_source_length": 20}
        config = DecodingConfig(**{**defaults, **options})
        if (id(model), config) not in traced:
            traced[id(model), config] = translator_with(model, characters, config)
        translator = copy.copy(traced[id(model), config])
        decoding = dataclasses.replace(config, batch_tokens=batch_tokens, n_best=n_best)
        translator.card = dataclasses.replace(translator.card, decoding=decoding)
        return translator

    return make


def in_document(answers):
    """The best of translations as a document has it, in which line breaks are those of the text."""
    return answers[0].text.replace("\r", " ").replace("\n", " ")


def assert_same_answer(got, wanted):
    """Sums of another batch are rounded otherwise."""
    assert [answer.text for answer in got] == [answer.text for answer in wanted]
    scores = [[answer.score for answer in answers] for answers in (got, wanted)]
    np.testing.assert_allclose(*scores, rtol=1e-3, atol=1e-5)


def test_every_line_gets_an_answer(translator_of, model):
    lines = [
        "",
        "hello",
        "   ",
        "😀 ok",
        "x" * 10_000,
        "a\x00\x07b",
        "Здравствуй 你好",
        "\n",
        "\ud800",
    ]
    translator = translator_of(model)
    answers = translator.translate(lines)
    assert len(answers) == len(lines)
    assert all(1 <= len(answer) <= 2 for answer in answers)
    for blank in (0, 2, 7):
        assert answers[blank] == [Translation("", 0.0, 0.0, 0)]
    assert all(answers[i][0].score < 0 for i in (1, 3, 4, 5, 6, 8))
    assert [answer[0].truncated for answer in answers] == [line == "x" * 10_000 for line in lines]
    # The long line is answered as what was left of it.
    assert_same_answer(answers[4], translator.translate(["x" * 19])[0])


def test_results_are_in_input_order_whatever_the_batches(translator_of, model):
    lines = ["bb", "a", "dddd", "", "ccc", "a", "eeeee"]
    one = translator_of(model, batch_tokens=1)
    all_together = translator_of(model)
    for alone, together in zip(one.translate(lines), all_together.translate(lines), strict=True):
        assert_same_answer(alone, together)
    assert one.translate([]) == []


def test_translations_begin_with_their_prefix(translator_of, model):
    translator = translator_of(model)
    lines, prefixes = ["abc", "abc", "de"], ["xy", "", " z "]
    answers = translator.translate(lines, target_prefixes=prefixes)
    free = translator.translate(lines)
    assert_same_answer(answers[1], free[1])
    for answer, prefix in zip(answers, prefixes, strict=True):
        assert all(best.text.startswith(prefix.strip()) for best in answer)


def test_aligned_translations(translator_of, model):
    translator = translator_of(model)
    lines = ["ab c", "", "def"]
    plain, aligned = translator.translate(lines), translator.translate(lines, aligned=True)
    for line, wanted, answers in zip(lines, plain, aligned, strict=True):
        assert [dataclasses.replace(answer, pair=None) for answer in answers] == wanted
        for answer in answers:
            pair = answer.pair
            assert pair.source_pieces == [*line, "</s>"]
            assert "".join(pair.target_pieces).removesuffix("</s>") == answer.text
            assert len(pair.log_probs) == len(pair.alignment) == answer.tokens
            assert sum(pair.log_probs) == pytest.approx(answer.log_prob, rel=1e-3, abs=1e-4)
    pair = aligned[0][0].pair
    assert pair.source_words == [0, 0, 0, 1, 1]  # a space, and EOS, are of the word before them
    (of_text,) = translator.align(lines[:1], [aligned[0][0].text])
    attention = translator.attention(lines[0], aligned[0][0].text)
    assert of_text.alignment == attention.alignment.tolist()
    count = len(pair.target_pieces)
    assert of_text.target_pieces[:count][:-1] == pair.target_pieces[:-1]
    np.testing.assert_allclose(of_text.log_probs[:count], pair.log_probs, rtol=1e-3, atol=1e-4)


def test_one_search_gives_several_translations_of_a_document(translator_of, model, monkeypatch):
    translator = translator_of(model)
    texts = ["a b c", "c b"]
    rows = translator.translate(texts)
    searched = []
    search = translator.search

    def noted(request):
        searched.extend(request.texts)
        return search(request)

    monkeypatch.setattr(translator, "search", noted)
    parts = read_document("\n".join(texts), "text", "en").parts
    for rank, documents in enumerate(translator.document_translators(2, case="keep")):
        wanted = [in_document(row[rank:]) for row in rows]
        assert "".join(documents.translate(parts)).split("\n") == wanted
    assert searched == texts


@pytest.mark.parametrize("count", [0, 3])
def test_a_document_has_no_more_translations_than_beams(translator_of, model, count):
    with refused("count", count):
        translator_of(model).document_translators(count)


def test_restrictions(translator_of, model):
    free = [best.text for best in translator_of(model).translate(["abc"])[0]]
    phrases = (free[0][:2], free[1][1:3])
    settings = {"min_length": 6, "no_repeat_ngram_size": 1, "forbidden_phrases": phrases}
    answers = translator_of(model, **settings).translate(["abc", ""])
    assert len(answers[0]) == 2 and answers[1] == [Translation("", 0.0, 0.0, 0)]
    for best in answers[0]:
        assert len(set(best.text)) == len(best.text) and best.tokens >= 6
        assert not any(phrase in best.text for phrase in phrases)
    with refused("forbidden_phrases", "('a', '')"):
        translator_of(model, forbidden_phrases=("a", ""))


def test_translations_contain_the_required_phrases(translator_of, model):
    translator = translator_of(model)
    lines, phrases = ["abc", "abc", "de", "", "fg"], [["xy"], [], ["z", "a b"], ["q"], ["x", "x"]]
    answers, free = (translator.translate(lines, required_phrases=p) for p in (phrases, None))
    assert answers[1] == free[1] and answers[3] == free[3] == [Translation("", 0.0, 0.0, 0)]
    for answer, line, required in zip(answers, lines, phrases, strict=True):
        assert all(phrase in answer[0].text for phrase in required) or not line
    assert not any("xy" in best.text or "a b" in best.text for row in free for best in row)
    both = translator.translate(
        lines[:1], target_prefixes=["k"], required_phrases=phrases[:1], aligned=True
    )
    assert both[0][0].text.startswith("k") and "xy" in both[0][0].text
    scored = translator.score(lines[:1], [both[0][0].text])[0].log_prob
    if both[0][0].tokens == len(both[0][0].text) + 1:  # with EOS
        assert both[0][0].log_prob == pytest.approx(scored, rel=1e-3)


@pytest.mark.parametrize(
    ("phrases", "received"),
    [
        ([["a"]], "1 for 2"),
        ([["a"], ["b" * 5, "c" * 3]], '8: "bbbbb ccc"'),
        ([["a", " "], ["\u00e9b", "c"]], '[" ", "\u00e9b"]'),
    ],
)
def test_required_phrases_are_checked(translator_of, model, phrases, received):
    with refused("required_phrases", received):
        translator_of(model).translate(["ab", "cd"], required_phrases=phrases)
    with refused("required_phrases", "random draws"):
        drawing = translator_of(model, sampling=SamplingConfig())
        drawing.translate(["ab", "cd"], required_phrases=[["a"], []])


@pytest.mark.parametrize(
    ("prefixes", "received"),
    [
        (["a"], "1 for 2"),
        (["a" * 7, "b" * 8], '8: "bbbbbbbb"'),
    ],
)
def test_prefixes_are_checked(translator_of, model, prefixes, received):
    with refused("target_prefixes", received):
        translator_of(model).translate(["ab", "cd"], target_prefixes=prefixes)


class CountingEngine:
    """An engine that counts its calls by name."""

    streams = 1

    def __init__(self, engine):
        self._engine = engine
        self.calls = collections.Counter()

    def __getattr__(self, name):
        def run(*arguments, **others):
            self.calls[name] += 1
            return getattr(self._engine, name)(*arguments, **others)

        return run


def test_a_text_is_put_into_a_batch_once(translator_of, model):
    translator = translator_of(model)
    lines = ["a", "bb", "c" * 30, "", "d" * 20] * 8
    translator.engine = CountingEngine(translator.engine)

    def calls_of(function, *arguments, **others):
        translator.engine.calls.clear()
        function(*arguments, **others)
        return dict(translator.engine.calls)

    assert calls_of(translator.translate, lines) == {"search": 1}
    assert calls_of(translator.translate, lines, target_prefixes=["x"] * len(lines)) == {
        "search": 1
    }
    found = calls_of(translator.translate, lines, required_phrases=[["x"]] * len(lines))
    assert found == {"search": 1}
    assert calls_of(translator.translate, lines, aligned=True) == {"search": 1}
    assert calls_of(translator.score, lines, lines) == {"score": 1}
    assert calls_of(translator.align, lines, lines) == {"explain": 1}
    translator = translator_of(model, batch_tokens=512)
    translator.engine = CountingEngine(translator.engine)
    found = calls_of(translator.translate, lines)  # 40 lines of 32 tokens at least: 16, 16 and 8
    assert found == {"search": 3}


def test_greedy_search_serves_where_no_score_is_wanted(translator_of, model):
    translator = translator_of(model, beam_size=1)
    translator.engine = CountingEngine(translator.engine)
    (without,) = translator.translate(["abc"], scores=False)
    (scored,) = translator.translate(["abc"])
    assert dict(translator.engine.calls) == {"search_greedily": 1, "search": 1}
    assert without[0].score is None and scored[0].score < 0
    assert without[0].text == scored[0].text


def test_another_length_penalty_takes_no_other_trace(translator_of, model):
    translator = translator_of(model)
    usual, found = (
        each.translate(["abc", "d"]) for each in (translator, translator.with_alpha(2.0))
    )
    for answers in found:
        for answer in answers:
            penalty = ((5 + answer.tokens) / 6) ** 2
            assert answer.score == pytest.approx(answer.log_prob / penalty, rel=1e-5)
    assert found != usual
    assert translator.engine.graphs.named["search_ids"].experimental_get_tracing_count() == 1


def test_a_compiled_model_does_not_keep_the_keras_model():
    model = small_model(num_layers=1)
    size, read = model.count_params(), weakref.ref(model)
    compiled = compile_model(model)
    del model
    gc.collect()
    assert read() is None
    assert sum(int(tf.size(variable)) for variable in variables_of(compiled.weights)) == size


def test_scores_of_targets(translator_of, model):
    translator = translator_of(model)
    pairs = [("abc", "de"), ("f", ""), ("", "ghi")]
    results = translator.score(*zip(*pairs, strict=True))
    for (source, target), result in zip(pairs, results, strict=True):
        source_ids = [ord(c) + 4 for c in source] + [EOS_ID]
        target_ids = [ord(c) + 4 for c in target] + [EOS_ID]
        alone = log_probs_of(model, tf.constant([source_ids]), tf.constant([target_ids]))
        assert result.log_prob == pytest.approx(float(tf.reduce_sum(alone)), rel=1e-3, abs=1e-5)
        assert result.tokens == len(target_ids)


@pytest.mark.parametrize(
    ("texts", "place"),
    [("ab", ""), (None, ""), (3, ""), (["a", None], "[1]"), ([b"a"], "[0]"), (b"a", "")],
)
def test_what_is_no_list_of_texts_is_refused(translator_of, model, texts, place):
    translator = translator_of(model)
    with refused(f"texts{place}"):
        translator.translate(texts)
    for call in (translator.score, translator.align):
        with refused(f"sources{place}"):
            call(texts, ["a"])
        with refused(f"targets{place}"):
            call(["a"], texts)
    if texts is not None:
        with refused(f"target_prefixes{place}"):
            translator.translate(["a"], target_prefixes=texts)
        # The first of these texts, or all of them, are in the place of a list of phrases.
        with refused("required_phrases[0]" if place else "required_phrases"):
            translator.translate(["a"], required_phrases=texts)
        with refused(f"required_phrases[0]{place}"):
            translator.translate(["a"], required_phrases=[texts])


def test_one_text_is_refused_with_the_mending(translator_of, model):
    translator = translator_of(model)
    with refused("texts", about='["..."]'):
        translator.translate(np.array("ab"))
    with refused("required_phrases[0]", '"xy"'):
        translator.translate(["ab"], required_phrases=["xy"])
    with refused("source", '["ab"]'):
        translator.attention(["ab"], "c")


def test_any_iterable_of_texts_is_read(translator_of, model):
    translator = translator_of(model)
    wanted = translator.translate(["ab", "c"])
    for texts in (iter(["ab", "c"]), ("ab", "c"), np.array(["ab", "c"]), {"ab": 1, "c": 2}):
        assert_same_answer(translator.translate(texts)[0], wanted[0])
    found = translator.translate(
        (text for text in ["ab"]), target_prefixes=iter(["x"]), required_phrases=iter([iter(["y"])])
    )
    assert found[0][0].text.startswith("x") and "y" in found[0][0].text
    assert len(translator.score(iter(["ab"]), iter(["c"]))) == 1


def test_ids_are_scored_in_pairs(translator_of, model):
    translator = translator_of(model)
    with refused("target", "2 for 1"):
        translator.score_ids([[9, EOS_ID]], [[9, EOS_ID], [8, EOS_ID]])
    for wrong in ([0, 0], [[]], [[9], [9, 2]], [[0.5]], [["a"]], None):
        with refused("source", about="[B, S]"):
            translator.score_ids(wrong, [[9, EOS_ID]])
    for wrong in (VOCAB_SIZE, -1):
        with refused("target", f"[{wrong}]", about=str(VOCAB_SIZE - 1)):
            translator.score_ids([[9, EOS_ID]], [[wrong, EOS_ID]])
    padding = [[0, 0]]
    assert translator.score_ids(padding, padding).tolist() == [0]


def test_pairs_that_are_cut_say_so(translator_of, model):
    """At most 19 subwords of a source and 24 of a target count."""
    translator = translator_of(model)
    scores = translator.score(["a" * 19, "a" * 20, "a"], ["b", "b", "b" * 25])
    assert [score.truncated for score in scores] == [False, True, True]


def test_translations_that_reach_the_length_limit_say_so(translator_of, endless):
    """3 + 5 subwords fit."""
    translator = translator_of(endless, max_source_length=8)
    blank, cut = translator.translate(["", "ab"])
    assert [(answer.tokens, answer.unfinished) for answer in blank] == [(0, False)]
    assert [(answer.tokens, answer.unfinished) for answer in cut] == [(8, True)] * 2


def test_score_needs_pairs(translator_of, model):
    with refused("targets", "1 for 2"):
        translator_of(model).score(["a", "b"], ["c"])


def test_length_batches():
    batches = list(length_batches([3, 40, 5, 70, 33, 64, 1], batch_tokens=128))
    assert batches == [[3], [5, 1], [4, 2, 0], [6]]
    assert list(length_batches([500, 400], batch_tokens=10)) == [[0], [1]]
    assert list(length_batches([], batch_tokens=10)) == []
    # 2,048 tokens in two parts; but 64 sentences of 8 count 32 each, too few for four.
    assert [len(batch) for batch in length_batches([32] * 64, 4096, parts=2)] == [32, 32]
    assert [len(batch) for batch in length_batches([8] * 40, 4096, parts=4)] == [16, 16, 8]


def test_translations_leave_out_what_does_not_exist(characters):
    def found(texts, scores, log_probs):
        ids = np.zeros([1, len(texts), 2], np.int32)
        for place, text in enumerate(texts):
            ids[0, place, : len(text)] = [ord(letter) + 4 for letter in text]
        lengths = np.array([[len(text) for text in texts]])
        one_sentence = Hypotheses(ids, lengths, np.array([scores]), np.array([log_probs]))
        return translations(one_sentence, characters, [False])

    assert found(["ab", ""], [-1.5, -math.inf], [-3.0, -math.inf]) == [
        [Translation("ab", -1.5, -3.0, 2, unfinished=True)]
    ]
    nothing = found(["", ""], [-math.inf] * 2, [-math.inf] * 2)
    assert nothing == [[Translation("", -math.inf, -math.inf, 0)]]


def test_beam_larger_than_vocabulary(translator_of, model):
    with refused("beam_size", "133", about=str(VOCAB_SIZE)):
        translator_of(model, beam_size=133)


def test_an_ensemble_has_the_fewest_positions_of_its_models(characters, make_model):
    """Wherever the model with few positions stands in it."""
    few = make_model(num_layers=1, positions="learned", max_positions=8)
    many = make_model(num_layers=1, seed=2)
    options = DecodingConfig(2, max_source_length=20, extra_length=5)
    infos = (CheckpointInfo("a", 1),) * 2
    for models in ((few, many), (many, few)):
        description = describe_unknown_training(models[0].config, characters.fingerprints)
        facts = {"checkpoint": CheckpointInfo("a"), "ensemble": infos}
        trained = trained_model(models, characters, description, **facts)
        engine = engine_of(list(models), characters, options)
        card = dataclasses.replace(trained.card, decoding=options)
        translator = Translator(engine, characters, card.with_options({}))
        assert (translator.encoder.source_limit, translator.encoder.target_limit) == (8, 8)
    (score,) = translator.score(["abc"], ["abcdefghijklmnop"])
    assert score.tokens == 8 and score.truncated
    with refused("attention", "an ensemble of 2"):
        translator.attention("a", "b")


def test_documents(translator_of, model):
    translator = translator_of(model)
    text = " abc. Def!\n\nkl: {x} mn.\r\n"
    found = translator.translate_document(text)
    best = map(in_document, translator.translate(["abc.", "Def!"]))
    first, blank, last, end = found.split("\n")
    assert (first, blank, end) == (" " + " ".join(best), "", "")
    assert "{x}" in last and last.endswith("\r")
    assert translator.translate_document("") == ""
    with refused("format", "pdf"):
        translator.translate_document(text, "pdf")
    with refused("text", "str"):
        translator.translate_document(text, "docx")
    letter = archive("docx", "<w:p><w:r><w:t>ab.</w:t></w:r></w:p>")
    result = translator.translate_document(letter, "docx")
    root = ElementTree.fromstring(f"<x xmlns:w='w'>{content_of('docx', result)}</x>")
    wanted = well_formed(in_document(translator.translate(["ab."])[0]))
    assert "".join(root.itertext()) == wanted


def test_columns_of_documents(translator_of, model):
    translator = translator_of(model)
    found = translator.translate_document("id\ttext\n1\tabc.\n", "tsv", columns=["text"])
    assert found == f"id\ttext\n1\t{in_document(translator.translate(['abc.'])[0])}\n"
    with refused("columns", "format=tsv"):
        translator.translate_document("abc", "tsv")


def test_the_search_aligns_the_sentences_of_documents(translator_of, model):
    translator = translator_of(model)
    engine = translator.engine = CountingEngine(translator.engine)
    text = "Abc. Def %s ghi. Jkl %s mn."
    wanted = translator.translate_document(text)
    assert engine.calls == {"search": 1}, "with marks and without, together"
    texts = ["abc", "def ghi", "jkl"]
    guaranteed = translator.config.guaranteed
    aligned = [False, True, False]
    rows = translator.search(SearchRequest(texts, guaranteed, aligned=aligned, scores=False))
    plain = translator.search(SearchRequest(texts, guaranteed, scores=False))
    assert rows[1] == translator.translate(texts, aligned=True, scores=False)[1]
    assert [rows[0], rows[2]] == [plain[0], plain[2]]
    # An export may have no signature that aligns.
    search = engine.search
    engine.search = lambda request: search(request)._replace(alignment=None)
    engine.calls.clear()
    assert translator.translate_document(text) == wanted
    assert engine.calls == {"search": 1, "explain": 1}


def test_forced_terms(translator_of, model, monkeypatch):
    monkeypatch.setattr(terminology, "MAX_LOSS", math.inf)
    translator = translator_of(model)
    assert not translator.knows_terms
    terms = {"ab": "xyz", "fg": "q"}
    texts = ["ab cde.", "Fgh", "ab fg ab"]
    phrases = [["xyz"], [], ["xyz", "q"]]
    found = translator.translate(texts, terminology=terms)
    for answer, wanted in zip(
        found, translator.translate(texts, required_phrases=phrases), strict=True
    ):
        assert_same_answer(answer, wanted)
    assert_same_answer(found[1], translator.translate(texts[1:2])[0])
    both = translator.translate(texts, required_phrases=[["u"], ["v"], []], terminology=terms)
    for (best, *_), (required, *_) in zip(both, [["u", "xyz"], ["v"], ["xyz", "q"]], strict=True):
        assert all(phrase in best.text for phrase in required) and not best.without_terms
    document = translator.translate_document("ab cde. Fgh", terminology={"ab": "xyz"})
    assert "xyz" in document and document == " ".join(map(in_document, found[:2]))
    (unscored,) = translator.translate(["Fgh"], scores=False, terminology=terms)
    assert unscored[0].text == found[1][0].text


def test_sentences_that_terms_would_spoil_are_translated_without(translator_of, model, monkeypatch):
    monkeypatch.setattr(terminology, "MAX_LOSS", -math.inf)
    translator = translator_of(model)
    texts = ["ab cde.", "Fgh"]
    spoiled, other = translator.translate(texts, terminology={"ab": "xyz"})
    free = translator.translate(texts)
    assert [best.without_terms for best in spoiled] == [("xyz",)] * 2
    assert other[0].without_terms == ()
    assert [best.text for best in spoiled] == [best.text for best in free[0]]


def test_terms_without_room_in_their_sentence_are_left_out(translator_of, model, monkeypatch):
    monkeypatch.setattr(terminology, "MAX_LOSS", math.inf)
    translator = translator_of(model)
    long, short = translator.translate(["ab", "cd"], terminology={"ab": "x" * 8, "cd": "x" * 7})
    assert long[0].without_terms and long[0].text == translator.translate(["ab"])[0][0].text
    assert not short[0].without_terms and "x" * 7 in short[0].text


@pytest.mark.parametrize(
    ("terms", "received"), [({"a": "\u00e9"}, '["\u00e9"]'), ({"a": " "}, "{'a': ' '}")]
)
def test_terms_that_cannot_be_spelled_are_refused(translator_of, model, terms, received):
    for use in (translator_of(model).translate, translator_of(model).translate_document):
        with refused("terminology", received):
            use(["b"] if use.__name__ == "translate" else "b", terminology=terms)


def test_engines_without_forced_terms_refuse_them(translator_of, model):
    translator = translator_of(model)
    translator.engine = CountingEngine(translator.engine)
    translator.engine.functions = ("search_ids",)
    with refused("terminology", "another model"):
        translator.translate(["b"], terminology={"a": "x"})
    translator.check_terms({})
    assert translator.translate(["b"], terminology={})


class CharactersWithTerms(Characters):
    """Characters of which three are the marks of terms."""

    term_ids = (5, 6, 7)
    pieces = (
        *Characters.pieces[:5],
        *TERM_MARKS,
        *Characters.pieces[8:36],
        "▁",
        *map(chr, range(33, 128)),
    )

    def written(self, rows):
        """The sources that an engine gets, with the marks as "[", "=" and "]"."""
        texts = self.decode([row.tolist() for row in rows])
        return [text.translate({1: "[", 2: "=", 3: "]"}) for text in texts]


@pytest.fixture(scope="module")
def trained_with_terms(model):
    vocabulary = CharactersWithTerms()
    options = DecodingConfig(beam_size=2, extra_length=5, max_source_length=20)
    vocabularies = VocabularyPair(vocabulary, vocabulary)
    translator = translator_with(model, vocabularies, options, task_options={"terms": True})
    decoding = dataclasses.replace(options, n_best=1)
    translator.card = dataclasses.replace(translator.card, decoding=decoding)
    return translator


def requests_of(translator, monkeypatch):
    """The requests that an engine gets from here on."""
    requests = []
    search = translator.engine.search

    def noted(request):
        requests.append(request)
        return search(request)

    monkeypatch.setattr(translator.engine, "search", noted)
    return requests


def test_terms_are_written_into_the_source(trained_with_terms, monkeypatch):
    translator = trained_with_terms
    assert translator.knows_terms
    monkeypatch.setattr(terminology, "MAX_LOSS", -math.inf)  # nothing is forced
    requests = requests_of(translator, monkeypatch)
    texts = ["ab cd ab", "e <term> f", ""]
    rows = translator.translate(texts, terminology={"ab": "xy", "ab cd": "z"})
    request = requests[0]
    written = translator.vocabularies.source.written(request.ids)
    assert sorted(written) == ["", "[ab cd=z] [ab=xy]", "e <term> f"]
    assert request.phrases is None and not any(request.aligned)
    lacking = tuple(term for term in ("z", "xy") if term not in rows[0][0].text)
    assert [row[0].without_terms for row in rows] == [lacking, (), ()]
    longest = "ab" + " c" * 8  # 18 subwords: no room for a term
    requests.clear()
    translator.translate([longest], terminology={"ab": "xy"})
    assert translator.vocabularies.source.written(requests[0].ids) == [longest]


def test_terms_that_the_model_leaves_out_are_forced(trained_with_terms, monkeypatch):
    translator = trained_with_terms
    texts, terms = ["ab cd", "ef", "gh"], {"ab": "xy", "cd": "qr", "ef": "yz"}
    monkeypatch.setattr(terminology, "MAX_LOSS", -math.inf)
    left_out = [row[0] for row in translator.translate(texts, terminology=terms)]
    assert [best.without_terms for best in left_out] == [("xy", "qr"), ("yz",), ()]
    assert not any(term in best.text for best in left_out for term in terms.values())

    monkeypatch.setattr(terminology, "MAX_LOSS", math.inf)
    requests = requests_of(translator, monkeypatch)
    found = [row[0] for row in translator.translate(texts, terminology=terms, scores=False)]
    assert "xy" in found[0].text and "qr" in found[0].text and "yz" in found[1].text
    assert not any(best.without_terms for best in found)
    assert found[2].text == left_out[2].text
    written = translator.vocabularies.source.written(requests[1].ids)
    assert sorted(written) == ["[ab=xy] [cd=qr]", "[ef=yz]"]

    functions = [name for name in translator.engine.functions if name != "constrain_ids"]
    monkeypatch.setattr(translator.engine, "functions", functions)
    found = [row[0] for row in translator.translate(texts, terminology=terms)]
    assert [best.text for best in found] == [best.text for best in left_out]
    assert [best.without_terms for best in found] == [("xy", "qr"), ("yz",), ()]


def test_alignments_are_those_of_the_source_without_terms(trained_with_terms, monkeypatch):
    translator = trained_with_terms
    requests = requests_of(translator, monkeypatch)
    ((answer,),) = translator.translate(["ef ab cd"], aligned=True, terminology={"ab": "xy"})
    assert "".join(answer.pair.source_pieces) == "ef▁ab▁cd</s>"
    assert answer.pair.source_words == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    source = requests[0].ids[0]
    (row,) = translator.vocabularies.target.encode([answer.text])
    (plain,) = translator.engine.explain([source], [np.array([*row, EOS_ID])]).alignment
    # e f _ [ a b = x y ] _ c d </s>, at the positions of e f _ a b _ c d </s>
    positions = [0, 1, 2, 3, 3, 4, 4, 4, 4, 4, 5, 6, 7, 8]
    assert answer.pair.alignment == [positions[at] for at in plain[: answer.tokens]]


def test_a_document_with_terms_keeps_its_marks(trained_with_terms):
    document = trained_with_terms.translate_document(
        "ef *ab* cd", "markdown", terminology={"ab": "xy"}
    )
    ((free, *_),) = trained_with_terms.translate(["ef ab cd"], terminology={"ab": "xy"})
    assert document.replace("*", "").split() == in_document([free]).replace("*", "").split()


def test_a_vocabulary_with_marks_is_not_enough(model):
    """A model that was not trained with terms would copy marks that it does not know."""
    vocabulary = CharactersWithTerms()
    options = DecodingConfig(beam_size=2, extra_length=5, max_source_length=20)
    vocabularies = VocabularyPair(vocabulary, vocabulary)
    assert not translator_with(model, vocabularies, options).knows_terms


def test_a_memory_answers_what_it_has(translator_of, model):
    free = translator_of(model)
    translator = free.with_memory({"ab cd": "xyz", "%s e": "%s f", "g": "abc"})
    texts = ["ab  cd", "h", "%d e", "g"]
    known, other, placed, _ = translator.translate(texts)
    assert [row[0].text for row in (known, placed)] == ["xyz", "%d f"]
    assert [len(known), known[0].from_memory, other[0].from_memory] == [1, True, False]
    assert_same_answer(other, free.translate(["h"])[0])
    (scored,) = free.score(["ab  cd"], ["xyz"])
    penalty = ((5 + scored.tokens) / 6) ** free.config.alpha
    assert known[0].log_prob == pytest.approx(scored.log_prob, rel=1e-5)
    assert known[0].score == pytest.approx(scored.log_prob / penalty, rel=1e-5)
    assert known[0].tokens == scored.tokens
    aligned = translator.translate(texts, aligned=True, scores=False)
    assert aligned[0][0].pair.alignment == free.align(["ab  cd"], ["xyz"])[0].alignment
    assert aligned[0][0].score is None and not aligned[1][0].from_memory
    phrases = [["yz"], [], [], ["de"]]
    found = translator.translate(texts, required_phrases=phrases)
    assert [row[0].from_memory for row in found] == [True, False, True, False]
    assert "de" in found[3][0].text
    (begun,) = translator.translate(["ab cd"], target_prefixes=["q"])
    assert not begun[0].from_memory and begun[0].text.startswith("q")
    with refused("required_phrases", "1 for 4"):
        translator.translate(texts, required_phrases=[[]])
    assert translator.with_alpha(0.0).translate(["g"])[0][0].text == "abc"
    assert not free.translate(["g"])[0][0].from_memory


def test_corrections_come_before_a_memory_and_count_at_once(translator_of, model, tmp_path):
    direction = Direction("en", "de")
    languages = ModelLanguages((direction,), ("de",))
    corrections = Corrections(tmp_path / "mine.tmx", languages)
    memory = {"ab cd": "xyz", "ab ce": "x"}
    translator = translator_of(model).with_memory(memory).with_corrections(corrections)
    assert translator.translate(["ab cd"])[0][0].text == "xyz"
    corrections.add("ab cd", "wxyz", direction)
    assert translator.translate(["ab cd"])[0][0].text == "wxyz"
    assert translator.translate_document("ab  cd") == "wxyz"
    rows = translator.matches(["ab cd", "ab cx", "fghi"], count=2)
    assert [[(match.translation, match.is_correction) for match in row] for row in rows] == [
        [("wxyz", True), ("x", False)],
        [("wxyz", True), ("x", False)],
        [],
    ]
    assert [match.similarity for match in rows[0]] == [1, 0.8]
    assert translator.matches(["ab cx"], least_similarity=0.9) == [[]]
    corrections.remove("ab cd", direction)
    assert translator.translate(["ab cd"])[0][0].text == "xyz"


def test_terms_of_documents_overrule_a_memory_without_them(translator_of, model, monkeypatch):
    monkeypatch.setattr(terminology, "MAX_LOSS", math.inf)
    translator = translator_of(model).with_memory({"ab {x}.": "{x} cde.", "f.": "g."})
    found = translator.translate_document("ab {y}. f.", terminology={"f": "xyz"})
    assert found.startswith("{y} cde. ") and "xyz" in found
    counts = translator.new_counts()
    documents = translator.document_translator(terminology={"f": "xyz"}, counts=counts)
    assert "".join(documents.translate(read_document("ab {y}. f.", "text", "en").parts)) == found
    assert counts.from_memory == 1


def test_the_language_of_a_document_is_that_of_the_data(model, characters):
    options = DecodingConfig(beam_size=1)
    translator = translator_with(model, characters, options, languages=["de", "en"])
    assert translator.document_translator().language == "de"
    assert translator.document_translator("fr").language == "fr"


def test_blank_texts_are_aligned_with_nothing(translator_of, make_model):
    translator = translator_of(make_model(num_layers=1, positions="rotary"))
    for texts in ([""], ["", " "], ["", "ab"]):
        for text, row in zip(texts, translator.translate(texts, aligned=True), strict=True):
            if not text.strip():
                assert row[0].text == "" and row[0].pair.pharaoh == "", texts


def test_what_was_translated_before_does_not_count(translator_of, endless, tmp_path):
    """The model reads so little that a long word cannot be cut."""
    translator = translator_of(endless, max_source_length=8)
    translator.translate(["x" * 1000, "ab"])
    for text in ("ab\ncd\n", "ab\n"):
        (tmp_path / "in.txt").write_text(text)
        config = DocumentConfig(str(tmp_path / "in.txt"), str(tmp_path / "out"))
        result = translate_file(translator, config)
        assert (result["truncated"], result["unfinished"]) == (0, text.count("\n"))


CALIBRATION = Calibration(
    weights={**dict.fromkeys(Evidence._fields, 0.0), "log_prob": 2.0, "coverage": 1.0},
    bias=-0.5,
    good_chrf=40.0,
    sentences=100,
    checkpoint={},
)


@pytest.mark.parametrize("options", [{}, {"beam_size": 1}])
def test_confidence_in_the_guaranteed_translations(translator_of, model, options):
    translator = translator_of(model, **options).with_calibration(CALIBRATION)
    texts = ["abc de", " ", "fgh"]
    rows = translator.translate(texts, confidence=True)
    aligned = translator.translate(texts, aligned=True)
    for text, row, wanted in zip(texts, rows, aligned, strict=True):
        for answer, known in zip(row, wanted, strict=True):
            assert answer.text == known.text and answer.pair is None
            if not text.strip():
                assert answer.confidence is None
                continue
            facts = evidence(text, known.text, known.pair)
            assert answer.confidence == pytest.approx(CALIBRATION.confidence(facts), abs=1e-5)
    both = translator.translate(texts, confidence=True, aligned=True)
    assert [answer.pair is not None for row in both for answer in row] == [True] * sum(
        map(len, aligned)
    )


def test_confidence_is_unknown_without_a_calibration_and_for_a_memory(translator_of, model):
    translator = translator_of(model)
    assert {each.confidence for each in translator.translate(["ab"], confidence=True)[0]} == {None}
    known = translator.with_calibration(CALIBRATION).with_memory({"ab": "xyz"})
    ((remembered,), others) = known.translate(["ab", "cd"], confidence=True)
    assert remembered.confidence is None
    assert all(0 < answer.confidence < 1 for answer in others)


def test_doubtful_sentences_of_a_document_are_counted(translator_of, model):
    translator = translator_of(model).with_calibration(CALIBRATION)
    parts = read_document("ab cd. Efg.\nhi", "text", "en").parts
    documents = translator.document_translator(review_below=0.0)
    _, sentences = documents.translate_sentences(parts)
    confidences = [sentence.confidence for sentence in sentences]
    assert all(0 < confidence < 1 for confidence in confidences)
    for limit in (0.0, sorted(confidences)[1] + 1e-9, 1.0):
        counts = translator.new_counts(limit)
        documents = translator.document_translator(counts=counts, review_below=limit)
        list(documents.translate(parts))
        assert counts.doubtful == sum(confidence < limit for confidence in confidences)
