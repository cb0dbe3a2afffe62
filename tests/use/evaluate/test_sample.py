from xml.etree import ElementTree

from tensorboard import plugin_util

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.parsing.parser import Parser
from keras_transformer.kit.parsing.sample import parsing_sample
from keras_transformer.kit.parsing.trees import parse_trees
from keras_transformer.use.evaluate.sample import SampleAnswers
from keras_transformer.use.translate.translator import Translator
from tests.given_answers import GivenAnswers, card_of
from tests.small_models import Characters, small_model

GOLD = list(
    parse_trees(["(S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .))", "(NP (NN cat))"], "test")
)


def translator_of(answers, task_options=None):
    """A Translator, or with `task_options` a Parser, whose answers are given: text -> answer."""
    given = GivenAnswers(lambda text: [(answers[text], -1.0)])
    task = "translation" if task_options is None else "parsing"
    options = task_options or {}
    card = card_of(TransformerConfig(100), DecodingConfig(1), task=task, task_options=options)
    translator = Translator(given, given.vocabularies, card)
    return translator if task_options is None else Parser(translator)


class GivenSample(SampleAnswers):
    """A sample that a given translator answers."""

    given = None

    def translator_of(self, model):
        return self.given


def cells_of(table):
    """The texts of a table's body, as TensorBoard shows it."""
    rows = ElementTree.fromstring(plugin_util.markdown_to_safe_html(table)).iter("tr")
    header, *body = [[cell.text or "" for cell in row] for row in rows]
    assert header == ["source", "reference", "answer"]
    return body


def test_a_sample_is_translated_and_scored():
    sample = GivenSample(None, ["a", "b"], ["1 2 3 4", "5 6 7 8"], 5, 64)
    sample.given = translator_of({"a": "1 2 3 4", "b": "5 6 7"})
    scores, shown = sample(None)
    # All that was translated is right, but 7 words stand for 8.
    assert scores == {"bleu": 86.6878}  # 100 exp(1 - 8 / 7)
    header = ["| source | reference | answer |", "|---|---|---|"]
    rows = ["| a | 1 2 3 4 | 1 2 3 4 |", "| b | 5 6 7 8 | 5 6 7 |"]
    assert shown.splitlines() == [*header, *rows]
    assert sample.config == DecodingConfig(1, 0.0, 50, max_source_length=64)


def test_a_rather_short_answer_is_logged(caplog):
    sources = ["a b c d", "a", "a b c", "a b"]
    sample = GivenSample(None, sources, ["1 2 3 4"] * 4, 4, 64)
    sample.given = translator_of({source: source.upper() for source in sources})
    caplog.set_level("INFO", "absl")
    sample(None)
    assert [record.getMessage() for record in caplog.records] == ["a b -> A B"]


def test_a_sample_is_parsed_and_scored():
    task_options = {"words": "tags"}
    sources = [" ".join(tree.words()) for tree in GOLD]
    sample = GivenSample(None, sources, GOLD, 5, 64, parsing_sample(task_options))
    tokens = {"the dog barks .": "(S (NP DT NN )NP (VP VBZ )VP . )S", "cat": "(VP XX XX )VP"}
    sample.given = translator_of(tokens, task_options)
    scores, shown = sample(None)
    assert scores == {"f1": 75.0, "repaired": 50.0}  # S, NP, VP of 4 gold and 4 found brackets
    cells = cells_of(shown)
    assert cells[0][:2] == ["the dog barks .", str(GOLD[0])]
    assert cells[1] == ["cat", "(NP (NN cat))", "(VP (XX cat))"]
    assert sample.config.extra_length == 300 and sample.config.beam_size == 1


def test_no_character_of_a_text_is_markdown():
    sources = [
        "a | b \\| `c`",
        "*d* _e_ 1. # [f](g) snake_case",
        "<b>h</b> &amp; $",
        "i\u2028j\rk",
        "",
    ]
    sample = GivenSample(None, sources, sources, 5, 64)
    sample.given = translator_of({source: source for source in sources})
    _, shown = sample(None)
    assert cells_of(shown) == [[source] * 3 for source in sources]


def test_a_sample_is_the_same_each_time_and_in_order():
    def sample_of(sentences):
        texts = [str(n) for n in range(40)]
        sample = SampleAnswers(None, texts, [f"{text}!" for text in texts], sentences, 64)
        assert [f"{source}!" for source in sample.sources] == sample.references
        return [int(source) for source in sample.sources]

    drawn = sample_of(10)
    assert len(set(drawn)) == 10 and drawn == sorted(drawn) == sample_of(10)
    assert sample_of(99) == list(range(40))


def test_each_time_the_weights_are_those_of_the_model():
    """The graphs are traced once; the numbers of the variables that they read change."""
    model, other = small_model(seed=1, num_layers=1), small_model(seed=2, num_layers=1)
    sources, characters = ["ab c", "def"], VocabularyPair(*[Characters()] * 2)
    sample = SampleAnswers(characters, sources, sources, 5, 20)
    before = sample.translator_of(model).translate(sources)
    for variable, value in zip(model.trainable_variables, other.trainable_variables, strict=True):
        variable.assign(value)
    translator = sample.translator_of(model)
    after = translator.translate(sources)
    assert translator is sample.translator_of(model)
    assert translator.engine.graphs.named["search_ids"].experimental_get_tracing_count() == 1
    fresh = SampleAnswers(characters, sources, sources, 5, 20)
    assert after == fresh.translator_of(other).translate(sources)
    assert before != after
