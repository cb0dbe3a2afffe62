"""The directory of an export: complete or absent, with a card that lists its files."""

import dataclasses
import json

import pytest

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.kit.exchange.directory import check_export_dir, write_export
from keras_transformer.support.files.replacing import replaced_folder
from keras_transformer.use.store.card import CARD, FORMAT_VERSION, read_card
from tests.given_answers import card_of
from tests.refusals import refused

MODEL_CARD = card_of(TransformerConfig(100), DecodingConfig())


def write(folder):
    """Writes the files of an export."""
    (folder / "part").mkdir()
    (folder / "part" / "weights").write_bytes(b"12345")
    (folder / "saved_model.pb").write_bytes(b"123")


def test_card_lists_the_files_and_tells_of_missing_ones(any_folder):
    export = any_folder / "export"
    size = write_export(write, export, MODEL_CARD)
    files = {"part/weights": 5, "saved_model.pb": 3}
    wanted = {"format_version": FORMAT_VERSION, **MODEL_CARD.to_json(), "files": files}
    assert json.loads((export / CARD).read_text()) == json.loads(json.dumps(wanted))
    assert read_card(export) == MODEL_CARD
    assert size == 8 + (export / CARD).stat().st_size
    (export / "part" / "more").write_bytes(b"")
    assert read_card(export) == MODEL_CARD, "files that are added do no harm"
    (export / "part" / "weights").write_bytes(b"1234")
    with refused("export_dir", "part/weights has 4 of 5 bytes"):
        read_card(export)


def test_an_export_that_cannot_be_written_is_none(any_folder):
    def fail(folder):
        raise PermissionError(13, "Permission denied")

    with pytest.raises(PermissionError) as error:
        write_export(fail, any_folder / "export", MODEL_CARD)
    assert error.value.filename == str(any_folder / "export")
    assert list(any_folder.glob("*")) == []


def test_overwrite_replaces_an_earlier_export(tmp_path):
    def write_more(folder):
        write(folder)
        (folder / "part" / "earlier").write_text("")

    write_export(write_more, tmp_path / "export", MODEL_CARD)
    other = dataclasses.replace(MODEL_CARD, parameters=8)
    write_export(write, tmp_path / "export", other, overwrite=True)
    assert read_card(tmp_path / "export").parameters == 8
    assert [path.name for path in tmp_path.iterdir()] == ["export"]
    assert not (tmp_path / "export" / "part" / "earlier").exists()


@pytest.mark.parametrize("name", ["notes.txt", "part/more", ".git/refs/heads/main", "saved_model"])
def test_a_file_that_no_export_has_written_outlives_overwrite(any_folder, name):
    export = any_folder / "export"
    write_export(write, export, MODEL_CARD)
    (export / name).parent.mkdir(parents=True, exist_ok=True)
    (export / name).write_bytes(b"mine")
    for function in (
        lambda: write_export(write, export, MODEL_CARD, overwrite=True),
        lambda: check_export_dir(export, overwrite=True),
    ):
        with refused("overwrite", f"{export / name}, which was not written by an export"):
            function()
    assert (export / name).read_bytes() == b"mine"
    (export / name).unlink()
    check_export_dir(export, overwrite=True)


def test_nothing_is_lost(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for function in (
        lambda **options: write_export(write, tmp_path, MODEL_CARD, **options),
        lambda overwrite=False: check_export_dir(tmp_path, overwrite),
    ):
        with refused("export_dir", tmp_path):
            function()
        with refused("overwrite", tmp_path):
            function(overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    (tmp_path / "empty").mkdir()
    check_export_dir(tmp_path / "empty", overwrite=False)


@pytest.mark.parametrize("find", [read_card, lambda folder: check_export_dir(folder, True)])
def test_an_export_that_waits_for_its_name_is_found(tmp_path, find):
    export = tmp_path / "export"
    write_export(write, export, MODEL_CARD)
    export.rename(replaced_folder(export))  # the state after a kill between two renames
    find(export)
    assert read_card(export) == MODEL_CARD
    assert [path.name for path in tmp_path.iterdir()] == ["export"]


@pytest.mark.parametrize("use", [read_card, lambda folder: write_export(write, folder, MODEL_CARD)])
def test_a_link_that_leads_to_itself_is_named(tmp_path, use):
    (tmp_path / "link").symlink_to("link")
    with refused(None, place=tmp_path / "link"):
        use(tmp_path / "link")


@pytest.mark.parametrize(
    ("path", "received"),
    [
        ("model", f"'model', which has no {CARD}"),
        ("none", f"'none', which has no {CARD}"),
        ("", "''"),
    ],
)
def test_what_is_no_export(tmp_path, monkeypatch, path, received):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model" / "checkpoints").mkdir(parents=True)
    with refused("saved_model", received):
        read_card(path, "saved_model")


def test_an_export_removes_what_a_killed_one_has_left(tmp_path):
    for name in (".export.0a1b2c3d.tmp", ".export.mine.tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_text("part")
    write_export(write, tmp_path / "export", MODEL_CARD)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".export.mine.tmp", "export"]
