"""Trains, scores, exports and uses a Transformer in a few minutes, without data or a GPU.

Runs prepare_data, train, evaluate (twice) and export in one process, and prints each command so
that you can run it yourself. After an interruption, the same command repeats an incomplete
preparation, and training resumes from its last checkpoint.
"""

import contextlib
import dataclasses
import datetime
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from command.run import as_typed, run, show_curves

from absl import flags

from keras_transformer.core.training.run_config import LoopConfig
from keras_transformer.support.fields import LARGEST_SEED
from keras_transformer.support.files.paths import to_path
from keras_transformer.support.files.replacing import write_file
from pipelines.sample_text import FOLDER, sample_files
from pipelines.sources.source import SPLITS
from pipelines.sources.text_files import check_files

if TYPE_CHECKING:
    from keras_transformer.use.translate.translator import Translator

# Steps, not minutes: with a time limit, the scores depended on the machine.
STEPS, PAPER_STEPS = 3600, 3000

FLAGS = flags.FLAGS
flags.DEFINE_string("work_dir", "runs/quickstart", "Directory for data, model and export.")
flags.DEFINE_string(
    "text_dir",
    str(FOLDER),
    "Folder of the text: train.en.zst and train.de.zst, and validation, test and "
    "test_compositional alike, with .gz.",
)
flags.DEFINE_integer(
    "train_steps",
    None,
    f"Number of training steps; by default {STEPS}, or {PAPER_STEPS} with --paper.",
    lower_bound=1,
)
flags.DEFINE_integer(
    "seed",
    1,
    "Seed for the weights and the order of the pairs.",
    lower_bound=0,
    upper_bound=LARGEST_SEED,
)
flags.DEFINE_bool(
    "paper",
    False,
    "Train the paper's variant: sinusoids, post-normalization, the learning rate of equation 3, "
    "and checkpoint averaging. It needs more steps.",
)

VOCAB_SIZE = 2000
EVERY = 30  # seconds between samples, and between checkpoints
SAMPLED = 20  # sentences
PRESET = "tiny"
RECIPE = {
    "num_layers": 2,
    "norm": "pre",
    "positions": "rotary",
    "dropout": 0.0,
    "learning_rate": 4e-3,
    "warmup_steps": 200,
    "decay": "linear",
    "tokens_per_batch": 512,
}
# The paper's choices, with a warm-up and a learning rate for a short run.
PAPER_RECIPE = {
    "num_layers": 2,
    "warmup_steps": 500,
    "learning_rate_scale": 1.5,
    "tokens_per_batch": 2048,
}
AVERAGED = 5  # checkpoints, for the paper's variant
COMPOSITIONAL = "test_compositional"  # text with new combinations of words and constructions

SENTENCES = [
    "The old woman reads the book.",
    "The teacher has bought a new car.",
    "The children do not want to play in the garden.",
]
LETTER = f"""# {SENTENCES[0]}

{SENTENCES[1]} **{SENTENCES[2]}**
"""


def main():
    for split in (*SPLITS, COMPOSITIONAL):
        check_files("text_dir", sample_files(split, FLAGS.text_dir))
    work = to_path(FLAGS.work_dir)
    data, model, export = (str(work / name) for name in ("data", "model", "export"))
    tell(
        f"A Transformer learns to translate from English-German sentence pairs in {steps():,} "
        f"steps, showing a translation every {EVERY} seconds. Then it is scored on unseen "
        f"sentences and exported. Each progress bar shows the time remaining. Ctrl-C stops the "
        f"program, and the same command resumes it."
    )

    timed = Timed()

    from keras_transformer.core.search.engines.streams import share_cores

    share_cores()  # training such a small model is also faster with one operation per core
    trained = prepare_and_train(data, model, timed)
    if trained["step"] < steps():
        sys.exit(128 + signal.SIGTERM)  # which stopped the training

    from keras_transformer.loading import load

    translator = load(model, n_best=1)
    test = score(translator, data, model, timed)
    compositional = score_text(translator, work, model, timed)
    with timed("export", f"--model_dir={model}", f"--export_dir={export}", "--overwrite"):
        write_export(model, export)
    translations = [best.text for best, *_ in translator.translate(SENTENCES, scores=False)]
    for sentence, translation in zip(SENTENCES, translations, strict=True):
        tell(f"  {sentence}\n    -> {translation}")
    show_curves(model)
    tell_what_is_next(work, model)
    return {
        "bleu": test["bleu"],
        "bleu_compositional": compositional["bleu"],
        "signature": test["signature"],
        "perplexity": test["perplexity"],
        "steps": trained["step"],
        "seconds": round(time.monotonic() - timed.started, 1),
        "seconds_of": timed.seconds,
        "data_dir": data,
        "model_dir": model,
        "saved_model": export,
        "translations": dict(zip(SENTENCES, translations, strict=True)),
    }


