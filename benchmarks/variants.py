"""What each change to the architecture since 2017 brings to a translation model.

    python benchmarks/variants.py --data_dir=runs/multi30k/data --model_dir=runs/variants \
        --train_steps=6300 --seeds=1,2,3 --alpha=1.4 --preset=tiny --tokens_per_batch=3000 \
        --config dropout=0.3 --config warmup_steps=1000 --config learning_rate=4e-3 \
        --config decay=linear

Each variant is one or more settings beside those of the command line (`VARIANTS`). It is trained by
bin/train.py in MODEL_DIR/VARIANT-SEED, on the same batches as the others, and scored by
bin/evaluate.py. Gated networks have two thirds of the d_ff, rounded to a multiple of 16, so that
all variants have as many parameters, but for less than 2%. A run's result is kept in
MODEL_DIR/VARIANT-SEED.json, and a run that has one is not measured again; one that was interrupted
continues. So two processes, each with some of the variants, share the work, and a third prints the
table of all. Prints a table in Markdown on stdout: BLEU of each split, the mean of the seeds and
their range, and the loss on the validation split after the last step.

Runs of different hours tell nothing of speed. With --speed_rounds=N, nothing is trained: the
variants take turns, N times. They train in float32 on random batches of 160 pairs of 24 tokens; and
where MODEL_DIR has been trained, the models of the first seed translate the test split of DATA_DIR
with beam 4. Each table has target tokens a second, and the time that a token takes beside that of
`pre`, as medians over the rounds.
"""

import argparse
import time
from pathlib import Path
from statistics import mean, median

from timing import check_positive, log, measured_once, require, run
from training import SHAPES
from workers import run_program, run_worker

from keras_transformer.config import GATED
from keras_transformer.presets import preset

SPEED_WORK = SHAPES["tiny"]
POST = {"norm": "post", "positions": "sinusoidal", "activation": "relu"}
PRE = {**POST, "norm": "pre"}
# name -> settings; `settings_of` adds d_ff.
VARIANTS: dict[str, dict[str, str]] = {
    "post": POST,
    "pre": PRE,
    "rotary": {**PRE, "positions": "rotary"},
    "swiglu": {**PRE, "activation": "swiglu"},
    "both": {**PRE, "positions": "rotary", "activation": "swiglu"},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", help="what the variants learn from")
    parser.add_argument("--model_dir", type=Path, help="each run gets a folder here")
    parser.add_argument("--speed_rounds", type=int, default=0, help="to time steps instead")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--splits", default="validation,test", help="the splits to score")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--train_steps", type=int, default=6300)
    parser.add_argument("--tokens_per_batch", type=int, default=3000)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--config", action="append", default=[], help="KEY=VALUE for every run")
    parser.add_argument("--alpha", type=float, default=0.6)
    arguments = parser.parse_args()
    check_positive(arguments, "train_steps", "tokens_per_batch")
    names = arguments.variants.split(",")
    unknown = [name for name in names if name not in VARIANTS]
    require(not unknown, "--variants", f"must be of {', '.join(VARIANTS)}", ", ".join(unknown))
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    if arguments.speed_rounds:
        print_speeds("training", training_seconds(names, arguments.speed_rounds))
        if arguments.model_dir and arguments.data_dir:
            print_speeds("decoding", decoding_seconds(names, seeds[0], arguments))
        return
    for flag in ("data_dir", "model_dir"):
        require(getattr(arguments, flag), f"--{flag}", "must be given", "nothing")
    arguments.model_dir.mkdir(parents=True, exist_ok=True)

    results: dict[str, list[dict]] = {name: [] for name in names}
    for seed in seeds:  # all variants of one seed first: a table of one seed is a table, too
        for name in names:
            file = arguments.model_dir / f"{name}-{seed}.json"
            results[name].append(measured_once(file, result_of, name, seed, arguments))
    print_table(results, arguments.splits.split(","))


