from keras_transformer.config import TransformerConfig
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.decoding.parser import Parser
from keras_transformer.decoding.translator import Translation, Translator
from keras_transformer.evaluation.sample import SampleAnswers
from keras_transformer.parsing.linearisation import Linearisation
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


def test_a_sample_is_translated_and_scored():
    sample = SampleAnswers(None, ["a", "b"], ["1 2 3 4", "5 6 7 8"], 5, 64)
    kind = answers_of(Translator, {"a": "1 2 3 4", "b": "5 6 7"})
    sample.translator = kind({}, DecodingConfig(1), TransformerConfig(100))
    scores, shown = sample(None)
    # All that was translated is right, but 7 words stand for 8.
    assert scores == {"bleu": 86.6878}  # 100 exp(1 - 8 / 7)
    assert shown == (
        "source: a  \nreference: `1 2 3 4`  \nanswer: `1 2 3 4`\n\n"
        "source: b  \nreference: `5 6 7 8`  \nanswer: `5 6 7`"
    )
    assert sample.config == DecodingConfig(1, 0.0, 50, max_source_length=64)


def test_a_sample_is_parsed_and_scored():
    linearisation = Linearisation("tags")
    card = {"task_options": {"words": "tags"}}
    sources = [" ".join(tree.words()) for tree in GOLD]
    sample = SampleAnswers(None, sources, GOLD, 5, 64, linearisation)
    tokens = {"the dog barks .": "(S (NP DT NN )NP (VP VBZ )VP . )S", "cat": "(VP XX XX )VP"}
    kind = answers_of(Parser, tokens)
    sample.translator = kind({}, DecodingConfig(1), TransformerConfig(100), card)
    scores, shown = sample(None)
    assert scores == {"f1": 75.0, "repaired": 50.0}  # S, NP, VP of 4 gold and 4 found brackets
    assert shown.startswith("source: the dog barks .  \nreference: `(S (NP (DT the) (NN dog))")
    assert shown.endswith("answer: `(VP (XX cat))`")
    assert sample.config.extra_length == 300 and sample.config.beam_size == 1


def test_a_sample_is_the_same_each_time_and_in_order():
    def sample_of(sentences):
        texts = [str(n) for n in range(40)]
        sample = SampleAnswers(None, texts, [f"{text}!" for text in texts], sentences, 64)
        assert [f"{source}!" for source in sample.sources] == sample.references
        return [int(source) for source in sample.sources]

    drawn = sample_of(10)
    assert len(set(drawn)) == 10 and drawn == sorted(drawn) == sample_of(10)
    assert sample_of(99) == list(range(40))
