"""Any translation set of TensorFlow Datasets (TFDS) as a source of sentence pairs."""

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

from absl import logging

from keras_transformer.support.errors import InputError, reason, require
from keras_transformer.support.fields import check_fields, option
from pipelines.sources.files import LanguageOptions
from pipelines.sources.source import SPLITS, Pair, Source, Survey, Visitor
from pipelines.sources.text_files import AnyPath

_BATCH = 1024
_ANSWER_SECONDS = 10  # time limit for a server's answer


class TfdsSource(Source):
    """Sentence pairs from any TFDS data set with a Translation feature.

    Args:
        dataset: the data set's TFDS name, e.g. "wmt14_translate/de-en".
        source_language: a language of the data set, e.g. "en".
        target_language: another language of the data set.
        tfds_data_dir: TFDS's folder of data sets, on disk or to download to; None for its default.

    Raises:
        InputError: for a name, configuration or language unknown to TFDS, and for data that is not
            on disk and cannot be downloaded.

    Example:
        TfdsSource("wmt14_translate/de-en", "en", "de")
    """

    def __init__(
        self,
        dataset: str,
        source_language: str,
        target_language: str,
        tfds_data_dir: AnyPath | None = None,
    ):
        self.languages = (source_language, target_language)
        self._builder = _find_builder(dataset, tfds_data_dir)
        _check_languages(dataset, self._builder.info.features, self.languages)
        _ensure_prepared(dataset, self._builder)
        splits = self._builder.info.splits
        self._splits = [split for split in SPLITS if split in splits]
        received = f"tfds:{dataset}, with the splits {', '.join(splits) or 'none'}"
        require("train" in self._splits, "dataset", "must have a split train", received)

    def survey(self, visit: Visitor | None = None) -> Survey:
        """Gets the number of pairs from TFDS; only reads the pairs for `visit`."""
        counts = {split: self._builder.info.splits[split].num_examples for split in self._splits}
        if visit is not None:
            for pair in self.pairs("train"):
                visit(pair, self.languages)
        settings = {
            "dataset": f"tfds:{self._builder.info.full_name}",
            "source_language": self.languages[0],
            "target_language": self.languages[1],
            "split_sizes": counts,
        }
        return Survey(counts, [counts["train"]], settings)

    def pairs(self, split: str) -> Iterator[Pair]:
        source_language, target_language = self.languages
        dataset = self._builder.as_dataset(split=split, shuffle_files=False)
        for batch in dataset.batch(_BATCH).as_numpy_iterator():
            sources = batch[source_language].tolist()
            targets = batch[target_language].tolist()
            for source, target in zip(sources, targets, strict=True):
                yield _one_line(source), _one_line(target)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TfdsOptions(LanguageOptions):
    """The languages of a data set of TFDS, and its folder."""

    name: str  # what follows "tfds:"
    tfds_data_dir: AnyPath | None = option(
        None, "TFDS's folder of data sets, on disk or to download to; by default its own."
    )

    def __post_init__(self):
        check_fields(self)
        rule = f"must be given with dataset=tfds:{self.name}"
        require(self.source_language, "source_language", rule, "none")
        require(self.target_language, "target_language", rule, "none")

    def source(self) -> TfdsSource:
        return TfdsSource(self.name, self.source_language, self.target_language, self.tfds_data_dir)


def _find_builder(dataset: str, tfds_data_dir: AnyPath | None):
    import tensorflow_datasets as tfds

    try:
        return tfds.builder(dataset, data_dir=tfds_data_dir, try_gcs=False)
    except tfds.core.registered.DatasetNotFoundError:
        rule = "must be a data set known to TFDS or in tfds_data_dir"
    except Exception as error:  # TFDS raises many types, including AssertionError
        rule = f"must name a configuration and version known to TFDS ({_brief(error)})"
    raise InputError("dataset", rule, f"tfds:{dataset}")


def _check_languages(dataset: str, features, languages: Pair) -> None:
    import tensorflow_datasets as tfds

    # Translation is a FeaturesDict; the features of some other data sets are not.
    features = dict(features) if isinstance(features, tfds.features.FeaturesDict) else {}
    texts = [name for name, feature in features.items() if isinstance(feature, tfds.features.Text)]
    rule = "must be a translation set, with a Translation feature"
    received = f"tfds:{dataset}, which has the features {', '.join(features)}"
    require(len(texts) >= 2, "dataset", rule, received)
    source_language, target_language = languages
    rule = f"must be one of {', '.join(texts)} for tfds:{dataset}"
    require(source_language in texts, "source_language", rule, repr(source_language))
    require(target_language in texts, "target_language", rule, repr(target_language))
    rule = "must differ from source_language"
    require(source_language != target_language, "target_language", rule, repr(target_language))


def _ensure_prepared(dataset: str, builder) -> None:
    """Downloads a data set that is not on disk, or tells how to copy it there."""
    if builder.is_prepared():
        return
    logging.info("downloading tfds:%s to %s", dataset, builder.data_dir)
    try:
        _check_network(builder)
        with contextlib.redirect_stdout(sys.stderr):  # stdout is for results
            builder.download_and_prepare()
    except ImportError as error:
        rule = "must have the Python packages that TFDS needs for it"
        raise InputError("dataset", rule, f"tfds:{dataset} ({error})") from error
    except Exception as error:  # TFDS passes on all errors of the download and of parsing
        rule = (
            f"must contain tfds:{dataset} if it cannot be downloaded: run `tfds build {dataset}` "
            "on a machine with a network, and copy its ~/tensorflow_datasets here"
        )
        received = f"{builder.data_dir}, without it ({_brief(error)})"
        raise InputError("tfds_data_dir", rule, received) from error


def _check_network(builder) -> None:
    """Raises a ConnectionError if no server answers: TFDS would retry for minutes."""
    import requests  # used by TFDS for downloads

    urls_by_server = {urlsplit(url).netloc: url for url in builder.url_infos or {}}
    if not urls_by_server:
        return
    servers = " or ".join(urls_by_server)
    logging.info("waiting for an answer from %s", servers)
    for url in list(urls_by_server.values())[:2]:
        with contextlib.suppress(requests.RequestException):
            requests.head(url, timeout=_ANSWER_SECONDS).close()
            return
    raise ConnectionError(f"no answer from {servers}")


def _brief(error: Exception) -> str:
    """Returns the type and first line of an error."""
    return f"{type(error).__name__}: {reason(error)[:200]}"


def _one_line(text: bytes) -> str:
    """Removes line breaks from a sentence, for text files."""
    return " ".join(text.decode("utf-8", errors="replace").split("\n"))
