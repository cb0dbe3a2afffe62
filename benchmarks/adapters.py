"""What an adapter (LoRA) gives, and what it costs, beside training all weights of the same model.

    python benchmarks/adapters.py --model_dir=runs/general/model --own_data=runs/sport/data \\
        --general_data=runs/general/data --work_dir=runs/adapters --rates=3e-4 --lora_rates=3e-3 \\
        --ranks=4,16 --scales=0.65,1 -- --train_steps=200 --tokens_per_batch=3000 \\
        --config=warmup_steps=20

A base is tuned on the own data: all of it, and an adapter of each rank, at each learning rate. The
flags after `--` are passed to bin/train.py. Every model, and every adapter at each scale, is scored
on the validation and test splits of the own and of the general data, both of which must have the
vocabulary of the base. Every run is a process of its own: its peak memory is that of the host. What
is in WORK_DIR is not measured again. Prints a table, and then the rows as one JSON line.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

from timing import measured_once, require, run
from workers import run_program

OURS = ("data_dir", "model_dir", "init_from", "preset", "lora_rank")  # not allowed after `--`
COLUMNS = {
    "run": "run",
    "rate": "rate",
    "scale": "scale",
    "own, validation": "own_validation:.2f",
    "own, test": "own_test:.2f",
    "general, validation": "general_validation:.2f",
    "general, test": "general_test:.2f",
    "trained parameters": "trained_parameters:,",
    "checkpoint, MB": "checkpoint_megabytes:.2f",
    "peak memory, MB": "peak_megabytes:,.0f",
    "minutes": "minutes:.2f",
}
EMPTY = dict.fromkeys(column.partition(":")[0] for column in COLUMNS.values())


class Tuning(NamedTuple):
    """How the base is tuned."""

    rank: int | None  # of the adapter; None where all weights are trained
    rate: str  # the largest learning rate

    @property
    def name(self) -> str:
        return "all weights" if self.rank is None else f"LoRA, rank {self.rank}"

    @property
    def folder(self) -> str:
        return f"{'all' if self.rank is None else f'rank-{self.rank}'}-{self.rate}"

    @property
    def flags(self) -> list[str]:
        rank = [] if self.rank is None else [f"--lora_rank={self.rank}"]
        return [*rank, f"--config=learning_rate={self.rate}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_dir", required=True, type=Path, help="the base")
    parser.add_argument("--own_data", required=True)
    parser.add_argument("--general_data", required=True)
    parser.add_argument("--work_dir", required=True, type=Path, help="for the models and rows")
    parser.add_argument("--rates", default="3e-4", help="where all weights are trained")
    parser.add_argument("--lora_rates", default="3e-3", help="where an adapter is trained")
    parser.add_argument("--ranks", default="8")
    parser.add_argument("--scales", default="1", help="of what an adapter adds")
    parser.add_argument("train", nargs="*", help="flags of bin/train.py, after --")
    arguments = parser.parse_args()
    for word in arguments.train:
        rule = f"must be flags after -- other than --{', --'.join(OURS)}"
        require(word.partition("=")[0].lstrip("-") not in OURS, "train", rule, word)
    arguments.work_dir.mkdir(parents=True, exist_ok=True)

    data_dirs = (arguments.own_data, arguments.general_data)
    base = newest_checkpoint(arguments.model_dir)
    base_scores = measured_once(arguments.work_dir / "base.json", scores, base, data_dirs)
    rows = [{**EMPTY, "run": "base", **base_scores}]
    for tuning in tunings(arguments.rates, arguments.lora_rates, arguments.ranks):
        folder = arguments.work_dir / tuning.folder
        words = [f"--data_dir={data_dirs[0]}", f"--init_from={base}", f"--model_dir={folder}"]
        words += [*tuning.flags, *arguments.train]
        training = measured_once(folder.with_name(f"{folder.name}.json"), trained, words)
        checkpoint = training.pop("checkpoint")
        for scale in ["1"] if tuning.rank is None else arguments.scales.split(","):
            file = folder.with_name(f"{folder.name}-scale-{scale}.json")
            found = measured_once(file, scores, checkpoint, data_dirs, scale)
            names = {"run": tuning.name, "rate": tuning.rate, "scale": scale}
            rows.append({**names, **found, **training})
    from keras_transformer.text_table import table_of

    print(table_of(COLUMNS, rows))
    print(json.dumps(rows))


def tunings(rates: str, lora_rates: str, ranks: str) -> list[Tuning]:
    """All of them: first those of all weights."""
    whole = [Tuning(None, rate) for rate in rates.split(",")]
    return whole + [
        Tuning(int(rank), rate) for rank in ranks.split(",") for rate in lora_rates.split(",")
    ]


def newest_checkpoint(model_dir: Path) -> str:
    """Its path. As a checkpoint, and no directory, a model keeps no results of an evaluation."""
    from keras_transformer.training.checkpoint_files import checkpoint_directory, read_records

    records = read_records(model_dir)
    require(records != [], "--model_dir", "must have a checkpoint", model_dir)
    return str(checkpoint_directory(model_dir) / records[-1].name)


def trained(words: list[str]) -> dict[str, Any]:
    """Trains a model: its checkpoint, and what it cost."""
    result, peak = run_program("train", *words)
    checkpoint = Path(result["checkpoint"])
    size = sum(path.stat().st_size for path in checkpoint.parent.glob(f"{checkpoint.name}.*"))
    return {
        "checkpoint": str(checkpoint),
        "trained_parameters": result["trained_parameters"],
        "checkpoint_megabytes": size / 1e6,
        "peak_megabytes": peak,
        "minutes": result["minutes"],
    }


def scores(checkpoint: str, data_dirs: tuple[str, str], scale: str = "1") -> dict[str, float]:
    """BLEU on the validation and test splits of the own and of the general data."""
    bleu = {}
    for name, data_dir in zip(("own", "general"), data_dirs, strict=True):
        for split in ("validation", "test"):
            words = [f"--model_dir={checkpoint}", f"--data_dir={data_dir}", f"--split={split}"]
            words += [] if scale == "1" else [f"--adapter_scale={scale}"]
            result, _ = run_program("evaluate", *words)
            bleu[f"{name}_{split}"] = result["bleu"]
    return bleu


if __name__ == "__main__":
    run(main)
