"""Draws the attention of every head for one sentence (Figures 3 to 5) as an HTML page.

The page is a single self-contained file. --picture also draws one layer for a paper (with
matplotlib). A table of the heads goes to stderr.
"""

import sys
from pathlib import Path

from command.files import check_output_flag
from command.model import (
    define_language_flags,
    define_model_flags,
    language_flags,
    load_model,
    open_model_flags,
)
from command.run import run

from absl import flags

FLAGS = flags.FLAGS
define_model_flags()
flags.DEFINE_string("source", None, "Sentence to show.", required=True)
flags.DEFINE_string("target", None, "Its translation; the model's by default.")
flags.DEFINE_string("output", None, "HTML file to write.", required=True)
flags.DEFINE_string("picture", None, "Picture of one layer to write: .svg, .png or .pdf.")
flags.DEFINE_enum(
    "kind", "encoder", ["encoder", "decoder", "cross"], "Attention to draw in --picture."
)
flags.DEFINE_integer(
    "layer", None, "Layer to draw in --picture, from 1; the last but one by default."
)
define_language_flags("Target language, such as de, if the model has several.")
flags.DEFINE_string(
    "heads", None, "Heads to draw in --picture, from 1, such as 5,6; all by default."
)
flags.DEFINE_string("word", None, "Draw only the attention of this word in --picture.")

PICTURE_FLAGS = ("kind", "layer", "heads", "word")
PICTURE_ENDINGS = (".svg", ".png", ".pdf")


def main():
    from keras_transformer.support.errors import require

    for name in ("source", "target"):
        text = FLAGS[name].value
        require(text is None or text.strip(), name, "must contain a word", repr(text))
    check_picture()
    check_output_flag("output")
    check_output_flag("picture", ("output",))
    stored = open_model_flags()

    from keras_transformer.kit.figures.page import attention_page
    from keras_transformer.kit.figures.views import (
        attention_views,
        head_summary,
        summary_table,
        word_labels,
    )

    translator = load_model(stored, needs_tensorflow=True, n_best=1)
    config = translator.card.config
    has_kind = FLAGS.kind != "decoder" or config.decoder_self_attention == "attention"
    rule = "must be encoder or cross, as this decoder has SSRUs in place of self-attention"
    require(has_kind, "kind", rule, FLAGS.kind)
    is_of_encoder = FLAGS.kind == "encoder"
    layer = chosen_layer(config.num_layers if is_of_encoder else config.num_decoder_layers)
    heads = chosen_heads(config.num_heads)
    (source,) = translator.with_codes([FLAGS.source], language_flags(stored))
    target = FLAGS.target
    translation = None
    if target is None:
        target = translation = translator.translate([source])[0][0].text
    views = attention_views(translator.attention(source, target))
    if FLAGS.picture is not None:  # before anything is written: the word may be missing
        write("picture", draw_picture(views, layer, heads))
    page = attention_page(views, FLAGS.source, target).encode("utf-8")
    write("output", page)
    print(summary_table(head_summary(views)), file=sys.stderr)
    return {
        "output": FLAGS.output,
        "bytes": len(page),
        "picture": FLAGS.picture,
        "source_pieces": word_labels(views[0].queries),
        "target_pieces": word_labels(views[-1].queries),
        "translation": translation,
        **translator.checkpoint,
    }


def check_picture():
    """Checks --picture and its related flags before any slow work."""
    from keras_transformer.kit.figures.pictures import INSTALL, has_matplotlib
    from keras_transformer.support.errors import require

    if FLAGS.picture is None:
        for name in PICTURE_FLAGS:
            rule = "must only be given with --picture"
            require(not FLAGS[name].present, name, rule, FLAGS[name].value)
        return
    rule = f"must end in {', '.join(PICTURE_ENDINGS)}"
    require(FLAGS.picture.endswith(PICTURE_ENDINGS), "picture", rule, FLAGS.picture)
    rule = f"must have matplotlib installed ({INSTALL})"
    require(has_matplotlib(), "picture", rule, FLAGS.picture)


def chosen_layer(num_layers):
    """The layer of the picture, from 1."""
    if FLAGS.layer is None:
        return max(1, num_layers - 1)
    return check_number("layer", FLAGS.layer, num_layers)


def chosen_heads(num_heads):
    """The heads of the picture, from 1."""
    if FLAGS.heads is None:
        return list(range(1, num_heads + 1))
    return [check_number("heads", head, num_heads) for head in FLAGS.heads.split(",")]


def check_number(flag, value, count):
    """Parses a number, which must be in 1, ..., count."""
    from keras_transformer.support.errors import require
    from keras_transformer.support.fields import whole_number

    number = whole_number(str(value))
    known = number is not None and 1 <= number <= count
    require(known, flag, f"must be from 1 to {count}", value)
    return number


def draw_picture(views, layer, heads):
    """Returns the content of the file --picture."""
    from keras_transformer.kit.figures.pictures import head_picture
    from keras_transformer.kit.figures.views import word_labels
    from keras_transformer.support.errors import require

    (view,) = (view for view in views if view.kind == FLAGS.kind)
    words = word_labels(view.queries)
    rule = f"must be one of {' '.join(words)}"
    require(FLAGS.word is None or FLAGS.word in words, "word", rule, repr(FLAGS.word))
    ending = Path(FLAGS.picture).suffix.removeprefix(".")
    return head_picture(view, layer, heads, FLAGS.word, ending)


def write(flag, content):
    """Writes a flag's file atomically."""
    from keras_transformer.support.output_files import opened_output

    with opened_output(FLAGS[flag].value) as file:
        file.write(content)


if __name__ == "__main__":
    run(main)
