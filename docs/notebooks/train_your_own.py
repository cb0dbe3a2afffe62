# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Train a translator on your own text
#
# This notebook trains a small translator with Keras' `fit`, follows the training in TensorBoard,
# exports the model, and serves it. It takes about five minutes on two CPU cores.
#
# The first cell installs the library if it is missing: from the clone that contains this notebook,
# or from elsewhere. In Colab, set `LIBRARY` to `git+https://` and the address of the repository.

# %%
import importlib.util
import subprocess
import sys

LIBRARY = "../.."
if importlib.util.find_spec("keras_transformer") is None:
    packages = [LIBRARY, "matplotlib"]
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *packages], check=True)
print("keras_transformer is installed")

# %% [markdown]
# The other imports. Everything is written to one folder, which you may choose.

# %%
import json
import os
import tempfile
from pathlib import Path

import keras
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown, display

import keras_transformer as kt
from keras_transformer.core.search.engines.streams import share_cores

share_cores()  # one operation on each core, which is faster for so small a model

keras.utils.set_random_seed(1)
FULL = 3000
STEPS = int(os.environ.get("NOTEBOOK_STEPS", FULL))  # of the training
FOLDER = Path(tempfile.mkdtemp())


def show_table(names, rows):
    lines = [names, ["---"] * len(names), *rows]
    display(Markdown("\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)))


# %% [markdown]
# ## The text
#
# A data set is a pair of files for each split, with one sentence per line: line *n* of one file is
# the translation of line *n* of the other. Here, we take short English and German sentences that
# come with the library, and write them to such files. If you have files of your own, replace the
# cell by their names; each may also be a list of several files.
#
#     FILES = {
#         "train_source": "train.en",
#         "train_target": "train.de",
#         "validation_source": "validation.en",
#         "validation_target": "validation.de",
#         "test_source": "test.en",
#         "test_target": "test.de",
#     }

# %%
VOCAB_SIZE, FILES = 2000, {}
for split in ("train", "validation", "test"):
    pairs = [pair for pair in kt.sample_pairs(split) if len(pair[0].split()) <= 8]
    for side, language, name in ((0, "en", "source"), (1, "de", "target")):
        FILES[f"{split}_{name}"] = path = FOLDER / f"{split}.{language}"
        path.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
show_table(["English", "German"], pairs[:4])

# %% [markdown]
# ## The data set
#
# `prepare` learns a vocabulary of subwords for both languages and writes the sentences as numbers.
# This text has few words, so 2,000 subwords are enough. For real text, choose more: 8,000 for
# 10,000 to 300,000 pairs.

# %%
DATA = FOLDER / "data"
result = kt.prepare(DATA, vocab_size=VOCAB_SIZE, max_length=64, **FILES)
show_table(["split", "pairs"], list(result["pairs"].items()))

# %% [markdown]
# A batch holds sentences of similar length, at most 512 numbers on each side: the source, the
# target as the decoder sees it, and the labels that it has to predict, one position further.
# Batches this small suit small data; for larger text, take 2,000 to 4,000.

# %%
data = kt.DataSet.open(DATA)
training = data.training_batches(tokens_per_batch=512, seed=1).map(kt.teacher_forcing)
validation = data.evaluation_batches("validation", tokens_per_batch=4000).map(kt.teacher_forcing)
inputs, labels = next(iter(training))
show_table(["tensor", "shape"], [[n, tuple(t.shape)] for n, t in [*inputs.items(), ("y", labels)]])

# %% [markdown]
# ## Training
#
# The model is a Keras model, so `fit` and all callbacks work. These three write curves for
# TensorBoard, keep the best model, and stop when the validation loss no longer improves. Two
# options of the model came after the paper and help a small model to learn fast: normalized inputs
# (`norm="pre"`) and rotary positions. The rate rises for 200 steps and then falls to zero at the
# end.

# %%
MODEL = DATA / "model.keras"  # beside its vocabulary, so that it can be loaded with it
LOGS = FOLDER / "logs"
callbacks = [
    keras.callbacks.TensorBoard(str(LOGS)),
    keras.callbacks.ModelCheckpoint(str(MODEL), monitor="val_loss", save_best_only=True),
    keras.callbacks.EarlyStopping(monitor="val_loss", patience=3),
]
sizes = {"num_layers": 2, "d_model": 128, "d_ff": 256, "num_heads": 4, "dropout": 0.0}
layers = {"norm": "pre", "positions": "rotary"}
model = kt.Transformer(kt.TransformerConfig(vocab_size=VOCAB_SIZE, **layers, **sizes))
rate = kt.WarmupToZero(128, warmup_steps=200, total_steps=STEPS, scale=0.64)  # at most 0.004
adam = keras.optimizers.Adam(rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
metrics = [kt.MaskedAccuracy("accuracy"), kt.MaskedPerplexity("perplexity")]
model.compile(adam, kt.LabelSmoothedCrossEntropy(0.1), metrics=metrics, jit_compile=False)

# %% [markdown]
# Here, an epoch is a tenth of the training.

# %%
schedule = {"steps_per_epoch": STEPS // 10, "epochs": 10, "verbose": 0}
history = model.fit(training, validation_data=validation, callbacks=callbacks, **schedule).history
assert history["loss"][-1] < history["loss"][0]
assert MODEL.exists()

# %% [markdown]
# ## The curves
#
# In a notebook, `%load_ext tensorboard` and `%tensorboard --logdir {LOGS}` open TensorBoard below
# the cell; in a shell, `python -m tensorboard.main --logdir=DIR`, with the path of that folder,
# prints its address. A page like this one cannot hold it, so we read the same files and draw two of
# its curves. If validation fell behind, the model would be learning its text by heart. Here it is
# ahead at first, because it is measured at the end of each epoch, and training is averaged over the
# epoch.

# %%
import tensorflow as tf
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

events = EventMultiplexer(size_guidance={"tensors": 0})
events.AddRunsFromDirectory(str(LOGS)).Reload()
figure, axes = plt.subplots(1, 2, figsize=(9, 3))
for curve, name in zip(axes, ("perplexity", "accuracy"), strict=True):
    for run in ("train", "validation"):
        points = events.Tensors(run, f"epoch_{name}")
        values = [float(tf.make_ndarray(point.tensor_proto)) for point in points]
        curve.plot([point.step + 1 for point in points], values, label=run)
    curve.set(xlabel="epoch", ylabel=name)
    curve.legend()
    assert np.allclose(values, history[f"val_{name}"])
axes[0].set_yscale("log")
plt.tight_layout()
plt.show()

# %% [markdown]
# ## Translations, and their score
#
# `load` reads the model and its vocabulary. BLEU compares the translations with the references of
# the test split: 100 is perfect, and below 10 little is right.

# %%
from keras_transformer.use.evaluate.translation import translation_scores

translator = kt.load(MODEL)
sources, references = (side[:200] for side in data.text("test"))
answers = [beams[0].text for beams in translator.translate(sources)]
scores = translation_scores(answers, references)
show_table(["source", "translation"], list(zip(sources, answers, strict=True))[:5])
wrong = sum(answer != reference for answer, reference in zip(answers, references, strict=True))
print(f"BLEU {scores['bleu']:.1f}; {wrong} of {len(answers)} differ from their references")
assert STEPS < FULL or scores["bleu"] > 90

# %% [markdown]
# ## A document
#
# People have documents rather than sentences: a page with a heading, a list and a link.
# `translate_document` finds the sentences, passes them to the model, and puts headings, bold words
# and links back where they belong. Here, sentences of the test split make a page in Markdown.

# %%
bold = sources[1].replace(sources[1].split()[1], f"**{sources[1].split()[1]}**", 1)
page = f"""# {sources[0]}

{bold} {sources[2]}

- {sources[3]}
- [{sources[4]}](https://example.com/)

```
python {sources[5]}
```
"""
translated_page = translator.translate_document(page, format="markdown", language="en")
print(translated_page)
assert "```\npython " + sources[5] + "\n```" in translated_page
assert translated_page.startswith("# ")
assert "](https://example.com/)" in translated_page

# %% [markdown]
# ## Attention
#
# What does the model look at? For each subword of a translation, the darkest field is the subword
# of the source with the largest weight, averaged over the heads of the last layer.

# %%
from keras_transformer.kit.figures.views import attention_views

cross = attention_views(translator.attention(sources[0], answers[0]))[-1]
figure, axes = plt.subplots(figsize=(5, 4))
image = axes.imshow(cross.weights[-1].mean(axis=0), cmap="Blues", vmin=0, vmax=1)
figure.colorbar(image, label="weight")
axes.set_xticks(range(len(cross.keys)), cross.keys, rotation=90)
axes.set_yticks(range(len(cross.queries)), cross.queries)
plt.tight_layout()
plt.show()
assert np.allclose(cross.weights.sum(axis=-1), 1, atol=1e-4)

# %% [markdown]
# ## Export
#
# The export takes text and returns text: it contains the vocabulary and the beam search. It needs
# TensorFlow and its text operations, and nothing of this library. It gives the same translations.

# %%
program = [sys.executable, "-m", "keras_transformer_programs"]
export = [f"--model_dir={MODEL}", f"--export_dir={FOLDER / 'export'}"]
done = subprocess.run([*program, "export", *export], capture_output=True, text=True, check=True)
exported = json.loads(done.stdout)
print(f"{exported['bytes'] / 1e6:.1f} MB")

# %% [markdown]
# A program that uses it needs no more than this:

# %%
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the tokenizer's operations)

translate = tf.saved_model.load(str(FOLDER / "export")).signatures["serving_default"]
translation = translate(text=tf.constant(sources[:1]))["translation"].numpy()[0].decode()
print(translation)
assert translation == answers[0]

# %% [markdown]
# ## Serve
#
# `keras-transformer serve` is a small server with a page where you can type sentences and look at
# their attention. We start it on a free port and wait until it is ready.

# %%
import socket
import time
import urllib.error
import urllib.request

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{free.getsockname()[1]}"
arguments = [f"--saved_model={FOLDER / 'export'}", f"--port={address.rpartition(':')[2]}"]
server = subprocess.Popen([*program, "serve", *arguments], stderr=subprocess.DEVNULL)
for _ in range(120):
    try:
        print(address, urllib.request.urlopen(f"{address}/healthz").read().decode())
        break
    except urllib.error.URLError:
        time.sleep(0.5)

# %% [markdown]
# It answers JSON requests from any programming language:

# %%
body = json.dumps({"text": sources[0], "n_best": 3}).encode()
answer = json.load(urllib.request.urlopen(f"{address}/translate", body))
server.terminate()
server.wait()
print(json.dumps(answer, indent=2, ensure_ascii=False)[:800])
assert answers[0] in json.dumps(answer, ensure_ascii=False)

# %% [markdown]
# That is all. For large data, `keras-transformer train` adds exact resuming, several GPUs and
# machines, and averaging of checkpoints; the guides say how. The tutorial "The paper, annotated"
# explains what is inside the model.
