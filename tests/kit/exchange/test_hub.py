"""Models of the hub, from a server on this machine that answers like it."""

import importlib.util
import json
import shutil
import sys

import numpy as np
import pytest

from keras_transformer.kit.exchange import hugging_face
from keras_transformer.kit.exchange.hub import read_license
from tests.free_ports import free_addresses
from tests.kit.exchange import (
    ctranslate2_files,
    hugging_face_files,
    loopback_hub,
    marian_files,
)
from tests.refusals import check_line
from tests.restoring import restore

pytest.importorskip("huggingface_hub", reason="install: pip install '.[test]'")

NAME = "Helsinki-NLP/opus-mt-de-en"
FILES = {"README.md", "config.json", "source.spm", "target.spm", "tokenizer_config.json"}
FILES |= {"vocab.json"}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """By the kind of their weights: folder, options, weights and number of ids."""
    found = {}
    for kind in ("safetensors", "h5"):
        folder = tmp_path_factory.mktemp(kind)
        found[kind] = folder, *hugging_face_files.write_model(folder, kind)
        (folder / "rust_model.ot").write_bytes(b"not downloaded")
        (folder / "pytorch_model.bin").write_bytes(b"not downloaded")
    return found


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The server, as the hub that a new import of huggingface_hub finds."""
    with loopback_hub.serving({}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
        for name in list(sys.modules):
            if name.partition(".")[0] == "huggingface_hub":
                monkeypatch.delitem(sys.modules, name)
        yield hub


@pytest.mark.parametrize("kind", ["safetensors", "h5"])
def test_logits(kind, models, hub, call_program, tmp_path):
    folder, options, weights, size = models[kind]
    hub.repositories[NAME] = folder
    model_dir = tmp_path / "model"
    done = call_program("import_model", f"--hub={NAME}", f"--model_dir={model_dir}")
    assert done.code == 0, done.errors
    file = {"safetensors": "model.safetensors", "h5": "tf_model.h5"}[kind]
    assert {name for name, _ in hub.downloads} == {*FILES, file}

    trained, rows = restore(model_dir), hugging_face.read(folder).source.rows
    rng = np.random.default_rng(5)
    source, target = rng.integers(4, size + 1, size=(2, 1, 9), dtype=np.int32)
    target[0, 0] = 1
    ours = np.array(trained.model({"source": source, "target": target}))[0]
    theirs = marian_files.marian_logits(
        options,
        weights,
        rows[source[0]],
        rows[target[0]],
        steps=marian_files.D_MODEL // 2,  # Hugging Face's sinusoids
        epsilon=1e-5,
    )
    np.testing.assert_allclose(ours[:, 2:], theirs[:, rows[2:]], atol=1e-4)


def test_a_model_of_ctranslate2(hub, call_program, tmp_path):
    folder = tmp_path / "there"
    folder.mkdir()
    ctranslate2_files.write_opennmt(folder)
    (folder / "README.md").write_text(hugging_face_files.CARD)
    (folder / "large.pt").write_bytes(b"not downloaded")
    hub.repositories[NAME] = folder
    flags = [f"--hub={NAME}", f"--model_dir={tmp_path / 'model'}", "--languages=en,de"]
    done = call_program("import_model", *flags)
    assert done.code == 0, done.errors
    assert done.result["license"] == "cc-by-4.0"
    files = {"README.md", "config.json", "model.bin", "sentencepiece.model"}
    assert {name for name, _ in hub.downloads} == files | {"shared_vocabulary.json"}
    assert restore(tmp_path / "model").card.description.languages == ["en", "de"]


def test_origin_card_and_languages(models, hub, call_program, tmp_path):
    hub.repositories[NAME] = models["h5"][0]
    model_dir = tmp_path / "model"
    flags = [f"--hub={NAME}", "--revision=v1", f"--model_dir={model_dir}"]
    done = call_program("import_model", *flags)
    origin = {
        "repository": NAME,
        "revision": loopback_hub.COMMIT,
        "license": "cc-by-4.0",
    }
    assert done.result.items() >= origin.items()
    url = f"{hub.url}/{NAME}"
    assert json.loads((model_dir / "origin.json").read_text()) == {**origin, "url": url}
    assert (model_dir / "model_card.md").read_text() == hugging_face_files.CARD
    assert done.errors.count("cc-by-4.0") == 1 and url in done.errors
    assert restore(model_dir).card.description.languages == ["de", "en"]
    # All is in the cache now.
    hub.downloads.clear()
    done = call_program("import_model", f"--hub={NAME}", f"--model_dir={tmp_path / 'again'}")
    assert done.code == 0 and hub.downloads == []


@pytest.mark.parametrize(
    ("target", "flag", "languages"),
    [("ROMANCE", [], None), ("ROMANCE", ["--languages=en,fr"], ["en", "fr"]), (None, [], None)],
)
def test_languages_that_files_do_not_tell(target, flag, languages, models, call_program, tmp_path):
    folder = shutil.copytree(models["h5"][0], tmp_path / "there")
    hugging_face_files.write_languages(folder, "en", target)
    model_dir = tmp_path / "model"
    done = call_program("import_model", f"--path={folder}", f"--model_dir={model_dir}", *flag)
    assert done.code == 0, done.errors
    assert restore(model_dir).card.description.languages == languages


def test_errors(models, hub, call_program, tmp_path):
    safetensors, h5 = models["safetensors"][0], models["h5"][0]
    damaged = shutil.copytree(safetensors, tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes(b"no tensors")
    other = shutil.copytree(h5, tmp_path / "other")
    for name in ("tf_model.h5", "pytorch_model.bin"):
        (other / name).unlink()
    m2m100 = tmp_path / "m2m100"
    m2m100.mkdir()
    hugging_face_files.write_m2m100(m2m100, "M2M-100")
    (m2m100 / "tokenizer_config.json").write_text(json.dumps({"language_codes": "wmt21"}))
    hub.repositories |= {NAME: h5, "a/gated": h5, "a/damaged": damaged, "a/other": other}
    hub.repositories["a/m2m100"] = m2m100
    hub.gated.add("a/gated")
    for flags, subject, received, about in (
        (["--hub=a/none"], "--hub", "a/none", "hf auth login"),
        (["--hub=a/b/c"], "--hub", "a/b/c", "name"),
        (["--hub="], "--hub", "''", "name"),
        ([f"--hub={NAME}", "--revision=v2"], "--revision", "v2", NAME),
        (["--hub=a/gated"], "--hub", "a/gated", "terms"),
        (["--hub=a/other"], f"{hub.url}/a/other", "none", "tf_model.h5"),
        (["--hub=a/m2m100"], "", "wmt21", "language_codes"),
        (["--hub=a/damaged"], "", None, "complete"),
        ([], "--path", "neither", "--hub"),
        ([f"--hub={NAME}", f"--path={h5}"], "--path", "path and hub", "both"),
        ([f"--path={h5}", "--revision=v1"], "--revision", "v1", "--hub"),
        ([f"--hub={NAME}", "--format=keras"], "--format", "keras", "auto"),
    ):
        done = call_program("import_model", f"--model_dir={tmp_path / 'model'}", *flags)
        assert done.code == 1, flags
        check_line(done.errors, subject, received, about)
        assert not (tmp_path / "model").exists()
    # Of the model that cannot be imported, no weights were downloaded.
    assert [name for name, _ in hub.downloads].count("model.safetensors") == 1


def test_missing_packages(models, hub, call_program, tmp_path, monkeypatch):
    folder = shutil.copytree(models["h5"][0], tmp_path / "there")
    (folder / "tf_model.h5").unlink()  # PyTorch's file remains
    hub.repositories[NAME] = folder
    flags = [f"--hub={NAME}", f"--model_dir={tmp_path / 'model'}"]
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    done = call_program("import_model", *flags)
    check_line(done.errors, "pytorch_model.bin", "none", "whl/cpu")
    assert "pytorch_model.bin" not in {name for name, _ in hub.downloads}
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    done = call_program("import_model", *flags)
    check_line(done.errors, "--hub", "none", "[hub]")


def test_no_network(run_program, tmp_path, monkeypatch):
    (address,) = free_addresses(1)
    flags = [f"--hub={NAME}", f"--model_dir={tmp_path / 'model'}"]
    for name, value in (("HF_ENDPOINT", f"http://{address}"), ("HF_HUB_OFFLINE", "1")):
        monkeypatch.setenv(name, value)
        done = run_program("import_model", *flags)
        assert done.code == 1
        check_line(done.errors, "--hub", None, "cannot be reached")
        check_line(done.errors, "--hub", None, "by its path")


@pytest.mark.parametrize(
    ("card", "license"),
    [
        ("---\nlicense: apache-2.0\n---\n# A model\n", "apache-2.0"),
        ("---\r\nlicense: mit\r\n---\r\n", "mit"),
        ("---\ntags: [a]\n---\n", None),
        ("---\nlicense: [a, b]\n---\n", None),
        ("---\nlicense: mit\n  :\n---\n", None),
        ("# A model\n\n---\nlicense: mit\n---\n", None),
        ("---\nlicense: mit\n", None),
        ("", None),
    ],
)
def test_license(card, license, tmp_path):
    (tmp_path / "README.md").write_bytes(card.encode())
    assert read_license(tmp_path / "README.md") == license
    assert read_license(tmp_path / "none.md") is None