def steps() -> int:
    """Returns the number of training steps."""
    return FLAGS.train_steps or (PAPER_STEPS if FLAGS.paper else STEPS)


class Timed:
    """Prints each step's command and records how many seconds the step took."""

    def __init__(self):
        self.started = time.monotonic()
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, name: str, *arguments: str) -> Iterator[None]:
        """Times a block that does what the program `name` does with these arguments."""
        tell(f"\n$ {as_typed(name, *arguments)}")
        started = time.monotonic()
        yield
        seconds = time.monotonic() - started
        tell(f"{name}: {seconds:.0f} seconds")
        self.seconds[name] = round(self.seconds.get(name, 0) + seconds, 1)


def prepare_and_train(data: str, model: str, timed: Timed) -> dict[str, Any]:
    """Prepares data, trains and averages like the programs; returns the training result."""
    from pipelines.prepare.preparation import prepare
    from pipelines.prepare.preparation_config import PreparationConfig
    from pipelines.sources.file_options import FileOptions
    from pipelines.training import train_on

    files = {}
    for split in SPLITS:
        files[f"{split}_source"], files[f"{split}_target"] = sample_files(split, FLAGS.text_dir)
    config = PreparationConfig(vocab_size=VOCAB_SIZE)
    prepare_arguments = [
        *("--dataset=files", f"--data_dir={data}", f"--vocab_size={VOCAB_SIZE}"),
        *(f"--{name}={path}" for name, path in files.items()),
    ]
    with timed("prepare_data", *prepare_arguments):
        prepare(FileOptions(**files).source(), data, config)

    settings = {**(PAPER_RECIPE if FLAGS.paper else RECIPE), "seed": FLAGS.seed}
    loop = LoopConfig(train_steps=steps(), checkpoint_minutes=EVERY / 60)
    train_arguments = [
        *(f"--data_dir={data}", f"--model_dir={model}", f"--preset={PRESET}"),
        *(f"--config={name}={value}" for name, value in settings.items()),
        f"--train_steps={loop.train_steps}",
        f"--checkpoint_minutes={loop.checkpoint_minutes}",
        f"--sample_sentences={SAMPLED}",
    ]
    with timed("train", *train_arguments):
        trained = train_on(data, model, PRESET, settings, loop=loop, sample_sentences=SAMPLED)
    if FLAGS.paper:
        from keras_transformer.core.training.checkpoint_weights import average_checkpoints

        with timed("average_checkpoints", f"--model_dir={model}", f"--last={AVERAGED}"):
            average_checkpoints(model, AVERAGED)
    return trained


def score(translator: "Translator", data: str, model: str, timed: Timed) -> dict[str, Any]:
    """Scores the model on the test split like bin/evaluate.py; returns the results."""
    from pipelines.batches.data_set import DataSet
    from pipelines.evaluation import evaluate_on

    with timed("evaluate", f"--model_dir={model}", f"--data_dir={data}"):
        results = evaluate_on(DataSet.open(data), translator, model_dir=model)
    tell(f"BLEU {results['bleu']}")
    return results


def score_text(translator: "Translator", work: Path, model: str, timed: Timed) -> dict[str, Any]:
    """Scores the model on files, like bin/translate.py and sacreBLEU; returns the scores."""
    from keras_transformer.kit.documents.lines import LinesConfig, translate_lines
    from keras_transformer.use.evaluate.translation import translation_scores
    from pipelines.sources.text_files import read_lines

    source, target = sample_files(COMPOSITIONAL, FLAGS.text_dir)
    output = str(work / f"{COMPOSITIONAL}.de")
    streams = [f"--input={source}", f"--output={output}"]
    with timed("translate", f"--model_dir={model}", *streams, "--one_sentence_per_line"):
        translate_lines(translator, LinesConfig(input=source, output=output))
    tell(f"\n$ sacrebleu {target} --input={output}")
    answers, references = (list(read_lines(path, "text_dir")) for path in (output, target))
    scores = translation_scores(answers, references)
    tell(f"BLEU {scores['bleu']}")
    return scores


def write_export(model: str, export: str) -> None:
    """Exports the model like bin/export.py, replacing an earlier export."""
    from keras_transformer.kit.exchange.saved_model import export_saved_model
    from keras_transformer.use.store.model_path import ModelPath
    from keras_transformer.use.store.opening import open_model

    trained = open_model(ModelPath(model)).restore()
    today = datetime.date.today().isoformat()
    card = dataclasses.replace(trained.card, date=today)
    export_saved_model(trained.models, trained.vocabularies, export, card, overwrite=True)


def tell_what_is_next(work: Path, model: str) -> None:
    """Prints what to try next; the model knows all words in the letter."""
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
        f"  your own text (see docs/guides/own-text.md)\n    {own_text}"
    )


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run(main)
