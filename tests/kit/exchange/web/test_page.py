"""The folder of a page: its files, and what cannot be exported."""

import base64
import hashlib
import json

import pytest

from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.kit.exchange.web.page import (
    RUNTIME,
    RUNTIME_ADDRESS,
    SERVED,
    export_web,
    runtime_files,
)
from keras_transformer.use.store.card import read_card
from tests.given_answers import card_of
from tests.kit.exchange.web.conftest import SCRIPTS
from tests.refusals import refused


def json_of(file):
    return json.loads(file.read_text(encoding="utf-8"))


def test_the_folder_has_all_that_the_page_asks_for(export_of, no_runtime):
    folder = export_of("no-runtime", no_runtime)
    description = json_of(folder / "model.json")
    files = ["decoder.onnx", "encoder.onnx", "runtime.mjs", "runtime.wasm", "vocabulary.json"]
    assert sorted(description["files"]) == files
    for name, file in description["files"].items():
        content = (folder / file["url"]).read_bytes()
        algorithm, _, digest = file["integrity"].partition("-")
        assert (name, len(content)) == (file["url"], file["bytes"])
        assert base64.b64decode(digest) == hashlib.new(algorithm, content).digest()
    scripts = {script.name for script in SCRIPTS.glob("*.js")}
    shell = {*SERVED, *scripts, "model.json"} - {"service_worker.js"}
    names = {path.name for path in folder.glob("*") if path.is_file()}
    assert names == {*files, *shell, "service_worker.js"}
    head = (folder / "service_worker.js").read_text().splitlines()[:2]
    assert head[0] == f'const VERSION = "{description["version"]}";'
    assert set(json.loads(head[1].removeprefix("const SHELL = ").removesuffix(";"))) == {
        "./",
        *shell,
    }
    assert 'location.protocol === "file:"' in (folder / "index.html").read_text()


def test_what_the_page_knows_of_the_model(export_of, no_runtime):
    folder = export_of("no-runtime", no_runtime)
    card = read_card(folder).flat()
    shown = json_of(folder / "model.json")["card"]
    known = {name: shown[name] for name in card}
    assert known == json.loads(json.dumps({**card, "max_source_length": 32}))
    assert (shown["beam_size"], shown["max_target_length"]) == (3, 82)
    assert shown["in_browser"] and shown["file_formats"] == {".txt": "text"}


def test_the_version_changes_with_the_weights(export_of, no_runtime):
    exports = [export_of("no-runtime", no_runtime), export_of("int8", no_runtime, "int8")]
    versions = {json_of(folder / "model.json")["version"] for folder in exports}
    sizes = [(folder / "decoder.onnx").stat().st_size for folder in exports]
    assert len(versions) == 2 and sizes[1] < sizes[0]


def test_the_runtime_at_a_public_address():
    described, contents = runtime_files(None)
    assert contents == {}
    for name, file in described.items():
        assert file["url"] == RUNTIME_ADDRESS + RUNTIME[name].name
        assert file["integrity"].startswith("sha384-") and file["bytes"] > 0


@pytest.mark.parametrize("missing", [*RUNTIME, None])
def test_a_folder_that_is_not_the_runtimes(no_runtime, tmp_path, missing):
    for name, file in RUNTIME.items():
        if missing not in (name, None):
            (tmp_path / file.name).touch()
    folder = tmp_path if missing else tmp_path / "nothing"
    with refused("runtime", folder):
        runtime_files(folder)


def test_models_that_do_not_translate_are_refused(model, characters, no_runtime, tmp_path):
    options = DecodingConfig()
    card = card_of(model.config, options, task="parsing")
    with refused("model", "parsing"):
        export_web(model, characters, tmp_path / "page", card, runtime=no_runtime)
