"""Registers the public classes with Keras, so that `keras.models.load_model` finds them.

Keras finds the classes of a saved model only among those that were registered, and a class of this
package is registered when its module is imported. `import keras_transformer` puts these imports
off, because they need Keras and it must not wait for TensorFlow. So they are made here, as soon as
Keras is there: at once if it has been imported already, and otherwise at the end of the import that
has brought it, of Keras or of a module of this package.
"""

import importlib
import sys
from collections.abc import Sequence


def register_with_keras(modules: Sequence[str]) -> None:
    """Imports modules that register classes with Keras, now or when Keras is imported."""
    if "keras" in sys.modules:
        _import_all(modules)
    else:
        sys.meta_path.insert(0, _FirstImportOfKeras(modules))


class _FirstImportOfKeras:
    """Finds modules as Python does, and has others imported after the first that needs Keras.

    Python asks the finders in `sys.meta_path` for each module that is imported for the first time.
    Within the import of a module of this package, neither that one nor those that wait for it are
    complete, and others could not import from them. So nothing is imported before its end.
    """

    def __init__(self, modules: Sequence[str]):
        self._modules = modules
        self._is_within_import = False

    def find_spec(self, name, path=None, target=None):
        may_bring_keras = name == "keras" or name.startswith(f"{__package__}.")
        if self._is_within_import or not may_bring_keras:
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_register(module):
            self._is_within_import = True
            try:
                execute(module)
            finally:
                self._is_within_import = False
            if "keras" in sys.modules and self in sys.meta_path:
                sys.meta_path.remove(self)
                _import_all(self._modules)

        spec.loader.exec_module = execute_and_register
        return spec


def _import_all(modules: Sequence[str]) -> None:
    for module in modules:
        importlib.import_module(module)
