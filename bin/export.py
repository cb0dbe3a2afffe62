"""Writes a trained model for use elsewhere: text in, text out, vocabulary and search inside."""

from command import run  # isort: skip  (first: it makes the checkout importable)

from absl import flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "A trained model (bin/train.py).", required=True)
flags.DEFINE_string("export_dir", None, "A new directory for the export.", required=True)
flags.DEFINE_enum("format", "saved_model", ["saved_model"], "What to write.")
flags.DEFINE_string("checkpoint", "latest", "latest, best, average:K, or a checkpoint's path.")
flags.DEFINE_integer("beam_size", 4, "Beams; 1 is greedy search.", lower_bound=1)
flags.DEFINE_float("alpha", 0.6, "Length penalty; 0 is none.", lower_bound=0)
flags.DEFINE_bool("overwrite", False, "Replace an earlier export in --export_dir.")


def main():
    from keras_transformer.training.model_directory import read_description

    read_description(FLAGS.model_dir)  # tells a wrong directory before TensorFlow is there

    from keras_transformer.decoding.translator import restore_translator
    from keras_transformer.export.saved_model import check_export_dir, export_saved_model
    from pipelines.subwords import Subwords

    check_export_dir(FLAGS.export_dir, FLAGS.overwrite)
    tokenizer = Subwords.load(FLAGS.model_dir)
    translator, facts = restore_translator(
        FLAGS.model_dir, tokenizer, FLAGS.checkpoint, FLAGS.beam_size, FLAGS.alpha
    )
    return export_saved_model(
        translator.model, tokenizer, translator.config, FLAGS.export_dir, facts, FLAGS.overwrite
    )


if __name__ == "__main__":
    run(main)
