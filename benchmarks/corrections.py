"""Measures how a model learns from a stream of corrections (bin/adapt.py).

    python benchmarks/corrections.py --model_dir=runs/general/model --data_dir=runs/general/data \
        --source=own.train.en --target=own.train.de \
        --test_source=own.test.en --test_target=own.test.de [--corrections=500] [--set steps=4 ...]

Sentence by sentence, the model with all earlier corrections translates the next one, and then
learns its reference as a correction. DATA_DIR is repeated between corrections, unless --no_replay
is given, and its test split is the general text. Prints a JSON line for each block of 50 sentences:

    learnt                  corrections before the block
    adapted, unadapted      BLEU of the block's sentences, each translated before it was learnt

and at the end, before and after all corrections:

    own, general            BLEU of the test files, and of the test split
    as_corrected            share of the corrections' own sentences that come out as corrected
    seconds, longest        median and longest time of a correction, with the update of the weights
                            for decoding, in processor time of all threads; without the first three,
                            in which graphs are traced
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median

from timing import check_positive, log, run

BLOCK = 50
TRACED = 3  # corrections that also trace graphs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model_dir", "data_dir", "source", "target", "test_source", "test_target"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--corrections", type=int, default=500)
    parser.add_argument("--no_replay", action="store_true")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of LearningConfig")
    options = parser.parse_args()
    check_positive(options, "corrections")
    with tempfile.TemporaryDirectory() as folder:
        measure(options, Path(folder) / "adapter")


def measure(options: argparse.Namespace, adapter_dir: Path) -> None:
    """Prints the lines described above."""
    from keras_transformer.store.model_path import ModelPath
    from keras_transformer.store.opening import open_model
    from pipelines.adaptation import opened_adaptation

    pairs = lines_of(options.source, options.target)[: options.corrections]
    tests = {
        "own": lines_of(options.test_source, options.test_target),
        "general": general_pairs(options.data_dir),
    }
    stored = open_model(ModelPath(options.model_dir))
    data_dir = None if options.no_replay else options.data_dir
    with opened_adaptation(stored, adapter_dir, data_dir, config_of(options.set)) as adaptation:
        translator = translator_with_four_beams(stored)
        before = {name: bleu(translator, pairs_of) for name, pairs_of in tests.items()}
        unadapted = translations(translator, [source for source, _ in pairs])
        adapted, seconds = [], []
        for source, target in pairs:
            adapted += translations(translator, [source])
            started = time.process_time()
            adaptation.learn({source: target})
            adaptation.update(translator)
            seconds.append(time.process_time() - started)
            if len(adapted) % BLOCK == 0:
                print_block(pairs, adapted, unadapted)
        after = {name: bleu(translator, pairs_of) for name, pairs_of in tests.items()}
        outputs = translations(translator, [source for source, _ in pairs])
    same = sum(output == target for output, (_, target) in zip(outputs, pairs, strict=True))
    rest = seconds[TRACED:] or seconds
    result = {
        **{name: [before[name], after[name]] for name in tests},
        "as_corrected": round(same / len(pairs), 3),
        "seconds": round(median(rest), 2),
        "longest": round(max(rest), 2),
    }
    print(json.dumps(result), flush=True)


def lines_of(source: str, target: str) -> list[tuple[str, str]]:
    """Reads sentence pairs from two files."""
    sides = [Path(path).read_text(encoding="utf-8").splitlines() for path in (source, target)]
    return list(zip(*sides, strict=True))


def general_pairs(data_dir: str) -> list[tuple[str, str]]:
    """Reads the test split of a data directory."""
    from pipelines.data_set import DataSet

    return list(zip(*DataSet.open(data_dir).text("test"), strict=True))


def config_of(settings: list[str]):
    """Parses KEY=VALUE settings."""
    from keras_transformer.training.learning_config import LearningConfig

    values = dict(setting.split("=", 1) for setting in settings)
    return LearningConfig(**{name: json.loads(value) for name, value in values.items()})


def translator_with_four_beams(stored):
    from keras_transformer.loading import translator_of

    return translator_of(stored, {"beam_size": 4, "alpha": 0.6})


def translations(translator, texts: list[str]) -> list[str]:
    return [best.text for best, *_ in translator.translate(texts, scores=False)]


def bleu(translator, pairs: list[tuple[str, str]]) -> float:
    sources, references = zip(*pairs, strict=True)
    return score(translations(translator, list(sources)), list(references))


def score(outputs: list[str], references: list[str]) -> float:
    import sacrebleu

    return round(sacrebleu.corpus_bleu(outputs, [references]).score, 2)


def print_block(pairs, adapted: list[str], unadapted: list[str]) -> None:
    """Prints the line of the last block."""
    end = len(adapted)
    block = slice(end - BLOCK, end)
    references = [target for _, target in pairs[block]]
    line = {
        "learnt": end - BLOCK,
        "adapted": score(adapted[block], references),
        "unadapted": score(unadapted[block], references),
    }
    print(json.dumps(line), flush=True)
    log(f"{end} corrections")


if __name__ == "__main__":
    run(main)
