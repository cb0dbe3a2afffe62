# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # The paper, annotated
#
# This notebook follows sections 2 to 6 of ["Attention Is All You
# Need"](https://arxiv.org/abs/1706.03762) in the order of the paper, and ends with what has changed
# since. Each part has the idea in our own words, the equation, the code of this library that
# computes it, and a small experiment that shows it. The code is shown as it stands in the library,
# so that you can build the model again from what you read here. The whole notebook takes about a
# quarter of an hour on two processor cores.
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
import textwrap
import time
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
# Two helpers show the source of functions and classes of the library, and a table.


# %%
def show_source(*things):
    for thing in things:
        code = textwrap.dedent(inspect.getsource(thing))
        display(Markdown(f"```python\n{code}```"))


def show_table(names, rows):
    lines = [names, ["---"] * len(names), *rows]
    display(Markdown("\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)))


# %% [markdown]
# ## Background (section 2)
#
# A recurrent network computes the state of each word from that of the word before it, so that the
# positions of a sentence must wait for each other (section 1). Convolutional networks such as
# ByteNet and ConvS2S compute all positions at once, but the number of operations between two words
# grows with their distance: linearly in ConvS2S, logarithmically in ByteNet (section 2). In
# self-attention this number is constant (section 4). The price is that attention is an average,
# which blurs what it takes together; several heads make up for that (section 3.2).
#
# Self-attention was not new. It had been used for reading comprehension, summarization, textual
# entailment and representations of sentences, mostly beside a recurrent network (sections 1 and 2).
# As far as the authors knew, a model from sequence to sequence without recurrence and convolution
# was new.

# %% [markdown]
# ## The model at a glance (section 3, Figure 1)
#
# The encoder reads the source sentence and gives one vector of $d_{model}$ numbers for each of its
# tokens. The decoder writes the translation from left to right: it sees the tokens that are already
# written and the encoder's vectors, and gives the probabilities of the next token. Both are stacks
# of $N$ equal layers, and each layer consists of two or three *sublayers*. The next cell draws
# Figure 1 of the paper.

# %%
COLORS = {"attention": "#ffd8a8", "network": "#a5d8ff", "norm": "#fff3bf", "other": "#e9ecef"}
MASKED = ("masked multi-head\nattention", "attention")
ATTENTION = ("multi-head\nattention", "attention")
NETWORK = ("feed-forward", "network")
ARROW = {"arrowstyle": "->", "color": "#495057", "shrinkA": 5, "shrinkB": 13}


def draw_box(x, y, text, kind="other"):
    box = {"boxstyle": "round,pad=0.5", "facecolor": COLORS[kind]}
    plt.text(x, y, text, ha="center", va="center", fontsize=9, bbox=box)


def draw_arrow(start, end, **style):
    plt.annotate("", end, start, arrowprops=ARROW | style, zorder=0)  # behind the boxes


# %% [markdown]
# A stack is a column of boxes. An arc beside a sublayer is its residual connection.


# %%
def draw_stack(x, name, sublayers):
    """Draws a stack of Figure 1; returns the height of its end."""
    draw_box(x, 0, "embedding")
    draw_box(x, 1, "+ positions")
    draw_arrow((x, 0), (x, 1))
    y = 1
    for text, kind in sublayers:
        draw_box(x, y + 1.2, text, kind)
        draw_box(x, y + 2.4, "add and normalize", "norm")
        draw_arrow((x, y), (x, y + 1.2))
        draw_arrow((x, y + 1.2), (x, y + 2.4))
        draw_arrow((x - 0.3, y), (x - 0.3, y + 2.4), connectionstyle="arc3,rad=-0.9")
        y += 2.4
    size = {"width": 3.6, "height": y - 1, "fill": False}
    plt.gca().add_patch(plt.Rectangle((x - 2, 1.5), **size, linestyle="--", color="#868e96"))
    plt.text(x - 2, y + 0.6, f"{name}, N layers", color="#868e96", fontsize=8)
    return y


# %% [markdown]
# The red arrow is the encoder's output, the *memory*, which every layer of the decoder looks at.

# %%
plt.figure(figsize=(7, 9))
encoder_end = draw_stack(0, "encoder", [ATTENTION, NETWORK])
decoder_end = draw_stack(4.5, "decoder", [MASKED, ATTENTION, NETWORK])
draw_arrow((0, encoder_end), (4.5, 4.6), color="#c92a2a", shrinkB=36)
plt.text(1.75, encoder_end - 0.25, "memory", color="#c92a2a", fontsize=9)
draw_box(4.5, decoder_end + 1.1, "linear: logits")
draw_box(4.5, decoder_end + 2.2, "softmax")
draw_arrow((4.5, decoder_end), (4.5, decoder_end + 1.1))
draw_arrow((4.5, decoder_end + 1.1), (4.5, decoder_end + 2.2))
plt.text(0, -0.8, "source tokens", ha="center")
plt.text(4.5, -0.8, "target tokens, shifted right", ha="center")
plt.text(4.5, decoder_end + 3, "probabilities of the next token", ha="center")
plt.axis((-2.2, 6.6, -1.1, decoder_end + 3.4))
plt.axis("off")
plt.show()

# %% [markdown]
# In the library the figure is a functional Keras model. These two methods are its two halves.

# %%
show_source(kt.Transformer.encode, kt.Transformer.states)

# %% [markdown]
# ## Stacks, residual connections and layer normalization (section 3.1)
#
# Around each sublayer there is a *residual connection*: what the sublayer computes is added to its
# input, and the sum is normalized:
#
# $$\text{LayerNorm}(x + \text{Dropout}(\text{Sublayer}(x)))$$
#
# So a sublayer only has to learn what it changes, and a gradient reaches the lowest layer through
# the sums. These are the two layers. With `norm="post"` they compute the equation above, as in the
# paper; with `norm="pre"` the *input* of each sublayer is normalized, which is what most models do
# today (see the end).

# %%
show_source(kt.EncoderLayer.call, kt.DecoderLayer.call)

# %% [markdown]
# A stack calls its layers one after the other; every layer of the decoder gets the same memory.
# With `norm="pre"`, one more normalization follows the last layer. `call_layer` calls a layer; in
# training, it can do so in a way that saves memory and has the same result.

# %%
show_source(kt.Encoder.call, kt.Decoder.call)

# %% [markdown]
# Layer normalization makes the mean of each vector 0 and its variance 1, and then applies a gain
# $\gamma$ and a bias $\beta$, which are learned:
#
# $$\text{LayerNorm}(x) = \gamma \frac{x - \text{mean}(x)}{\sqrt{\text{variance}(x) + \epsilon}}
# \, + \beta$$
#
# We compare Keras' layer, which the library uses, with the equation, and a whole encoder layer with
# its parts.

# %%
states = np.random.randn(2, 10, 16).astype("float32") * 3 + 1
centred = states - states.mean(axis=-1, keepdims=True)
expected = centred / np.sqrt(states.var(axis=-1, keepdims=True) + 1e-6)
layer_norm = keras.layers.LayerNormalization(epsilon=1e-6)
assert np.allclose(layer_norm(states), expected, atol=1e-5)

layer = kt.EncoderLayer(num_heads=4, key_dim=4, d_ff=32)
outputs = np.array(layer(states))
x = np.array(layer_norm(states + np.array(layer.self_attention(states))))
assert np.allclose(outputs, layer_norm(x + np.array(layer.feed_forward(x))), atol=1e-5)
print(f"variance of the input {states.var():.1f}, of the output {outputs.var():.1f}")

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
# The layer has four matrices, without biases: $W^Q$, $W^K$ and $W^V$ of all heads side by side, and
# $W^O$. It computes the projections of all heads as one matrix product each, and then cuts them
# into heads.

# %%
from keras_transformer.model.attention import MultiHeadAttention

show_source(
    MultiHeadAttention._projection,
    MultiHeadAttention.build,
    MultiHeadAttention.call,
    MultiHeadAttention._split_heads,
    MultiHeadAttention._concatenate_heads,
)

# %% [markdown]
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
# ## Three uses of attention, and masks (section 3.2.3)
#
# The same layer is used in three places. In the encoder's *self-attention*, each token of the
# source looks at all others. In the decoder's *self-attention*, each token of the target looks at
# those before it. In *cross-attention*, the queries come from the decoder, and the keys and values
# from the encoder: here the translation looks at the source.
#
# Two rules limit who sees whom. Nobody attends to padding, which only fills up short sentences.
# And a position of the target does not see later ones, as it has to predict them. A layer combines
# the masks of both rules; `window_mask` is for the restricted self-attention of section 4.

# %%
from keras_transformer.model.masks import combine_masks

show_source(kt.padding_mask, kt.causal_mask, combine_masks, MultiHeadAttention._attention_mask)

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
# The inner width $d_{ff}$ is four times $d_{model}$ in the paper. As positions do not see each
# other here, it does not matter in which order they come, which we check by reversing them.

# %%
show_source(kt.FeedForward.__init__, kt.FeedForward.build, kt.FeedForward.call)
layer = kt.FeedForward(d_ff=64)
states = np.random.randn(1, 10, 16).astype("float32")
forward, backward = np.array(layer(states)), np.array(layer(states[:, ::-1]))
difference = np.abs(forward - backward[:, ::-1]).max()
print(f"largest difference: {difference:.1e}")
assert difference < 1e-5

# %% [markdown]
# ## Embeddings and softmax (section 3.4)
#
# A token is a number; the embedding gives it a vector, a row of a matrix $E$ with $V$ rows. The
# last layer goes the other way: the product of a state with each row of a matrix is the logit of
# that token. The paper takes *the same matrix* for the source, the target and the logits, and
# multiplies embeddings by $\sqrt{d_{model}}$:
#
# $$x = E_{token} \sqrt{d_{model}} \qquad \text{logits} = h E^T$$
#
# The library's layer is Keras' `ReversibleEmbedding`, which looks rows up or, with `reverse=True`,
# multiplies by all of them; the library adds the root. A bias of the logits is an option.

# %%
show_source(kt.TokenEmbedding.call, kt.TokenEmbedding._multiply_by_scale)

# %% [markdown]
# Why the root? The rows of $E$ must be small, so that logits begin near 0: their numbers have the
# variance $1 / d_{model}$. An embedding, however, is added to its position, whose numbers are as
# large as sines and cosines. The root makes both of one size. Without it, the model would see
# little but positions at first.

# %%
layer = kt.TokenEmbedding(vocab_size=1000, d_model=512)
vectors = np.array(layer(np.arange(1000)[None]))
states = np.random.randn(1, 100, 512).astype("float32")  # as large as normalized ones
rows = [
    ["rows of E", f"{np.std(layer.embeddings):.3f}"],
    ["embeddings, times the root", f"{vectors.std():.3f}"],
    ["sinusoids of 1,000 positions", f"{np.std(kt.sinusoids(np.arange(1000), 512)):.3f}"],
    ["logits of normalized states", f"{np.std(layer(states, reverse=True)):.3f}"],
]
show_table(["", "standard deviation"], rows)
assert 0.9 < vectors.std() < 1.1 and np.std(layer.embeddings) < 0.05

# %% [markdown]
# Sharing the matrix saves parameters: of the base model with 37,000 tokens, more than a third.

# %%
rows = []
for tied in (True, False):
    config = kt.TransformerConfig(vocab_size=37_000, tie_embeddings=tied)
    rows.append(["one matrix" if tied else "three matrices", f"{config.parameters:,}"])
show_table(["embeddings", "parameters of the base model"], rows)

# %% [markdown]
# ## Positions (section 3.5)
#
# Attention does not know the order of its keys. So a vector that depends on the position alone is
# added to each token: sines and cosines whose waves get longer from dimension to dimension,
#
# $$PE_{(pos, 2i)} = \sin\left(pos / 10000^{2i/d_{model}}\right) \qquad
# PE_{(pos, 2i+1)} = \cos\left(pos / 10000^{2i/d_{model}}\right)$$

# %%
from keras_transformer.model.positions import frequencies

show_source(kt.sinusoids, frequencies, kt.PositionalEncoding.call)

# %% [markdown]
# On the left are the vectors of 100 positions, one a row. On the right is the product of each two
# of them. It depends on their distance only, and it is largest for neighbours.

# %%
encoding = np.array(kt.sinusoids(np.arange(100), 64))
products = encoding @ encoding.T
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.5))
left.imshow(encoding, aspect="auto", cmap="RdBu", interpolation="nearest")
left.set(xlabel="dimension", ylabel="position")
right.imshow(products, interpolation="nearest")
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
# ## The whole model (section 3)
#
# All parts are there now. A layer of the encoder makes two sublayers, each with a dropout and a
# normalization, from the settings that it was made with. A layer of the decoder has a second
# attention, to the memory, with a dropout and a normalization of its own. `make_feed_forward` makes
# the network above, or the variant at the end of this notebook. `_make_stacks` makes the layers of
# both stacks.

