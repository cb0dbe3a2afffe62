"""Scores a trained model on a split: BLEU and chrF of its translations, and perplexity.

A parsing model gets EVALB's labelled bracket F1 in place of BLEU.
"""

from command import check_model_flags, define_model_flags, given_search_flags, load_model, run  # isort: skip  (first: it makes the checkout importable)

import time

from absl import flags

from keras_transformer.files import to_path

FLAGS = flags.FLAGS
define_model_flags(__name__)
flags.DEFINE_string("data_dir", None, "Prepared data (bin/prepare_data.py).", required=True)
flags.DEFINE_string("split", "test", "The split of the data to score.")
flags.DEFINE_integer(
    "limit", None, "The most sentences to translate; perplexity is of all.", lower_bound=1
)
flags.DEFINE_string("output", None, "Also write the translations, or trees, here, one a line.")
flags.DEFINE_enum("tokenize", "13a", ["13a", "none", "intl", "char", "zh"], "sacreBLEU's words.")
flags.DEFINE_bool("lowercase", False, "Score without regard to case.")

OF_BLEU = ("tokenize", "lowercase")


def main():
    from keras_transformer.decoding.lines import check_output, write_lines
    from keras_transformer.errors import require
    from pipelines.records import read_metadata

    start = time.monotonic()
    metadata = read_metadata(FLAGS.data_dir)
    check_model_flags()
    if FLAGS.output is not None:
        check_output(FLAGS.output)
    parsing = metadata.task == "parsing"
    for name in OF_BLEU:
        rule = f"--{name} is for translations, and --data_dir has trees"
        require(not (parsing and FLAGS[name].present), rule, FLAGS[name].value)

    from keras_transformer.evaluation.evaluate import evaluate
    from keras_transformer.evaluation.results import write_results
    from pipelines.datasets import damage_named, evaluation_batches, gold_trees, split_text

    texts = [side[: FLAGS.limit] for side in split_text(FLAGS.data_dir, FLAGS.split)]
    trees = gold_trees(FLAGS.data_dir, FLAGS.split)[: FLAGS.limit] if parsing else None
    translator = load_model(n_best=1)
    flag = "model_dir" if FLAGS.model_dir is not None else "saved_model"
    rule = f"--data_dir must have the vocabulary of --{flag}={FLAGS[flag].value}"
    names = ("vocabulary_fingerprint", "source_vocabulary_fingerprint")
    of_model = [translator.card.get(name) for name in names]
    same = [metadata.fingerprint, metadata.source_fingerprint] == of_model
    require(same, rule, f"{FLAGS.data_dir}, which has another. Choose the data of training")
    rule = f"--data_dir must be prepared for the task of the model, {translator.card['task']}"
    same = metadata.task == translator.card["task"]
    require(same, rule, f"{FLAGS.data_dir}, for {metadata.task}")
    batches = evaluation_batches(FLAGS.data_dir, FLAGS.split, translator.config.batch_tokens)
    data = (texts, batches, trees, metadata.languages[1] or "de")
    with damage_named(FLAGS.data_dir):
        scores, answers = evaluate(translator, *data, FLAGS.tokenize, FLAGS.lowercase)
    if FLAGS.output is not None:
        write_lines(FLAGS.output, answers)
    results = {
        **scores,
        "split": FLAGS.split,
        "data_dir": FLAGS.data_dir,
        "dataset": metadata.settings.get("--dataset"),
        "languages": metadata.languages,
        **given_search_flags(),
        "seconds": round(time.monotonic() - start, 3),
    }
    of_directory = FLAGS.model_dir is not None and to_path(FLAGS.model_dir).is_dir()
    if FLAGS.limit is None and of_directory:
        write_results(FLAGS.model_dir, FLAGS.split, results)
    return results


if __name__ == "__main__":
    run(main)
