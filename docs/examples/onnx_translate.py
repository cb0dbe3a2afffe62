"""Translates with a folder of `export --format=onnx`, without keras_transformer or TensorFlow.

    pip install numpy onnxruntime sentencepiece
    python docs/examples/onnx_translate.py FOLDER < sentences.txt

`search` needs NumPy and an ONNX runtime alone, and finds what `translate` finds: greedily with one
beam, else by beam search (section 6.1 of the paper). docs/reference/onnx.md tells of the graphs.
"""

import json
import sys
from pathlib import Path

import numpy as np

PAD, BOS, EOS = 0, 1, 2


class Model:
    """The graphs of an export, its card, and an empty cache.

    `session(file)` makes what runs a graph: its run(None, {name: array}) returns a list.
    """

    def __init__(self, folder, session):
        self.card = read_card(folder)
        self.encoder = session(folder / "encoder.onnx")
        self.decoder = session(folder / "decoder.onnx")
        config = self.card["description"]["model"]
        layers = range(config["decoder_layers"] or config["num_layers"])
        widths = {"keys": config["d_k"], "values": config["d_v"]}
        self.empty = {
            f"{kind}_{layer}": np.zeros((1, config["num_heads"], 0, width), np.float32)
            for layer in layers
            for kind, width in widths.items()
        }
        self.memory = [f"memory_{name}" for name in self.empty]
        if config.get("decoder_self_attention") == "ssru":
            state = np.zeros((1, config["d_model"]), np.float32)
            self.empty = {f"state_{layer}": state for layer in layers}
            self.empty["position"] = np.zeros(1, np.int32)

    def encode(self, sources):
        """Rows of ids -> the inputs of the decoder that depend on the sources alone."""
        source = np.full((len(sources), max(map(len, sources))), PAD, np.int32)
        for row, ids in zip(source, sources, strict=True):
            row[: len(ids)] = ids
        memory = self.encoder.run(None, {"source": source})
        return {"source": source, **dict(zip(self.memory, memory, strict=True))}

    def step(self, token, parent, memory, cache):
        """Lists of R ids -> log-probabilities, float32 [R, V], and the cache with this position."""
        rows = {"token": np.array(token, np.int32), "parent": np.array(parent, np.int32)}
        log_probabilities, *entries = self.decoder.run(None, {**rows, **memory, **cache})
        return log_probabilities, dict(zip(self.empty, entries, strict=True))


class Sentence:
    """A sentence that is searched. Hypotheses are pairs, best first."""

    def __init__(self, source, card):
        config, decoding = card["description"]["model"], card["decoding"]
        longest = min(len(source), decoding["max_source_length"]) + decoding["extra_length"]
        limit = config["max_positions"] if config["positions"] == "learned" else longest
        self.max_length = min(longest, limit) if len(source) > 1 else 0  # EOS alone: empty
        self.alive = [(np.float32(0), [])]  # (log-probability, ids)
        self.parents = [0]  # of the alive ones
        self.finished = []  # (score, ids)

    def extend(self, log_probabilities, beams, alpha):
        """Extends all hypotheses alive by one token, float32 [K, V]; returns whether to go on."""
        totals = (np.array([[total] for total, _ in self.alive]) + log_probabilities).ravel()
        count = 2 * beams if beams > 1 else 1  # at most K of 2 K end, and K others go on
        best = np.argpartition(-totals, count - 1)[:count]
        best = best[np.lexsort((best, -totals[best]))]
        alive, parents = [], []
        for place in best:
            parent, token = divmod(int(place), log_probabilities.shape[1])
            ids = [*self.alive[parent][1], token]
            if token == EOS:
                self.finished.append((totals[place] / penalty(len(ids), alpha), ids))
            else:
                alive.append((totals[place], ids))
                parents.append(parent)
        self.finished = sorted(self.finished, key=lambda found: -found[0])[:beams]
        self.alive, self.parents = alive[:beams], parents[:beams]
        if not alive or len(alive[0][1]) == self.max_length:
            return False
        # Log-probabilities only fall: no hypothesis alive will ever score more than this.
        bound = self.alive[0][0] / penalty(self.max_length, alpha)
        return len(self.finished) < beams or bound > self.finished[-1][0]

    def result(self, alpha):
        """The finished hypotheses, or those alive where none has ended in time."""
        if self.finished or self.max_length == 0:
            return self.finished or [(np.float32(0), [])]
        return [(total / penalty(self.max_length, alpha), ids) for total, ids in self.alive]


def penalty(length, alpha):
    return np.float32(((5 + length) / 6) ** alpha)


def search(model, sources, beams, alpha):
    """Translates sources, lists of ids with EOS: a list of (score, ids) for each, best first."""
    sentences = [Sentence(source, model.card) for source in sources]
    running = [sentence for sentence in sentences if sentence.max_length > 0]
    memory = model.encode([source for source in sources if len(source) > 1]) if running else {}
    cache, token, parent = model.empty, [BOS] * len(running), [0] * len(running)
    while running:
        found, cache = model.step(token, parent, memory, cache)
        found = found.reshape(len(running), -1, found.shape[1])  # one hypothesis each, then K
        going_on = [n for n, each in enumerate(running) if each.extend(found[n], beams, alpha)]
        if len(going_on) < len(running):  # the others leave the batch
            memory = {name: values[going_on] for name, values in memory.items()}
        parent = [n * found.shape[1] + parent for n in going_on for parent in running[n].parents]
        token = [ids[-1] for n in going_on for _, ids in running[n].alive]
        running = [running[n] for n in going_on]
    return [sentence.result(alpha) for sentence in sentences]


def read_card(folder):
    """Reads the card of an export, all files of which must be there, and whole."""
    file = folder / "assets.extra" / "model_card.json"
    card = json.loads(file.read_text("utf-8")) if file.exists() else {}
    if card.get("onnx") is None or card["format_version"] != 5:
        sys.exit(f"{folder} must be a folder that export --format=onnx has written")
    for name, size in card["files"].items():
        found = (folder / name).stat().st_size if (folder / name).exists() else "none"
        if found != size:
            sys.exit(f"{folder / name} must have its {size} bytes, not {found}: export it again")
    return card


def main(folder):
    try:
        import onnxruntime
        import sentencepiece
    except ImportError as error:
        sys.exit(f"{error.name} must be installed: pip install {error.name}")
    model = Model(folder, onnxruntime.InferenceSession)
    files = sorted(folder.glob("*vocabulary.model"))  # of source and target, or one for both
    if not files:
        sys.exit(f"{folder} must have SentencePiece's vocabulary.model; for others, call search")
    source, *_, target = (sentencepiece.SentencePieceProcessor(str(file)) for file in files * 2)
    decoding = model.card["decoding"]
    limit = decoding["max_source_length"] - 1
    rows = [[*source.encode(line)[:limit], EOS] for line in sys.stdin.read().splitlines()]
    for start in range(0, len(rows), 32):
        batch = rows[start : start + 32]
        for (_, ids), *_ in search(model, batch, decoding["beam_size"], decoding["alpha"]):
            print(target.decode(ids))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