# %%
show_source(
    kt.EncoderLayer.make_sublayers,
    kt.EncoderLayer.make_attention,
    kt.EncoderLayer.make_norm,
    kt.Transformer._make_stacks,
)

# %% [markdown]
# Is anything missing? We put the layers together ourselves, which takes these lines:

# %%
sizes = {"num_heads": 4, "key_dim": 16, "d_ff": 128}
embedding, positions = kt.TokenEmbedding(vocab_size=100, d_model=64), kt.PositionalEncoding()
encoder = kt.Encoder([kt.EncoderLayer(**sizes) for _ in range(2)])
decoder = kt.Decoder([kt.DecoderLayer(**sizes) for _ in range(2)])


def logits_of(source, target):
    mask = kt.padding_mask(source)
    memory = encoder(positions(embedding(source)), mask=mask)
    states = decoder(positions(embedding(target)), memory, memory_mask=mask)
    return embedding(states, reverse=True)


# %% [markdown]
# The library's model, with the same weights, must give the same logits. The last token of the
# source is padding.

# %%
source, target = np.array([[5, 6, 7, 2, 0]]), np.array([[1, 8, 9, 10]])
ours = np.array(logits_of(source, target))
config = kt.TransformerConfig(vocab_size=100, num_layers=2, d_model=64, d_ff=128, num_heads=4)
model = kt.Transformer(config)
model.embedding.set_weights(embedding.get_weights())
model.encoder.set_weights(encoder.get_weights())
model.decoder.set_weights(decoder.get_weights())
difference = np.abs(ours - np.array(model({"source": source, "target": target}))).max()
print(f"largest difference of {ours.size} logits: {difference:.0e}")
assert difference < 1e-5

