"""Draws the trees in a file as text, as one SVG picture, or as an HTML page.

With --gold, the gold trees are drawn too, brackets found in only one of the two trees are marked,
and the result includes the scores of all trees (keras_transformer/parsing/parseval.py). The result
is one JSON line on stdout, or on stderr if the trees are written to stdout.
"""

from command import check_output_flag, run  # isort: skip  (first: it makes the checkout importable)

import json
import sys
from pathlib import Path

from absl import flags

FLAGS = flags.FLAGS
flags.DEFINE_string("trees", None, "File of bracketed trees: plain, .gz or .zst.", required=True)
flags.DEFINE_string("gold", None, "Gold trees for the same sentences, in the same order.")
flags.DEFINE_string("output", "-", "FILE.html, FILE.svg (the first tree), or - for text.")
flags.DEFINE_integer("first", 1, "First tree to draw, from 1.", lower_bound=1)
flags.DEFINE_bool("clean", True, "Remove traces and function tags before drawing.")
flags.DEFINE_integer("count", 20, "Number of trees to draw.", lower_bound=1)


def main():
    from keras_transformer.errors import require
    from keras_transformer.output_files import opened_output
    from keras_transformer.parsing.trees import clean, read_trees

    known = FLAGS.output == "-" or Path(FLAGS.output).suffix in (".html", ".svg")
    require(known, "output", "must be FILE.html, FILE.svg or -", FLAGS.output)
    check_output_flag("output", ("trees", "gold"))
    trees = list(read_trees(FLAGS.trees))
    gold = list(read_trees(FLAGS.gold)) if FLAGS.gold else []
    rule = f"must not exceed the number of trees in {FLAGS.trees}, {len(trees)}"
    require(FLAGS.first <= len(trees), "first", rule, FLAGS.first)
    scores = compare(trees, gold) if FLAGS.gold else None
    drawn = slice(FLAGS.first - 1, FLAGS.first - 1 + FLAGS.count)
    trees = trees[drawn]
    gold = gold[drawn]
    if FLAGS.clean:
        trees = [clean(tree) for tree in trees]
        gold = [clean(tree) for tree in gold]
    result = {"output": FLAGS.output, **(scores or {})}
    if FLAGS.output == "-":
        print(draw_text(trees, gold))
        print(json.dumps(result), file=sys.stderr)
        return None
    with opened_output(FLAGS.output) as file:
        file.write(draw_page(trees, gold, scores).encode("utf-8"))
    return result


def compare(trees, gold):
    """Returns the scores of all trees."""
    from keras_transformer.errors import InputError
    from keras_transformer.parsing.parseval import score_trees

    try:
        return score_trees(gold, trees)
    except InputError as error:
        place = f"--trees={FLAGS.trees} --gold={FLAGS.gold}"
        raise error.replaced(place=place) from None


def draw_page(trees, gold, scores):
    """Returns the content of an HTML page, or of an SVG picture of the first tree."""
    from keras_transformer.parsing.drawing import svg_tree, tree_page
    from keras_transformer.parsing.parseval import score_sentence

    if FLAGS.output.endswith(".html"):
        return tree_page(trees, gold, FLAGS.first, scores)
    wrong = score_sentence(gold[0], trees[0]).wrong if gold else ()
    return svg_tree(trees[0], wrong)


def draw_text(trees, gold):
    """Returns the trees as lines of text, each above its gold tree."""
    from keras_transformer.parsing.drawing import text_tree
    from keras_transformer.parsing.parseval import score_sentence

    pictures = []
    for index, tree in enumerate(trees):
        pictures.append(f"tree {FLAGS.first + index}")
        if gold:
            score = score_sentence(gold[index], tree)
            pictures += [text_tree(tree, score.wrong), "gold", text_tree(gold[index], score.missed)]
        else:
            pictures.append(text_tree(tree))
    return "\n".join(pictures)


if __name__ == "__main__":
    run(main)
