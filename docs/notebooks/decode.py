# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Decode: beams, penalties, samples, constraints
#
# A trained model gives every possible translation a probability. Decoding is the search for a good
# one among them. This notebook trains a small model and shows what each option of the search does:
# beam size, length penalty, n-best lists, sampling, minimum Bayes risk, prefixes, and words that a
# translation must contain. Then it scores translations that are given, and shows what the model
# looked at. It takes less than five minutes on two CPU cores.
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
# The other imports and settings.

# %%
import logging
import os
import tempfile
import time
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
FULL = 1200
STEPS = int(os.environ.get("NOTEBOOK_STEPS", FULL))  # of the training
FOLDER = Path(tempfile.mkdtemp())

# %% [markdown]
# A helper shows a table:


# %%
def show_table(names, rows):
    lines = [names, ["---"] * len(names), *rows]
    display(Markdown("\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)))


# %% [markdown]
# ## A model that is not sure
#
# The sentences come with the library and have up to 8 words. The training is short on
# purpose: the model then writes mostly correct German, but is not sure of everything, so there is
# something to search for. To use a model of your own, set `MODEL` to its directory or its .keras
# file, and `sources` and `references` to your sentences.

# %%
PAIRS, VOCAB_SIZE, files = 30_000, 2000, {}
for split in ("train", "test"):
    short = [pair for pair in kt.sample_pairs(split)[:PAIRS] if len(pair[0].split()) <= 8]
    for side, language, name in ((0, "en", "source"), (1, "de", "target")):
        files[f"{split}_{name}"] = path = FOLDER / f"{split}.{language}"
        path.write_text("".join(f"{pair[side]}\n" for pair in short), encoding="utf-8")
DATA = FOLDER / "data"
prepared = kt.prepare(DATA, vocab_size=VOCAB_SIZE, max_length=64, **files)

# %% [markdown]
# The model, and its training with `fit`:

# %%
pairs = kt.DataSet.open(DATA).training_batches(tokens_per_batch=512, seed=1)
batches = pairs.map(kt.teacher_forcing)
sizes = {"num_layers": 2, "d_model": 128, "d_ff": 256, "num_heads": 4, "dropout": 0.0}
layers = {"norm": "pre", "positions": "rotary"}
model = kt.Transformer(kt.TransformerConfig(vocab_size=VOCAB_SIZE, **layers, **sizes))
rate = kt.WarmupToZero(128, warmup_steps=200, total_steps=STEPS, scale=0.64)
adam = keras.optimizers.Adam(rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
model.compile(adam, kt.LabelSmoothedCrossEntropy(0.1), jit_compile=False)
history = model.fit(batches, steps_per_epoch=STEPS // 4, epochs=4, verbose=0).history
MODEL = DATA / "model.keras"
model.save(MODEL)

sources, references = (side[:100] for side in kt.DataSet.open(DATA).text("test"))
assert history["loss"][-1] < history["loss"][0]

# %% [markdown]
# ## The n-best list
#
# `load` takes the options of the search. `translate` returns a list for each text: with a beam of
# 4, the four best translations that were found, best first. We show the one of 20 sentences about
# which the model is least sure.

# %%
translator = kt.load(MODEL, beam_size=4, alpha=0.6)
lists = translator.translate(sources[:20])
chosen = int(np.argmin([beams[0].log_prob for beams in lists]))
source, beams = sources[chosen], lists[chosen]
print(f"{source}\nreference: {references[chosen]}")
show_table(
    ["translation", "score", "log-probability", "tokens"],
    [[b.text, f"{b.score:.3f}", f"{b.log_prob:.3f}", b.tokens] for b in beams],
)
assert [b.score for b in beams] == sorted((b.score for b in beams), reverse=True)

# %% [markdown]
# The score is the log-probability divided by the length penalty of Wu et al., which the paper uses
# in section 6.1. The length of $Y$ includes its end:
#
# $$lp(Y) = \left(\frac{5 + |Y|}{6}\right)^\alpha$$


# %%
def penalty(tokens, alpha):
    return ((5 + tokens) / 6) ** alpha


for beam in beams:
    assert np.isclose(beam.score, beam.log_prob / penalty(beam.tokens, 0.6), atol=1e-4)
print("score = log-probability / penalty, for all of them")

# %% [markdown]
# ## Beam size
#
# A beam of 1 is greedy search: at each step it takes the most probable token. Larger beams find
# more probable translations, and take longer. The penalty is off here, so that probability alone
# decides. BLEU compares with the references. The times are those of a second call, because the
# first one builds the graph.

# %%
from keras_transformer.use.evaluate.translation import translation_scores

rows, found, lists = [], {}, {}
for size in (1, 2, 4, 8):
    searcher = kt.load(MODEL, beam_size=size, alpha=0.0)
    searcher.translate(sources)
    start = time.perf_counter()
    lists[size] = searcher.translate(sources)
    seconds = time.perf_counter() - start
    best = [beams[0] for beams in lists[size]]
    found[size] = np.array([beam.log_prob for beam in best])
    bleu = translation_scores([beam.text for beam in best], references)["bleu"]
    rows.append([size, f"{found[size].mean():.3f}", f"{bleu:.1f}", f"{seconds:.2f}"])
show_table(["beam", "mean log-probability", "BLEU", "seconds"], rows)
assert STEPS < FULL or found[1].mean() <= found[2].mean() <= found[8].mean()

# %% [markdown]
# For which sentences does a larger beam pay? Each point is a sentence. Above the line, the beam of
# 8 found something more probable than greedy search did; on it, both found the same.

# %%
figure, axes = plt.subplots(figsize=(4, 4))
lowest = min(found[1].min(), found[8].min()) - 0.5
axes.plot([lowest, 0], [lowest, 0], color="grey", linewidth=1)
axes.scatter(found[1], found[8], s=12)
axes.set(xlabel="log-probability, beam 1", ylabel="log-probability, beam 8")
plt.show()
better = int((found[8] > found[1] + 1e-3).sum())
print(f"{better} of {len(sources)} sentences are more probable with a beam of 8")
assert better >= int((found[8] < found[1] - 1e-3).sum())

# %% [markdown]
# ## Length penalty
#
# Every token makes a translation less probable, so without a penalty short ones win. A larger alpha
# favours longer ones. We take the list of 8 of one sentence and rank it again with other alphas:
# each line is one translation, and the highest line wins. (The flat line of one token is the empty
# translation, which consists of its end alone.)

# %%
spread = [
    np.ptp([b.tokens for b in beams]) - 0.1 * np.ptp([b.log_prob for b in beams])
    for beams in lists[8]
]
candidates = lists[8][int(np.argmax(spread))]
alphas = np.linspace(0, 2, 41)
figure, axes = plt.subplots(figsize=(7, 3.5))
for beam in candidates:
    axes.plot(alphas, beam.log_prob / penalty(beam.tokens, alphas), label=f"{beam.tokens} tokens")
axes.set(xlabel="alpha", ylabel="score")
axes.legend(fontsize="small")
plt.show()
print(sources[int(np.argmax(spread))])

# %% [markdown]
# The same for all sentences: the mean length of the translations that win, and BLEU.

# %%
rows, lengths = [], []
for alpha in (0.0, 0.6, 1.2, 2.0):
    best = [
        max(beams, key=lambda beam, alpha=alpha: beam.log_prob / penalty(beam.tokens, alpha))
        for beams in lists[8]
    ]
    lengths.append(np.mean([beam.tokens for beam in best]))
    bleu = translation_scores([beam.text for beam in best], references)["bleu"]
    rows.append([alpha, f"{lengths[-1]:.2f}", f"{bleu:.1f}"])
show_table(["alpha", "mean tokens", "BLEU"], rows)
assert lengths == sorted(lengths)

# %% [markdown]
# ## Sampling
#
# Sampling draws each token at random, with the probability that the model gives it. The temperature
# divides the logits: below 1, probable tokens become more probable; above 1, all become more alike.
# We draw 20 translations at each temperature and show the first three different ones.

# %%
from keras_transformer.core.search.config import SamplingConfig

samplers, draws, rows = {}, {}, []
for temperature in (0.3, 1.0, 1.5):
    sampling = SamplingConfig(temperature=temperature)
    samplers[temperature] = kt.load(MODEL, beam_size=20, sampling=sampling)
    draws[temperature] = samplers[temperature].translate([source])[0]
    different = {draw.text: draw for draw in draws[temperature]}.values()
    rows += [[temperature, draw.text, f"{draw.log_prob:.1f}"] for draw in list(different)[:3]]
show_table(["temperature", "draw", "log-probability"], rows)

# %% [markdown]
# `top_k` and `top_p` leave out improbable tokens. `top_k=5` keeps the five most probable, which
# repairs most of what a high temperature breaks. `top_p=0.8` keeps the fewest tokens that have a
# probability of 0.8 together, which at such a temperature are still many. Of 20 draws:

# %%
for name, limit in (("1.5, top_k=5", {"top_k": 5}), ("1.5, top_p=0.8", {"top_p": 0.8})):
    sampler = kt.load(MODEL, beam_size=20, sampling=SamplingConfig(temperature=1.5, **limit))
    draws[name] = sampler.translate([source])[0]
rows = [
    [name, len({d.text for d in drawn}), f"{np.mean([d.log_prob for d in drawn]):.1f}"]
    for name, drawn in draws.items()
]
show_table(["temperature", "different draws of 20", "mean log-probability"], rows)
means = [float(row[2]) for row in rows]
assert STEPS < FULL or (means[0] > means[1] > means[2] and min(means[3:]) > means[2])

# %% [markdown]
# ## Minimum Bayes risk
#
# One draw may be unlucky, but 20 draws together tell what the model believes. `mbr="chrf"` compares
# each draw with all others by chrF, which counts the letters and groups of letters that two texts
# share. The best draw is not the most probable one but the one most like the rest; its score is its
# mean chrF. These are the first of the ranked draws, and the last. The model is least sure about
# this sentence, so many draws are bad.

# %%
ranker = kt.load(MODEL, beam_size=20, sampling=SamplingConfig(), mbr="chrf")
ranked = ranker.translate([source])[0]
places = [*range(min(4, len(ranked))), len(ranked) - 1]
show_table(
    ["place", "draw", "expected chrF", "log-probability"],
    [
        [n + 1, ranked[n].text, f"{ranked[n].score:.1f}", f"{ranked[n].log_prob:.1f}"]
        for n in places
    ],
)
assert [draw.score for draw in ranked] == sorted((draw.score for draw in ranked), reverse=True)

# %% [markdown]
# Is it also better? We score 50 sentences: one draw each, 20 draws ranked by chrF, and 8 beams,
# both as they are and ranked by chrF, where a beam counts as much as it is probable.

# %%
one_draw = kt.load(MODEL, beam_size=1, sampling=SamplingConfig())
ranked_beams = kt.load(MODEL, beam_size=8, mbr="chrf")
ways = {
    "one draw": one_draw.translate(sources[:50]),
    "20 draws, ranked": ranker.translate(sources[:50]),
    "8 beams": lists[8][:50],
    "8 beams, ranked": ranked_beams.translate(sources[:50]),
}
chrf, rows = {}, []
for name, answers in ways.items():
    scores = translation_scores([found[0].text for found in answers], references[:50])
    chrf[name] = scores["chrf"]
    rows.append([name, f"{scores['bleu']:.1f}", f"{scores['chrf']:.1f}"])
show_table(["translations", "BLEU", "chrF"], rows)
assert STEPS < FULL or chrf["20 draws, ranked"] > chrf["one draw"] + 1

# %% [markdown]
# Ranking makes the draws much better, about as good as the beams. The beams themselves change
# little, and 50 sentences are too few to measure that.

# %% [markdown]
# ## Prefixes
#
# Someone who corrects a translation keeps what is right, types the first word that is not, and lets
# the model continue from there. Here the reference is what that person wants.

# %%
best, wanted = beams[0].text.split(), references[chosen].split()
words = enumerate(zip(best, wanted, strict=False))
right = next((number for number, (ours, theirs) in words if ours != theirs), len(best))
prefix = " ".join(wanted[: right + 1])
(continued,) = translator.translate([source], target_prefixes=[prefix])
rows = [["free", beams[0].text], [f"after “{prefix}”", continued[0].text]]
show_table(["", "translation"], rows)
assert continued[0].text.startswith(prefix)

# %% [markdown]
# The translation begins with the prefix. What follows is the model's own, and can still be wrong or
# incomplete; then the person corrects the next word.

# %% [markdown]
# ## Words that a translation must contain
#
# A customer's glossary says which word to use. `required_phrases` has a list of phrases for each
# text, and only translations that contain all of them are found; the model decides where they
# stand. For each sentence, we require one word of its reference that its translation lacks.

# %%
plain = [found[0].text for found in translator.translate(sources)]
missing = [
    [word for word in reference.split() if word.isalpha() and word not in text.split()][:1]
    for text, reference in zip(plain, references, strict=True)
]
asked = [number for number, words in enumerate(missing) if words][:20]
texts, words = [sources[n] for n in asked], [missing[n] for n in asked]
required = [found[0].text for found in translator.translate(texts, required_phrases=words)]
show_table(
    ["required", "free", "with the word"],
    [[words[n][0], plain[asked[n]], required[n]] for n in range(len(asked))][:4],
)
assert all(phrase in text for (phrase,), text in zip(words, required, strict=True))

# %% [markdown]
# The words are there now, but the rest is still the model's own. The required word may repair the
# sentence, or only a part of it, and where the model is far from the reference, it may write
# something worse than before.

# %% [markdown]
# ## Scores of given translations
#
# How probable does the model find a translation that somebody else has written? `score` tells. On
# average, a good translation is more probable than the same words in another order, and than the
# translation of another sentence. The plot shows the log-probability per token for 100 sentences.


# %%
def per_token(targets):
    return [found.log_prob / found.tokens for found in translator.score(sources, targets)]


shuffled = [" ".join(np.random.default_rng(1).permutation(text.split())) for text in references]
kinds = {
    "reference": per_token(references),
    "words shuffled": per_token(shuffled),
    "another sentence": per_token(references[1:] + references[:1]),
}
figure, axes = plt.subplots(figsize=(6, 3))
axes.boxplot(list(kinds.values()), tick_labels=list(kinds))
axes.set(ylabel="log-probability per token")
plt.show()
means = [np.mean(values) for values in kinds.values()]
assert STEPS < FULL or means[0] > max(means[1:])

# %% [markdown]
# ## Attention, side by side
#
# Two translations of one sentence: the best, and the last of the list. A field is dark where the
# last layer looks (columns: the source) when it predicts a subword (rows), as a mean over its
# heads.

# %%
figure, pair = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for axes, beam in zip(pair, (beams[0], beams[-1]), strict=True):
    seen = translator.attention(source, beam.text)
    image = axes.imshow(seen.memory[-1].mean(axis=0), cmap="Blues", vmin=0, vmax=1)
    axes.set_title(f"score {beam.score:.2f}")
    axes.set_xticks(range(len(seen.source_pieces)), seen.source_pieces, rotation=90)
    axes.set_yticks(range(len(seen.target_pieces)), seen.target_pieces)
figure.colorbar(image, ax=pair, label="weight", shrink=0.7)
plt.show()

# %% [markdown]
# `alignment` gives, for each subword of the translation, the subword of the source with the largest
# mean weight in the last two layers. It is not always the one that was translated.

# %%
seen = translator.attention(source, beams[0].text)
aligned = [seen.source_pieces[position] for position in seen.alignment]
show_table(["translation", *seen.target_pieces], [["source", *aligned]])
assert len(aligned) == len(seen.target_pieces)

# %% [markdown]
# Every option here is also a flag of `keras-transformer translate`: `--beam_size`, `--alpha`,
# `--n_best`, `--scores`, `--sample`, `--temperature`, `--top_k`, `--top_p`, `--mbr`,
# `--target_prefixes` and `--terminology`.
