"""Trains, scores, exports and uses a Transformer in a few minutes; needs no data and no GPU.

Does what prepare_data, train, evaluate (twice) and export do, within one process. It prints the
command of each, so that you can run it yourself. If it was stopped, the same command continues.
"""

from command import as_typed, run, show_curves  # isort: skip  (first: it makes the checkout importable)

import contextlib
import datetime
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from absl import flags

from keras_transformer.files.paths import to_path
from keras_transformer.files.replacing import write_file
from keras_transformer.training.loop_config import LoopConfig

FLAGS = flags.FLAGS
flags.DEFINE_string("work_dir", "runs/quickstart", "The folder for data, model and export.")
flags.DEFINE_integer("grammar_pairs", 60_000, "Number of training pairs.", lower_bound=1)
flags.DEFINE_integer("train_steps", 1600, "Number of training steps.", lower_bound=1)
flags.DEFINE_integer("seed", 1, "Seed of the weights and of the order of the pairs.", lower_bound=0)
flags.DEFINE_bool(
    "paper",
    False,
    "Train the paper's variant: sinusoids, normalization after each sublayer, the rate of "
    "equation 3, and a mean of checkpoints. It needs more steps.",
)

VOCAB_SIZE = 2000
EVERY = 30  # seconds between samples, which are checkpoints, too
SAMPLED = 20  # sentences
PRESET = "tiny"
RECIPE = {
    "num_layers": 2,
    "norm": "pre",
    "positions": "rotary",
    "dropout": 0.0,
    "learning_rate": 4e-3,
    "warmup_steps": 100,
    "decay": "linear",
    "tokens_per_batch": 1024,
}
# What the paper has, with a warm-up and a rate for a short run.
OF_THE_PAPER = {
    "num_layers": 2,
    "warmup_steps": 500,
    "learning_rate_scale": 1.5,
    "tokens_per_batch": 2048,
}
AVERAGED = 5  # checkpoints, of the paper's variant

SENTENCES = [
    "The old woman reads the book.",
    "The teacher has bought a new car.",
    "The children do not want to play in the garden.",
]
LETTER = f"""# {SENTENCES[0]}

{SENTENCES[1]} **{SENTENCES[2]}**
"""