# %% [markdown]
# The paper does not say what the weights are before training. Here, the matrices of the layers are
# *Xavier-uniform* ([Glorot and Bengio
# 2010](https://proceedings.mlr.press/v9/glorot10a.html)), the default of Keras: the numbers of a
# matrix of $n_{in}$ rows and $n_{out}$ columns are drawn evenly between $-r$ and $r$, where
# $r = \sqrt{6 / (n_{in} + n_{out})}$, so that states become neither much larger nor much smaller
# from layer to layer. $E$ is normal with the variance $1 / d_{model}$, as above. Biases begin at 0,
# and gains at 1.

# %%
layer = model.encoder.layers[0]
matrices = {
    "W^Q of the first layer": layer.self_attention.query_dense.kernel,
    "W_1 of the first layer": layer.feed_forward.inner_dense.kernel,
}
rows = [["E", (100, 64), np.std(model.embedding.embeddings), 64**-0.5]]
for name, matrix in matrices.items():
    rows.append([name, tuple(matrix.shape), np.std(matrix), (2 / sum(matrix.shape)) ** 0.5])
show_table(
    ["weights", "shape", "standard deviation", "expected"],
    [[name, shape, f"{found:.3f}", f"{expected:.3f}"] for name, shape, found, expected in rows],
)
assert all(np.isclose(found, expected, rtol=0.05) for _, _, found, expected in rows)

