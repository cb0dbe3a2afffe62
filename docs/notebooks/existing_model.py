# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Start from an existing model
#
# This notebook imports a model that exists, fine-tunes it on new text, measures what that has
# gained, and serves the result. It takes about five minutes on two CPU cores.
#
# The first cell installs the library if it is missing: from the clone that contains this notebook,
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
import shutil
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
logging.getLogger("tensorflow").setLevel("ERROR")  # it warns of graphs that are built again
FULL = 3000
STEPS = int(os.environ.get("NOTEBOOK_STEPS", FULL))  # of the existing model's training
FOLDER = Path(tempfile.mkdtemp())

# %% [markdown]
# A helper shows a table:


# %%
def show_table(names, rows):
    lines = [names, ["---"] * len(names), *rows]
    display(Markdown("\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)))


# %% [markdown]
# ## Models of OPUS-MT
#
# [OPUS-MT](https://github.com/Helsinki-NLP/Opus-MT) has models for more than a thousand language
# pairs, trained with Marian. These commands get one from the Hugging Face hub (300 MB), make a
# model directory of it, and translate with it.
#
#     pip install ".[hub]"
#     keras-transformer import_model --hub=Helsinki-NLP/opus-mt-en-de --model_dir=runs/opus-en-de
#     echo "It rains." | keras-transformer translate --model_dir=runs/opus-en-de
#
# **These commands were not run for this page**: the machine that made it could not reach the hub.
# The library's tests have not imported a model of OPUS-MT either. They compare small models, in the
# same files, with Hugging Face's own code: the logits agree within 0.0001, and greedy search writes
# the same translations.
#
# This notebook also imports a small model, which it makes first: a network with the layers of
# OPUS-MT's models, trained here and written to the same files. If you have a model of OPUS-MT, go
# on to [Import](#import) and take that instead.

# %% [markdown]
# ## A small model of the same kind
#
# The text comes with the library: short English sentences and their German translations. We set
# aside those about teachers and queens, for later.

# %%
VOCAB_SIZE = 2000


def short_pairs(split, set_aside=False):
    pairs = [pair for pair in kt.sample_pairs(split) if len(pair[0].split()) <= 8]
    return [pair for pair in pairs if bool(re.search("teacher|queen", pair[0])) == set_aside]


def write(folder, **splits):
    """Writes the pairs of each split; returns the files as `kt.prepare` takes them."""
    folder.mkdir()
    files = {}
    for split, pairs in splits.items():
        for side, language, name in ((0, "en", "source"), (1, "de", "target")):
            files[f"{split}_{name}"] = path = folder / f"{split}.{language}"
            path.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return files


general = write(FOLDER / "text", train=short_pairs("train"), test=short_pairs("test"))

# %% [markdown]
# The model has what distinguishes OPUS-MT's models from the paper's: the activation swish, biases
# in attention and on the logits, and another epsilon. The tutorial "Train a translator on your own
# text" explains data and training.

# %%
OLD = FOLDER / "old"
prepared = kt.prepare(OLD, vocab_size=VOCAB_SIZE, max_length=64, **general)
pairs = kt.DataSet.open(OLD).training_batches(tokens_per_batch=512, seed=1)
batches = pairs.map(kt.teacher_forcing)
sizes = {"num_layers": 2, "d_model": 128, "d_ff": 256, "num_heads": 4, "dropout": 0.0}
marian = {"activation": "swish", "attention_bias": True, "logits_bias": True, "norm_epsilon": 1e-5}
model = kt.Transformer(kt.TransformerConfig(vocab_size=VOCAB_SIZE, **sizes, **marian))
rate = kt.WarmupInverseSquareRoot(128, warmup_steps=600)
adam = keras.optimizers.Adam(rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
model.compile(adam, kt.LabelSmoothedCrossEntropy(0.1), jit_compile=False)
history = model.fit(batches, steps_per_epoch=STEPS, epochs=1, verbose=0).history
print(f"{STEPS} steps, loss {history['loss'][0]:.2f}")

# %% [markdown]
# A model on the hub consists of these files: `config.json`, the pieces with their ids,
# SentencePiece models of both languages, and the weights. We write all but the weights. Padding has
# the last id, and the decoder starts with it.

# %%
from keras_transformer.core.vocabulary.subwords import Subwords

HUB = FOLDER / "opus-mt-small"
HUB.mkdir()
vocabulary = Subwords(OLD / "vocabulary.model")
pieces = [*vocabulary.pieces[2:], "<pad>"]  # "</s>" is the first
(HUB / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
for name in ("source.spm", "target.spm"):
    shutil.copy(OLD / "vocabulary.model", HUB / name)
options = {"model_type": "marian", "d_model": 128, "activation_function": "swish"}
options |= {"scale_embedding": True, "eos_token_id": 0}
options |= dict.fromkeys(["pad_token_id", "decoder_start_token_id"], len(pieces) - 1)
for stack in ("encoder", "decoder"):
    options |= {f"{stack}_layers": 2, f"{stack}_attention_heads": 4, f"{stack}_ffn_dim": 256}
(HUB / "config.json").write_text(json.dumps(options, indent=2))

# %% [markdown]
# The weights have other names there, and PyTorch's matrices are transposed. Marian's positions are
# all sines and then all cosines, where this library alternates them, so the numbers of a state have
# another order.

# %%
from safetensors.numpy import save_file

from keras_transformer.kit.exchange import hugging_face
from keras_transformer.kit.exchange.tensor_table import Arrangement, tensors_of

pad = VOCAB_SIZE - 2  # the id of <pad> in `pieces`, with which targets begin
ids = np.array([pad, pad, *range(pad)])  # there, in the order of ours
table = hugging_face.table_of(model.config)
tensors = tensors_of(model, Arrangement(table, model.config, ids, ids))
save_file(tensors, HUB / "model.safetensors")
show_table(["file", "bytes"], [[f.name, f"{f.stat().st_size:,}"] for f in sorted(HUB.iterdir())])

# %% [markdown]
# <a id="import"></a>
#
# ## Import
#
# The next cell does what `keras-transformer import_model` does, and makes a model directory:
# weights, vocabularies and configuration. For a model of OPUS-MT, set `HUB` to its folder first,
# and skip the comparison that follows.

# %%
from keras_transformer.kit.exchange.importing import import_model

BASE = FOLDER / "base"
imported = import_model(HUB, BASE)
print(f"{imported['parameters']:,} parameters")
print(*sorted(path.name for path in BASE.iterdir()), sep="\n")

# %% [markdown]
# Does it compute the same? These are the logits of the model that we trained, and of the imported
# one. (The first two ids, padding and the beginning, are never written, so their logits do not
# matter.)

# %%
from keras_transformer.core.training.checkpoint_weights import restore_model

there, _ = restore_model(BASE)
sentence = np.array([[*vocabulary.encode(["The old woman reads the book."])[0], 2]])
inputs = {"source": sentence, "target": np.array([[1, 50, 60, 70]])}
difference = np.abs(np.array(model(inputs)) - np.array(there(inputs)))[..., 2:].max()
print(f"largest difference of the logits: {difference:.0e}")
assert difference < 1e-3

# %% [markdown]
# ## New text
#
# Suppose a customer writes about robots and drones, which the model has never read about. To have
# such text, we take the sentences that we have set aside, and replace the two words by these.

# %%
WORDS = {
    **{"teacher": "robot", "teachers": "robots", "Lehrer": "Roboter"},
    **{"Lehrers": "Roboters", "Lehrern": "Robotern"},
    **{"queen": "drone", "queens": "drones", "Königin": "Drohne", "Königinnen": "Drohnen"},
}


def renamed(text):
    return re.sub(r"\w+", lambda word: WORDS.get(word[0], word[0]), text)


pairs = [(renamed(source), renamed(target)) for source, target in short_pairs("train", True)]
new_text = write(FOLDER / "new_text", train=pairs[100:], test=pairs[:100])
show_table(["English", "German"], pairs[:4])
print(f"{len(pairs) - 100} pairs to learn from, 100 to test with")

# %% [markdown]
# The data is prepared with the model's vocabularies, so that all subwords keep their meaning. New
# words are spelled in several subwords.

# %%
NEW = FOLDER / "new"
both = [BASE / f"{side}_vocabulary.pieces" for side in ("source", "target")]
kind = {"tokenizer": "pieces", "shared_vocabulary": False}
prepared = kt.prepare(NEW, vocabulary=both, max_length=64, **kind, **new_text)
for file, text in zip(both, ("A drone.", "Eine Drohne."), strict=True):
    side = Subwords(file)
    print(*(side.pieces[i] for i in side.encode([text])[0]))

# %% [markdown]
# ## Fine-tuning
#
# `init_from` starts a training with the weights of a model. Its rate rises for a few steps and then
# falls to zero, and stays below that of the first training. (`freeze="encoder"` would keep the
# encoder as it is.) For comparison, a second run starts from random weights and sees the same text.
# In a shell, this is `keras-transformer train --init_from=DIR`.

# %%
steps = max(STEPS // 10, 2)
settings = {"train_steps": steps, "tokens_per_batch": 1000, "sample_sentences": 0}
settings |= {"learning_rate": 1e-3, "warmup_steps": 20, "decay": "linear"}
TUNED, RANDOM = FOLDER / "tuned", FOLDER / "random"
tuned = kt.train(NEW, TUNED, init_from=BASE, **settings)
from_scratch = kt.train(NEW, RANDOM, preset="tiny", num_layers=2, norm="pre", **settings)
print(f"perplexity after {steps} steps:")
print(f"fine-tuned {tuned['perplexity']:.1f}, from random weights {from_scratch['perplexity']:.1f}")

# %% [markdown]
# ## Evaluation
#
# BLEU on the new text, and on text like that which the model had learned before: a model that
# learns something very different forgets. `keras-transformer evaluate` prints the same score for
# one model and one data directory.

# %%
from keras_transformer.use.evaluate.translation import translation_scores


def bleu(translator, data):
    sources, references = (side[:100] for side in kt.DataSet.open(data).text("test"))
    answers = [beams[0].text for beams in translator.translate(sources)]
    return translation_scores(answers, references)["bleu"]


directories = {"existing model": BASE, "fine-tuned": TUNED, "from random weights": RANDOM}
translators = {name: kt.load(directory) for name, directory in directories.items()}
scores = {name: [bleu(model, NEW), bleu(model, OLD)] for name, model in translators.items()}
show_table(
    ["model", "BLEU, new text", "BLEU, old text"],
    [[name, f"{new:.1f}", f"{old:.1f}"] for name, (new, old) in scores.items()],
)

# %% [markdown]
# The same as a chart. The new sentences are built like the old ones, so nothing is forgotten here.

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
examples, references = zip(*pairs[:6], strict=True)
answers = {}
for name in ("existing model", "fine-tuned"):
    answers[name] = [beams[0].text for beams in translators[name].translate(examples)]
rows = list(zip(examples, *answers.values(), references, strict=True))
show_table(["source", *answers, "reference"], rows)

# %% [markdown]
# The existing model writes some other noun for each new word; after fine-tuning, robots and drones
# are mostly right. A small model that has seen few sentences with the new words still makes
# mistakes.

# %% [markdown]
# ## Serving
#
# The model directory is served over HTTP, with a page to try it in a browser. We start the server
# on a free port, and ask it for the first sentence.

# %%
import socket
import time
import urllib.error
import urllib.request

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
command = ["serve", f"--model_dir={TUNED}", f"--port={port}"]
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
assert answers["fine-tuned"][0] in json.dumps(answer, ensure_ascii=False)

# %% [markdown]
# `keras-transformer export` makes a SavedModel of the same directory, which needs nothing of this
# library. [The guide](../guides/existing-model.md) has the rest: other formats, other vocabularies,
# and what can be frozen.
