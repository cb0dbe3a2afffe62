"""Measures the pipeline on millions of pairs: preparation, reading batches, saving, restoring.

    python benchmarks/pipeline.py --work_dir=runs/pipeline     (--pairs=50000 for a trial; --help)

The text is synthetic, and the same on every machine. Like WMT's, it has many rare words: each side
has 500,000 words, the r-th with a probability proportional to 1 / (r + 2.7), and rarer words have
more syllables. Source lengths are lognormal with a mean of 25 words (median 20, sigma 0.65), and
target lengths are close to source lengths (sigma 0.2). bin/prepare_data.py prepares the text, and
its resident memory is summed over its processes ten times a second. Then this process reads epochs
of batches, and saves and restores an iterator near the beginning and in the middle of an epoch. On
two cores, 4.5 million pairs take less than ten minutes and 3 GB of disk space.

The program can be interrupted: a second run keeps a complete text and a complete data directory.
Prints a table on stderr and one JSON line on stdout.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from timing import check_positive, log, require, run
from tqdm import tqdm

PREPARE = Path(__file__).resolve().parent.parent / "bin" / "prepare_data.py"
WORDS = 500_000
ONSETS = {
    "source": ["b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "w"],
    "target": ["b", "d", "f", "g", "h", "k", "l", "m", "r", "sch", "t", "v", "w", "z"],
}
VOWELS = {"source": ["a", "e", "i", "o", "ea"], "target": ["a", "e", "u", "ö", "ei"]}
BLOCK = 50_000  # pairs generated at once
COUNTED_AT_ONCE = 50  # batches
EARLY, MIDDLE = 10, 5_000  # batches after which iterators are saved


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work_dir", type=Path, required=True, help="for text and data, kept")
    parser.add_argument("--pairs", type=int, default=4_500_000)
    parser.add_argument("--vocab_size", type=int, default=37_000)
    parser.add_argument("--pipeline_options", help="Beam's flags; prepares with Beam")
    parser.add_argument("--tokens_per_batch", type=int, default=25_000)
    parser.add_argument("--epochs", type=int, default=3, help="epochs to read")
    arguments = parser.parse_args()
    check_positive(arguments, "pairs", "epochs")
    folder = arguments.work_dir / f"{arguments.pairs}-pairs"
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder, arguments.pairs)
    data_dir = folder / f"data-{arguments.vocab_size}"
    runner = []
    if arguments.pipeline_options is not None:
        data_dir = data_dir.with_name(f"{data_dir.name}-beam")
        runner = ["--runner=beam", f"--pipeline_options={arguments.pipeline_options}"]
    result = {"threads": os.cpu_count(), "pairs": arguments.pairs}
    result["preparation"] = prepare(folder, data_dir, arguments.vocab_size, runner)
    result["reading"] = read(folder, data_dir, arguments.tokens_per_batch, arguments.epochs)
    print_table(result)
    print(json.dumps(result))


def write_text(folder, pairs):
    """Writes text.source and text.target, unless they exist."""
    import numpy as np

    sides = ("source", "target")
    paths = [folder / f"text.{side}" for side in sides]
    if all(path.exists() for path in paths):
        return
    lexicons = [lexicon(ONSETS[side], VOWELS[side]) for side in sides]
    parts = [path.with_suffix(path.suffix + ".part") for path in paths]
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open(part, "w", encoding="utf-8")) for part in parts]
        for start in tqdm(range(0, pairs, BLOCK), "making text", unit=f" x {BLOCK:,} pairs"):
            rng = np.random.default_rng(start)
            count = min(BLOCK, pairs - start)
            lengths = rng.lognormal(np.log(20), 0.65, count)
            for file, words in zip(files, lexicons, strict=True):
                file.writelines(sentences(words, lengths, rng))
                lengths = lengths * rng.lognormal(0, 0.2, count)
    for part, path in zip(parts, paths, strict=True):
        part.rename(path)


def lexicon(onsets, vowels):
    """Returns words by rank: numbers from 1, with syllables as digits."""
    import numpy as np

    syllables = [onset + vowel for vowel in vowels for onset in onsets]

    def spelled(rank):
        word = ""
        while rank:
            rank, syllable = divmod(rank - 1, len(syllables))
            word += syllables[syllable]
        return word

    return np.array([spelled(rank) for rank in range(1, WORDS + 1)], object)


def sentences(words, lengths, rng):
    """Yields lines of about the given numbers of words."""
    import numpy as np

    ends = np.cumsum(np.clip(np.rint(lengths), 1, 240).astype(int))
    # The inverse of the distribution function for 1 / (r + 2.7), with r as a real number.
    ranks = 2.7 * (WORDS / 2.7 + 1) ** rng.random(ends[-1]) - 2.7
    text = words[ranks.astype(int)].tolist()
    for begin, end in zip([0, *ends.tolist()], ends.tolist(), strict=False):
        yield " ".join(text[begin:end]) + "\n"


def prepare(folder, data_dir, vocab_size, runner):
    """Measures the time and peak resident memory of bin/prepare_data.py."""
    measured = folder / f"{data_dir.name}.json"
    if (data_dir / "metadata.json").exists():
        return json.loads(measured.read_text()) if measured.exists() else {}
    command = [sys.executable, str(PREPARE), "--dataset=files", f"--data_dir={data_dir}"]
    command += [f"--train_{side}={folder / 'text'}.{side}" for side in ("source", "target")]
    command += [f"--vocab_size={vocab_size}", *runner]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    begun = time.monotonic()
    try:
        while process.poll() is None:
            peak = max(peak, resident_bytes(process.pid))
            time.sleep(0.1)
    finally:
        process.kill()
    code = process.returncode
    require(code == 0, None, "must exit with code 0", f"code {code}", "bin/prepare_data.py")
    seconds = round(time.monotonic() - begun, 1)
    found = {"seconds": seconds, "peak_resident_mb": round(peak / 1e6)}
    measured.write_text(json.dumps(found))
    return found


def resident_bytes(process):
    """Returns the resident memory of a process and all its descendants."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        children = [
            int(child)
            for task in Path(f"/proc/{process}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except (OSError, IndexError):  # the process has just ended
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(map(resident_bytes, children))


def read(folder, data_dir, tokens_per_batch, epochs):
    """Measures speed, padding and memory per epoch, and the cost of saving and restoring."""
    import numpy as np
    import tensorflow as tf

    from pipelines.data_set import DataSet

    data = DataSet.open(data_dir)
    info = data.split("train")
    dataset = data.training_batches(tokens_per_batch, seed=1)

    @tf.function
    def count(iterator, batches):
        """Counts tokens and positions in a number of batches, each for source and target."""
        tokens = tf.zeros([2], tf.int64)
        positions = tf.zeros([2], tf.int64)
        for _ in tf.range(batches):
            source, target = next(iterator)
            tokens += [tf.math.count_nonzero(source), tf.math.count_nonzero(target)]
            positions += [tf.size(source, tf.int64), tf.size(target, tf.int64)]
        return tokens, positions

    def epoch(iterator):
        """Reads as many target tokens as there are in an epoch."""
        begun = time.perf_counter()
        batches = 0
        tokens = np.zeros(2, int)
        positions = np.zeros(2, int)
        while tokens[1] < info.target_tokens:
            more_tokens, more_positions = count(iterator, tf.constant(COUNTED_AT_ONCE))
            tokens += more_tokens.numpy()
            positions += more_positions.numpy()
            batches += COUNTED_AT_ONCE
        seconds = time.perf_counter() - begun
        return {
            "batches": batches,
            "target_tokens_per_second": round(int(tokens[1]) / seconds),
            "padding": round(1 - tokens.sum() / positions.sum(), 4),
            "resident_mb": round(resident_bytes(os.getpid()) / 1e6),
        }

    def saved_and_restored(batches):
        iterator = iter(dataset)
        path = str(folder / "iterator")
        count(iterator, tf.constant(batches))
        begun = time.perf_counter()
        tf.train.Checkpoint(iterator=iterator).write(path)
        save = time.perf_counter() - begun
        fresh = iter(dataset)
        begun = time.perf_counter()
        tf.train.Checkpoint(iterator=fresh).read(path)
        next(fresh)
        restore = time.perf_counter() - begun
        size = sum(file.stat().st_size for file in folder.glob("iterator.*"))
        return {
            "batches": batches,
            "save_seconds": round(save, 3),
            "restore_seconds": round(restore, 2),  # up to the next batch
            "megabytes": round(size / 1e6, 4),
        }

    iterator = iter(dataset)
    begun = time.perf_counter()
    count(iterator, tf.constant(1))  # traces
    first = time.perf_counter() - begun
    found = [epoch(iterator) for _ in tqdm(range(epochs), "reading", unit=" epochs")]
    middle = min(MIDDLE, found[0]["batches"] // 2)
    return {
        "seconds_to_first_batch": round(first, 2),
        "epochs": found,
        "iterators": [saved_and_restored(batches) for batches in (EARLY, middle)],
    }


def print_table(result):
    preparation = result["preparation"]
    reading = result["reading"]
    if "seconds" in preparation:
        rate = result["pairs"] / preparation["seconds"]
        log(
            f"prepared {result['pairs']:,} pairs in {preparation['seconds'] / 60:.1f} minutes, "
            f"{rate:,.0f} a second, {preparation['peak_resident_mb']:,} MB at most"
        )
    log("epoch  target tokens/s  padding  resident MB")
    for number, row in enumerate(reading["epochs"], start=1):
        rate = row["target_tokens_per_second"]
        log(f"{number:5}  {rate:15,}  {row['padding']:7.1%}  {row['resident_mb']:11,}")
    log("iterator after   saved in   restored in   size")
    for row in reading["iterators"]:
        seconds = f"{row['save_seconds']:7.2f} s  {row['restore_seconds']:10.2f} s"
        log(f"{row['batches']:6,} batches  {seconds}  {row['megabytes']:6.2f} MB")


if __name__ == "__main__":
    run(main)
