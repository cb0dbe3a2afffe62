"""Marian models with random weights, in Marian's own format, and a reference for their logits.

NumPy draws the weights. `marian_logits` follows Marian's equations for one sentence pair, in
float64. It shares no code with the library.
"""

import math
import shutil
import types

import numpy as np
import sentencepiece
import yaml

SOURCES = [
    "the old woman sees a dog .",
    "a small bird sings in the garden !",
    "do the children read two books ?",
    "he gives the teacher a letter , and she laughs .",
    "it rains : we stay at home .",
]
TARGETS = [
    "die alte frau sieht einen hund .",
    "ein kleiner vogel singt im garten !",
    "lesen die kinder zwei bücher ?",
    "er gibt dem lehrer einen brief , und sie lacht .",
    "es regnet : wir bleiben zu hause .",
]
D_MODEL, D_FF, HEADS = 12, 20, 3
NORMS = {"post": ("", "dan", "d", ""), "pre": ("n", "da", "d", "n")}
VARIANTS = {  # norm, activation, layers, number of embeddings, whether softmax and target are tied
    "OPUS-MT": ("post", "swish", (2, 2), 1, True),
    "pre-norm": ("pre", "relu", (1, 2), 2, True),
    "untied": ("post", "gelu", (1, 1), 1, False),
}
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "former gelu": lambda x: x / (1 + np.exp(-1.702 * x)),
}


def train_sentencepiece(
    folder, names=("source.spm", "target.spm"), texts=(SOURCES, TARGETS), **settings
):
    """Trains SentencePiece models on the sentences above, in a folder."""
    for name, lines in zip(names, texts, strict=False):
        with open(folder / name, "wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter([*lines] * 20),
                model_writer=file,
                **{"vocab_size": 48, "minloglevel": 2, **settings},
            )


def pieces_of(folder):
    """Returns the pieces of both models and a language code: a shared vocabulary like OPUS-MT's."""
    pieces = ["</s>", "<unk>", ">>de<<"]
    for name in ("source.spm", "target.spm"):
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / name))
        found = [model.id_to_piece(i) for i in range(3, model.get_piece_size())]
        pieces += [piece for piece in found if piece not in pieces]
    return pieces


def write_vocabulary(folder):
    """Writes source.spm, target.spm and vocab.yml for the sentences to a folder."""
    train_sentencepiece(folder)
    ids = {piece: number for number, piece in enumerate(pieces_of(folder))}
    (folder / "vocab.yml").write_text(yaml.safe_dump(ids, allow_unicode=True), encoding="utf-8")


def write_model(texts, folder, variant="OPUS-MT"):
    """Writes a model in Marian's format; returns its folder, options, weights and number of ids.

    `texts` is a folder that contains its vocabulary.
    """
    norm, activation, layers, count, tied = VARIANTS[variant]
    shutil.copytree(texts, folder)
    size = len(pieces_of(folder))
    options, weights = draw(norm, activation, layers, [size] * count, tied)
    save(folder, options, weights)
    return types.SimpleNamespace(folder=folder, options=options, weights=weights, size=size)


def draw(norm, activation, layers, sizes, tied, seed=1):
    """Draws options and weights, under Marian's names.

    `sizes` are those of both vocabularies, or a single one if they are shared.
    """
    rng = np.random.default_rng(seed)
    names = ("preprocess", "postprocess", "postprocess-emb", "postprocess-top")
    options = {
        "type": "transformer",
        "dim-emb": D_MODEL,
        "enc-depth": layers[0],
        "dec-depth": layers[1],
        "transformer-heads": HEADS,
        "transformer-dim-ffn": D_FF,
        "transformer-ffn-activation": activation,
        "dim-vocabs": [sizes[0], sizes[-1]],
        "transformer-decoder-autoreg": "self-attention",
        "version": "v1.12.3 d225c24d 2023-03-01 13:48:09 +0000",
    }
    for name, letters in zip(names, NORMS[norm], strict=True):
        options[f"transformer-{name}"] = letters
    weights = {}

    def add(name, *shape):
        weights[name] = rng.normal(scale=0.4, size=shape).astype(np.float32)

    def add_norm(name, suffix=""):
        add(f"{name}_ln_scale{suffix}", 1, D_MODEL)
        add(f"{name}_ln_bias{suffix}", 1, D_MODEL)

    matrices = ("encoder_Wemb", "decoder_Wemb") if len(sizes) > 1 else ("Wemb",)
    for matrix, size in zip(matrices, sizes, strict=True):
        add(matrix, size, D_MODEL)
    if not tied:
        add("decoder_ff_logit_out_Wt", sizes[-1], D_MODEL)
    add("decoder_ff_logit_out_b", 1, sizes[-1])
    suffix = "_pre" if norm == "pre" else ""
    attentions = {"encoder": ["self"], "decoder": ["self", "context"]}
    for stack, depth in zip(attentions, layers, strict=True):
        for layer in range(1, depth + 1):
            for attention in attentions[stack]:
                at = f"{stack}_l{layer}_{attention}"
                for letter in "qkvo":
                    add(f"{at}_W{letter}", D_MODEL, D_MODEL)
                    add(f"{at}_b{letter}", 1, D_MODEL)
                add_norm(f"{at}_Wo", suffix)
            at = f"{stack}_l{layer}_ffn"
            for number, shape in (("1", (D_MODEL, D_FF)), ("2", (D_FF, D_MODEL))):
                add(f"{at}_W{number}", *shape)
                add(f"{at}_b{number}", 1, shape[1])
            add_norm(f"{at}_ffn", suffix)
        if norm == "pre":
            add_norm(f"{stack}_top")
    return options, weights


