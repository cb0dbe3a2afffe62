"""Models converted for CTranslate2, each once, and kept in the user's cache.

A copy is an export, in a folder named after the model's digest and all that a conversion depends
on. So a model with other weights is converted again, and a copy that is there is the right one. A
copy is written under a temporary name, and processes that write the same one at a time write the
same content. The ones used least recently are removed.
"""

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from absl import logging

from keras_transformer.core.search.engines.ctranslate2_engine import load_ctranslate2
from keras_transformer.core.search.engines.fallback import EngineWithFallback
from keras_transformer.support.errors import InputError
from keras_transformer.support.files.paths import cache_folder
from keras_transformer.support.version import VERSION
from keras_transformer.use.store.card import CARD, FORMAT_VERSION, file_sizes, read_card
from keras_transformer.use.store.export import CTranslate2Model
from keras_transformer.use.store.stored_model import LoadedModel, StoredModel

MOST_BYTES = 2**32  # of all copies, unless the one in use alone has more
FREE_BYTES = 2**28  # of the disk, at least, after a copy is written

# Writes an export for CTranslate2: models, vocabularies, export_dir and card, as those of
# exchange.formats.export.
Writer = Callable[..., Any]


def load_converted(stored: StoredModel, options: Mapping[str, Any], write: Writer) -> LoadedModel:
    """Loads a model with CTranslate2's engine, converting it if there is no copy.

    Where its path allows any engine, TensorFlow's computes what CTranslate2's does not.

    Args:
        stored: the model.
        options: as for StoredModel.load.
        write: writes a copy.

    Raises:
        InputError: if CTranslate2 is not installed, or does not support the model or the options.
        OSError: if the copy cannot be written.
    """
    load_ctranslate2()  # raises an error before anything is converted
    copy = _copy_of(stored, write)
    engine, vocabularies, card = copy.load(options)
    if stored.where.engine == "auto":
        engine = EngineWithFallback(engine, lambda: stored.load(options).engine)
    return LoadedModel(engine, vocabularies, card)


def _copy_of(stored: StoredModel, write: Writer) -> CTranslate2Model:
    """Returns the model's copy in the cache, which is written first if there is none."""
    version = f"{VERSION} {FORMAT_VERSION} {load_ctranslate2().__version__}"
    name = hashlib.sha256(f"{version} {stored.digest()}".encode()).hexdigest()[:32]
    folder = cache_folder() / f"ctranslate2-{name}"
    try:
        card = read_card(folder)
    except InputError:  # there is none, or it is damaged
        shutil.rmtree(folder, ignore_errors=True)
        _write(stored, write, folder)
        card = read_card(folder)
    with contextlib.suppress(OSError):
        os.utime(folder / CARD)  # marks it as used
        _remove_oldest(folder)
    return CTranslate2Model(stored.where, folder, stored.with_results(card))


def _write(stored: StoredModel, write: Writer, folder: Path) -> None:
    logging.info("converting the model for CTranslate2, once ...")
    folder.parent.mkdir(parents=True, exist_ok=True)
    trained = stored.restore()
    needed = 4 * trained.card.parameters + FREE_BYTES
    if shutil.disk_usage(folder.parent).free < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
    try:
        write(trained.models, trained.vocabularies, folder, trained.card)
    except (InputError, OSError):
        if not (folder / CARD).exists():  # else another process has just written it
            raise


def _remove_oldest(used: Path) -> None:
    """Removes the copies used least recently, beyond MOST_BYTES, but for the one in use."""
    cards = used.parent.glob(f"ctranslate2-*/{CARD}")
    total = 0
    for card in sorted(cards, key=lambda file: file.stat().st_mtime, reverse=True):
        folder = card.parent.parent
        total += sum(file_sizes(folder).values())
        if total > MOST_BYTES and folder != used:
            shutil.rmtree(folder, ignore_errors=True)
