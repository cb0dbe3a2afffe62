"""Writes the training shards with Apache Beam workers: Flink, Spark, or this machine.

Beam collects the pairs of a block on one worker, which writes it, and then the positions of a
shard's groups, which may be in all blocks. The rest is shared with the local runner: blocks and
shards depend only on the seed and their numbers. So the data set is the same for any number of
workers, and after repeated work.

Every worker must have this package, and must find the text and the data directory at the same paths
as the program that starts the pipeline. Text files are read in parallel.

Beam only moves pairs: one GroupByKey brings the pieces of a block to a worker, a second one the
positions of a shard's groups. Files get their final names when they are complete, so repeated work
changes nothing. The workers need a shared folder.
"""

import contextlib
import functools
import io
import itertools
import threading
from collections.abc import Iterable, Iterator, Sequence
from logging import CRITICAL, getLogger
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging

from keras_transformer.support.errors import InputError, install_command
from pipelines.prepare import sharding
from pipelines.prepare.data_writer import TrainingWriter, write_block
from pipelines.prepare.sharding import Sharding, Span
from pipelines.sources.source import Pair, Source

try:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions
except ImportError:
    rule = f"must be local where Apache Beam is not installed ({install_command('beam')})"
    raise InputError("runner", rule, "beam") from None


def training_writer(pipeline_options: Sequence[str]) -> TrainingWriter:
    """Makes the argument `write_training` of `preparation.prepare`.

    Args:
        pipeline_options: Beam's own command-line options, such as those for a Flink runner; none
            for one worker on this machine.

    Returns:
        A function that writes the training shards. It raises an InputError if the pipeline fails.

    Raises:
        InputError: for options that Beam rejects.
    """
    # The local runner. Beam's default would first try to download another.
    argv = ["--runner=FnApiRunner", *pipeline_options]
    messages = io.StringIO()
    try:
        with contextlib.redirect_stderr(messages):
            PipelineOptions(argv).get_all_options()
            beam.Pipeline(argv=argv)
    except (SystemExit, Exception) as error:  # argparse prints the error, and exits
        is_refused = isinstance(error, SystemExit)
        received = _last_line(messages.getvalue() if is_refused else str(error) or repr(error))
        raise InputError("pipeline_options", "must be valid for Beam", received) from None
    return functools.partial(_write_training_shards, argv)


def _write_training_shards(
    argv: list[str],
    source: Source,
    part_sizes: list[int],
    shards: Sharding,
    folder: Path,
    max_length: int,
) -> None:
    firsts = np.cumsum([0, *part_sizes[:-1]]).tolist()  # the index of each part's first pair
    parts = list(zip(firsts, source.parts("train"), strict=True))
    logging.info("encoding train with Apache Beam %s", " ".join(argv))
    try:
        with _without_tracebacks(), beam.Pipeline(argv=argv) as pipeline:
            _ = (
                pipeline
                | "parts" >> beam.Create(parts)
                | "read" >> beam.FlatMap(_read, sharding.BLOCK_PAIRS)
                | "to blocks" >> beam.GroupByKey()
                | "encode" >> beam.ParDo(_Encode(shards, folder, max_length))
                | "to shards" >> beam.GroupByKey()
                | "write" >> beam.Map(_write_shard, shards)
            )
    except Exception as error:  # runners' errors have no common type
        rule = "must finish its pipeline"
        raise InputError("runner", rule, _last_line(str(error) or repr(error))) from error


@contextlib.contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Hides tracebacks from Beam and its threads, unless the log is verbose."""
    hook = threading.excepthook
    if logging.get_verbosity() < logging.DEBUG:
        getLogger("apache_beam").setLevel(CRITICAL)
        threading.excepthook = lambda failure: None
    try:
        yield
    finally:
        threading.excepthook = hook


def _last_line(message: str) -> str:
    return (message.strip() or repr(message)).splitlines()[-1]


def _read(part: tuple[int, Any], block_pairs: int) -> Iterator[tuple[int, list[tuple[int, Pair]]]]:
    """Yields the pairs in a part of the text by block, with their indices in the split."""
    first, source = part  # Any above, because Beam cannot check that it is a Source
    numbered_pairs = enumerate(source.pairs("train"), first)

    def block_number(numbered_pair: tuple[int, Pair]) -> int:
        number, _ = numbered_pair
        return number // block_pairs

    for block, pairs in itertools.groupby(numbered_pairs, block_number):
        yield block, list(pairs)


class _Encode(beam.DoFn):
    """Writes a block, and yields the position of its group for each shard."""

    def __init__(self, shards: Sharding, folder: Path, max_length: int):
        self._shards = shards
        self._folder = folder
        self._max_length = max_length

    def setup(self):
        from keras_transformer.core.vocabulary.pair import VocabularyPair  # imports TensorFlow
        from pipelines.prepare.vocabulary import PairEncoder

        self._encoder = PairEncoder(VocabularyPair.load(self._folder), self._max_length)

    def process(self, block: tuple[int, Iterable[list[tuple[int, Pair]]]]):
        number, parts = block
        pairs = [pair for _, pair in sorted(itertools.chain.from_iterable(parts))]
        write_block(self._shards, number, pairs, self._encoder)
        for shard, group in enumerate(self._shards.groups(number)):
            yield shard, (number, group)


def _write_shard(shard: tuple[int, Iterable[tuple[int, Span]]], shards: Sharding) -> None:
    number, groups = shard
    shards.write_shard(number, [group for _, group in sorted(groups)])
