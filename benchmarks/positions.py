"""Sinusoids (section 3.5) beside learned (Table 3, row E) and rotary positions on unseen lengths.

    python benchmarks/positions.py --data_dir=D --model_dirs=SINUSOIDAL,ROTARY,LEARNED

For models trained in the same way on the same data, prepared with a small --max_length: BLEU by
length of the source, up to the longest length in training and beyond it. Beyond it, the rows of a
learned table are still at their random initial values, and beyond the last row (max_positions)
sources are cut; sinusoids have no end. Also the largest difference of M PE(pos) and PE(pos + k),
for the matrix M that belongs to each offset k. Prints a table on stderr, one JSON line on stdout,
and draws docs/positions.svg.

The chart there is of Multi30k: bin/prepare_data.py --vocab_size=8000 --max_length=16 with its
training files; for --test_source and --test_target, test_2016_flickr and the training pairs of 18
English words or more, which are too long for training. The models and the flags of this program
are those of docs/guides/paper.md.
"""

import argparse
import json
from pathlib import Path

from charts import Line, Panel, draw
from timing import DOCS, check_chart, check_positive, log, require, run

OFFSETS = (1, 10, 100)  # k
POSITIONS = 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", required=True, help="prepared data with a small --max_length")
    parser.add_argument("--model_dirs", required=True, help="trained on it, comma-separated")
    parser.add_argument("--split", default="test")
    parser.add_argument("--checkpoint", default="average:5")
    parser.add_argument("--beam_size", type=int, default=4)
    parser.add_argument("--alpha", type=float, default=0.6)
    parser.add_argument("--bucket", type=int, default=4, help="lengths that a bucket has")
    parser.add_argument("--least", type=int, default=50, help="sentences of a bucket at least")
    parser.add_argument("--output", type=Path, default=DOCS / "positions.svg")
    arguments = parser.parse_args()
    check_positive(arguments, "bucket", "least")
    check_chart("--output", arguments.output)

    from keras_transformer.vocabulary.pair import VocabularyPair
    from pipelines.data_set import DataSet

    data = DataSet.open(arguments.data_dir)
    trained = data.metadata.max_length
    text = data.text(arguments.split)
    # As a model reads them: EOS included.
    vocabulary = VocabularyPair.load(arguments.data_dir).source
    lengths = [len(ids) + 1 for ids in vocabulary.encode(text[0])]
    rule = f"must have sentences of more than {trained} subwords, the longest trained on"
    received = f"{arguments.split}, whose longest has {max(lengths)}"
    require(max(lengths) > trained, "--split", rule, received)
    rule = f"must have sentences of at most {trained} subwords, as those trained on"
    received = f"{arguments.split}, whose shortest has {min(lengths)}"
    require(min(lengths) <= trained, "--split", rule, received)
    buckets = length_buckets(lengths, trained, arguments.bucket, arguments.least)
    model_dirs = arguments.model_dirs.split(",")
    for model_dir in model_dirs:
        check_model(model_dir, arguments.data_dir)
    models = [
        evaluate(model_dir, trained, text, lengths, buckets, arguments) for model_dir in model_dirs
    ]
    print_table(buckets, models)
    draw(arguments.output, panels(buckets, models, trained))
    facts = {"longest_trained_on": trained, "buckets": buckets}
    print(json.dumps({**facts, "models": models, "shift_errors": shift_errors()}))


def length_buckets(lengths, trained, width, least):
    """Cuts lengths into buckets of `width`, or wider if sentences are few; one ends at `trained`.

    Args:
        lengths: of the sources.
        trained: the longest length in training.
        width: lengths of a bucket, at least.
        least: sentences of a bucket, at least, if there are so many on its side of the bound.

    Returns:
        [{"from", "to" (both included), "sentences"}, ...].
    """
    buckets = []
    for first, last in ((1, trained), (trained + 1, max(lengths))):
        side = []
        for end in [*range(first + width - 1, last, width), last]:
            start = side[-1]["to"] + 1 if side else first
            count = sum(start <= length <= end for length in lengths)
            if count >= least:
                side.append({"from": start, "to": end, "sentences": count})
        if not side or side[-1]["to"] < last:  # a rest, which joins the bucket before it
            start = side.pop()["from"] if side else first
            count = sum(start <= length <= last for length in lengths)
            side.append({"from": start, "to": last, "sentences": count})
        buckets += side
    return [bucket for bucket in buckets if bucket["sentences"]]


