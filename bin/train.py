"""Trains a Transformer on prepared data; the same command resumes an interrupted run."""

from command.flags import define_flags, flag_values
from command.help import ADVANCED
from command.run import run, show_curves

from absl import flags

from keras_transformer.core.config import TrainingConfig
from keras_transformer.core.presets import PRESETS
from keras_transformer.core.training.run_config import DeviceConfig, LoopConfig
from keras_transformer.support.xla_cache import default_folder, keep_programs

FLAGS = flags.FLAGS
flags.DEFINE_string("data_dir", None, "Prepared data (bin/prepare_data.py).", required=True)
flags.DEFINE_string("model_dir", None, "For checkpoints, curves and settings.", required=True)
flags.DEFINE_string(
    "preset", "base", f"Model: {', '.join(PRESETS)}. With --init_from, its model is the default."
)
flags.DEFINE_multi_string(
    "config",
    [],
    "KEY=VALUE that overrides a field of TransformerConfig or TrainingConfig, "
    "which keras_transformer/core/config.py lists.",
)
flags.DEFINE_string(
    "init_from",
    None,
    "Start from the weights of a model directory, a checkpoint, an export or a .keras file.",
)
flags.DEFINE_integer(
    "sample_sentences",
    100,
    "Number of sentences to translate or parse at each validation, for BLEU or F1; 0 for none.",
    lower_bound=0,
)
ADVANCED.add("sample_sentences")
define_flags(TrainingConfig, "optimization")
define_flags(LoopConfig, "when to stop, save and report")
define_flags(DeviceConfig, "devices")


def main():
    from keras_transformer.core.config import parse_settings
    from pipelines.training import train_on

    values = flag_values(TrainingConfig)
    TrainingConfig(**values)  # checks the values
    loop = LoopConfig(**flag_values(LoopConfig))
    if loop.xla != "off":
        keep_programs(default_folder())
    chosen = {name: value for name, value in values.items() if FLAGS[name].present}
    result = train_on(
        FLAGS.data_dir,
        FLAGS.model_dir,
        preset=FLAGS.preset if FLAGS["preset"].present else None,
        settings={**chosen, **parse_settings(FLAGS.config)},
        init_from=FLAGS.init_from,
        loop=loop,
        devices=DeviceConfig(**flag_values(DeviceConfig)),
        sample_sentences=FLAGS.sample_sentences,
    )
    if "worker" not in result:  # the chief, or a single process
        show_curves(FLAGS.model_dir)
    return result


if __name__ == "__main__":
    run(main)