# %% [markdown]
# The model writes by *greedy decoding*: the target begins with token 1, the most probable next
# token is appended, and so on. The library's own search also keeps the keys and values of what it
# has written, so that a step computes one position only. Untrained models write nonsense: each of
# the three below repeats a token that its random weights happen to prefer.


# %%
def greedy(model, source, length):
    target = np.array([[1]])
    for _ in range(length):
        logits = np.array(model({"source": source, "target": target}))  # [1, T, V]
        target = np.append(target, logits[:, -1:].argmax(axis=-1), axis=1)
    return target[0, 1:].tolist()


rows = []
for seed in (1, 2, 3):
    keras.utils.set_random_seed(seed)
    rows.append([seed, *greedy(kt.Transformer(config), np.array([[5, 6, 7, 8, 9, 2]]), 8)])
show_table(["seed", *(f"token {n}" for n in range(1, 9))], rows)

# %% [markdown]
# ## Why self-attention (section 4)
#
# Between any two words, information takes one step in self-attention, and as many steps as there
# are words between them in a recurrent layer. The price is a time that grows with the square of
# the length. This is Table 1, with the growth that was measured for our layers. Paths are counted
# for contiguous kernels, which see $(k - 1) / 2$ words to each side; $O(\log_k(n))$ needs dilated
# ones. A neighbourhood of $r$ words sees $r / 2$ to each side.

# %%
from keras_transformer.paper import tables as paper_tables

layers = paper_tables.read_layers(Path(paper_tables.__file__).parent / "layers.json")
_, text = paper_tables.table_1(layers)
display(Markdown("\n".join(line for line in text.splitlines() if line.startswith("|"))))

# %% [markdown]
# ## Training data and batches (section 5.1)
#
# Words are cut into *subwords*, so that a vocabulary of some ten thousand entries can write every
# word. Our data comes from a small grammar that is part of the library: it makes English sentences
# and their German translations. We prepare those of up to 8 words. `prepare` learns one vocabulary
# for both languages and writes both sides as ids. For real text, [the guide of
# results](../guides/results.md) has the commands that train on Multi30k, 29,000 captions of photos.

# %%
from pipelines.data_set import DataSet
from pipelines.preparation import PreparationConfig, prepare
from pipelines.sources import FileSource, GrammarSource

made, files = GrammarSource(30_000, seed=1), {}
for split in ("train", "test"):
    short = [pair for pair in made.pairs(split) if len(pair[0].split()) <= 8]
    files[split] = [str(FOLDER / f"{split}.en")], [str(FOLDER / f"{split}.de")]
    for side, (name,) in enumerate(files[split]):
        Path(name).write_text("".join(f"{pair[side]}\n" for pair in short), encoding="utf-8")
prepared = prepare(FileSource(files), FOLDER / "grammar", PreparationConfig(vocab_size=1000))

# %% [markdown]
# *Byte-pair encoding* ([Sennrich et al. 2016](https://arxiv.org/abs/1508.07909)), which the paper
# takes for English-German, begins with single characters and joins the most frequent pair of
# neighbours, again and again, until the vocabulary is full. So a frequent word is one piece, and a
# rare one several. "▁" stands for the space before a word. These are a sentence, its translation,
# and a sentence with a word that is nowhere in the data, each with the ids below its pieces.

# %%
from keras_transformer.vocabulary.subwords import Subwords

vocabulary = Subwords(FOLDER / "grammar" / "vocabulary.model")
for text in (*short[0], "The squirrel has jumped."):
    ids = vocabulary.encode([text])
    show_table([vocabulary.pieces[i] for i in ids[0]], ids)
    assert vocabulary.decode(ids) == [text]

