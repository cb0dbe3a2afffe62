"""Imports models of the Hugging Face hub, such as those of OPUS-MT, and CTranslate2's.

The package huggingface_hub downloads the files into its cache: it resumes after a lost connection,
and does not download a complete file again. HF_ENDPOINT, HF_HOME and its other variables apply.
"""

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from absl import logging

from keras_transformer.kit.exchange.hugging_face import OTHER_FILES, check_supported, weight_files
from keras_transformer.kit.exchange.importing import import_model
from keras_transformer.kit.exchange.tensors import require_reader
from keras_transformer.kit.exchange.yaml_map import read_yaml
from keras_transformer.support.errors import InputError, install_command, reason

# Of a model of CTranslate2, apart from its weights.
CTRANSLATE2_FILES = ("config.json", "*vocabulary.json", "*vocabulary.txt", "*.spm", "*.model")
CARD = "README.md"  # the model card: its description and licence
# Files of a model directory.
CARD_FILE = "model_card.md"
ORIGIN_FILE = "origin.json"


class HubModel(NamedTuple):
    """A downloaded model."""

    folder: Path  # in the cache
    repository: str
    revision: str  # the commit
    url: str  # of its page


def import_from_hub(
    repository: str,
    model_dir: Path,
    languages: Sequence[str] | None = None,
    revision: str | None = None,
) -> dict[str, str | int | None]:
    """Downloads a model and imports it as a model directory.

    The directory also gets the model card, and origin.json: where the model comes from. The log
    shows the licence and the page of the model.

    Args:
        repository: the model's name at the hub, as in "Helsinki-NLP/opus-mt-de-en".
        model_dir, languages: as for `import_model`.
        revision: a branch, a tag or a commit; None for the newest version.

    Returns:
        The result of `import_model`, with "repository", "revision", the commit, and "license",
        None if the card names none.

    Raises:
        InputError: as `import_model`; also if huggingface_hub or the package that reads the
            weights is not installed, or the model is not available.
        OSError: if the disk is full.
    """
    model = download(repository, revision)
    card = model.folder / CARD
    license = read_license(card)
    shown = f"the licence {license}" if license else "no licence in its model card"
    logging.info("%s has %s. Read its model card: %s", repository, shown, model.url)
    origin = {"repository": repository, "revision": model.revision, "license": license}
    content = json.dumps({**origin, "url": model.url}, indent=2) + "\n"
    files = {ORIGIN_FILE: content.encode()}
    if card.is_file():
        files[CARD_FILE] = card.read_bytes()
    return {**import_model(model.folder, model_dir, languages, files), **origin}


def download(repository: str, revision: str | None = None) -> HubModel:
    """Downloads the files of a model that an import needs, with its weights in one format.

    Args:
        repository, revision: as for `import_from_hub`.

    Raises:
        InputError, OSError: as `import_from_hub`.
    """
    try:
        from huggingface_hub import HfApi, snapshot_download
    except ImportError:
        rule = f"must be used with the package huggingface_hub ({install_command('hub')})"
        raise InputError("hub", rule, "none installed") from None

    hub = HfApi()
    url = f"{hub.endpoint}/{repository}"
    with _hub_errors(repository, revision, url):
        model_info = hub.model_info(repository, revision=revision)
        names = [file.rfilename for file in model_info.siblings]
        is_ctranslate2 = "model.bin" in names
        small_files = [CARD, *(CTRANSLATE2_FILES if is_ctranslate2 else OTHER_FILES)]
        folder = snapshot_download(repository, revision=model_info.sha, allow_patterns=small_files)
        if is_ctranslate2:
            weights = ["model.bin"]
        else:  # check what can be, before hundreds of megabytes are downloaded
            check_supported(Path(folder))
            weights = weight_files(names, url)
            require_reader(Path(weights[0]))
        snapshot_download(repository, revision=model_info.sha, allow_patterns=weights)
    return HubModel(Path(folder), repository, model_info.sha, url)


@contextlib.contextmanager
def _hub_errors(repository: str, revision: str | None, url: str) -> Iterator[None]:
    """Turns errors of huggingface_hub into InputErrors, except those of the local disk."""
    from huggingface_hub import errors

    try:
        yield
    except errors.HFValidationError:
        rule = "must be a model's name, such as Helsinki-NLP/opus-mt-de-en"
        raise InputError("hub", rule, repr(repository)) from None
    except errors.GatedRepoError:
        rule = f"must be open to you: accept its terms at {url}, and log in with hf auth login"
        raise InputError("hub", rule, repository) from None
    except errors.RepositoryNotFoundError:
        rule = f"must be a public model, or yours after hf auth login; there is none at {url}"
        raise InputError("hub", rule, repository) from None
    except errors.RevisionNotFoundError:
        rule = f"must be a branch, a tag or a commit of {url}"
        raise InputError("revision", rule, revision) from None
    except (OSError, errors.HTTPError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # this machine's, such as a full disk
        rule = (
            f"must be fetched from {url}, which cannot be reached: check the network, or download "
            "the model's files on a machine that has one, and import their folder by its path"
        )
        raise InputError("hub", rule, reason(error)) from None


def read_license(card: Path) -> str | None:
    """Returns the licence in a model card's front matter, the YAML between its first two "---"."""
    content = card.read_bytes() if card.is_file() else b""
    match = re.match(rb"---\r?\n(.*?)\r?\n---\s", content, re.DOTALL)
    if match is None:
        return None
    try:
        license = read_yaml(card, match[1], typed=False).get("license")
    except InputError:  # the card has errors, and may still be read by people
        return None
    return license if isinstance(license, str) else None
