import json
import shutil

import numpy as np
import pytest

from keras_transformer.kit.exchange import saved_model
from keras_transformer.use.store.card import CARD
from tests.kit.exchange import marian_files
from tests.refusals import check_line
from tests.restoring import restore


def test_marian_model(call_program, tmp_path):
    folder = tmp_path / "marian"
    folder.mkdir()
    marian_files.write_vocabulary(folder)
    (folder / "vocab.yml").rename(folder / "opus.vocab.yml")
    pieces = marian_files.pieces_of(folder)
    marian_files.save(folder, *marian_files.draw("post", "swish", (1, 1), [len(pieces)], True))
    flags = [f"--path={folder}", f"--model_dir={tmp_path / 'model'}"]
    for languages in ("de", "de,english"):
        done = call_program("import_model", *flags, f"--languages={languages}")
        assert done.code == 1
        check_line(done.errors, "--languages", languages, "target")
    done = call_program("import_model", *flags, "--languages=de,en")
    assert done.code == 0, done.errors
    trained = restore(tmp_path / "model")
    assert trained.card.description.languages == ["de", "en"]
    assert done.result == {
        "model_dir": str(tmp_path / "model"),
        "checkpoint": "step-00000000",
        "parameters": trained.model.count_params(),
    }
    assert [vocabulary.vocab_size for vocabulary in trained.vocabularies] == [len(pieces) + 2] * 2
    again = call_program("import_model", *flags)
    assert again.code == 1
    check_line(again.errors, "--model_dir", tmp_path / "model", "exist")


def test_keras_file(untrained, call_program, tmp_path):
    trained = restore(untrained)
    trained.model.save(tmp_path / "model.keras")
    shutil.copy(trained.vocabularies.target.file, tmp_path)
    flags = [f"--path={tmp_path / 'model.keras'}", f"--model_dir={tmp_path / 'model'}"]
    done = call_program("import_model", "--format=keras", *flags)
    assert done.code == 0, done.errors
    imported = restore(tmp_path / "model").model
    pairs = zip(imported.trainable_variables, trained.model.trainable_variables, strict=True)
    for ours, theirs in pairs:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow  # loads an export again
def test_an_export(untrained, call_program, tmp_path, monkeypatch):
    monkeypatch.setattr(saved_model, "_graphs_named", lambda *_: {})  # none of them is run
    export_dir, model_dir = tmp_path / "export", tmp_path / "model"
    exported = shutil.copytree(untrained, tmp_path / "exported")
    config = json.loads((exported / "config.json").read_text())
    (exported / "config.json").write_text(json.dumps({**config, "languages": ["en", "de"]}))
    options = ["--alpha=1.1", "--beam_size=2"]
    done = call_program("export", f"--model_dir={exported}", f"--export_dir={export_dir}", *options)
    assert done.code == 0, done.errors
    flags = ["--format=saved_model", f"--path={export_dir}", f"--model_dir={model_dir}"]
    done = call_program("import_model", *flags)
    assert done.code == 0, done.errors
    trained, found = restore(exported), restore(model_dir)
    pairs = zip(found.model.trainable_variables, trained.model.trainable_variables, strict=True)
    for ours, theirs in pairs:
        np.testing.assert_array_equal(ours, theirs)
    assert found.vocabularies.fingerprints == trained.vocabularies.fingerprints
    decoding, description = found.card.decoding, found.card.description
    assert (decoding.alpha, decoding.beam_size) == (1.1, 2)
    assert description.languages == trained.card.description.languages
    assert description.max_length == trained.card.description.max_length

    shutil.rmtree(model_dir)
    shutil.rmtree(export_dir / "variables")
    done = call_program("import_model", *flags)
    assert done.code == 1
    check_line(done.errors, "--path", f"'{export_dir}', where variables/variables.", "complete")
    shutil.rmtree(export_dir / "assets.extra")
    done = call_program("import_model", *flags)
    assert done.code == 1
    check_line(done.errors, "--path", export_dir, "export")
    assert not model_dir.exists()


def test_a_parser_remains_a_parser(untrained, call_program, tmp_path):
    folder = shutil.copytree(untrained, tmp_path / "parser")
    config = json.loads((folder / "config.json").read_text())
    config |= {"task": "parsing", "task_options": {"words": "tags", "unaries": "keep"}}
    (folder / "config.json").write_text(json.dumps(config))
    restore(folder).model.save(folder / "model.keras")
    flags = [f"--path={folder / 'model.keras'}", f"--model_dir={tmp_path / 'model'}"]
    done = call_program("import_model", "--format=keras", *flags)
    assert done.code == 0, done.errors
    description = restore(tmp_path / "model").card.description
    assert (description.task, description.task_options) == ("parsing", config["task_options"])


def test_wrong_paths(call_program, tmp_path):
    model_dir = f"--model_dir={tmp_path / 'model'}"
    for name, place in (("model.npz", "/dev/zero"), ("keras/zero.keras", "/dev/zero")):
        (tmp_path / "devices" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "devices" / name).symlink_to(place)
    export_dir = tmp_path / "export"
    (export_dir / CARD).parent.mkdir(parents=True)
    (export_dir / CARD).touch()
    model, keras_file = (tmp_path / "devices" / name for name in ("model.npz", "keras/zero.keras"))
    for flags, subject, received, about in (
        ([f"--path={tmp_path / 'none'}"], "--path", tmp_path / "none", "exist"),
        ([f"--path={tmp_path}", "--model_dir="], "--model_dir", "''", "given"),
        ([f"--path={keras_file}", "--format=marian"], "--format", "marian", "keras"),
        ([f"--path={export_dir}", "--format=marian"], "--format", "marian", "saved_model"),
        (["--path=/dev/zero"], "--path", "/dev/zero", "directory"),
        ([f"--path={model.parent}"], model, "device", "file"),
        ([f"--path={keras_file}", "--format=keras"], keras_file, "device", "Transformer"),
        ([f"--path={tmp_path}"], "--path", tmp_path, "config.json"),
        ([f"--path={tmp_path}", "--format=keras"], "--path", tmp_path, "keras"),
    ):
        done = call_program("import_model", model_dir, *flags)
        assert done.code == 1
        check_line(done.errors, subject, received, about)