def result_of(name: str, seed: int, arguments: argparse.Namespace) -> dict[str, float]:
    """Trains a variant with a seed and scores it.

    Returns:
        BLEU by split, and "loss", the label-smoothed cross-entropy on the validation split.
    """
    model_dir = arguments.model_dir / f"{name}-{seed}"
    model, _ = preset(arguments.preset, vocab_size=8000)
    widths = [setting.split("=")[1] for setting in arguments.config if setting.startswith("d_ff=")]
    d_ff = int(widths[-1]) if widths else model.d_ff
    settings = [f"--config={setting}" for setting in arguments.config]
    settings += [f"--config={key}={value}" for key, value in settings_of(name, d_ff).items()]
    folders = [f"--data_dir={arguments.data_dir}", f"--model_dir={model_dir}"]
    passed_on = ("preset", "train_steps", "tokens_per_batch", "precision")
    words = [f"--{flag}={getattr(arguments, flag)}" for flag in passed_on]
    result, _ = run_program("train", *folders, *words, f"--seed={seed}", *settings)
    scores = {"loss": result["validation_loss"]}
    for split in arguments.splits.split(","):
        words = [f"--split={split}", f"--alpha={arguments.alpha}"]
        scores[split] = run_program("evaluate", *folders, *words)[0]["bleu"]
    return scores


def settings_of(name: str, d_ff: int) -> dict[str, str | int]:
    """The settings of a variant, with some two thirds of `d_ff` for a network with a gate."""
    settings = VARIANTS[name]
    gated = settings["activation"] in GATED
    return {**settings, "d_ff": 16 * round(d_ff * 2 / 3 / 16) if gated else d_ff}


def training_seconds(names: list[str], rounds: int) -> dict[str, list[float]]:
    """The seconds that a training step of each variant takes for a target token, round by round."""
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            settings = settings_of(name, SPEED_WORK.d_ff)
            work = SPEED_WORK._replace(d_ff=settings.pop("d_ff"), settings=settings)
            seconds = run_worker("our_step.py", work.as_json())["seconds"]
            found[name].append(seconds / (SPEED_WORK.sentences * SPEED_WORK.length))
            log(f"training, {name}: {seconds} s a step")
    return found


def decoding_seconds(
    names: list[str], seed: int, arguments: argparse.Namespace
) -> dict[str, list[float]]:
    """The seconds that each trained variant takes for a token of its translations, round by round.

    The first round, in which graphs are built, does not count.
    """
    from keras_transformer.loading import load
    from pipelines.data_set import DataSet

    sources, _ = DataSet.open(arguments.data_dir).text("test")
    models = {
        name: load(arguments.model_dir / f"{name}-{seed}", beam_size=4, alpha=arguments.alpha)
        for name in names
    }
    found: dict[str, list[float]] = {name: [] for name in names}
    for number in range(arguments.speed_rounds + 1):
        for name, model in models.items():
            begun = time.perf_counter()
            tokens = sum(best.tokens for best, *_ in model.translate(sources))
            seconds = time.perf_counter() - begun
            log(f"decoding, {name}: {tokens} tokens in {seconds:.2f} s")
            if number > 0:
                found[name].append(seconds / tokens)
    return found


def print_table(results: dict[str, list[dict]], splits: list[str]) -> None:
    print("| Variant | " + " | ".join(f"BLEU, {split}" for split in splits) + " | Loss |")
    print("|---|" + "---|" * (len(splits) + 1))
    for name, runs in results.items():
        cells = [spread([run[split] for run in runs], 1) for split in splits]
        print(
            f"| {name} | " + " | ".join([*cells, spread([run["loss"] for run in runs], 3)]) + " |"
        )


def print_speeds(what: str, seconds: dict[str, list[float]]) -> None:
    """Prints a table of seconds for a token, by variant and round."""
    print(f"| Variant | Tokens/s, {what} | Time of a token | over the rounds |\n|---|---|---|---|")
    for name, times in seconds.items():
        reference = seconds.get("pre", times)
        ratios = [own / pre for own, pre in zip(times, reference, strict=True)]
        spread_of = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"| {name} | {1 / median(times):,.0f} | {median(ratios):.2f} | {spread_of} |")


def spread(values: list[float], digits: int) -> str:
    """The mean of some values, and their range where there are several."""
    text = f"{mean(values):.{digits}f}"
    if len(values) == 1:
        return text
    return f"{text} ({min(values):.{digits}f} to {max(values):.{digits}f})"


if __name__ == "__main__":
    run(main)
