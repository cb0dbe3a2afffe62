# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Start from an existing model
#
# This notebook takes a model that exists, gives it new text to learn from, measures what that has
# brought, and serves the result. It takes less than five minutes on two processor cores.
#
# The first cell installs the library if it is not there: from the clone that the notebook lies in,
# or from elsewhere. In Colab, set `LIBRARY` to `git+https://` and the address of the repository.

# %%
import importlib.util
import subprocess
import sys

LIBRARY = "../.."
if importlib.util.find_spec("keras_transformer") is None:
    packages = [LIBRARY, "matplotlib", "pyyaml", "safetensors"]
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *packages], check=True)
print("keras_transformer is installed")

# %% [markdown]
# The other imports and settings.

# %%
import json
import logging
import os
import re
import tempfile
import urllib.request
from pathlib import Path

import keras
import matplotlib.pyplot as plt
from IPython.display import Markdown, display

import keras_transformer as kt

keras.utils.set_random_seed(1)
logging.getLogger("tensorflow").setLevel("ERROR")  # it warns of graphs that are built again
FULL = 600
STEPS = int(os.environ.get("NOTEBOOK_STEPS", FULL))  # of the existing model's training
FOLDER = Path(tempfile.mkdtemp())

# %% [markdown]
# Two helpers. One shows a table. The other runs a program of the library, as a shell does with
# `keras-transformer NAME --flag=value`, and returns its result.


