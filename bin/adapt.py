"""Adapts a model to corrected translations: an adapter (LoRA) learns them one after another.

The same command, with a file that has grown, learns only what is new. The model itself stays
unchanged: use both with --model_dir and --adapter, or without the adapter. Removing the adapter's
directory undoes everything. Ctrl-C or SIGTERM saves what was learned so far.
"""

import sys

from command.flags import define_flags, flag_values
from command.run import as_typed, run

from absl import flags

from keras_transformer.support.errors import require
from keras_transformer.support.files.paths import to_path
from keras_transformer.use.adapt.learning_config import LearningConfig

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Trained model (bin/train.py) to adapt.", required=True)
flags.DEFINE_string(
    "checkpoint",
    None,
    "latest, best or the path of a checkpoint. Default: the average written by "
    "average_checkpoints, or else the latest.",
)
flags.DEFINE_string(
    "corrections",
    None,
    "Corrected translations (.tmx, .tsv, .jsonl, .po, .xliff), the oldest first.",
    required=True,
)
flags.DEFINE_string(
    "adapter_dir",
    None,
    "Directory for the adapter, and the list of what it learned.",
    required=True,
)
flags.DEFINE_string(
    "data_dir",
    None,
    "The model's training data, or similar data (bin/prepare_data.py). A part of it is repeated "
    "with each correction, so that the quality of other text is kept.",
    required=True,
)
define_flags(LearningConfig, "learning")


def main():
    from keras_transformer.use.store.model_path import ModelPath
    from keras_transformer.use.store.opening import open_model
    from pipelines.adaptation import adapt, check_base
    from pipelines.sources.pair_files import check_pair_file

    config = LearningConfig(**flag_values(LearningConfig))
    check_pair_file(FLAGS.corrections, "corrections")
    is_file = to_path(FLAGS.corrections).is_file()
    require(is_file, "corrections", "must be a file", repr(FLAGS.corrections))
    paths = FLAGS.model_dir.split(",")  # several are refused
    stored = open_model(ModelPath(paths, FLAGS.checkpoint, argument="model_dir"))
    check_base(stored)
    corrections = corrections_of(stored)
    result = adapt(stored, corrections, FLAGS.adapter_dir, FLAGS.data_dir, config)
    if result["checkpoint"] is not None:
        model = (f"--model_dir={FLAGS.model_dir}", f"--adapter={FLAGS.adapter_dir}")
        print(f"to translate with it: {as_typed('translate', *model)}", file=sys.stderr)
    return result


def corrections_of(stored):
    """Reads --corrections in the directions of a model."""
    from keras_transformer.use.store.languages import ModelLanguages, model_languages
    from pipelines.sources.pair_files import read_memory

    languages = model_languages(stored.description) or ModelLanguages((), ())
    return read_memory(FLAGS.corrections, "corrections", languages.directions, languages.coded)


if __name__ == "__main__":
    run(main)
