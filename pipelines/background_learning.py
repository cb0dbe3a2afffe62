"""Learns a server's corrections in the background, into the model with which it translates.

Translations go on meanwhile. TensorFlow updates one variable at a time, so one of them may use
weights from before and from after a correction, which differ little.
"""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator

from absl import logging

from keras_transformer.kit.documents.memory.corrections import Correction, Corrections
from keras_transformer.kit.documents.text_translator import TextTranslator
from keras_transformer.support.errors import InputError
from pipelines.adaptation import Adaptation

PAUSE_SECONDS = 0.5  # between two looks for new corrections
IDLE_SECONDS = 1.0  # without requests: learning would slow them down


class BackgroundLearner:
    """Learns new corrections one at a time, the oldest first, while there are no requests.

    Args:
        adaptation: the model with the adapter that learns.
        translator: a translator with the same model, whose weights are updated.
        corrections: the corrections.
        idle_seconds: returns the time since the last request, 0 while one is answered.
    """

    def __init__(
        self,
        adaptation: Adaptation,
        translator: TextTranslator,
        corrections: Corrections,
        idle_seconds: Callable[[], float],
    ):
        self._adaptation = adaptation
        self._translator = translator
        self._corrections = corrections
        self._idle_seconds = idle_seconds
        self._version = 0  # of the corrections, up to which there is nothing left to learn
        self._known = self._coded(corrections.all())
        self._learned = 0  # corrections that are not saved yet
        self._stopped = threading.Event()

    def run(self) -> None:
        """Learns until `stop` is called, and saves when there is nothing new, and at the end."""
        try:
            while not self._stopped.wait(PAUSE_SECONDS):
                self.learn_while_idle()
            self._save()
        except (InputError, OSError) as error:
            logging.error("corrections are no longer learned: %s", error)

    def stop(self) -> None:
        """Makes `run` return once the running correction is learned and saved."""
        self._stopped.set()

    def learn_while_idle(self) -> None:
        """Learns until there is a request or nothing new; then saves in the second case."""
        while self._idle_seconds() >= IDLE_SECONDS and not self._stopped.is_set():
            if not self.learn_next():
                self._save()
                return

    def learn_next(self) -> bool:
        """Learns the oldest correction that is new; returns False if there is none."""
        version = self._corrections.version
        changed = self._coded(self._corrections.since(self._version))
        if version != self._version:
            self._forget_removed()
        for source, target in self._adaptation.news_in(changed).items():
            if self._adaptation.learner.fits(source, target):
                self._adaptation.learn({source: target})
                self._adaptation.update(self._translator)
                self._learned += 1
                return True
        self._version = version
        return False

    def _save(self) -> None:
        """Saves what has been learned, and logs how much is new."""
        self._adaptation.save()
        if self._learned:
            corrections = "a correction" if self._learned == 1 else f"{self._learned} corrections"
            logging.info("learned %s, saved in %s", corrections, self._adaptation.adapter_dir)
            self._learned = 0

    def _forget_removed(self) -> None:
        """Forgets corrections that were removed since this was called before.

        Others that were learned, but are not in this file, were never in it, and stay.
        """
        known = self._coded(self._corrections.all())
        removed = self._known.keys() - known.keys()
        learner = self._adaptation.learner
        if removed & learner.learned.keys():
            message = (
                "a correction was removed, which the model had learned: to undo that too, stop the "
                "server, remove %s, and start it again, which learns all others anew"
            )
            logging.warning(message, self._adaptation.adapter_dir)
        learner.forget(removed)
        self._known = known

    def _coded(self, corrections: Iterable[Correction]) -> dict[str, str]:
        """Returns translations by source, with the codes that the model reads."""
        coded = self._corrections.languages.coded
        return {coded(each.source, each.direction): each.translation for each in corrections}


@contextlib.contextmanager
def learning_in_background(
    adaptation: Adaptation,
    translator: TextTranslator,
    corrections: Corrections,
    idle_seconds: Callable[[], float],
) -> Iterator[None]:
    """Learns corrections in a thread while the block runs; what was learned before counts at once.

    A translation that runs while the weights are updated may use some of the old and some of the
    new ones, which differ little.

    Args:
        adaptation, translator, corrections, idle_seconds: see BackgroundLearner.
    """
    adaptation.update(translator)
    learner = BackgroundLearner(adaptation, translator, corrections, idle_seconds)
    thread = threading.Thread(target=learner.run, name="learning")
    thread.start()
    try:
        yield
    finally:
        learner.stop()
        thread.join()
