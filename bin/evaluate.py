"""Scores a trained model on a split: BLEU and chrF of its translations, and perplexity.

A parsing model gets EVALB's labelled bracket F1 in place of BLEU. A model of several directions
gets BLEU and chrF for each of them, and their means.
"""

from command import (  # isort: skip  (first: it makes the checkout importable)
    check_model_flags,
    check_output_flag,
    define_model_flags,
    flag_values,
    given_search_flags,
    load_model,
    run,
)

import sys
import time

from absl import flags

from keras_transformer.errors import require
from keras_transformer.files.paths import to_path
from pipelines.data_set import DataSet
from pipelines.evaluation import TOKENIZATIONS, EvaluationConfig, evaluate_on

FLAGS = flags.FLAGS
define_model_flags(__name__)
flags.DEFINE_string("data_dir", None, "Prepared data (bin/prepare_data.py).", required=True)
flags.DEFINE_string("split", "test", "The split of the data to score.")
flags.DEFINE_integer(
    "limit",
    None,
    "The most sentences to translate, of each direction; perplexity is of all.",
    lower_bound=1,
)
flags.DEFINE_string("output", None, "Also write the translations, or trees, here, one a line.")
flags.DEFINE_enum("tokenize", None, TOKENIZATIONS, "sacreBLEU's words; 13a if not given.")
flags.DEFINE_bool("lowercase", False, "Score without regard to case.")
flags.DEFINE_bool(
    "robustness",
    False,
    "Also score the split in capitals, in title case, with typos, without full stops, and words.",
)
flags.DEFINE_bool(
    "choose_alpha",
    False,
    "First choose --alpha on the validation split. The model directory remembers it, so that "
    "translate, serve and export use it.",
)


def main():
    started = time.monotonic()
    check_output_flag("output")
    is_free = not (FLAGS.choose_alpha and FLAGS["alpha"].present)
    require(is_free, "alpha", "must not be given with --choose_alpha", FLAGS.alpha)
    config = EvaluationConfig(**flag_values(EvaluationConfig))
    check_model_flags()
    data = DataSet.open(FLAGS.data_dir)
    config.check(data)
    translator = load_model(n_best=1)
    results = evaluate_on(
        data,
        translator,
        config,
        model_dir=results_dir(),
        notes=given_search_flags(),
        started=started,
    )
    if FLAGS.robustness:
        from keras_transformer.evaluation.robustness import robustness_table

        print(robustness_table(results["robustness"]), file=sys.stderr)
    if "directions" in results:
        from keras_transformer.evaluation.directions import directions_table

        print(directions_table(results), file=sys.stderr)
    return results


def results_dir():
    """The model directory that keeps the results, that of an adapter if there is one.

    None for an export, a file or several models.
    """
    path = FLAGS.model_dir if FLAGS.adapter is None else FLAGS.adapter
    is_directory = path is not None and to_path(path).is_dir()
    return path if is_directory else None


if __name__ == "__main__":
    run(main)
