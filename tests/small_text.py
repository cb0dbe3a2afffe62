"""The beginning of the sample text, for small trainings."""

from pathlib import Path

from keras_transformer.support.output_files import write_lines
from pipelines.sample_text import FOLDER, sample_files, sample_pairs


def write_small_text(folder: Path, count: int) -> dict[str, tuple[list[str], list[str]]]:
    """Writes the first `count` pairs of each split; returns the files as FileSource takes them."""
    folder.mkdir()
    files = {}
    for source in sorted(FOLDER.glob("*.en.*")):
        split = source.name.partition(".")[0]
        paths = sample_files(split, folder)
        for path, lines in zip(paths, zip(*sample_pairs(split)[:count], strict=True), strict=True):
            write_lines(path, lines)
        files[split] = tuple([path] for path in paths)
    return files