def evaluate(model_dir, trained, text, lengths, buckets, arguments):
    """Translates everything with one model; scores each bucket, and each side of the bound."""
    from keras_transformer.evaluation.translation import translation_scores
    from keras_transformer.loading import load

    translator = load(
        model_dir,
        arguments.checkpoint,
        beam_size=arguments.beam_size,
        alpha=arguments.alpha,
        max_source_length=max(lengths),  # not cut at the longest of training
    )
    answers = [best for best, *_ in translator.translate(text[0], progress=True)]
    found = [answer.text for answer in answers]

    def scores(first, last):
        rows = [n for n, length in enumerate(lengths) if first <= length <= last]
        pairs = [[side[n] for n in rows] for side in (found, text[1])]
        result = translation_scores(*pairs)
        return {"bleu": round(result["bleu"], 2), "length_ratio": result["length_ratio"]}

    return {
        "positions": translator.card.config.positions,
        "model_dir": model_dir,
        **translator.checkpoint,
        "up_to_trained": scores(1, trained),
        "beyond_trained": scores(trained + 1, max(lengths)),
        "sources_cut": sum(answer.truncated for answer in answers),
        "buckets": [scores(bucket["from"], bucket["to"]) for bucket in buckets],
    }


def check_model(model_dir, data_dir):
    """Rejects models that were trained on other data, or to other lengths."""
    from keras_transformer.training.model_directory import read_description
    from pipelines.metadata import read_metadata

    metadata, description = read_metadata(data_dir), read_description(model_dir)
    wanted = (metadata.fingerprint, metadata.source_fingerprint)
    found = (description.vocabulary_fingerprint, description.source_vocabulary_fingerprint)
    rule = f"must have the vocabulary of --data_dir={data_dir}"
    require(found == wanted, "--model_dirs", rule, f"{model_dir}, which has another")
    longest = description.max_length
    rule = f"must be trained on at most {metadata.max_length} subwords"
    require(longest == metadata.max_length, "--model_dirs", rule, f"{model_dir}, with {longest}")


def shift_errors():
    """Largest |M PE(pos) - PE(pos + k)| of all numbers, by one M for all positions below 1,000."""
    import numpy as np

    from keras_transformer.model.positions import shift_matrix, sinusoids

    encoding = np.asarray(sinusoids(np.arange(POSITIONS + max(OFFSETS)), 512), np.float64)
    errors = {}
    for offset in OFFSETS:
        moved = encoding[:POSITIONS] @ shift_matrix(offset, 512).T
        error = np.abs(moved - encoding[offset : POSITIONS + offset]).max()
        errors[offset] = float(f"{error:.2g}")
    return errors


def print_table(buckets, models):
    from keras_transformer.text_table import text_table

    header = ["subwords", "sentences"]
    for model in models:
        header += [f"{model['positions']}: BLEU", "length ratio"]
    rows = []
    for n, bucket in enumerate(buckets):
        row = [f"{bucket['from']}-{bucket['to']}", bucket["sentences"]]
        for model in models:
            row += model["buckets"][n].values()
        rows.append(row)
    log(text_table(header, rows))


def panels(buckets, models, trained):
    """BLEU and length of translations over the middle of each bucket."""
    middles = [(bucket["from"] + bucket["to"]) / 2 for bucket in buckets]
    found = []
    for name, label in (("bleu", "BLEU"), ("length_ratio", "length / reference")):
        lines = [
            Line(
                f"{model['positions']} positions",
                [(x, each[name]) for x, each in zip(middles, model["buckets"], strict=True)],
                colour,
            )
            for colour, model in enumerate(models)
        ]
        highest = max(y for line in lines for _, y in line.points)
        lines.append(Line("longest trained on", [(trained, 0), (trained, highest)], 7, True))
        title = f"Translations: {label}"
        found.append(Panel(title, "subwords of the source", label, lines, False, False))
    return found


if __name__ == "__main__":
    run(main)
