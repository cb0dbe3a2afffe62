"""Labelled bracket F1 of a parser's trees (Table 4)."""

from collections.abc import Sequence
from typing import Any

from keras_transformer.errors import require
from keras_transformer.parsing.linearisation import NO_TAG
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
