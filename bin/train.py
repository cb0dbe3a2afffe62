"""Trains a Transformer on prepared data, or resumes the run of the same command."""

from command import flag_values, run, show_curves  # isort: skip  (first: it makes the checkout importable)

from absl import flags

from keras_transformer.fields import LARGEST_SEED
from keras_transformer.presets import PRESETS

FLAGS = flags.FLAGS
flags.DEFINE_string("data_dir", None, "Prepared data (bin/prepare_data.py).", required=True)
flags.DEFINE_string("model_dir", None, "Checkpoints, curves and settings go here.", required=True)
flags.DEFINE_string("preset", "base", f"The model: {', '.join(PRESETS)}; else --init_from's.")
flags.DEFINE_multi_string(
    "config", [], "KEY=VALUE of TransformerConfig or TrainingConfig, over the preset's. Repeatable."
)
TRAINED = "Begin with the weights of a model directory, a checkpoint, an export or a .keras file."
flags.DEFINE_string("init_from", None, TRAINED)
# Fields of TrainingConfig.
RANK = "Train an adapter of this rank for --init_from, which stays as it is (LoRA)."
flags.DEFINE_integer("lora_rank", None, RANK)
ALPHA = "What the adapter adds is times alpha / rank; --lora_rank if not given."
flags.DEFINE_float("lora_alpha", None, ALPHA)
flags.DEFINE_string("freeze", "", "Parts of the model that keep their weights: encoder,embedding")
TOKENS = "Padded tokens a side of one optimizer step; or what the preset says."
flags.DEFINE_integer("tokens_per_batch", 25000, TOKENS)
flags.DEFINE_integer("accumulate_steps", 1, "Parts that a step's gradients are computed in.")
flags.DEFINE_float("clip_norm", 0.0, "The largest norm of all gradients together; 0 for any.")
PRECISIONS = ["float32", "bfloat16", "float16"]
flags.DEFINE_enum("precision", "float32", PRECISIONS, "Type of the activations.")
flags.DEFINE_integer(
    "seed",
    1,
    "Of weights, dropout and the order of the data.",
    lower_bound=0,
    upper_bound=LARGEST_SEED,
)
# Fields of LoopConfig.
MINUTES = (
    "Minutes of training over all starts of the run, if they end before train_steps. The first "
    "step of each start, which compiles, is not counted."
)
flags.DEFINE_integer("train_steps", 100_000, "Optimizer steps, over all starts of the run.")
flags.DEFINE_float("train_minutes", None, MINUTES)
flags.DEFINE_float("checkpoint_minutes", 10, "Minutes between validations and checkpoints.")
flags.DEFINE_integer(
    "checkpoint_steps", None, "Steps between validations and checkpoints, where these end first."
)
flags.DEFINE_integer("keep_checkpoints", 20, "How many of the last checkpoints to keep.")
flags.DEFINE_integer("log_steps", 50, "Steps between points of the curves.")
flags.DEFINE_integer("max_skipped_steps", 100, "Steps in a row without finite gradients to end at.")
flags.DEFINE_string("best_metric", "loss", "Metric that chooses `best`: loss, bleu or f1.")
flags.DEFINE_integer("patience", None, "Validations without a better best_metric to stop after.")
flags.DEFINE_bool("histograms", False, "Write histograms of all parameters at each validation.")
flags.DEFINE_list("profile_steps", None, "FIRST,LAST: write a profile of these steps.")
flags.DEFINE_enum("xla", "auto", ["auto", "on", "off"], "Compile steps; auto: if there is a GPU.")
# Fields of DeviceConfig.
STRATEGIES = ["one_device", "mirrored", "multi_worker"]
WORKERS = "Where to train; multi_worker: the workers that TF_CONFIG or Slurm names."
flags.DEFINE_enum("strategy", "one_device", STRATEGIES, WORKERS)
flags.DEFINE_integer("replicas", None, "Logical CPU devices per worker, instead of all GPUs.")
flags.DEFINE_float("connect_seconds", 300, "multi_worker: seconds to wait for all workers.")
flags.DEFINE_bool("deterministic", False, "Make a run repeatable bit for bit (slower on a GPU).")

SAMPLE = "Validation sentences for BLEU or F1 in training; 0 for none."
flags.DEFINE_integer("sample_sentences", 100, SAMPLE, lower_bound=0)


def main():
    from keras_transformer.config import TrainingConfig, parse_settings
    from keras_transformer.training.device_config import DeviceConfig
    from keras_transformer.training.loop_config import LoopConfig
    from pipelines.training import train_on

    values = flag_values(TrainingConfig)
    given = {name: value for name, value in values.items() if FLAGS[name].present}
    result = train_on(
        FLAGS.data_dir,
        FLAGS.model_dir,
        preset=FLAGS.preset if FLAGS["preset"].present else None,
        settings={**given, **parse_settings(FLAGS.config)},
        init_from=FLAGS.init_from,
        loop=LoopConfig(**flag_values(LoopConfig)),
        devices=DeviceConfig(**flag_values(DeviceConfig)),
        sample_sentences=FLAGS.sample_sentences,
    )
    if "worker" not in result:  # the chief, or a single process
        show_curves(FLAGS.model_dir)
    return result


if __name__ == "__main__":
    run(main)
