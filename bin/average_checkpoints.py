"""Averages the weights of a model's last checkpoints, as in section 6.1.

From then on, all programs use the average unless --checkpoint selects other weights.
"""

from command.run import run

from absl import flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "A trained model (bin/train.py).", required=True)
flags.DEFINE_integer(
    "last", 5, "Number of checkpoints; the paper averages 5 for base and 20 for big."
)


def main():
    from keras_transformer.core.training.model_directory import read_description
    from keras_transformer.support.errors import require

    read_description(FLAGS.model_dir)  # fails before TensorFlow is imported
    require(FLAGS.last >= 1, "last", "must be at least 1", FLAGS.last)

    from keras_transformer.core.training.checkpoint_weights import average_checkpoints

    return average_checkpoints(FLAGS.model_dir, FLAGS.last).to_json()


if __name__ == "__main__":
    run(main)