# %%
def show_table(names, rows):
    lines = [names, ["---"] * len(names), *rows]
    display(Markdown("\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)))


def program(name, *flags):
    command = [sys.executable, "-m", "keras_transformer_programs", name, *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


# %% [markdown]
# ## A model that others have trained
#
# OPUS-MT has models for more than a thousand pairs of languages, made with Marian. `import_model`
# makes model directories of them. This cell gets one from the Hugging Face hub (300 MB) and
# translates with it; its file of weights needs PyTorch to be read. Where that cannot be, it says
# so, and the notebook goes on with a smaller model.

# %%
HUB = "https://huggingface.co/Helsinki-NLP/opus-mt-en-de/resolve/main"
opus = FOLDER / "opus-mt-en-de"
opus.mkdir()
try:
    if STEPS < FULL:
        raise OSError("not in a short run")
    for name in ("config.json", "vocab.json", "source.spm", "target.spm", "pytorch_model.bin"):
        with urllib.request.urlopen(f"{HUB}/{name}", timeout=20) as found:
            (opus / name).write_bytes(found.read())
    program("import_model", f"--path={opus}", f"--model_dir={FOLDER / 'en-de'}")
    print(kt.load(FOLDER / "en-de").translate(["This model comes from elsewhere."])[0][0].text)
except (OSError, RuntimeError) as error:
    print(f"The model cannot be had here: {error}. The notebook goes on without it.")

# %% [markdown]
# ## A smaller one
#
# The model that this notebook goes on with learned short sentences of the embedded English-German
# grammar. It is trained here, with `fit`; the tutorial "Train a translator on your own text"
# explains how. If you have a model, run the first of the next three cells only, which has helpers.
# Then set `BASE` to the directory of your model, and `OLD` to a data directory of the text that it
# has learned, prepared with its vocabulary, as the cell below "New text" does for `NEW`.

# %%
from pipelines.data_set import DataSet
from pipelines.preparation import PreparationConfig, prepare
from pipelines.sources import FileSource, GrammarSource


def short_pairs(split, seed):
    made = GrammarSource(30_000, seed).pairs(split)
    return [pair for pair in made if len(pair[0].split()) <= 8]


def write(folder, **splits):
    folder.mkdir()
    files = {}
    for split, pairs in splits.items():
        files[split] = ([f"{folder}/{split}.en"], [f"{folder}/{split}.de"])
        for side, (name,) in enumerate(files[split]):
            Path(name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return files


general = write(FOLDER / "text", train=short_pairs("train", 1), test=short_pairs("test", 1)[:100])

# %% [markdown]
# Data, model, and training, at a size for two cores:

# %%
OLD = FOLDER / "old"
prepared = prepare(FileSource(general), OLD, PreparationConfig(vocab_size=1000, max_length=64))
batches = DataSet.open(OLD).training_batches(tokens_per_batch=2000, seed=1).map(kt.teacher_forcing)
sizes = {"num_layers": 2, "d_model": 128, "d_ff": 256, "num_heads": 4}
model = kt.Transformer(kt.TransformerConfig(vocab_size=1000, norm="pre", **sizes))
rate = kt.WarmupInverseSquareRoot(128, warmup_steps=300, scale=2.0)
adam = keras.optimizers.Adam(rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
model.compile(adam, kt.LabelSmoothedCrossEntropy(0.1), jit_compile=False)
model.fit(batches, steps_per_epoch=STEPS, epochs=1, verbose=0)
model.save(OLD / "model.keras")

# %% [markdown]
# `import_model` makes a model directory of a `.keras` file, too:

# %%
BASE = FOLDER / "base"
flags = ["--format=keras", f"--path={OLD / 'model.keras'}", f"--model_dir={BASE}"]
program("import_model", *flags)
print(sorted(path.name for path in BASE.iterdir()))

# %% [markdown]
# ## New text
#
# Suppose that a customer writes about robots and drones, which the model has never read of. To have
# such text, we take new sentences of the grammar and put these words in place of two others.

# %%
WORDS = {
    **{"teacher": "robot", "teachers": "robots", "Lehrer": "Roboter"},
    **{"Lehrers": "Roboters", "Lehrern": "Robotern"},
    **{"queen": "drone", "queens": "drones", "Königin": "Drohne", "Königinnen": "Drohnen"},
}


def renamed(text):
    return re.sub(r"\w+", lambda word: WORDS.get(word[0], word[0]), text)


pairs = [(renamed(source), renamed(target)) for source, target in short_pairs("train", 2)]
pairs = [pair for pair in pairs if re.search("robot|drone", pair[0])]
new_text = write(FOLDER / "new_text", train=pairs[100:], test=pairs[:100])
show_table(["English", "German"], pairs[:4])
print(f"{len(pairs) - 100} pairs to learn from, 100 to test with")

# %% [markdown]
# The data is prepared with the vocabulary of the model, so that all its subwords keep their
# meaning. New words are spelled in several subwords.

# %%
NEW = FOLDER / "new"
with_vocabulary = PreparationConfig(vocabulary=[str(BASE / "vocabulary.model")], max_length=64)
prepared = prepare(FileSource(new_text), NEW, with_vocabulary)
found = kt.load(BASE).attention("A drone.", "Eine Drohne.")
print(*found.source_pieces, "→", *found.target_pieces)

# %% [markdown]
# ## Fine-tuning
#
# `train --init_from` begins with the weights of the model. Its rate rises for a few steps and then
# falls to zero, and stays far below that of the first training. `--freeze=encoder` keeps a part as
# it is. For comparison, a third run begins with random weights and sees the same text.

# %%
steps = max(STEPS // 5, 2)
COMMON = [f"--data_dir={NEW}", f"--train_steps={steps}", "--tokens_per_batch=2000"]
COMMON += ["--config=learning_rate=0.001", "--config=warmup_steps=20", "--config=decay=linear"]
random = ["--preset=tiny", "--config=num_layers=2", "--config=norm=pre"]
RUNS = {
    "fine-tuned": [f"--init_from={BASE}"],
    "fine-tuned, encoder frozen": [f"--init_from={BASE}", "--freeze=encoder"],
    "from random weights": random,
}
directories = {"existing model": BASE}
for name, flags in RUNS.items():
    directories[name] = FOLDER / name.replace(", ", "_").replace(" ", "_")
    program("train", *COMMON, *flags, f"--model_dir={directories[name]}")
print(f"{len(RUNS)} runs of {steps} steps")

# %% [markdown]
# ## Evaluation
#
# BLEU on the new text, and on the text that the model had learned before: a model that learns
# something very different forgets. `keras-transformer evaluate` prints the same figure for one
# model and one data directory.

# %%
from keras_transformer.evaluation.translation import translation_scores
from pipelines.data_set import DataSet


def bleu(translator, data):
    sources, references = DataSet.open(data).text("test")
    answers = [beams[0].text for beams in translator.translate(sources)]
    return translation_scores(answers, references)["bleu"]


translators = {name: kt.load(directory) for name, directory in directories.items()}
scores = {name: [bleu(model, NEW), bleu(model, OLD)] for name, model in translators.items()}
show_table(
    ["model", "BLEU, new text", "BLEU, old text"],
    [[name, f"{new:.1f}", f"{old:.1f}"] for name, (new, old) in scores.items()],
)

# %% [markdown]
# The same as a picture. The new sentences are built like the old ones, so nothing is forgotten
# here.

# %%
figure, axes = plt.subplots(figsize=(6, 2.5))
places = range(len(scores))
new_scores, old_scores = zip(*scores.values(), strict=True)
axes.barh([place + 0.2 for place in places], new_scores, height=0.4, label="new text")
axes.barh([place - 0.2 for place in places], old_scores, height=0.4, label="old text")
axes.set_yticks(list(places), list(scores))
axes.set(xlabel="BLEU", xlim=(0, 100))
axes.legend()
plt.tight_layout()
plt.show()
best, others = scores["fine-tuned"][0], scores["from random weights"][0]
assert STEPS < FULL or best > max(scores["existing model"][0], others) + 15

# %% [markdown]
# What has changed, in sentences:

# %%
examples = [source for source, _ in pairs[:4]]
rows = [[source] for source in examples]
for name in ("existing model", "fine-tuned"):
    for row, beams in zip(rows, translators[name].translate(examples), strict=True):
        row.append(beams[0].text)
show_table(["source", "existing model", "fine-tuned"], rows)

# %% [markdown]
# ## Serving
#
# The fine-tuned model is exported like any other. The export takes text and returns text, and
# `keras-transformer serve --saved_model=DIR`, TensorFlow Serving or three lines of Python use it.

# %%
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the tokenizer's operations)

EXPORT = FOLDER / "export"
exported = program("export", f"--model_dir={directories['fine-tuned']}", f"--export_dir={EXPORT}")
translate = tf.saved_model.load(str(EXPORT)).signatures["serving_default"]
answers = translate(text=tf.constant(examples))["translation"].numpy()
print(*[answer.decode() for answer in answers], sep="\n")
assert [answer.decode() for answer in answers] == [row[-1] for row in rows]

# %% [markdown]
# And over HTTP, with a page to try it in a browser. We start the server on a free port.

# %%
import socket
import time
import urllib.error

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
command = ["serve", f"--saved_model={EXPORT}", f"--port={port}"]
command = [sys.executable, "-m", "keras_transformer_programs", *command]
server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
for _ in range(240):
    try:
        body = json.dumps({"text": examples[0]}).encode()
        answer = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/translate", body))
        break
    except urllib.error.URLError:
        time.sleep(0.5)
server.terminate()
server.wait()
print(json.dumps(answer, indent=2, ensure_ascii=False)[:400])
assert rows[0][-1] in json.dumps(answer, ensure_ascii=False)

# %% [markdown]
# The guide "Start from an existing model" has the details: other formats, other vocabularies, and
# what can be frozen.
