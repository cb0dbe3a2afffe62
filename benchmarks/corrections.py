"""Measures how a model learns from a stream of corrections (bin/adapt.py).

    python benchmarks/corrections.py --model_dir=runs/general/model --data_dir=runs/general/data \
        --source=own.train.en --target=own.train.de \
        --test_source=own.test.en --test_target=own.test.de [--corrections=500] [--order=2] \
        [--score_every=250] [--scales 1 0.7] [--set steps=4 ...]

Sentence by sentence, the model with all earlier corrections translates the next one, and then
learns its reference as a correction. The corrections are the first pairs of the files, or, with
--order, a random choice in random order. DATA_DIR is repeated between corrections, and its test
split is the general text. Prints a JSON line for each block of 50 sentences:

    learned                  corrections before the block
    adapted, unadapted      BLEU of the block's sentences, each translated before it was learned

and every SCORE_EVERY corrections and at the end, for each of --scales, and before, for the model
without adapter (scale 0):

    corrections             learned so far
    scale                   of the adapter's updates
    own, general            BLEU of the test files, and of the test split
    as_corrected            share of the corrections' own sentences that come out as corrected
    with_memory             the same, with the corrections as a translation memory, too
    seconds, longest        median and longest time of a correction, with the update of the weights
                            for decoding, in processor time of all threads; without the first three,
                            in which graphs are traced
"""

import argparse
import contextlib
import json
import operator
import random
import tempfile
import time
from collections.abc import Iterator
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
    parser.add_argument("--order", type=int, help="random seed")
    parser.add_argument("--score_every", type=int, default=500)
    parser.add_argument("--test_pairs", type=int, help="the first ones of both test texts")
    parser.add_argument("--scales", type=float, nargs="+", default=[1.0])
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of LearningConfig")
    options = parser.parse_args()
    check_positive(options, "corrections", "score_every")
    with tempfile.TemporaryDirectory() as folder:
        measure(options, Path(folder) / "adapter")


def measure(options: argparse.Namespace, adapter_dir: Path) -> None:
    """Prints the lines described above."""
    from keras_transformer.use.store.model_path import ModelPath
    from keras_transformer.use.store.opening import open_model
    from pipelines.adaptation import opened_adaptation

    pairs = lines_of(options.source, options.target)
    if options.order is not None:
        random.Random(options.order).shuffle(pairs)
    pairs = pairs[: options.corrections]
    tests = {
        "own": lines_of(options.test_source, options.test_target)[: options.test_pairs],
        "general": general_pairs(options.data_dir)[: options.test_pairs],
    }
    stored, config = open_model(ModelPath(options.model_dir)), config_of(options.set)
    with opened_adaptation(stored, adapter_dir, options.data_dir, config) as adaptation:
        translator = translator_with_four_beams(stored)
        print(json.dumps({"corrections": 0, "scale": 0, **scores(translator, tests)}), flush=True)
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
            if len(adapted) % options.score_every == 0 or len(adapted) == len(pairs):
                tests["as_corrected"] = pairs[: len(adapted)]
                rest = seconds[TRACED:] or seconds
                times = {"seconds": round(median(rest), 2), "longest": round(max(rest), 2)}
                for scale in options.scales:
                    with scaled(adaptation, scale):
                        adaptation.update(translator)
                    row = {"corrections": len(adapted), "scale": scale, **scores(translator, tests)}
                    print(json.dumps(row | times), flush=True)
                adaptation.update(translator)


@contextlib.contextmanager
def scaled(adaptation, scale: float) -> Iterator[None]:
    """Scales the adapter's updates, as --adapter_scale does, while the block runs."""
    from keras_transformer.core.training.adapters import adapted_layers

    layers = adapted_layers(adaptation.learner.step.model)
    lora_alpha = adaptation.description.training.lora_alpha
    for layer in layers:
        layer.lora_alpha = scale * lora_alpha
    yield
    for layer in layers:
        layer.lora_alpha = lora_alpha


def scores(translator, tests: dict[str, list[tuple[str, str]]]) -> dict[str, float]:
    """Translates the texts; returns their BLEU, or how many are exactly as their references."""
    results = {}
    for name, pairs in tests.items():
        sources, references = zip(*pairs, strict=True)
        outputs = translations(translator, list(sources))
        if name == "as_corrected":
            same = sum(map(operator.eq, outputs, references))
            results[name] = round(same / len(pairs), 3)
            remembered = translations(translator.with_memory(dict(pairs)), list(sources))
            same = sum(map(operator.eq, remembered, references))
            results["with_memory"] = round(same / len(pairs), 3)
        else:
            results[name] = score(outputs, list(references))
    return results


def lines_of(source: str, target: str) -> list[tuple[str, str]]:
    """Reads sentence pairs from two files."""
    sides = [Path(path).read_text(encoding="utf-8").splitlines() for path in (source, target)]
    return list(zip(*sides, strict=True))


def general_pairs(data_dir: str) -> list[tuple[str, str]]:
    """Reads the test split of a data directory."""
    from pipelines.batches.data_set import DataSet

    return list(zip(*DataSet.open(data_dir).text("test"), strict=True))


def config_of(settings: list[str]):
    """Parses KEY=VALUE settings."""
    from keras_transformer.use.adapt.learning_config import LearningConfig

    values = dict(setting.split("=", 1) for setting in settings)
    return LearningConfig(**{name: json.loads(value) for name, value in values.items()})


def translator_with_four_beams(stored):
    from keras_transformer.loading import translator_of

    return translator_of(stored, {"beam_size": 4, "alpha": 0.6}, needs_tensorflow=True)


def translations(translator, texts: list[str]) -> list[str]:
    return [best.text for best, *_ in translator.translate(texts, scores=False)]


def score(outputs: list[str], references: list[str]) -> float:
    import sacrebleu

    return round(sacrebleu.corpus_bleu(outputs, [references]).score, 2)


def print_block(pairs, adapted: list[str], unadapted: list[str]) -> None:
    """Prints the line of the last block."""
    end = len(adapted)
    block = slice(end - BLOCK, end)
    references = [target for _, target in pairs[block]]
    line = {
        "learned": end - BLOCK,
        "adapted": score(adapted[block], references),
        "unadapted": score(unadapted[block], references),
    }
    print(json.dumps(line), flush=True)
    log(f"{end} corrections")


if __name__ == "__main__":
    run(main)
