"""Labelled bracket F1 of a parser's trees (Table 4), for a split or for a sample in training."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import keras

from keras_transformer.decoding.answers import text_graphs
from keras_transformer.decoding.parser import Parser
from keras_transformer.decoding.tasks import TASKS
from keras_transformer.errors import require
from keras_transformer.evaluation.sample import SHOWN, SampleTranslation
from keras_transformer.parsing.linearisation import NO_TAG, Linearisation
from keras_transformer.parsing.parseval import percent, score_trees, with_gold_tags
from keras_transformer.parsing.trees import Tree


def parsing_scores(trees: Sequence[Tree], gold: Sequence[Tree]) -> dict[str, Any]:
    """Scores one tree a sentence as EVALB does.

    Punctuation does not count, and the gold tags decide what is punctuation. So a wrong tag lowers
    tagging accuracy but never makes a sentence an error.

    Returns:
        That of score_trees, with two changes: "tagging_accuracy" counts all words, also
        punctuation, and is None if no tags were predicted; "well_formed" is added, the percentage
        of trees over exactly the gold tree's words.

    Raises:
        InputError: if there are no trees, or unequal numbers of them.
    """
    received = f"{len(trees)} trees of {len(gold)} sentences"
    require(len(trees) == len(gold), "F1 needs a tree for each sentence", received)
    tagged = list(map(with_gold_tags, trees, gold))
    tags = [
        ours == theirs
        for tree, other in zip(trees, gold, strict=True)
        for (ours, _), (theirs, _) in zip(tree.leaves(), other.leaves(), strict=False)
    ]
    predicted = any(tag != NO_TAG for tree in trees for tag, _ in tree.leaves())
    same_words = sum(a.words() == b.words() for a, b in zip(trees, gold, strict=True))
    scores = score_trees(gold, tagged)
    del scores["up_to_40_words"]["tagging_accuracy"]  # it would be that of the gold tags
    return {
        **scores,
        "tagging_accuracy": percent(sum(tags), len(tags)) if predicted else None,
        "well_formed": percent(same_words, len(gold)),
    }


class SampleParses(SampleTranslation):
    """Greedy parses of a fixed sample: the `translate_sample` of training.TrainingData.

    Args:
        tokenizer: the vocabulary.
        trees: gold, of the whole split.
        sentences: size of the sample.
        max_length: length of the longest source in subwords.
        linearisation: of the training data.
    """

    def __init__(self, tokenizer, trees: Sequence[Tree], sentences, max_length, linearisation):
        texts = [" ".join(tree.words()) for tree in trees]
        super().__init__(tokenizer, texts, trees, sentences, max_length)
        self.linearisation: Linearisation = linearisation
        extra_length = TASKS["parsing"].extra_length
        self.config = dataclasses.replace(self.config, extra_length=extra_length)

    def make_translator(self, model: keras.Model) -> Parser:
        graphs = text_graphs(model, self.tokenizer, self.config)
        return Parser(graphs, self.config, model.config, self.linearisation)

    def __call__(self, model: keras.Model) -> tuple[dict[str, float], str]:
        """Returns {"f1": percent, "repaired": share in percent}, and trees in Markdown."""
        best = [answers[0] for answers in self.translator_of(model).translate(self.sources)]
        found = [parse.tree for parse in best]
        repaired = sum(parse.repairs.total > 0 for parse in best)
        f1 = parsing_scores(found, self.references)["f1"]
        shown = "\n\n".join(
            f"gold: `{gold}`  \nparsed: `{tree}`"
            for gold, tree in list(zip(self.references, found, strict=True))[:SHOWN]
        )
        return {"f1": f1, "repaired": percent(repaired, len(found))}, shown
