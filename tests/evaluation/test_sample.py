from xml.etree import ElementTree

from tensorboard import plugin_util

from keras_transformer.config import TransformerConfig
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.decoding.parser import Parser
from keras_transformer.decoding.translator import Translation, Translator
from keras_transformer.evaluation.sample import SampleAnswers
from keras_transformer.parsing.trees import parse_trees

GOLD = list(
    parse_trees(["(S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .))", "(NP (NN cat))"], "test")
)


def answers_of(kind, answers):
    """Makes a subclass of a translator whose answers are given."""

    class Answers(kind):
        def _in_batches(self, signature, inputs, *_):
            return [[Translation(answers[text], -1.0, -1.0, 3)] for text in inputs["text"]]

        def _lengths(self, *_):
            return []

    return Answers


def cells_of(table):
    """The texts of a table's body, as TensorBoard shows it."""
    rows = ElementTree.fromstring(plugin_util.markdown_to_safe_html(table)).iter("tr")
    header, *body = [[cell.text or "" for cell in row] for row in rows]
    assert header == ["source", "reference", "answer"]
    return body


def test_a_sample_is_translated_and_scored():
    sample = SampleAnswers(None, ["a", "b"], ["1 2 3 4", "5 6 7 8"], 5, 64)
    kind = answers_of(Translator, {"a": "1 2 3 4", "b": "5 6 7"})
    sample.translator = kind({}, DecodingConfig(1), TransformerConfig(100))
    scores, shown = sample(None)
    # All that was translated is right, but 7 words stand for 8.
    assert scores == {"bleu": 86.6878}  # 100 exp(1 - 8 / 7)
    header = ["| source | reference | answer |", "|---|---|---|"]
    rows = ["| a | 1 2 3 4 | 1 2 3 4 |", "| b | 5 6 7 8 | 5 6 7 |"]
    assert shown.splitlines() == [*header, *rows]
    assert sample.config == DecodingConfig(1, 0.0, 50, max_source_length=64)


def test_a_sample_is_parsed_and_scored():
    card = {"task_options": {"words": "tags"}}
    sources = [" ".join(tree.words()) for tree in GOLD]
    sample = SampleAnswers(None, sources, GOLD, 5, 64, card["task_options"])
    tokens = {"the dog barks .": "(S (NP DT NN )NP (VP VBZ )VP . )S", "cat": "(VP XX XX )VP"}
    kind = answers_of(Parser, tokens)
    sample.translator = kind({}, DecodingConfig(1), TransformerConfig(100), card)
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
    sample = SampleAnswers(None, sources, sources, 5, 64)
    same = answers_of(Translator, {source: source for source in sources})
    sample.translator = same({}, DecodingConfig(1), TransformerConfig(100))
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
