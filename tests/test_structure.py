"""Rules of the house that no other test would notice being broken."""

import ast
import functools
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import keras_transformer
from keras_transformer.kit.exchange.formats import FORMATS
from keras_transformer.support.errors import DISTRIBUTION, install_command

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ["keras_transformer", "pipelines", "bin"]  # each may import those before it
MODULES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
# The shelves and rooms of the library: a module imports only from its own room and those before it.
ROOMS = (
    "support",
    *("core.model", "core.vocabulary", "core.training", "core.search"),
    *("use.store", "use.translate", "use.evaluate", "use.adapt"),
    *("kit.parsing", "kit.documents", "kit.exchange", "kit.figures", "kit.paper", "kit.serving"),
)
SHELVES = ("support", "core", "use", "kit")
# pipelines may import these from keras_transformer: modules without TensorFlow.
FOR_PIPELINES = (
    "keras_transformer.core.config",
    "keras_transformer.core.vocabulary",
    "keras_transformer.kit.documents",  # catalogues hold pairs, too
    "keras_transformer.kit.parsing.linearisation",
    "keras_transformer.kit.parsing.trees",
    "keras_transformer.support",
)
# The modules of pipelines that put data and model together: all that a program does.
COMPOSED = (
    *("training.py", "evaluation.py", "adaptation.py", "background_learning.py"),
    "programs.py",
)
# The package offers these under its own name, because its users import that: the names are looked
# up at their first use, and nothing else in the library knows of them.
OFFERING = "keras_transformer/__init__.py"
OFFERED = ("pipelines.programs", "pipelines.batches.data_set", "pipelines.sample_text")
MAP = (ROOT / "docs/guides/code.md").read_text(encoding="utf-8").partition("## One training")[0]


def test_the_map_and_the_order_have_every_room():
    library = ROOT / "keras_transformer"
    rooms = {
        f"{path.parent.parent.name}.{path.parent.name}"
        for shelf in ("core", "use", "kit")
        for path in (library / shelf).glob("*/__init__.py")
    }
    assert rooms == set(ROOMS) - {"support"}
    assert all(room.partition(".")[2] + "/" in MAP for room in rooms)
    assert {path.parent.name for path in library.glob("*/__init__.py")} == set(SHELVES)


@functools.cache
def nodes(path):
    """The nodes of a module's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(path):
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module


def test_imports_run_one_way():
    for path in MODULES:
        for module in imports(path):
            check_import(path, module)


def check_import(path, module):
    parts, top = path.relative_to(ROOT).parts, module.split(".")[0]
    folder = parts[0]
    is_offered = path.relative_to(ROOT).as_posix() == OFFERING and module in OFFERED
    if top in FOLDERS and not is_offered:
        assert FOLDERS.index(top) <= FOLDERS.index(folder), f"{path} imports {module}"
    if folder == "pipelines" and top == "keras_transformer" and path.name not in COMPOSED:
        assert module.startswith(FOR_PIPELINES), f"{path} imports {module}"
    if folder == top == "keras_transformer" and len(parts) > 2:
        here, there = place(parts[1:]), place(module.split(".")[1:])
        assert here[0] >= there[0], f"{path} imports {module}"
        assert None in (here[1], there[1]) or here >= there, f"{path} imports {module}"


def place(parts):
    """The place of a module in the order of shelves and of rooms; None if it is in no room."""
    shelf = "core" if parts[0] == "layers" else parts[0]  # layers.py offers those of core
    room = ".".join(parts[:2]) if shelf != "support" else shelf
    return SHELVES.index(shelf), ROOMS.index(room) if room in ROOMS else None


def test_no_modules_import_each_other():
    """Neither directly nor in a circle, imports for type checkers included."""
    paths = {module_name(path): path for path in MODULES if path.parts[len(ROOT.parts)] != "bin"}
    # The package itself offers names of others, see OFFERING.
    imported = {
        name: [other for other in imported_modules(path, paths) if other != name]
        for name, path in paths.items()
        if path.relative_to(ROOT).as_posix() != OFFERING
    }
    finished = set()

    def visit(name, above):
        assert name not in above, f"a circle: {' -> '.join([*above, name])}"
        if name not in finished:
            for other in imported.get(name, ()):
                visit(other, [*above, name])
            finished.add(name)

    for name in imported:
        visit(name, [])


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path, paths):
    """The modules of `paths` that a module imports: `from a import b` may import a.b."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in paths else node.module for name in names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.slow
def test_core_and_use_can_be_imported_without_the_kit(tmp_path):
    library = tmp_path / "keras_transformer"
    left_out = shutil.ignore_patterns("kit", "__pycache__")
    shutil.copytree(ROOT / "keras_transformer", library, ignore=left_out)
    shelves = ("support", "core", "use")
    names = [
        ".".join(path.relative_to(tmp_path).with_suffix("").parts).removesuffix(".__init__")
        for shelf in shelves
        for path in sorted((library / shelf).rglob("*.py"))
    ]
    program = f"import importlib\nfor name in {names}:\n    importlib.import_module(name)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(names) > 100


