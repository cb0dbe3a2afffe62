"""Translates a file or a stream, line by line, with a trained model or an exported one.

A parsing model (bin/prepare_data.py --dataset=treebank) gives trees, each in brackets on one line,
for sentences whose words have spaces between them.

The result is one JSON line on stdout, or on stderr where the translations go to stdout. What the
columns of the output are stands in keras_transformer/decoding/lines.py.
"""

from command import (  # isort: skip  (first: it makes the checkout importable)
    check_model_flags,
    check_output_flag,
    define_model_flags,
    flag_values,
    lines_of,
    load_model,
    run,
)

import json
import sys

from absl import flags

from keras_transformer.fields import LARGEST_SEED

FLAGS = flags.FLAGS
define_model_flags(__name__)
flags.DEFINE_string("input", "-", "UTF-8 text, a sentence a line; - is stdin.")
flags.DEFINE_string("output", "-", "Where the translations go, a line each; - is stdout.")
flags.DEFINE_integer("n_best", 1, "Translations of a line; more than 1 are numbered by its line.")
flags.DEFINE_bool("scores", False, "Write the score before each translation, and a tab.")
flags.DEFINE_enum(
    "mbr",
    None,
    ["chrf", "bleu"],
    "Rank the --beam_size translations by how much they are like each other (minimum Bayes risk); "
    "scores are then expected chrF or BLEU.",
)
flags.DEFINE_bool("alignments", False, "Write before it which words are aligned, as 0-0 1-2.")
flags.DEFINE_bool("token_scores", False, "Write before it its subwords, a tab, and their log P.")
flags.DEFINE_bool(
    "target_prefixes",
    False,
    "Lines may have a tab, and the beginning of their translation after it.",
)
flags.DEFINE_string(
    "terminology",
    None,
    "A file of terms, a source phrase, a tab and a target phrase on a line: translations of lines "
    "with the first contain the second.",
)
flags.DEFINE_bool("sample", False, "Draw --beam_size translations at random, not the best.")
flags.DEFINE_float("temperature", 1.0, "--sample: logits are divided by it.")
flags.DEFINE_integer("top_k", 0, "--sample: draw among the k most probable subwords; 0 for all.")
flags.DEFINE_float("top_p", 1.0, "--sample: draw among the most probable that make up so much.")
flags.DEFINE_integer(
    "seed",
    1,
    "--sample: the same seed, input and batches draw the same.",
    lower_bound=0,
    upper_bound=LARGEST_SEED,
)

OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")


def main():
    from keras_transformer.decoding.lines import LinesConfig, translate_lines

    check_output_flag("output", ("input", "terminology"))
    config = LinesConfig(**flag_values(LinesConfig) | {"terminology": terminology()})
    check_model_flags(fixed_in_export=("sample", *OF_SAMPLING))
    translator = load_model(n_best=FLAGS.n_best, sampling=sampling_config(), mbr=FLAGS.mbr)
    result = translate_lines(translator, config)
    if FLAGS.saved_model is not None:
        result["saved_model"] = FLAGS.saved_model
    if FLAGS.output != "-":
        return result
    print(json.dumps(result, ensure_ascii=False), file=sys.stderr)
    return None


def terminology():
    """Reads the terms, {source phrase: target phrase}; None without them."""
    from keras_transformer.errors import require

    path, lines, terms = FLAGS.terminology, lines_of("terminology"), {}
    if lines is None:
        return None
    for number, line in enumerate(lines, start=1):
        source, *targets = map(str.strip, line.split("\t"))
        rule = f"{path}:{number} must be a source phrase, a tab and a target phrase"
        require(source and len(targets) == 1 and targets[0], rule, repr(line))
        rule = f"{path}:{number} must have a source phrase that no line before it has"
        require(source not in terms, rule, repr(source))
        terms[source] = targets[0]
    return terms


def sampling_config():
    """Returns how to draw, or None for the best."""
    from keras_transformer.decoding.config import SamplingConfig
    from keras_transformer.errors import require

    for name in OF_SAMPLING:
        given = FLAGS[name].present
        require(FLAGS.sample or not given, f"--{name} needs --sample", FLAGS[name].value)
    return SamplingConfig(*[FLAGS[name].value for name in OF_SAMPLING]) if FLAGS.sample else None


if __name__ == "__main__":
    run(main)
