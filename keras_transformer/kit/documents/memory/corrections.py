"""Corrected translations, kept in a file in TMX, which other programs may read and write, too.

The file is the truth: a correction is added to what it holds at that moment, and what another
program adds or removes counts from the next `refresh`. It is replaced atomically, under a lock
beside it (`.NAME.lock`). Programs that do not know the lock, such as those for translators, are
noticed by the date, the size and the number of the file: it is then read again.

There is no database beside the file that could differ from it. A corrected unit moves to the end,
as the last translation of a sentence counts.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from absl import logging

from keras_transformer.core.vocabulary.language_codes import Direction
from keras_transformer.kit.documents.formats import BYTE_ORDER_MARK, in_file
from keras_transformer.kit.documents.memory.memory import TranslationMemory, is_same_source
from keras_transformer.kit.documents.memory.tmx import Tmx, empty_memory
from keras_transformer.kit.documents.text.encodings import decoded
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.files.locks import locked
from keras_transformer.support.files.paths import RemotePath, resolved
from keras_transformer.support.files.replacing import replacing
from keras_transformer.support.markup import well_formed
from keras_transformer.support.output_files import check_output
from keras_transformer.use.store.languages import ModelLanguages

ENDING = ".tmx"
LOCK_SECONDS = 10  # that a change waits for another process
ATTEMPTS = 20  # to write while a program that does not know the lock writes, too

_Key = tuple[Direction, str]  # and the sentence
_Stamp = tuple[int, int, int]  # date in nanoseconds, size and number of a file


class Correction(NamedTuple):
    """A sentence and its corrected translation, both one line."""

    source: str
    translation: str
    direction: Direction
    date: str  # of the last change, as TMX has it: "20261128T134500Z"; "" if unknown


class Corrections:
    """The corrections in a file. Several threads may use them.

    Args:
        path: the file, which ends in .tmx; it is created if there is none.
        languages: the model's languages.

    Attributes:
        languages: the model's languages.
        directions: the model's directions, in which sentences can be corrected.
        memory: a translation memory with the corrections, as `TextTranslator` looks them up.
        version: increases with every change of the corrections; see `since`.

    Raises:
        InputError: if the file is not local or is not TMX, or if the model's languages are unknown.
        OSError: if it cannot be created or read.
    """

    def __init__(self, path: str | os.PathLike, languages: ModelLanguages | None):
        check_corrections(path)
        rule = "must be used with a model whose languages are known"
        is_known = languages is not None and len(languages.directions) > 0
        require(is_known, "corrections", rule, os.fspath(path))
        self.path = resolved(path)
        self.memory = TranslationMemory({}, has_corrections=True)
        self.version = 0
        self.directions = languages.directions
        self.languages = languages
        self._lock = threading.Lock()
        self._stamp: _Stamp | None = None  # of the file whose corrections are known
        self._seen = self._stamp  # of the latest file, which may not have been readable
        self._tmx = self._empty()
        self._corrections: dict[_Key, Correction] = {}
        self._versions: dict[_Key, int] = {}  # since when each has its translation
        if not self.path.exists():
            self._change(lambda tmx: tmx.text)
        self._read()

    def __len__(self) -> int:
        return len(self._corrections)

    def all(self) -> list[Correction]:
        """Returns all corrections, the oldest first: the last one of each sentence."""
        return self.since(0)

    def since(self, version: int) -> list[Correction]:
        """Returns the corrections that are new, or different, since a value of `version`."""
        with self._lock:
            return [
                correction
                for key, correction in self._corrections.items()
                if self._versions[key] > version
            ]

    def refresh(self) -> None:
        """Reads the file if another program has changed it.

        If it cannot be read now, the known corrections stay, and a warning is logged.
        """
        if not self._lock.acquire(blocking=False):
            return  # a change reads the file itself
        try:
            if self._stamp_of_file() == self._seen:
                return
            try:
                self._read()
            except (InputError, OSError) as error:
                logging.warning("the corrections stay as they were: %s", error)
        finally:
            self._lock.release()

    def add(self, source: str, translation: str, direction: Direction) -> Correction:
        """Adds a correction, which replaces an earlier one of the same sentence.

        Args:
            source, translation: both not blank; white space is normalized.
            direction: one of the model's.

        Raises:
            InputError: if a text is blank, the direction is another, or the file is not TMX at
                present. OSError: if it cannot be written. The file is then as before.
        """
        source, translation = (
            " ".join(well_formed(text).split()) for text in (source, translation)
        )
        require(source != "", "source", "must not be blank", repr(source))
        require(translation != "", "translation", "must not be blank", repr(translation))
        self._check(direction)

        def edit(tmx: Tmx) -> str:
            same = [unit for unit in tmx.units(direction) if unit.source == source]
            if not same:
                return tmx.with_unit(source, translation, direction)
            return tmx.with_translation(same[-1], translation)

        self._change(edit)
        return self._corrections[direction, source]

    def remove(self, source: str, direction: Direction) -> int:
        """Removes all translations of a sentence, as the memory compares sentences.

        Returns:
            Their number.

        Raises:
            InputError, OSError: as for `add`.
        """
        self._check(direction)
        count = 0

        def edit(tmx: Tmx) -> str:
            nonlocal count
            same = [unit for unit in tmx.units(direction) if is_same_source(unit.source, source)]
            count = len(same)
            return tmx.without(same) if same else tmx.text

        self._change(edit)
        return count

    def _check(self, direction: Direction) -> None:
        rule = f"must be one of {', '.join(map(str, self.directions))}"
        require(direction in self.directions, "direction", rule, str(direction))

    def _change(self, edit: Callable[[Tmx], str]) -> None:
        """Replaces the file's text by `edit` of it, unless they are equal."""
        lock = self.path.with_name(f".{self.path.name}.lock")
        with self._lock, locked(lock, "corrections", LOCK_SECONDS):
            for _ in range(ATTEMPTS):
                if self._stamp_of_file() != self._stamp:
                    self._read()
                text = edit(self._tmx)
                if text == self._tmx.text and self._stamp is not None:
                    return
                tmx = Tmx(text)
                if self._replace(text):
                    self._take(tmx)
                    return
        rule = "must not be written by another program all the time"
        raise InputError("corrections", rule, str(self.path))

    def _replace(self, text: str) -> bool:
        """Replaces the file, unless another program has changed it since it was read."""

        class Changed(Exception):
            """Ends the block in which the file is replaced."""

        try:
            with replacing(self.path) as file:
                file.write(text.encode("utf-8"))
                file.flush()
                status = os.fstat(file.fileno())
                if self._stamp_of_file() != self._stamp:
                    raise Changed
        except Changed:
            return False
        self._stamp = self._seen = _stamp(status)
        return True

    def _read(self) -> None:
        """Reads the file; without one, there are no corrections."""
        stamp = self._seen = self._stamp_of_file()
        tmx = self._empty() if stamp is None else _parsed(self.path, str(self.path))
        self._stamp = stamp
        self._take(tmx)

    def _empty(self) -> Tmx:
        return Tmx(empty_memory(self.languages.sources))

    def _take(self, tmx: Tmx) -> None:
        """Takes the corrections of a memory in place of the known ones."""
        found = [(each, unit) for each in self.directions for unit in tmx.units(each)]
        found.sort(key=lambda pair: pair[1].element.start)
        corrections: dict[_Key, Correction] = {}
        for direction, unit in found:
            key = direction, unit.source
            corrections.pop(key, None)  # the last one counts, in its place
            corrections[key] = Correction(unit.source, unit.target, direction, unit.date)
        known, self._corrections, self._tmx = self._corrections, corrections, tmx
        if list(known.values()) == list(corrections.values()):
            return
        self.version += 1
        for key, correction in corrections.items():
            if key not in known or known[key].translation != correction.translation:
                self._versions[key] = self.version
        self.memory.replace(
            {
                self.languages.coded(source, direction): each.translation
                for (direction, source), each in corrections.items()
            }
        )

    def _stamp_of_file(self) -> _Stamp | None:
        """Returns what changes with the file; None if there is none."""
        try:
            return _stamp(self.path.stat())
        except FileNotFoundError:
            return None


def check_corrections(path: str | os.PathLike) -> None:
    """Raises an InputError unless `path` is, or can become, a file of corrections."""
    rule = f"must be a local file whose name ends in {ENDING}"
    file = resolved(path)
    fits = not isinstance(file, RemotePath) and file.suffix.lower() == ENDING
    require(fits, "corrections", rule, repr(os.fspath(path)))
    check_output(os.fspath(path), "corrections")
    if file.exists():
        _parsed(file, os.fspath(path))


def _parsed(path: Path, name: str) -> Tmx:
    """Reads a file; errors give its name, and the line."""
    text = decoded(path.read_bytes(), "xml", name)
    try:
        return Tmx(text.removeprefix(BYTE_ORDER_MARK))
    except InputError as error:
        raise in_file(error, name) from None


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_mtime_ns, status.st_size, status.st_ino
