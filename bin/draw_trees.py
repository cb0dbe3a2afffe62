"""Draws the trees of a file as text, as one SVG picture, or as an HTML page.

With --gold, the gold trees are drawn too, and brackets that only one of the two trees has are
marked. The result then has the scores of all trees (keras_transformer/parsing/parseval.py). It is
one JSON line on stdout, or on stderr if the trees are written to stdout.
"""

from command import run  # isort: skip  (first: it makes the checkout importable)

import json
import sys
from pathlib import Path

from absl import flags

FLAGS = flags.FLAGS
flags.DEFINE_string("trees", None, "Trees in brackets: plain, .gz or .zst.", required=True)
flags.DEFINE_string("gold", None, "The gold trees of the same sentences, in the same order.")
flags.DEFINE_string("output", "-", "FILE.html, FILE.svg (the first tree), or - for text.")
flags.DEFINE_integer("first", 1, "The first tree to draw, from 1.", lower_bound=1)
flags.DEFINE_bool("clean", True, "Remove traces and function tags before drawing.")
flags.DEFINE_integer("count", 20, "How many trees to draw.", lower_bound=1)


def main():
    from keras_transformer.errors import InputError, reason, require
    from keras_transformer.parsing.parseval import score_trees
    from keras_transformer.parsing.trees import clean, read_trees

    known = FLAGS.output == "-" or Path(FLAGS.output).suffix in (".html", ".svg")
    require(known, "--output must be FILE.html, FILE.svg or -", FLAGS.output)
    trees, gold, scores = list(read_trees(FLAGS.trees)), [], None
    rule = f"--first must not exceed the number of trees in {FLAGS.trees}, {len(trees)}"
    require(FLAGS.first <= len(trees), rule, FLAGS.first)
    if FLAGS.gold:
        gold = list(read_trees(FLAGS.gold))
        try:
            scores = score_trees(gold, trees)
        except InputError as error:
            raise InputError(f"--trees={FLAGS.trees} --gold={FLAGS.gold}: {error}") from None
    drawn = slice(FLAGS.first - 1, FLAGS.first - 1 + FLAGS.count)
    prepare = clean if FLAGS.clean else lambda tree: tree
    trees, gold = [[prepare(tree) for tree in part[drawn]] for part in (trees, gold)]
    result = {"output": FLAGS.output, **(scores or {})}
    picture = draw(trees, gold, scores)
    if FLAGS.output == "-":
        print(picture)
        print(json.dumps(result), file=sys.stderr)
        return None
    try:
        Path(FLAGS.output).write_text(picture, encoding="utf-8")
    except OSError as error:
        rule = "--output must be a file that can be written"
        raise InputError(f"{rule}. Received: {FLAGS.output} ({reason(error)})") from None
    return result


def draw(trees, gold, scores):
    from keras_transformer.parsing.drawing import svg_tree, text_tree, tree_page
    from keras_transformer.parsing.parseval import score_sentence

    if FLAGS.output.endswith(".html"):
        return tree_page(trees, gold, FLAGS.first, scores)
    found = [score_sentence(*pair) for pair in zip(gold, trees, strict=False)]
    if FLAGS.output.endswith(".svg"):
        return svg_tree(trees[0], found[0].wrong if gold else ())
    pictures = []
    for index, tree in enumerate(trees):
        wrong = found[index].wrong if gold else ()
        pictures += [f"tree {FLAGS.first + index}", text_tree(tree, wrong)]
        if gold:
            pictures += ["gold", text_tree(gold[index], found[index].missed)]
    return "\n".join(pictures)


if __name__ == "__main__":
    run(main)
