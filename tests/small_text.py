"""The beginning of the sample text, for small trainings."""

from pathlib import Path

from backports import zstd

from pipelines.sample_text import FOLDER, sample_files, sample_pairs


def write_small_text(folder: Path, count: int) -> dict[str, tuple[list[str], list[str]]]:
    """Writes the first `count` pairs of each split; returns the files as FileSource takes them."""
    folder.mkdir()
    files = {}
    for source in sorted(FOLDER.glob("*.en.zst")):
        split = source.name.partition(".")[0]
        paths = sample_files(split, folder)
        for path, lines in zip(paths, zip(*sample_pairs(split)[:count], strict=True), strict=True):
            Path(path).write_bytes(zstd.compress("".join(f"{line}\n" for line in lines).encode()))
        files[split] = tuple([path] for path in paths)
    return files
