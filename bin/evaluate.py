"""Scores a trained model on a split: BLEU and chrF of its translations, and perplexity.

A parsing model gets EVALB's labelled bracket F1 in place of BLEU.
"""

from command import run  # isort: skip  (first: it makes the checkout importable)

import time

from absl import flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "A trained model (bin/train.py).", required=True)
flags.DEFINE_string("data_dir", None, "Prepared data (bin/prepare_data.py).", required=True)
flags.DEFINE_string("split", "test", "The split of the data to score.")
flags.DEFINE_string("checkpoint", "latest", "latest, best, average:K, or a checkpoint's path.")
flags.DEFINE_integer(
    "beam_size", None, "Beams; 1 is greedy search. 4 if not given; parsing: 21.", lower_bound=1
)
flags.DEFINE_float(
    "alpha", None, "Length penalty; 0 is none. 0.6 if not given; parsing: 0.3.", lower_bound=0
)
flags.DEFINE_integer("batch_tokens", 4096, "Padded source tokens at once.", lower_bound=1)
flags.DEFINE_integer(
    "limit", None, "Translate so many sentences only; perplexity is of all.", lower_bound=1
)
flags.DEFINE_string("output", None, "Also write the translations, or trees, here, one a line.")
flags.DEFINE_enum("tokenize", "13a", ["13a", "none", "intl", "char", "zh"], "sacreBLEU's words.")
flags.DEFINE_bool("lowercase", False, "Score without regard to case.")

OF_BLEU = ("tokenize", "lowercase")


def main():
    from keras_transformer.decoding.lines import check_output, write_lines
    from keras_transformer.errors import InputError
    from keras_transformer.training.model_directory import read_description
    from pipelines.records import read_metadata

    start = time.monotonic()
    metadata = read_metadata(FLAGS.data_dir)
    description = read_description(FLAGS.model_dir)
    if metadata.fingerprint != description.vocabulary_fingerprint:
        rule = f"--data_dir must have the vocabulary of --model_dir={FLAGS.model_dir}"
        raise InputError(f"{rule}. Received: {FLAGS.data_dir}, which has another")
    if FLAGS.output is not None:
        check_output(FLAGS.output)
    parsing = description.task == "parsing"
    for name in OF_BLEU:
        if parsing and FLAGS[name].present:
            rule = f"--{name} is for translations, and --model_dir has a parser"
            raise InputError(f"{rule}. Received: {FLAGS[name].value}")

    from keras_transformer.decoding.streams import share_cores
    from keras_transformer.decoding.translator import restore_translator
    from keras_transformer.evaluation.paper_bleu import paper_bleu
    from keras_transformer.evaluation.parsing import parsing_scores
    from keras_transformer.evaluation.perplexity import perplexity
    from keras_transformer.evaluation.results import write_results
    from keras_transformer.evaluation.translation import translation_scores
    from keras_transformer.parsing.linearisation import Linearisation
    from keras_transformer.parsing.parser import Parser
    from keras_transformer.vocabulary.subwords import Subwords
    from pipelines.datasets import (
        damage_named,
        evaluation_batches,
        gold_trees,
        split_text,
    )

    share_cores()
    data_dir = FLAGS.data_dir
    sources, references = (side[: FLAGS.limit] for side in split_text(data_dir, FLAGS.split))
    batches = evaluation_batches(data_dir, FLAGS.split, FLAGS.batch_tokens)
    translator, facts = restore_translator(
        FLAGS.model_dir,
        Subwords.load(FLAGS.model_dir),
        FLAGS.checkpoint,
        FLAGS.beam_size,
        FLAGS.alpha,
        FLAGS.batch_tokens,
        n_best=1,
    )
    if parsing:
        gold = gold_trees(data_dir, FLAGS.split)[: FLAGS.limit]
        translator = Parser(translator, Linearisation(**description.task_options))
    found = [best[0] for best in translator.translate(sources, progress=True)]
    translations = [best.text for best in found]
    if FLAGS.output is not None:
        write_lines(FLAGS.output, translations)
    if parsing:
        scores = {**parsing_scores([best.tree for best in found], gold), **translator.counts()}
    else:
        scores = {
            **translation_scores(translations, references, FLAGS.tokenize, FLAGS.lowercase),
            **paper_bleu(translations, references, metadata.languages[1] or "de"),
        }
    with damage_named(data_dir):
        of_records = perplexity(translator.model, batches, progress=True)
    results = {
        **scores,
        **of_records,
        "split": FLAGS.split,
        "sentences": len(sources),
        "truncated": translator.truncated,
        "beam_size": translator.config.beam_size,
        "alpha": translator.config.alpha,
        **facts,
        "data_dir": FLAGS.data_dir,
        "dataset": metadata.settings["--dataset"],
        "languages": metadata.languages,
        "seconds": round(time.monotonic() - start, 3),
    }
    if FLAGS.limit is None:
        write_results(FLAGS.model_dir, FLAGS.split, results)
    return results


if __name__ == "__main__":
    run(main)
