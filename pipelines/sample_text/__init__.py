"""English-German text for the quickstart, the tutorials and tests.

Each split is two files, with one sentence per line. Those of train are sorted and in Zstandard,
which makes them small; the others are in gzip, which sacreBLEU reads, too. The 80,000 pairs of
train and the 1,000 each of validation, test and test_compositional are distinct; the sentences of
the last combine words and constructions as no sentence of another split does. This project's own
grammar, last contained in a386eff3, generated all of them with seed 1. Their licence is the
project's.
"""

import random
from pathlib import Path

from pipelines.sources.text_files import read_lines

FOLDER = Path(__file__).parent


def sample_files(split: str, folder: str | Path = FOLDER) -> tuple[str, str]:
    """Returns the English and the German file of a split.

    Args:
        split: "train", "validation", "test" or "test_compositional".
        folder: the folder of the files.
    """
    ending = "zst" if split == "train" else "gz"
    return str(Path(folder) / f"{split}.en.{ending}"), str(Path(folder) / f"{split}.de.{ending}")


def sample_pairs(split: str) -> list[tuple[str, str]]:
    """Returns the sentence pairs of a split, English and German, shuffled with seed 1.

    Args:
        split: as for `sample_files`.

    Example:
        english, german = sample_pairs("train")[0]
    """
    pairs = list(zip(*(read_lines(file, "split") for file in sample_files(split)), strict=True))
    random.Random(1).shuffle(pairs)
    return pairs