# %% [markdown]
# The paper's batches have about 25,000 tokens on each side, and sentences of about the same length
# are batched together, because short ones are filled up with padding, which is computed for
# nothing. So it is the number of *tokens* of a batch that is fixed, and not that of sentences. Ours
# have 2,000.

# %%
pairs = DataSet.open(FOLDER / "grammar").training_batches(tokens_per_batch=2000, seed=1)
rows = []
for source, target in pairs.take(5):
    tokens = int(np.count_nonzero(target))
    share = 1 - tokens / np.size(target)
    rows.append([*target.shape, tokens, f"{share:.1%}"])
    assert np.size(source) <= 2000 and np.size(target) <= 2000
show_table(["sentences", "length of the target", "target tokens", "share of padding"], rows)

# %% [markdown]
# ## Hardware and schedule (section 5.2)
#
# The base model was trained for 100,000 steps, 12 hours on 8 GPUs, and the big one for 300,000
# steps, 3.5 days. How much arithmetic is that? The table counts it from the sizes of the model,
# beside the paper's own estimate, which is the time multiplied by what a GPU sustains.

# %%
from keras_transformer.paper.complexity import paper_training_costs

show_table(
    ["model", "steps", "counted FLOPs", "time x GPUs x rate", "share of the rate"],
    [
        [
            cost["model"],
            f"{cost['steps']:,}",
            f"{cost['model_flops']:.1e}",
            f"{cost['estimated_flops']:.1e}",
            f"{cost['utilization']:.0%}",
        ]
        for cost in paper_training_costs()
    ],
)

# %% [markdown]
# ## Optimizer and learning rate (section 5.3)
#
# The optimizer is Adam with $\beta_1 = 0.9$, $\beta_2 = 0.98$ and $\epsilon = 10^{-9}$. Its
# learning rate rises for a number of warm-up steps, and then falls with the inverse square root of
# the step:
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
# ## Dropout (section 5.4)
#
# While the model is trained, each number that a sublayer computes is set to 0 with the probability
# $P_{drop}$, before it is added to the sublayer's input; so is each number of the sum of embedding
# and position. The others are divided by $1 - P_{drop}$, so that the mean stays the same. When the
# model translates, nothing is dropped.

# %%
layer = kt.PositionalEncoding(dropout=0.1)
embeddings = np.random.randn(1, 1000, 64).astype("float32")
trained_on, used = np.array(layer(embeddings, training=True)), np.array(layer(embeddings))
dropped = trained_on == 0
print(f"dropped: {dropped.mean():.1%}")
assert 0.08 < dropped.mean() < 0.12
assert np.allclose(trained_on[~dropped], used[~dropped] / 0.9, rtol=1e-5)

# %% [markdown]
# ## Label smoothing (section 5.4)
#
# The model is asked to give the right token a probability of 0.9 and to divide the rest among the
# vocabulary. A model that is too sure of itself is punished. The curve shows the loss for a
# vocabulary of 100, where all wrong tokens are equally probable.

# %%
from keras_transformer.training.losses import token_losses

show_source(token_losses)
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
# Two layers of width 128 are enough for our grammar. Optimizer, schedule and loss are those of the
# paper. The decoder learns from the target *shifted right*: at each position it sees the correct
# tokens before it, and is asked for the next one.

# %%
from keras_transformer.model.transformer import shift_right

show_source(shift_right, kt.teacher_forcing)

# %% [markdown]
# We train the model twice: the paper's, which normalizes the *output* of each sublayer
# (`norm="post"`), and one that normalizes the *input* of each sublayer (`norm="pre"`).


