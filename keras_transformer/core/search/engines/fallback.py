"""A fast engine, and TensorFlow's for the requests that it does not support.

TensorFlow's engine is loaded by the first such request. Each request has one engine.
"""

import threading
from collections.abc import Callable, Sequence

import numpy as np

from keras_transformer.core.search.engines.engine import Engine, Explained, Request, Rows
from keras_transformer.core.search.hypotheses import Hypotheses

# What only TensorFlow's engine computes.
FUNCTIONS = ("alpha_ids", "attention_ids", "constrain_ids")


class EngineWithFallback:
    """An engine with all functions of a single model; see engine.Engine for them.

    Args:
        engine: the fast engine.
        load: loads TensorFlow's engine for the same model and options.
    """

    def __init__(self, engine: Engine, load: Callable[[], Engine]):
        self.name = engine.name
        self.streams = engine.streams
        self.functions = (*engine.functions, *FUNCTIONS)
        self._engine = engine
        self._load = load
        self._loaded: Engine | None = None
        self._loading = threading.Lock()

    def search(self, request: Request) -> Hypotheses:
        engine = self._engine if request.phrases is None else self._fallback()
        return engine.search(request)

    def search_greedily(self, request: Request) -> Hypotheses:
        return self._engine.search_greedily(request)

    def search_alphas(self, ids: Rows, alphas: Sequence[float]) -> Hypotheses:
        return self._fallback().search_alphas(ids, alphas)

    def score(self, source: Rows, target: Rows) -> np.ndarray:
        return self._engine.score(source, target)

    def explain(self, source: Rows, target: Rows, attention: bool = False) -> Explained:
        engine = self._fallback() if attention else self._engine
        return engine.explain(source, target, attention)

    def _fallback(self) -> Engine:
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded
