"""Translates a file or a stream with a trained model or an exported one.

Lines of text may be long, and have any number of sentences: line n of the output translates line n
of the input. With --format=wrapped, lines are parts of paragraphs, as in an e-mail. Files of other
formats keep their structure. With --one_sentence_per_line, as in test sets, a line is given to the
model as it is. That is also so where the output has columns (--n_best, --scores, --alignments,
--token_scores), and with --target_prefixes.

A parsing model (bin/prepare_data.py --dataset=treebank) gives trees, each in brackets on one line,
for lines that are sentences whose words have spaces between them.

The result is one JSON line on stdout, or on stderr where the translations go to stdout. What the
columns of the output are stands in keras_transformer/documents/lines.py.
"""

from command import (  # isort: skip  (first: it makes the checkout importable)
    check_model_flags,
    check_output_flag,
    define_model_flags,
    flag_values,
    lines_of,
    load_model,
    run,
)

import json
import sys

from absl import flags

from keras_transformer.documents.case import CASE_RULES
from keras_transformer.documents.formats import FORMATS
from keras_transformer.fields import LARGEST_SEED

FLAGS = flags.FLAGS
define_model_flags(__name__)
flags.DEFINE_string(
    "input",
    "-",
    "UTF-8 text, or a file of another --format, which may be compressed (.gz, .zst); - is stdin.",
)
flags.DEFINE_string(
    "output",
    "-",
    "Where the translation goes; - is stdout. A file that ends in .gz or .zst is compressed.",
)
flags.DEFINE_enum(
    "format",
    None,
    sorted(FORMATS),
    "What --input is; if not given, by the ending of its name, and text for other endings. Text in "
    "which a paragraph goes over several lines is called wrapped.",
)
flags.DEFINE_list(
    "columns",
    None,
    "--format=tsv, csv or jsonl: the columns or keys that are translated, by name or, from 1, by "
    "number.",
)
flags.DEFINE_string(
    "to",
    None,
    "The language to translate into, such as de, of a model of several; without it, each text must "
    "begin with the code of its language, as >>de<<.",
)
flags.DEFINE_bool(
    "one_sentence_per_line",
    False,
    "Give the model each line as it is: no sentences are looked for, and long lines are cut off.",
)
flags.DEFINE_string(
    "language",
    None,
    "Of --input, such as en, by which sentences are found; that of the training data if not given.",
)
flags.DEFINE_enum(
    "case",
    "auto",
    CASE_RULES,
    "auto: sentences in capitals, and English titles, are translated as if they were none, and "
    "come back in capitals, and as sentences; keep: the model is given what is written.",
)
flags.DEFINE_integer("n_best", 1, "Translations of a line; more than 1 are numbered by its line.")
flags.DEFINE_bool("scores", False, "Write the score before each translation, and a tab.")
flags.DEFINE_enum(
    "mbr",
    None,
    ["chrf", "bleu"],
    "Rank the --beam_size translations by how much they are like each other (minimum Bayes risk); "
    "scores are then expected chrF or BLEU.",
)
flags.DEFINE_bool("alignments", False, "Write before it which words are aligned, as 0-0 1-2.")
flags.DEFINE_bool("token_scores", False, "Write before it its subwords, a tab, and their log P.")
flags.DEFINE_bool(
    "target_prefixes",
    False,
    "Lines may have a tab, and the beginning of their translation after it.",
)
flags.DEFINE_string(
    "terminology",
    None,
    "A file of terms, a source phrase, a tab and a target phrase on a line: translations of lines "
    "with the first contain the second.",
)
flags.DEFINE_bool("sample", False, "Draw --beam_size translations at random, not the best.")
flags.DEFINE_float("temperature", 1.0, "--sample: logits are divided by it.")
flags.DEFINE_integer("top_k", 0, "--sample: draw among the k most probable subwords; 0 for all.")
flags.DEFINE_float("top_p", 1.0, "--sample: draw among the most probable that make up so much.")
flags.DEFINE_integer(
    "seed",
    1,
    "--sample: the same seed, input and batches draw the same.",
    lower_bound=0,
    upper_bound=LARGEST_SEED,
)

OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")
OF_LINES = ("n_best", "scores", "alignments", "token_scores", "target_prefixes")
OF_DOCUMENTS = ("format", "columns", "language", "case")


def main():
    from keras_transformer.documents.document_file import DocumentConfig, translate_file
    from keras_transformer.documents.lines import LinesConfig, translate_lines

    check_output_flag("output", ("input", "terminology"))
    terms = {"terminology": terminology()}
    lines = LinesConfig(**flag_values(LinesConfig) | terms)
    line_by_line = takes_lines()
    columns = None if FLAGS.columns is None else tuple(FLAGS.columns)
    document = None
    if not line_by_line:
        document = DocumentConfig(**flag_values(DocumentConfig) | terms | {"columns": columns})
    check_model_flags(fixed_in_export=("sample", *OF_SAMPLING))
    translator = load_model(n_best=FLAGS.n_best, sampling=sampling_config(), mbr=FLAGS.mbr)
    if translator.card.origin.task == "parsing":
        refuse_document_flags("for a parsing model", FLAGS.model_dir or FLAGS.saved_model)
        line_by_line = True
    if line_by_line:
        result = translate_lines(translator, lines)
    else:
        result = translate_file(translator, document)
    if FLAGS.saved_model is not None:
        result["saved_model"] = FLAGS.saved_model
    if FLAGS.output != "-":
        return result
    print(json.dumps(result, ensure_ascii=False), file=sys.stderr)
    return None


def takes_lines():
    """Whether each line is given to the model as it is."""
    names = ("one_sentence_per_line", *OF_LINES)
    asking = [name for name in names if FLAGS[name].value != FLAGS[name].default]
    if asking:
        refuse_document_flags("where each line is translated as it is", f"--{asking[0]}")
    return bool(asking)


def refuse_document_flags(where, received):
    from keras_transformer.errors import require

    for name in OF_DOCUMENTS:
        require(not FLAGS[name].present, name, f"must not be given {where}", received)


def terminology():
    """Reads the terms, {source phrase: target phrase}; None without them."""
    from keras_transformer.errors import require

    path, lines, terms = FLAGS.terminology, lines_of("terminology"), {}
    if lines is None:
        return None
    for number, line in enumerate(lines, start=1):
        source, *targets = map(str.strip, line.split("\t"))
        place = f"{path}:{number}"
        is_term = source and len(targets) == 1 and targets[0]
        rule = "must be a source phrase, a tab and a target phrase"
        require(is_term, None, rule, repr(line), place)
        rule = "must have a source phrase that no line before it has"
        require(source not in terms, None, rule, repr(source), place)
        terms[source] = targets[0]
    return terms


def sampling_config():
    """Returns how to draw, or None for the best."""
    from keras_transformer.errors import require
    from keras_transformer.search.config import SamplingConfig

    for name in OF_SAMPLING:
        is_free = FLAGS.sample or not FLAGS[name].present
        require(is_free, name, "must be given with --sample", FLAGS[name].value)
    return SamplingConfig(*[FLAGS[name].value for name in OF_SAMPLING]) if FLAGS.sample else None


if __name__ == "__main__":
    run(main)
