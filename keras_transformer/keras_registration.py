"""Registers the library's classes with Keras when Keras is imported.

`keras.models.load_model` finds only registered classes, and a class is registered where it is
defined. `import keras_transformer` does not import Keras, which takes seconds; so a finder in
`sys.meta_path` imports the classes directly after Keras.
"""

import importlib.abc
import importlib.machinery
import importlib.util
from types import ModuleType


class RegisteringKeras(importlib.abc.MetaPathFinder):
    """Finds Keras like other finders, and registers the classes after its first import."""

    _is_asking = False  # the other finders

    def find_spec(
        self, name: str, path=None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Finds `keras`, by the other finders, and nothing else."""
        if name != "keras" or self._is_asking:
            return None
        self._is_asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._is_asking = False
        if spec is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                register()

            spec.loader.exec_module = execute_and_register
        return spec


def register() -> None:
    """Imports all classes of this library that Keras can load."""
    try:
        importlib.import_module("keras_transformer.layers")
    except ImportError as error:
        # One of their modules is importing Keras, and is not complete yet; its importer then goes
        # on to the others.
        if not (error.name or "").startswith("keras_transformer."):
            raise