def save(folder, options, weights):
    """Writes model.npz with its options, as Marian does."""
    text = np.frombuffer(yaml.safe_dump(options).encode() + b"\0", np.int8)
    np.savez(folder / "model.npz", **weights, **{"special:model.yml": text})


def marian_logits(options, weights, source, target, steps=D_MODEL // 2 - 1, epsilon=1e-6, first=0):
    """Computes logits [T, V] for Marian's ids; `target` begins with None, an embedding of zeros.

    Hugging Face's sinusoids have D_MODEL / 2 steps from 1 to 1/10000, without the last one. M2M-100
    counts positions from first=2.
    """
    weights = {name: value.astype(np.float64) for name, value in weights.items()}
    pre = options["transformer-preprocess"] == "n"
    activation = ACTIVATIONS[options["transformer-ffn-activation"]]
    source_matrix = weights.get("Wemb", weights.get("encoder_Wemb"))
    target_matrix = weights.get("Wemb", weights.get("decoder_Wemb"))

    def embed(matrix, ids):
        zeros, rows = np.zeros(D_MODEL), []
        for position, i in enumerate(ids, start=first):
            vector = math.sqrt(D_MODEL) * (zeros if i is None else matrix[i])
            half = D_MODEL // 2
            step = math.log(10000) / steps
            angles = [position * math.exp(-step * (j % half)) for j in range(D_MODEL)]
            turn = [math.sin(a) if j < half else math.cos(a) for j, a in enumerate(angles)]
            rows.append(vector + turn)
        return np.array(rows)

    def norm(name, x, suffix=""):
        centred = x - x.mean(-1, keepdims=True)
        normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
        return normal * weights[f"{name}_ln_scale{suffix}"] + weights[f"{name}_ln_bias{suffix}"]

    def attend(at, x, memory, allowed):
        if memory is None:
            memory = x
        q, k, v = (
            states @ weights[f"{at}_W{letter}"] + weights[f"{at}_b{letter}"]
            for letter, states in (("q", x), ("k", memory), ("v", memory))
        )
        heads, width = [], D_MODEL // HEADS
        for head in range(HEADS):
            columns = slice(head * width, (head + 1) * width)
            scores = np.where(allowed, q[:, columns] @ k[:, columns].T / math.sqrt(width), -np.inf)
            powers = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(powers / powers.sum(-1, keepdims=True) @ v[:, columns])
        return np.concatenate(heads, -1) @ weights[f"{at}_Wo"] + weights[f"{at}_bo"]

    def feed_forward(at, x):
        inner = activation(x @ weights[f"{at}_W1"] + weights[f"{at}_b1"])
        return inner @ weights[f"{at}_W2"] + weights[f"{at}_b2"]

    def residual(name, x, sublayer):
        if pre:
            return x + sublayer(norm(name, x, "_pre"))
        return norm(name, x + sublayer(x))

    x = embed(source_matrix, source)
    for layer in range(1, options["enc-depth"] + 1):
        at = f"encoder_l{layer}"
        x = residual(f"{at}_self_Wo", x, lambda y, at=at: attend(f"{at}_self", y, None, True))
        x = residual(f"{at}_ffn_ffn", x, lambda y, at=at: feed_forward(f"{at}_ffn", y))
    memory = norm("encoder_top", x) if pre else x
    x = embed(target_matrix, target)
    earlier = np.tril(np.ones((len(target), len(target)), bool))
    for layer in range(1, options["dec-depth"] + 1):
        at = f"decoder_l{layer}"
        x = residual(f"{at}_self_Wo", x, lambda y, at=at: attend(f"{at}_self", y, None, earlier))
        x = residual(
            f"{at}_context_Wo", x, lambda y, at=at: attend(f"{at}_context", y, memory, True)
        )
        x = residual(f"{at}_ffn_ffn", x, lambda y, at=at: feed_forward(f"{at}_ffn", y))
    x = norm("decoder_top", x) if pre else x
    softmax = weights.get("decoder_ff_logit_out_Wt", target_matrix)
    return x @ softmax.T + weights["decoder_ff_logit_out_b"]
