"""What is at a path: each kind of model is recognized once, and refused with one line."""

import shutil
import sys

import pytest

import keras_transformer as kt
from keras_transformer.support.files import json_files
from keras_transformer.use.store.directory import ModelDirectory
from keras_transformer.use.store.ensemble import Ensemble
from keras_transformer.use.store.export import CTranslate2Model, SavedModel
from keras_transformer.use.store.keras_file import KerasFile
from keras_transformer.use.store.model_path import ModelPath
from keras_transformer.use.store.opening import open_model
from tests.refusals import check_line, refused


def opened(path, **weights):
    return open_model(ModelPath(path, **weights))


def test_kinds(untrained, exported, for_ctranslate2, tmp_path):
    checkpoint = untrained / "checkpoints" / "step-00000010"
    shutil.copy(untrained / "config.json", tmp_path)
    for path, kind, results_dir, is_export in (
        (untrained, ModelDirectory, untrained, False),
        (checkpoint, ModelDirectory, None, False),
        (exported, SavedModel, None, True),
        (for_ctranslate2, CTranslate2Model, None, True),
        (tmp_path / "model.keras", KerasFile, None, False),
        ([untrained, exported], Ensemble, None, True),
    ):
        stored = opened(path)
        assert type(stored) is kind
        assert (stored.results_dir, stored.is_export) == (results_dir, is_export)
        assert not stored.is_adapter
        assert (stored.description.preset, stored.description.model.d_model) == ("tiny", 16)
        assert stored.contains_search == (kind is SavedModel)
    assert opened(tmp_path / "other" / "model.keras").description is None


def test_paths_of_an_adapters_base(untrained, exported):
    trained = opened(untrained).restore()
    path = opened(untrained).path_of(trained.card.checkpoint)
    assert path == f"{untrained}/checkpoints/step-00000020"
    for path in (exported, untrained / "checkpoints" / "step-00000010"):
        assert opened(path).path_of(trained.card.checkpoint) == str(path)


def test_options_are_checked_before_weights_are_read(untrained, exported, for_ctranslate2):
    for path in (untrained, for_ctranslate2):
        opened(path).check_options({"beam_size": 2, "alpha": None})
        with refused("beam_size", 0):
            opened(path).check_options({"beam_size": 0})
    opened(exported).check_options({"n_best": 1, "alpha": None})
    with refused("beam_size", 2, about="exporting"):
        opened(exported).check_options({"beam_size": 2})


@pytest.mark.parametrize("path", ["nothing", "nothing/checkpoints/step-1", "folder"])
def test_what_is_nowhere(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    received = "no config.json" if path == "folder" else "does not exist"
    with refused("path", f"{path}, which", about="model directory") as error:
        kt.load(path)
    assert received in error.value.received
    with refused("init_from", path):
        open_model(ModelPath(path, argument="init_from"))


@pytest.mark.parametrize("name", ["exported", "untrained"])
def test_a_description_is_read_once(name, request, monkeypatch):
    folder, read = request.getfixturevalue(name), []
    read_json = json_files.read_json

    def read_and_remember(path, *arguments):
        read.append(path.name)
        return read_json(path, *arguments)

    for module in list(sys.modules.values()):
        if getattr(module, "read_json", None) is read_json:
            monkeypatch.setattr(module, "read_json", read_and_remember)
    kt.load(folder)
    name = "model_card.json" if name == "exported" else "config.json"
    assert read.count(name) == 1


def test_programs_name_the_other_flag(call_program, untrained, exported, for_ctranslate2, tmp_path):
    for export in (exported, for_ctranslate2):
        done = call_program("translate", f"--model_dir={export}")
        assert done.code == 1
        check_line(done.errors, "--model_dir", export, "this is an export: --saved_model")
    done = call_program("export", f"--model_dir={exported}", f"--export_dir={tmp_path / 'new'}")
    check_line(done.errors, "--model_dir", exported, "this is an export")
    for path in (untrained, untrained / "checkpoints" / "step-00000010"):
        done = call_program("translate", f"--saved_model={path}")
        assert done.code == 1
        check_line(done.errors, "--saved_model", path, "--model_dir")


def test_a_parser_has_a_type(untrained):
    with refused("path", "a translation model", about="parsing"):
        kt.load_parser(untrained)
