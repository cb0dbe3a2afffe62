"""Registers the library's classes with Keras when Keras is imported.

`keras.models.load_model` finds only registered classes, and a class is registered where it is
defined. `import keras_transformer` does not import Keras, which takes seconds; so a finder in
`sys.meta_path` imports the classes directly after Keras.
"""

import importlib.abc
import importlib.machinery
from types import ModuleType


class RegisteringKeras(importlib.abc.MetaPathFinder):
    """Finds Keras like other finders, and registers the classes after its first import."""

    def find_spec(
        self, name: str, path=None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Finds `keras`, and nothing else."""
        if name != "keras":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
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
