"""Translates a file or a stream, line by line, with a trained model or an exported one.

A parsing model (bin/prepare_data.py --dataset=treebank) gives trees, each in brackets on one line,
for sentences whose words have spaces between them.

The result is one JSON line on stdout, or on stderr where the translations go to stdout. What the
columns of the output are stands in keras_transformer/decoding/lines.py.
"""

from command import run  # isort: skip  (first: it makes the checkout importable)

import json
import sys

from absl import flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "A trained model (bin/train.py); or give --saved_model.")
flags.DEFINE_string("saved_model", None, "An export (bin/export.py); or give --model_dir.")
flags.DEFINE_string("input", "-", "UTF-8 text, a sentence a line; - is stdin.")
flags.DEFINE_string("output", "-", "Where the translations go, a line each; - is stdout.")
flags.DEFINE_integer("n_best", 1, "Translations of a line; more than 1 are numbered by its line.")
flags.DEFINE_bool("scores", False, "Write the score before each translation, and a tab.")
flags.DEFINE_string("checkpoint", "latest", "latest, best, average:K, or a checkpoint's path.")
flags.DEFINE_integer(
    "beam_size", None, "Beams; 1 is greedy search. 4 if not given; parsing: 21.", lower_bound=1
)
flags.DEFINE_float(
    "alpha", None, "Length penalty; 0 is none. 0.6 if not given; parsing: 0.3.", lower_bound=0
)
flags.DEFINE_integer("batch_tokens", 4096, "Padded source tokens at once.", lower_bound=1)
flags.DEFINE_bool("sample", False, "Draw --beam_size translations at random, not the best.")
flags.DEFINE_float("temperature", 1.0, "--sample: logits are divided by it.")
flags.DEFINE_integer("top_k", 0, "--sample: draw among the k most probable subwords; 0 for all.")
flags.DEFINE_float("top_p", 1.0, "--sample: draw among the most probable that make up so much.")
flags.DEFINE_integer("seed", 1, "--sample: the same seed, input and batches draw the same.")

OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")
FIXED_IN_EXPORT = ("checkpoint", "beam_size", "alpha", "batch_tokens", "sample", *OF_SAMPLING)


def main():
    from keras_transformer.decoding.lines import LinesConfig, translate_lines
    from keras_transformer.errors import InputError

    if (FLAGS.model_dir is None) == (FLAGS.saved_model is None):
        received = [name for name in ("model_dir", "saved_model") if FLAGS[name].value is not None]
        rule = "exactly one of --model_dir and --saved_model must be given"
        raise InputError(f"{rule}. Received: {' and '.join(received) or 'neither'}")
    fixed = [name for name in FIXED_IN_EXPORT if FLAGS[name].present and FLAGS.saved_model]
    if fixed:
        rule = f"--{fixed[0]} is fixed in an export, and goes with --model_dir only"
        raise InputError(f"{rule}. Received: {FLAGS[fixed[0]].value}")
    config = LinesConfig(FLAGS.input, FLAGS.output, FLAGS.n_best, FLAGS.scores)
    translator, facts = make_translator()
    result = {**translate_lines(translator, config), **facts}
    if hasattr(translator, "counts"):  # a parser's
        result |= translator.counts()
    if FLAGS.output != "-":
        return result
    print(json.dumps(result, ensure_ascii=False), file=sys.stderr)
    return None


def sampling_config():
    """Returns how to draw, or None for the best."""
    from keras_transformer.decoding.candidates import SamplingConfig
    from keras_transformer.errors import InputError

    for name in OF_SAMPLING:
        if FLAGS[name].present and not FLAGS.sample:
            raise InputError(f"--{name} needs --sample. Received: {FLAGS[name].value}")
    return SamplingConfig(*[FLAGS[name].value for name in OF_SAMPLING]) if FLAGS.sample else None


def make_translator():
    """Returns what translates, and where its weights come from."""
    if FLAGS.saved_model:
        from keras_transformer.decoding.streams import share_cores
        from keras_transformer.export.saved_model import ExportedTranslator

        share_cores()
        exported = ExportedTranslator(FLAGS.saved_model, FLAGS.n_best)
        check_n_best(exported.card["beam_size"])
        return exported, {
            "saved_model": FLAGS.saved_model,
            "checkpoint": exported.card["checkpoint"],
        }

    from keras_transformer.decoding.tasks import task_decoding
    from keras_transformer.parsing.linearisation import Linearisation
    from keras_transformer.parsing.parser import Parser
    from keras_transformer.training.model_directory import read_description

    # Tells a wrong directory before TensorFlow is there.
    description = read_description(FLAGS.model_dir)
    check_n_best(FLAGS.beam_size or task_decoding(description.task).beam_size)

    from keras_transformer.decoding.streams import share_cores
    from keras_transformer.decoding.translator import restore_translator
    from keras_transformer.vocabulary.subwords import Subwords

    share_cores()
    translator, facts = restore_translator(
        FLAGS.model_dir,
        Subwords.load(FLAGS.model_dir),
        FLAGS.checkpoint,
        FLAGS.beam_size,
        FLAGS.alpha,
        FLAGS.batch_tokens,
        None if FLAGS.sample else FLAGS.n_best,
        sampling_config(),
    )
    if description.task == "parsing":
        translator = Parser(translator, Linearisation(**description.task_options))
    return translator, facts


def check_n_best(beam_size):
    """Rejects more translations than beams."""
    from keras_transformer.errors import InputError

    if FLAGS.n_best > beam_size:
        rule = f"--n_best must not exceed the {beam_size} beams"
        raise InputError(f"{rule}. Received: {FLAGS.n_best}")


if __name__ == "__main__":
    run(main)
