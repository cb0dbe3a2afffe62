"""Scores a trained model on a split: BLEU and chrF of its translations, and perplexity."""

from command import run  # isort: skip  (first: it makes the checkout importable)

import time

from absl import flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "A trained model (bin/train.py).", required=True)
flags.DEFINE_string("data_dir", None, "Prepared data (bin/prepare_data.py).", required=True)
flags.DEFINE_string("split", "test", "The split of the data to score.")
flags.DEFINE_string("checkpoint", "latest", "latest, best, average:K, or a checkpoint's path.")
flags.DEFINE_integer("beam_size", 4, "Beams; 1 is greedy search.", lower_bound=1)
flags.DEFINE_float("alpha", 0.6, "Length penalty; 0 is none.", lower_bound=0)
flags.DEFINE_integer("batch_tokens", 4096, "Padded source tokens at once.", lower_bound=1)
flags.DEFINE_integer(
    "limit", None, "Translate so many sentences only; perplexity is of all.", lower_bound=1
)
flags.DEFINE_string("output", None, "Also write the translations here, one a line.")
flags.DEFINE_enum("tokenize", "13a", ["13a", "none", "intl", "char", "zh"], "sacreBLEU's words.")
flags.DEFINE_bool("lowercase", False, "Score without regard to case.")


def main():
    from keras_transformer.decoding.lines import check_output, write_lines
    from keras_transformer.errors import InputError
    from keras_transformer.training.model_directory import read_description
    from pipelines.records import read_metadata

    start = time.monotonic()
    fingerprint = read_metadata(FLAGS.data_dir).fingerprint
    if fingerprint != read_description(FLAGS.model_dir).vocabulary_fingerprint:
        rule = f"--data_dir must have the vocabulary of --model_dir={FLAGS.model_dir}"
        raise InputError(f"{rule}. Received: {FLAGS.data_dir}, which has another")
    if FLAGS.output is not None:
        check_output(FLAGS.output)

    from keras_transformer.decoding.translator import restore_translator
    from keras_transformer.evaluation.perplexity import perplexity
    from keras_transformer.evaluation.translation import translation_scores
    from pipelines.subwords import Subwords
    from pipelines.translation import evaluation_batches, split_text

    sources, references = (side[: FLAGS.limit] for side in split_text(FLAGS.data_dir, FLAGS.split))
    batches = evaluation_batches(FLAGS.data_dir, FLAGS.split, FLAGS.batch_tokens)
    translator, facts = restore_translator(
        FLAGS.model_dir,
        Subwords.load(FLAGS.model_dir),
        FLAGS.checkpoint,
        FLAGS.beam_size,
        FLAGS.alpha,
        FLAGS.batch_tokens,
    )
    translations = [best[0].text for best in translator.translate(sources, progress=True)]
    if FLAGS.output is not None:
        write_lines(FLAGS.output, translations)
    return {
        **translation_scores(translations, references, FLAGS.tokenize, FLAGS.lowercase),
        **perplexity(translator.model, batches, progress=True),
        "split": FLAGS.split,
        "sentences": len(sources),
        "truncated": translator.truncated,
        "beam_size": FLAGS.beam_size,
        "alpha": FLAGS.alpha,
        **facts,
        "seconds": round(time.monotonic() - start, 3),
    }


if __name__ == "__main__":
    run(main)