# %%
def trained(pairs, vocab_size, steps=STEPS, **settings):
    """Trains a small model; returns it, its history and the minutes that it took."""
    keras.utils.set_random_seed(1)
    sizes = {"num_layers": 2, "d_model": 128, "d_ff": 256, "num_heads": 4} | settings
    model = kt.Transformer(kt.TransformerConfig(vocab_size=vocab_size, **sizes))
    rate = kt.WarmupInverseSquareRoot(sizes["d_model"], warmup_steps=300, scale=2.0)
    adam = keras.optimizers.Adam(rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
    loss = kt.LabelSmoothedCrossEntropy(0.1)
    model.compile(adam, loss, metrics=[kt.MaskedAccuracy("accuracy")], jit_compile=False)
    batches = pairs.map(kt.teacher_forcing)
    begun = time.perf_counter()
    history = model.fit(batches, steps_per_epoch=steps // 10, epochs=10, verbose=0).history
    return model, history, (time.perf_counter() - begun) / 60


_, post_history, _ = trained(pairs, 1000, norm="post")
model, history, minutes = trained(pairs, 1000, norm="pre")
model.save(FOLDER / "grammar" / "model.keras")
parameters, grammar_pairs, history_of_grammar = model.count_params(), pairs, history
print(f"{STEPS} steps, {parameters:,} parameters: {minutes:.1f} minutes")

# %% [markdown]
# The loss falls at once, as the model learns which words are frequent. The share of right tokens
# follows when it begins to use the source. With the paper's order, learning is slower at first,
# and needs the warm-up more: gradients of the upper layers are larger than those of the lower ones
# ([Xiong et al. 2020](https://arxiv.org/abs/2002.04745)). `bin/quickstart.py --paper` trains a
# model in the paper's order on this grammar, with more steps and pairs, and prints its BLEU score.
# This notebook has less time, and goes on with the second model.


# %%
def show_curves(histories):
    _, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
    for name, history in histories.items():
        steps = np.arange(1, 11) * STEPS // 10
        left.plot(steps, history["loss"], label=name)
        right.plot(steps, history["accuracy"], label=name)
    left.set(xlabel="step", ylabel="loss", yscale="log")
    right.set(xlabel="step", ylabel="share of right tokens", ylim=(0, 1))
    right.legend()
    plt.tight_layout()
    plt.show()


show_curves({"normalized outputs (the paper)": post_history, "normalized inputs": history})
assert history["loss"][-1] < history["loss"][0]
assert STEPS < FULL or history["accuracy"][-1] > 0.8

# %% [markdown]
# The saved model lies beside its vocabulary, so that it can be loaded with one call and
# translates text. These sentences are from the test split, which training never saw.

# %%
from pipelines.data_set import DataSet

translator = kt.load(FOLDER / "grammar" / "model.keras")
sources, references = DataSet.open(FOLDER / "grammar").text("test")
answers = [beams[0].text for beams in translator.translate(sources[:5])]
show_table(
    ["source", "translation", "reference"],
    list(zip(sources, answers, references[:5], strict=False))[:5],
)

# %% [markdown]
# The loop that wrote nonsense before training translates now. It writes the same as the library's
# search with one beam. Token 2 ends a sentence, on both sides.

# %%
ids = [[*vocabulary.encode(sources[:1])[0], 2]]
written = vocabulary.decode([greedy(model, np.array(ids), 20)])[0]
searched = kt.load(FOLDER / "grammar" / "model.keras", beam_size=1).translate(sources[:1])[0][0]
print(written)
assert STEPS < FULL or written == searched.text

# %% [markdown]
# ## What the heads look at (Figures 3 to 5)
#
# Each row of a picture is a subword that attends, and each column one that it attends to; the
# colour is the weight. These are the heads of the last layer: first the encoder's self-attention,
# then the decoder's, which sees earlier subwords only, and then cross-attention, where you find
# the words of the source beside their translations. The last picture is cross-attention in the
# first layer. The paper's figures show the same of a model that has read 4.5 million sentences;
# `bin/attention.py` draws them for any model.

# %%
from keras_transformer.attention.views import attention_views

views = attention_views(translator.attention(sources[0], references[0]))
for view, layer in [*((view, "last") for view in views), (views[-1], "first")]:
    weights = view.weights[0 if layer == "first" else -1]
    figure, heads = plt.subplots(1, 4, figsize=(13, 4), sharey=True, layout="constrained")
    for number, axes in enumerate(heads):
        image = axes.imshow(weights[number], cmap="Blues", vmin=0, vmax=1)
        axes.set_title(f"head {number + 1}")
        axes.set_xticks(range(len(view.keys)), view.keys, rotation=90)
        axes.set_yticks(range(len(view.queries)), view.queries)
    kind = {"cross": "cross-attention"}.get(view.kind, f"self-attention of the {view.kind}")
    figure.suptitle(f"{kind}, {layer} layer")
    figure.colorbar(image, ax=heads, label="weight", shrink=0.6)
    plt.show()
    assert np.allclose(view.weights.sum(axis=-1), 1, atol=1e-4)

# %% [markdown]
# ## Averaging checkpoints (section 6.1)
#
# The paper's scores are not those of the last checkpoint but of a mean: of the weights of the last
# 5 checkpoints of a base model, which were written every 10 minutes, and of the last 20 of a big
# one. Where the learning rate is still large, the weights of single steps lie around a good place
# rather than in it, and their mean is nearer to it. `keras-transformer average_checkpoints` writes
# the mean as a new checkpoint; with `--checkpoint=average:5`, the programs that load a model
# compute it as they load. Both read the checkpoints and their mean with these functions.

# %%
from keras_transformer.training import checkpoint_weights

show_source(
    checkpoint_weights._read_average,
    checkpoint_weights._mean,
    checkpoint_weights._mean_variable,
)

# %% [markdown]
# We train the model above a little further, with Keras' callback for checkpoints, and keep five.

# %%
checkpoint = keras.callbacks.ModelCheckpoint(
    str(FOLDER / "{epoch}.weights.h5"), save_weights_only=True
)
further = {"steps_per_epoch": max(STEPS // 40, 1), "epochs": 5, "verbose": 0}
model.fit(grammar_pairs.map(kt.teacher_forcing), callbacks=[checkpoint], **further)
kept = []
for number in range(1, 6):
    model.load_weights(FOLDER / f"{number}.weights.h5")
    kept.append(model.get_weights())

# %% [markdown]
# We take the mean of each weight, and compute the loss of the five and of their mean on the test
# split, which training never saw. The mean is better than each of the five:

# %%
from pipelines.data_set import DataSet

mean = [np.mean(versions, axis=0) for versions in zip(*kept, strict=True)]
by_library = checkpoint_weights._mean(kept, "average:5")
assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(mean, by_library, strict=True))
test = DataSet.open(FOLDER / "grammar").evaluation_batches("test", tokens_per_batch=4000)
results = []
for weights in (*kept, mean):
    model.set_weights(weights)
    results.append(model.evaluate(test.map(kt.teacher_forcing), verbose=0))
names = [*(f"checkpoint {number}" for number in range(1, 6)), "mean of the five"]
show_table(
    ["weights", "loss", "share of right tokens"],
    [[name, f"{r[0]:.3f}", f"{r[1]:.3f}"] for name, r in zip(names, results, strict=True)],
)
assert STEPS < FULL or results[-1][0] < min(results[:5])[0]

# %% [markdown]
# ## Beam search (section 6.1)
#
# The best first word need not begin the best sentence. Beam search keeps several *hypotheses*,
# which are beginnings of sentences, and extends all of them; here it keeps 2. To see it work, we
# take a "model" that only knows the last word:
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
# The library's search asks a step function for the logits of the next word of each hypothesis. Ours
# also writes down the hypotheses in its cache, which the search reorders when hypotheses continue
# others: each row of a table is a step. An alpha of 0 ranks sentences by their probability alone.

# %%
from typing import NamedTuple

from keras_transformer.search.beam_search import beam_search, length_penalty, search_step
from keras_transformer.search.config import DecodingConfig, SearchSettings


class Cache(NamedTuple):
    written: tf.Tensor  # [1, K, steps]

    def reordered(self, parents):
        return Cache(tf.gather(self.written, parents, batch_dims=1))

    def with_room(self, capacity):
        return self


# %% [markdown]
# This is the search, with a table of the hypotheses that it keeps.


# %%
def search(beam_size):
    seen = []

    def step_fn(ids, cache, position):
        written = tf.concat([cache.written, ids[..., None]], axis=2)
        seen.append(dict.fromkeys(map(shown, written[0].numpy())))
        return tf.gather(table, ids), Cache(written)

    empty = Cache(tf.zeros([1, beam_size, 0], tf.int32))
    settings = SearchSettings(DecodingConfig(beam_size=beam_size, alpha=0.0))
    found = beam_search(step_fn, empty, tf.constant([4]), settings)
    show_table(
        ["step", "hypotheses that are kept"], [[n, ", ".join(s)] for n, s in enumerate(seen) if n]
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
# This is one step of the search: it extends every hypothesis, puts those that have ended among the
# finished ones, and keeps the best of the others. The score of a finished sentence is its
# log-probability, divided by a *length penalty*, because a longer sentence is always less probable
# than its beginning:
#
# $$\text{score}(Y) = \frac{\log P(Y)}{lp(Y)} \qquad lp(Y) = \left(\frac{5 + |Y|}{6}\right)^\alpha$$

# %%
show_source(search_step, length_penalty)

# %% [markdown]
# The paper used 4 beams and $\alpha = 0.6$. A larger alpha prefers longer sentences:

# %%
rows = []
for alpha in (0.0, 0.6, 1.0, 2.0):
    penalties = [float(length_penalty(tf.constant(length), alpha)) for length in (5, 20, 50)]
    rows.append([alpha, *(f"{penalty:.2f}" for penalty in penalties)])
show_table(["alpha", "5 tokens", "20 tokens", "50 tokens"], rows)

# %% [markdown]
# ## Machine translation (section 6.1, Table 2)
#
# The paper's own models reached these BLEU scores on newstest2014, at a fraction of the cost of
# the systems before them. Nobody has trained this library's models on that data yet:
# `bin/paper_tables.py` prints the commands that do. On Multi30k, a smaller set of real text, they
# have been [measured](../measurements/multi30k.md); the [guide of results](../guides/results.md)
# has the commands.

# %%
from keras_transformer.paper import published

show_table(
    ["system", "BLEU, English-German", "BLEU, English-French", "FLOPs, English-German"],
    [
        [
            system.name,
            system.bleu_de or "",
            system.bleu_fr or "",
            f"{system.flops_de:.1e}" if system.flops_de else "",
        ]
        for system in published.TABLE_2
    ],
)

# %% [markdown]
# ## Model variations (section 6.2, Table 3)
#
# What happens if the base model has other heads, widths, layers or dropout? Each row of Table 3 is
# a preset of the library. We count the parameters of each; the paper's perplexity and BLEU (on
# newstest2013) stand beside them.

# %%
rows = []
for name, printed in published.TABLE_3.items():
    config, training = kt.preset(name, vocab_size=paper_tables.FITTING_VOCABULARY[name])
    changed = [
        f"{title} {getattr(printed, field)}"
        for title, field in published.SETTINGS.items()
        if getattr(printed, field) is not None
    ]
    millions = config.parameters / 1e6
    figures = [printed.paper_parameters_millions, printed.paper_perplexity, printed.paper_bleu]
    figures = ["" if figure is None else figure for figure in figures]
    setting = ", ".join(changed) or "learned positions"
    rows.append([name, setting, f"{millions:.1f}", *figures])
    assert abs((printed.paper_parameters_millions or millions) - millions) < 0.6
show_table(["row", "changed", "million parameters, counted", "the paper's", "PPL", "BLEU"], rows)

# %% [markdown]
# ## Parsing (section 6.3)
#
# The same model learns to parse when trees are written as sequences: a bracket with its label
# opens a part of the sentence, and another closes it. [Vinyals et al.
# (2014)](https://arxiv.org/abs/1412.7449), to whom the paper refers, write `XX` in place of each
# word. We keep the words, which shows a model that has little time where it is in the sentence. Our
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
pairs = DataSet.open(FOLDER / "trees").training_batches(tokens_per_batch=2000, seed=1)
model, history, _ = trained(pairs, 350, norm="pre")
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
# ## What changed since 2017
#
# The Transformers of today are still the model of Figure 1. Four things in it have changed in most
# of them. The first one we have seen:
#
# **Normalized inputs** ([Xiong et al. 2020](https://arxiv.org/abs/2002.04745); `norm="pre"`):
#
# $$x + \text{Sublayer}(\text{LayerNorm}(x))$$
#
# The sums are never normalized, so that gradients of all layers have about the same size from the
# first step on, and one normalization follows the last layer.
#
# **RMSNorm** ([Zhang and Sennrich 2019](https://arxiv.org/abs/1910.07467)) leaves out the mean and
# the bias:
#
# $$\text{RMSNorm}(x) = \gamma \frac{x}{\sqrt{\text{mean}(x^2) + \epsilon}}$$
#
# The library does not have it: on the two data sets where it was tried, it brought no gain that
# could be told from that of another seed (the measurements of layers that came after the paper have
# the figures). The others are its options.

# %% [markdown]
# **Gated networks** ([Shazeer 2020](https://arxiv.org/abs/2002.05202); `activation="swiglu"`)
# multiply the inner activations by a second projection, the gate:
#
# $$\text{SwiGLU}(x) = (\text{swish}(x W_1) \otimes x W_3) W_2, \quad
# \text{swish}(a) = a / (1 + e^{-a})$$
#
# There are three matrices now, so $d_{ff}$ is two thirds of what it was.

# %%
show_source(kt.GatedFeedForward.call)

# %% [markdown]
# **Rotary positions** ([Su et al. 2021](https://arxiv.org/abs/2104.09864); `positions="rotary"`):
# nothing is added to the embeddings. In self-attention, each pair of numbers of a query or a key
# is turned by an angle that grows with the position, as the matrix $M_k$ above turns a sinusoid:
#
# $$\begin{pmatrix} x'_{2i} \\ x'_{2i+1} \end{pmatrix} = \begin{pmatrix} \cos a & -\sin a \\ \sin a
# & \cos a
# \end{pmatrix} \begin{pmatrix} x_{2i} \\ x_{2i+1} \end{pmatrix}, \quad a = pos / 10000^{2i/d_k}$$
#
# The score of a query and a key then depends on the distance between them, and not on where they
# are. We check this with one query and one key at many places.

# %%
from keras_transformer.model.positions import rotate

show_source(rotate)
query, key = np.random.randn(2, 1, 64).astype("float32")
places = np.arange(50)
queries = np.array(rotate(np.repeat(query, 50, axis=0), places))
keys = np.array(rotate(np.repeat(key, 50, axis=0), places))
scores = queries @ keys.T
spread = max(np.ptp(np.diagonal(scores, distance)) for distance in range(50))
print(f"scores of all distances: {np.ptp(scores):.1f} apart; of one distance: at most {spread:.0e}")
assert spread < 1e-3 < np.ptp(scores)

# %% [markdown]
# What does each bring? We train the model above with each of them, on the same batches. Small
# differences say nothing here: the task is easy, and there is one seed.

# %%
OPTIONS = {
    "SwiGLU": {"activation": "swiglu", "d_ff": 256 * 2 // 3},
    "rotary positions": {"positions": "rotary"},
}
OPTIONS["both"] = {key: value for option in OPTIONS.values() for key, value in option.items()}
histories, rows = {"normalized inputs": history_of_grammar}, []
for name, settings in OPTIONS.items():
    variant, histories[name], _ = trained(grammar_pairs, 1000, norm="pre", **settings)
    rows.append([name, f"{variant.count_params():,}", f"{histories[name]['loss'][-1]:.3f}"])
rows.insert(0, ["none of them", f"{parameters:,}", f"{history_of_grammar['loss'][-1]:.3f}"])
show_table(["option", "parameters", "loss at the end"], rows)
show_curves(histories)

# %% [markdown]
# That is the paper. The tutorial "Train a translator on your own text" goes on from here: it
# exports a model and serves it.
