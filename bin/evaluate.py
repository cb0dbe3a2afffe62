"""Scores a trained model on a split: BLEU and chrF of its translations, and perplexity.

For a parsing model, EVALB's labelled bracket F1 replaces BLEU. For a model with several directions,
BLEU and chrF are reported for each of them and as means.
"""

import sys
import time

from command.files import check_output_flag
from command.flags import define_flags, flag_values
from command.model import (
    define_engine_flag,
    define_model_flags,
    given_search_flags,
    load_model,
    open_model_flags,
)
from command.run import run

from absl import flags

from keras_transformer.support.errors import require
from pipelines.batches.data_set import DataSet
from pipelines.evaluation import EvaluationConfig, evaluate_on

FLAGS = flags.FLAGS
define_model_flags()
define_engine_flag()
flags.DEFINE_string("data_dir", None, "Prepared data (bin/prepare_data.py).", required=True)
define_flags(EvaluationConfig, "scores")


def main():
    started = time.monotonic()
    check_output_flag("output")
    config = EvaluationConfig(**flag_values(EvaluationConfig))
    config.check_alpha(FLAGS.alpha if FLAGS["alpha"].present else None)
    if config.choose_alpha:
        rule = "must be auto or tensorflow with --choose_alpha"
        require(FLAGS.engine != "ctranslate2", "engine", rule, FLAGS.engine)
    stored = open_model_flags()
    data = DataSet.open(FLAGS.data_dir)
    config.check(data)
    translator = load_model(stored, needs_tensorflow=config.choose_alpha, n_best=1)
    results = evaluate_on(
        data,
        translator,
        config,
        model_dir=stored.results_dir,
        notes=given_search_flags(),
        started=started,
    )
    if FLAGS.robustness:
        from keras_transformer.use.evaluate.robustness import robustness_table

        print(robustness_table(results["robustness"]), file=sys.stderr)
    if "directions" in results:
        from keras_transformer.use.evaluate.directions import directions_table

        print(directions_table(results), file=sys.stderr)
    return results


if __name__ == "__main__":
    run(main)