def test_flags_live_in_bin():
    for path in MODULES:
        if path.relative_to(ROOT).parts[0] != "bin":
            text = path.read_text(encoding="utf-8")
            assert "absl.flags" not in text and "flags.DEFINE" not in text, path


# What these modules write is a command or the name of a recorded setting, and no error.
WITH_COMMANDS = (
    "keras_transformer/kit/paper/tables.py",
    "keras_transformer/kit/paper/trained_rows.py",
    "pipelines/prepare/beam.py",
    "pipelines/prepare/data_writer.py",
    "pipelines/evaluation.py",
)


def strings(path):
    """The texts in a module, docstrings among them."""
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_the_library_names_arguments_and_no_flags():
    for path in MODULES:
        name = path.relative_to(ROOT).as_posix()
        if name.startswith("bin/") or name in WITH_COMMANDS:
            continue
        for text in strings(path):
            assert not re.search(r"(?<![-\w])--[a-z]|\bbin/\w+\.py", text), (name, text)


def test_tests_name_no_files_outside_the_repository():
    """Files that are not in a clone are found by an environment variable, such as CORPORA."""
    outside = re.compile(r"[\"'](?:file://)?/(?:home|root|work|mnt|srv)\b|\bshared/|ROOT\.parent\b")
    for path in (ROOT / "tests").rglob("*.py"):
        if path != Path(__file__):
            found = outside.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{path}: {found[0]}"


def test_configuration_imports_without_tensorflow():
    module = "keras_transformer.kit.exchange.formats, keras_transformer.core.presets"
    program = f"import sys, {module}; print('tensorflow' in sys.modules or 'keras' in sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_model_is_backend_neutral():
    # Dropout alone draws its bits from TensorFlow where that is the backend.
    for path in (ROOT / "keras_transformer/core/model").glob("*.py"):
        if path.name != "dropout.py":
            assert not any(module.startswith("tensorflow") for module in imports(path)), path


def private_names_of_libraries(paths):
    """Attributes that begin with an underscore and are not the files' own.

    None of the files defines them; or they are assigned and never read, so that others read them.
    """
    used, assigned = set(), set()
    defined = {"_replace", "_asdict", "_fields"}  # those of named tuples
    for path in paths:
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                used.add(node.attr)
            elif isinstance(node, ast.Attribute):
                assigned.add(node.attr)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                defined.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                defined.add(node.id)
    foreign = (used - defined - assigned) | (assigned - used)
    return {name for name in foreign if re.match("_[^_]", name)}


def test_private_names_of_libraries_are_in_the_checklist():
    """Nobody promises that a later version has them (BUILD_NOTES.md, Upgrade checklist)."""
    modules = {module for path in MODULES for module in imports(path)}
    private = {
        module
        for module in modules
        if module.startswith(("tensorflow.python", "tensorflow.compiler", "tensorflow.core"))
        or module.startswith("keras.src")
    }
    text = (ROOT / "BUILD_NOTES.md").read_text(encoding="utf-8")
    names = private | private_names_of_libraries(MODULES)
    assert {"_flatten_layers", "_direction", "tensorflow.python.framework"} <= names
    assert not {name for name in names if name not in text}


@pytest.mark.tensorflow
def test_editors_and_the_table_of_lazy_names_find_the_same_modules():
    from keras_transformer import layers

    tree = ast.parse(Path(keras_transformer.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    found = {alias.name: node.module for node in block.body for alias in node.names}
    assert found == keras_transformer._LAZY
    offered = {name for name, module in found.items() if module == "keras_transformer.layers"}
    assert offered == set(layers.__all__)


@pytest.mark.tensorflow
def test_every_public_name_can_be_used():
    names = keras_transformer.__all__
    assert len(set(names)) == len(names) and set(names) <= set(dir(keras_transformer))
    assert all(getattr(keras_transformer, name) is not None for name in names)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = keras_transformer.nothing


def test_errors_name_extras_of_this_distribution(monkeypatch):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    # Where it is not installed, pip would look for the name in its index.
    for installed, name in (([object()], "keras-transformer-nmt"), ([], ".")):
        monkeypatch.setattr(importlib.metadata, "distributions", lambda name, i=installed: iter(i))
        assert install_command("beam") == f'pip install "{name}[beam]"'
    extras = set()
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        assert "pip install keras-transformer" not in text, path
        extras.update(re.findall(r"(?:install_command|import_extra)\([\"'](\w+)", text))
    assert extras == {"beam", "detect", "documents", "figures", "hub", "onnx"}
    extras |= {kind.package for kind in FORMATS.values() if kind.package is not None}
    assert extras <= set(project["optional-dependencies"])
