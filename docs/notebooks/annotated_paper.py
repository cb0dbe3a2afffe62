# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # The paper, annotated
#
# This notebook follows sections 3 to 6 of ["Attention Is All You
# Need"](https://arxiv.org/abs/1706.03762). Each part has the idea in our own words, the equation,
# the code of this library that computes it, and a small experiment that shows it. The whole
# notebook takes less than five minutes on two processor cores.
#
# The first cell installs the library if it is not there: from the clone that the notebook lies in,
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
# The other imports and settings. A seed makes all random numbers of this notebook repeatable.

# %%
import inspect
import os
import tempfile
from pathlib import Path

import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from IPython.display import SVG, Markdown, display

import keras_transformer as kt

keras.utils.set_random_seed(1)
FULL = 800
STEPS = int(os.environ.get("NOTEBOOK_STEPS", FULL))  # of each training
FOLDER = Path(tempfile.mkdtemp())  # for data and models

# %% [markdown]
# Two helpers show the source of a function of the library, and a table.


# %%
def show_source(thing):
    display(Markdown(f"```python\n{inspect.getsource(thing)}```"))


def show_table(names, rows):
    lines = [names, ["---"] * len(names), *rows]
    display(Markdown("\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)))


# %% [markdown]
# ## Scaled dot-product attention (section 3.2.1)
#
# Attention looks something up. A query is compared with the key of every position; the more
# similar the two are, the larger is the share of that position's value in the answer:
#
# $$\text{Attention}(Q, K, V) = \text{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right) V$$
#
# In the library this is one function.

# %%
show_source(kt.scaled_dot_product_attention)

# %% [markdown]
# Why divide by the square root of $d_k$? The product of two vectors of $d_k$ independent numbers
# with variance 1 has the variance $d_k$. Such large scores make the softmax choose a single key,
# and its gradient vanishes. We compare both for 100 keys: queries that are multiplied by the root
# undo the division.

# %%
widths, rows = [4, 16, 64, 256, 1024], []
for d_k in widths:
    queries, keys = np.random.randn(2, 1000, d_k).astype("float32")
    keys = keys[:100]
    scores = queries @ keys.T
    _, scaled = kt.scaled_dot_product_attention(queries, keys, keys)
    _, unscaled = kt.scaled_dot_product_attention(queries * d_k**0.5, keys, keys)
    largest = [float(np.mean(np.max(weights, axis=-1))) for weights in (scaled, unscaled)]
    rows.append([d_k, float(scores.var()), *largest])
show_table(
    ["d_k", "variance of the scores", "largest weight, scaled", "largest weight, unscaled"],
    [[d_k, f"{variance:.0f}", f"{a:.2f}", f"{b:.2f}"] for d_k, variance, a, b in rows],
)

# %% [markdown]
# Without scaling, the largest weight comes close to 1 as $d_k$ grows: each query sees one key
# only. With scaling it stays where it is. The next cell checks both.

# %%
variances, scaled, unscaled = np.array(rows)[:, 1:].T
assert np.allclose(variances / widths, 1, atol=0.3)
assert max(scaled) < 0.2 and unscaled[-1] > 0.85 and all(np.diff(unscaled) > 0)
figure, axes = plt.subplots(figsize=(6, 3))
axes.semilogx(widths, scaled, "o-", base=2, label="scaled")
axes.semilogx(widths, unscaled, "o-", base=2, label="unscaled")
axes.set(xlabel="$d_k$", ylabel="largest of 100 weights", ylim=(0, 1))
axes.legend()
plt.show()

# %% [markdown]
# ## Multi-head attention (section 3.2.2)
#
# One attention gives one average of the values. Several heads look for different things at the
# same time, each in a projection of its own:
#
# $$\text{MultiHead}(Q, K, V) = \text{Concat}(\text{head}_1, \ldots, \text{head}_h) W^O$$
#
# As each head is narrower, many heads have as many parameters as one. The table shows the layer
# of the base model, $d_{model} = 512$, with the weights' shape for a sentence of 10 positions.

# %%
rows = []
for heads in (1, 2, 4, 8, 16):
    layer = kt.MultiHeadAttention(num_heads=heads, key_dim=512 // heads)
    outputs, weights = layer(np.ones((1, 10, 512)), return_attention_scores=True)
    rows.append([heads, 512 // heads, tuple(weights.shape), f"{layer.count_params():,}"])
show_table(["heads", "d_k", "shape of the weights", "parameters"], rows)
assert {row[-1] for row in rows} == {f"{4 * 512 * 512:,}"}

# %% [markdown]
# ## Masks (section 3.2.3)
#
# Two rules limit who sees whom. Nobody attends to padding, which only fills up short sentences.
# And a position of the target does not see later ones, as it has to predict them.

# %%
show_source(kt.padding_mask)
show_source(kt.causal_mask)

# %% [markdown]
# In the picture, rows are queries and columns are keys; yellow means "may attend". The second
# mask is that of a target of five tokens and three of padding.

# %%
target = np.array([[5, 6, 7, 8, 2, 0, 0, 0]])
causal = np.array(kt.causal_mask(8))
both = causal & np.array(kt.padding_mask(target))
figure, pair = plt.subplots(1, 2, figsize=(6, 3))
for axes, mask, title in zip(pair, (causal, both), ("causal", "causal and padding"), strict=True):
    axes.imshow(mask)
    axes.set(title=title, xlabel="key", ylabel="query")
plt.tight_layout()
plt.show()
assert both.sum() == 1 + 2 + 3 + 4 + 5 + 3 * 5

# %% [markdown]
# Does the model keep the rule? We change the last token of a target, and then one in the middle.
# The logits before the change must stay the same to the last bit.

# %%
model = kt.Transformer.from_preset("tiny", vocab_size=100)
source, target = np.array([[5, 6, 7, 2]]), np.array([[1, 8, 9, 10, 11, 12]])
before = np.array(model({"source": source, "target": target}))
rows = []
for changed in (5, 3):
    other = target.copy()
    other[0, changed] = 50
    after = np.array(model({"source": source, "target": other}))
    differs = np.abs(after - before).max(axis=(0, 2)) > 0
    rows.append([f"changed: {changed}", *np.where(differs, "differs", "equal")])
    assert not differs[:changed].any() and differs[changed:].all()
show_table(["", *(f"position {n}" for n in range(6))], rows)

# %% [markdown]
# ## Feed-forward networks (section 3.3)
#
# After attention has mixed the positions, the same small network works on each position alone:
#
# $$\text{FFN}(x) = \max(0, x W_1 + b_1) W_2 + b_2$$
#
# So it does not matter in which order the positions come, which we check by reversing them.

# %%
layer = kt.FeedForward(d_ff=64)
states = np.random.randn(1, 10, 16).astype("float32")
forward, backward = np.array(layer(states)), np.array(layer(states[:, ::-1]))
difference = np.abs(forward - backward[:, ::-1]).max()
print(f"largest difference: {difference:.1e}")
assert difference < 1e-5

# %% [markdown]
# ## Positions (section 3.5)
#
# Attention does not know the order of its keys. So a vector that depends on the position alone is
# added to each token: sines and cosines whose waves get longer from dimension to dimension,
#
# $$PE_{(pos, 2i)} = \sin\left(pos / 10000^{2i/d_{model}}\right)$$

# %%
show_source(kt.sinusoids)

# %% [markdown]
# On the left are the vectors of 100 positions, one a row. On the right is the product of each two
# of them. It depends on their distance only, and it is largest for neighbours.

# %%
encoding = np.array(kt.sinusoids(np.arange(100), 64))
products = encoding @ encoding.T
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.5))
left.imshow(encoding, aspect="auto", cmap="RdBu")
left.set(xlabel="dimension", ylabel="position")
right.imshow(products)
right.set(xlabel="position", ylabel="position")
plt.tight_layout()
plt.show()
assert all(np.ptp(np.diagonal(products, distance)) < 1e-3 for distance in range(100))

# %% [markdown]
# The authors chose sinusoids because a shift is a linear function: one matrix $M_k$ takes the
# vector of any position to that of the position $k$ further. The matrix turns each pair of sine
# and cosine.

# %%
from keras_transformer.model.positions import shift_matrix

rows = []
for offset in (1, 10, -7):
    shifted = encoding[10:80] @ shift_matrix(offset, 64).T
    error = np.abs(shifted - encoding[10 + offset : 80 + offset]).max()
    rows.append([offset, f"{error:.0e}"])
    assert error < 1e-4
show_table(["shift k", "largest error over 70 positions"], rows)

# %% [markdown]
# ## Why self-attention (section 4)
#
# Between any two words, information takes one step in self-attention, and as many steps as there
# are words between them in a recurrent layer. The price is a time that grows with the square of
# the length. This is Table 1, with the growth that was measured for our layers.

# %%
from keras_transformer.paper import tables as paper_tables

layers = paper_tables.read_layers(Path(paper_tables.__file__).parent / "layers.json")
_, text = paper_tables.table_1(layers)
display(Markdown("\n".join(line for line in text.splitlines() if line.startswith("|"))))

# %% [markdown]
# ## The learning rate (section 5.3)
#
# The rate grows for a number of warm-up steps, and then falls with the inverse square root of the
# step:
#
# $$lrate = d_{model}^{-0.5} \cdot \min(step^{-0.5}, step \cdot warmup^{-1.5})$$

# %%
show_source(kt.WarmupInverseSquareRoot)

# %% [markdown]
# More warm-up makes the largest rate smaller. It is reached at the last step of the warm-up.

# %%
figure, axes = plt.subplots(figsize=(6, 3))
steps = np.arange(20_000)
for warmup in (2000, 4000, 8000):
    rates = np.array(kt.WarmupInverseSquareRoot(512, warmup)(steps))
    axes.plot(steps + 1, rates, label=f"{warmup} steps of warm-up")
    assert steps[rates.argmax()] + 1 == warmup
    assert np.isclose(rates.max(), (512 * warmup) ** -0.5)
axes.set(xlabel="step", ylabel="learning rate")
axes.legend()
plt.show()

# %% [markdown]
# ## Label smoothing (section 5.4)
#
# The model is asked to give the right token a probability of 0.9 and to divide the rest among the
# vocabulary. A model that is too sure of itself is punished. The curve shows the loss for a
# vocabulary of 100, where all wrong tokens are equally probable.

# %%
from keras_transformer.training.losses import token_losses

chances = np.linspace(0.3, 0.9999, 2000)
logits = np.log(np.stack([chances] + [(1 - chances) / 99] * 99, axis=-1))[None]
labels = np.zeros((1, 2000), "int32")
figure, axes = plt.subplots(figsize=(6, 3))
for smoothing in (0.0, 0.1, 0.2):
    losses = np.array(token_losses(logits.astype("float32"), labels, smoothing))[0]
    best = chances[losses.argmin()]
    axes.plot(chances, losses, label=f"smoothing {smoothing}: best at {best:.3f}")
    assert abs(best - (1 - smoothing + smoothing / 100)) < 2e-3
axes.set(xlabel="probability of the right token", ylabel="loss")
axes.legend()
plt.show()

# %% [markdown]
# ## A model, trained here and now (section 5)
#
# The library has a small grammar that makes English sentences and their German translations. We
# prepare those of up to 8 words: a vocabulary of subwords for both languages, and batches of about
# 2,000 tokens.

# %%
from pipelines.datasets import training_batches
from pipelines.preparation import PreparationConfig, prepare
from pipelines.sources import FileSource, GrammarSource

made, files = GrammarSource(30_000, seed=1), {}
for split in ("train", "test"):
    short = [pair for pair in made.pairs(split) if len(pair[0].split()) <= 8]
    files[split] = [str(FOLDER / f"{split}.en")], [str(FOLDER / f"{split}.de")]
    for side, (name,) in enumerate(files[split]):
        Path(name).write_text("".join(f"{pair[side]}\n" for pair in short), encoding="utf-8")
prepared = prepare(FileSource(files), FOLDER / "grammar", PreparationConfig(vocab_size=1000))
pairs = training_batches(FOLDER / "grammar", tokens_per_batch=2000, seed=1)

# %% [markdown]
# Two layers of width 128 are enough. Optimizer, schedule and loss are those of the paper. One thing
# is not: `norm="pre"` normalizes the input of each sublayer in place of its output. Such a model
# begins to use the source sooner, and this notebook has little time.


# %%
def trained(pairs, vocab_size, steps):
    sizes = {"num_layers": 2, "d_model": 128, "d_ff": 256, "num_heads": 4, "norm": "pre"}
    model = kt.Transformer(kt.TransformerConfig(vocab_size=vocab_size, **sizes))
    rate = kt.WarmupInverseSquareRoot(sizes["d_model"], warmup_steps=300, scale=2.0)
    adam = keras.optimizers.Adam(rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
    loss = kt.LabelSmoothedCrossEntropy(0.1)
    model.compile(adam, loss, metrics=[kt.MaskedAccuracy("accuracy")], jit_compile=False)
    batches = pairs.map(kt.teacher_forcing)
    history = model.fit(batches, steps_per_epoch=steps // 10, epochs=10, verbose=0).history
    return model, history


model, history = trained(pairs, 1000, STEPS)
model.save(FOLDER / "grammar" / "model.keras")

# %% [markdown]
# The loss falls at once, as the model learns which words are frequent. The share of right tokens
# follows when it begins to use the source.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
left.plot(np.arange(1, 11) * STEPS // 10, history["loss"])
left.set(xlabel="step", ylabel="loss")
right.plot(np.arange(1, 11) * STEPS // 10, history["accuracy"])
right.set(xlabel="step", ylabel="share of right tokens", ylim=(0, 1))
plt.tight_layout()
plt.show()
assert history["loss"][-1] < history["loss"][0]
assert STEPS < FULL or history["accuracy"][-1] > 0.8

# %% [markdown]
# The saved model lies beside its vocabulary, so that it can be loaded with one call and
# translates text. These sentences are from the test split, which training never saw.

# %%
from pipelines.datasets import split_text

translator = kt.load(FOLDER / "grammar" / "model.keras")
sources, references = split_text(FOLDER / "grammar", "test")
answers = [beams[0].text for beams in translator.translate(sources[:5])]
show_table(
    ["source", "translation", "reference"],
    list(zip(sources, answers, references[:5], strict=False))[:5],
)

# %% [markdown]
# ## What the heads look at (Figures 3 to 5)
#
# For each subword of the translation (rows), the picture shows which subwords of the source
# (columns) the last layer looks at. The darker, the larger is the weight.

# %%
from keras_transformer.attention.views import attention_views

found = translator.attention(sources[0], references[0])
cross = attention_views(found)[-1]
figure, heads = plt.subplots(1, 4, figsize=(13, 4), sharey=True)
for number, axes in enumerate(heads):
    axes.imshow(cross.weights[-1, number], cmap="Blues", vmin=0, vmax=1)
    axes.set_title(f"head {number + 1}")
    axes.set_xticks(range(len(cross.keys)), cross.keys, rotation=90)
    axes.set_yticks(range(len(cross.queries)), cross.queries)
plt.tight_layout()
plt.show()
assert np.allclose(cross.weights.sum(axis=-1), 1, atol=1e-4)

# %% [markdown]
# ## Beam search (section 6.1)
#
# The best first word need not begin the best sentence. Beam search keeps several beginnings, here
# 2, and extends all of them. To see it work, we take a "model" that only knows the last word:
#
#     after        a     b     c    end
#     (begin)     0.5   0.4    -    0.1
#     a           0.2   0.2   0.2   0.4
#     b            -     -    0.9   0.1
#     c            -     -     -    1.0

# %%
WORDS = ["", "", "end", "", "a", "b", "c"]  # ids 0 and 1 pad and begin, 2 ends
after = np.full((7, 7), 1e-9)
after[1, [4, 5, 2]] = 0.5, 0.4, 0.1
after[4, [4, 5, 6, 2]] = 0.2, 0.2, 0.2, 0.4
after[5, [6, 2]] = 0.9, 0.1
after[6, 2] = 1.0
table = tf.constant(np.log(after), tf.float32)


def shown(ids):
    ids = [1, *(number for number in ids if number > 1)]
    words = " ".join(WORDS[number] for number in ids[1:])
    return f"{words} ({np.prod(after[ids[:-1], ids[1:]]):.2f})"


# %% [markdown]
# The library's search asks a step function for the logits of the next word of each beginning. Ours
# also writes down the beginnings, in the cache that follows them: each row of a table is a step. An
# alpha of 0 ranks sentences by their probability alone.

# %%
from keras_transformer.decoding.beam_search import Cache, beam_search
from keras_transformer.decoding.config import DecodingConfig, SearchSettings


def search(beam_size):
    seen = []

    def step_fn(ids, cache, position):
        written = tf.concat([cache.per_beam, ids[..., None]], axis=2)
        seen.append(dict.fromkeys(map(shown, written[0].numpy())))
        return tf.gather(table, ids), Cache(per_beam=written)

    empty = Cache(per_beam=tf.zeros([1, beam_size, 0], tf.int32))
    settings = SearchSettings(DecodingConfig(beam_size=beam_size, alpha=0.0))
    found = beam_search(step_fn, empty, tf.constant([4]), settings)
    show_table(
        ["step", "beginnings that are kept"], [[n, ", ".join(s)] for n, s in enumerate(seen) if n]
    )
    answers = [shown(ids) for ids in found.ids[0].numpy()]
    print("finished:", ", ".join(answers))
    return answers


greedy, beams = search(1), search(2)

# %% [markdown]
# Greedy search (the first table) takes "a" and never sees the better sentence. With two beams, "b
# c end" wins: 0.4 times 0.9 is 0.36.

# %%
show_table(["beams", "best sentence"], [[1, greedy[0]], [2, beams[0]]])
assert greedy[0] == "a end (0.20)" and beams[0] == "b c end (0.36)"

# %% [markdown]
# ## Parsing (section 6.3)
#
# The same model learns to parse when trees are written as sequences: a bracket with its label
# opens a part of the sentence, and another closes it. The paper writes `XX` in place of each word.
# We keep the words, which shows a model that has little time where it is in the sentence. Our
# treebank is made from rules; each rule is a list of choices. A sentence has one tree only.

# %%
import random

RULES = {
    "S": ["NP VP"],
    "NP": ["DT NN", "DT JJ NN", "DT NN PP"],
    "VP": ["VBZ NP", "VBZ NP", "VBZ"],
    "PP": ["IN NP"],
}
LEXICON = {
    "DT": ["the", "a", "every"],
    "NN": ["dog", "cat", "child", "park", "house", "book"],
    "JJ": ["old", "small", "red"],
    "VBZ": ["sees", "likes", "finds"],
    "IN": ["in", "with", "near"],
}


def made_tree(label="S", depth=0):
    if label in LEXICON:
        return f"({label} {random.choice(LEXICON[label])})"
    choices = RULES[label][:1] if depth > 2 else RULES[label]
    parts = [made_tree(part, depth + 1) for part in random.choice(choices).split()]
    return f"({label} {' '.join(parts)})"


# %% [markdown]
# A sentence in brackets, and the tokens that the model must write for it:

# %%
from keras_transformer.parsing.linearisation import Linearisation
from keras_transformer.parsing.trees import parse_trees

random.seed(1)
trees = [made_tree() for _ in range(3000)]
example = next(iter(parse_trees(trees, "trees")))
lines = Linearisation(words="keep")
tokens = lines.tokens(example)
show_table(["sentence", "tokens"], [[" ".join(example.words()), " ".join(tokens)]])
assert lines.tree(tokens, example.words())[1].total == 0  # nothing to repair

# %% [markdown]
# The first 100 trees are kept aside. The data, the model and its training are as above; only the
# source of the pairs is another.

# %%
from pipelines.treebank import TreebankSource

others = [tree for tree in trees[100:] if tree not in trees[:100]]
(FOLDER / "train.trees").write_text("\n".join(others), encoding="utf-8")
treebank = TreebankSource({"train": [str(FOLDER / "train.trees")]}, lines)
prepared = prepare(treebank, FOLDER / "trees", PreparationConfig(vocab_size=350))
pairs = training_batches(FOLDER / "trees", tokens_per_batch=2000, seed=1)
model, history = trained(pairs, 350, STEPS)
model.save(FOLDER / "trees" / "model.keras")
print(f"share of right tokens: {history['accuracy'][-1]:.2f}")

# %% [markdown]
# The model writes brackets for a sentence that it has not seen. Whatever it writes is read as a
# tree over the sentence's words, and repaired where it is none.

# %%
from keras_transformer.parsing.drawing import svg_tree

gold = list(parse_trees(trees[:100], "trees"))
sentence = max(
    (tree.words() for tree in gold), key=lambda words: len(words) if len(words) < 9 else 0
)
parser = kt.load(FOLDER / "trees" / "model.keras")
written = parser.translate([" ".join(sentence)])[0][0].text
tree, repairs = lines.tree(written.split(), sentence)
print(f"{repairs.total} repairs")
display(SVG(svg_tree(tree)))

# %% [markdown]
# How well are the 100 trees parsed? As in Table 4, F1 is the harmonic mean of precision and recall
# of labelled brackets; the last figure is the share of trees without any mistake. The tags of words
# are not predicted, and do not count.

# %%
from keras_transformer.parsing.parseval import score_sentence, summary, with_gold_tags

scores = []
answers = parser.translate([" ".join(tree.words()) for tree in gold])
for beams, wanted in zip(answers, gold, strict=True):
    predicted, _ = lines.tree(beams[0].text.split(), wanted.words())
    scores.append(score_sentence(wanted, with_gold_tags(predicted, wanted)))
found = summary(scores)
columns = ["f1", "precision", "recall", "complete_match"]
show_table(columns, [[f"{found[name]:.1f}" for name in columns]])
assert STEPS < FULL or found["f1"] > 85

# %% [markdown]
# That is the paper. The tutorial "Train a translator on your own text" goes on from here: it
# exports a model and serves it.
