"""Measures padding in our training batches, and in OpenNMT-tf's for pairs of the same lengths."""

import tempfile
from pathlib import Path

from workers import run_worker

PAIRS = 200_000  # the most that are counted


def padding_shares(data_dir: str, tokens_per_batch: int, opennmt_python: str | None) -> dict:
    """Counts the training split's padding: {engine: {"source", "target" (shares), "batches"}}."""
    import numpy as np

    ours, lengths = our_padding(data_dir, tokens_per_batch)
    found = {"tokens_per_batch": tokens_per_batch, "pairs": len(lengths), "keras_transformer": ours}
    if opennmt_python is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lengths.npy"
            np.save(path, np.random.default_rng(0).permutation(lengths))
            words = ("padding", str(path), str(tokens_per_batch))
            found["opennmt_tf"] = run_worker(
                "opennmt_training_peer.py", *words, python=opennmt_python
            )
    return found


def our_padding(data_dir: str, tokens_per_batch: int, seed: int = 1):
    """Returns the shares of padding in an epoch, and the pairs' lengths, int64 [pairs, 2]."""
    import numpy as np

    from pipelines.data_set import DataSet

    data = DataSet.open(data_dir)
    pairs = min(PAIRS, data.split("train").pairs)
    lengths = []
    positions = np.zeros(2)
    batches = 0
    seen = 0
    for source, target in data.training_batches(tokens_per_batch, seed).as_numpy_iterator():
        lengths.append(np.stack([(source != 0).sum(axis=1), (target != 0).sum(axis=1)], axis=1))
        positions += [source.size, target.size]
        batches += 1
        seen += len(source)
        if seen >= pairs:
            break
    lengths = np.concatenate(lengths)
    shares = [round(float(share), 4) for share in 1 - lengths.sum(axis=0) / positions]
    return {"source": shares[0], "target": shares[1], "batches": batches}, lengths