def main():
    from pipelines.data_set import DataSet
    from pipelines.evaluation import EvaluationConfig, evaluate_on
    from pipelines.preparation import prepare
    from pipelines.preparation_config import PreparationConfig
    from pipelines.sources import GrammarSource
    from pipelines.training import train_on

    work = to_path(FLAGS.work_dir)
    data, model, export = (str(work / name) for name in ("data", "model", "export"))
    settings = {**(OF_THE_PAPER if FLAGS.paper else RECIPE), "seed": FLAGS.seed}
    steps = FLAGS.train_steps
    loop = LoopConfig(train_steps=steps, checkpoint_minutes=EVERY / 60)
    if FLAGS.paper:
        loop = LoopConfig(train_steps=steps, checkpoint_steps=max(1, steps // (2 * AVERAGED)))
    tell(
        f"A Transformer learns to translate {FLAGS.grammar_pairs:,} sentences of a small "
        f"English-German grammar in {steps:,} steps, with a sample of its work every {EVERY} "
        "seconds; then it is scored on sentences that it has not seen, and exported. Each bar "
        "shows the time that is left, as measured here. To stop: Ctrl-C; the same command goes on."
    )
    timed = Timed()

    pairs, vocab_size = f"--grammar_pairs={FLAGS.grammar_pairs}", f"--vocab_size={VOCAB_SIZE}"
    with timed("prepare_data", "--dataset=grammar", f"--data_dir={data}", pairs, vocab_size):
        config = PreparationConfig(vocab_size=VOCAB_SIZE)
        prepare(GrammarSource(FLAGS.grammar_pairs, config.seed), data, config)
    with timed("train", *train_flags(data, model, settings, loop)):
        trained = train_on(data, model, PRESET, settings, loop=loop, sample_sentences=SAMPLED)
    if FLAGS.paper:
        from keras_transformer.training.checkpoint_weights import average_checkpoints

        with timed("average_checkpoints", f"--model_dir={model}", f"--last={AVERAGED}"):
            average_checkpoints(model, AVERAGED)

    from keras_transformer.loading import load

    data_set, translator, scores = DataSet.open(data), load(model, n_best=1), {}
    for split in ("test", "test_compositional"):
        flags_of_split = [f"--model_dir={model}", f"--data_dir={data}", f"--split={split}"]
        with timed("evaluate", *flags_of_split):
            config = EvaluationConfig(split)
            scores[split] = evaluate_on(data_set, translator, config, model_dir=model)
            tell(f"BLEU {scores[split]['bleu']}")
    with timed("export", f"--model_dir={model}", f"--export_dir={export}", "--overwrite"):
        write_export(model, export)

    found = [best.text for best, *_ in translator.translate(SENTENCES, scores=False)]
    translations = dict(zip(SENTENCES, found, strict=True))
    for sentence, translation in translations.items():
        tell(f"  {sentence}\n    -> {translation}")
    show_curves(model)
    tell_what_is_next(work, model)
    return {
        "bleu": scores["test"]["bleu"],
        "bleu_compositional": scores["test_compositional"]["bleu"],
        "signature": scores["test"]["signature"],
        "perplexity": scores["test"]["perplexity"],
        "steps": trained["step"],
        "seconds": round(sum(timed.seconds.values()), 1),
        "seconds_of": timed.seconds,
        "data_dir": data,
        "model_dir": model,
        "saved_model": export,
        "translations": translations,
    }


class Timed:
    """Shows the command of each step, and keeps the seconds that the step took."""

    def __init__(self):
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, name: str, *arguments: str) -> Iterator[None]:
        """What is done in the block is what this command of the program `name` does."""
        tell(f"\n$ {as_typed(name, *arguments)}")
        started = time.monotonic()
        yield
        seconds = self.seconds.get(name, 0) + time.monotonic() - started
        self.seconds[name] = round(seconds, 1)


def train_flags(data: str, model: str, settings: dict[str, Any], loop: LoopConfig) -> list[str]:
    """The arguments of bin/train.py for the same run."""
    return [
        f"--data_dir={data}",
        f"--model_dir={model}",
        f"--preset={PRESET}",
        *(f"--config={name}={value}" for name, value in settings.items()),
        f"--train_steps={loop.train_steps}",
        f"--checkpoint_minutes={loop.checkpoint_minutes}",
        *([f"--checkpoint_steps={loop.checkpoint_steps}"] if loop.checkpoint_steps else []),
        f"--sample_sentences={SAMPLED}",
    ]


def write_export(model: str, export: str) -> None:
    """Does what bin/export.py does, and replaces an earlier export."""
    from keras_transformer.export.saved_model import export_saved_model
    from keras_transformer.loading import decoding_config, restore

    trained = restore(model)
    today = datetime.date.today().isoformat()
    card = trained.card(decoding_config(trained), date=today)
    export_saved_model(trained.models, trained.vocabularies, export, card, overwrite=True)


def tell_what_is_next(work: Path, model: str) -> None:
    """Shows what to type next; the model knows the words of the letter."""
    write_file(work / "letter.md", LETTER)
    page = as_typed("serve", f"--model_dir={model}")
    letter = [f"--input={work / 'letter.md'}", f"--output={work / 'letter.de.md'}"]
    document = as_typed("translate", f"--model_dir={model}", *letter)
    own_text = as_typed(
        *("prepare_data", "--dataset=files", "--data_dir=runs/mine/data", "--vocab_size=8000"),
        *("--train_source=train.en", "--train_target=train.de"),
    )
    tell(
        f"\nNext:\n  a page to translate on, http://127.0.0.1:8501\n    {page}\n"
        f"  a document\n    {document}\n"
        f"  your own text, of which docs/guides/own-text.md tells more\n    {own_text}"
    )


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run(main)
