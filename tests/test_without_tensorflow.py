"""A model for CTranslate2 is used in processes in which TensorFlow and Keras cannot be imported."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request

import pytest

import keras_transformer as kt
from tests.program_fixtures import BIN, PAIRS
from tests.refusals import check_line

# Runs a program as Python does, where the packages that a runtime lacks cannot be imported.
REFUSING = """
import runpy, sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tensorflow", "tensorflow_text", "keras", "tensorboard"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refusing())
sys.argv = sys.argv[1:]
sys.path[0] = sys.argv[0].rpartition("/")[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
LOAD = """
import sys
import keras_transformer as kt
translator = kt.load(sys.argv[1], n_best=1)
print(translator.translate(["the cat sat", ""])[0][0].text)
print(translator.translate_document("<p>the <b>cat</b> sat</p>", "html"))
print(translator.score(["the cat"], ["die katze"])[0].tokens)
print(translator.align(["the cat"], ["die katze"])[0].pharaoh)
"""
PATIENCE = 300  # seconds, on a machine under load


@pytest.fixture
def without_tensorflow(tmp_path):
    """Starts a program where there is no TensorFlow: subprocess.Popen."""
    started = []

    def start(program, *arguments):
        command = [sys.executable, "-c", REFUSING, str(program), *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(BIN.parent)}
        environment["XDG_CACHE_HOME"] = str(tmp_path)
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, **pipes)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_translate(without_tensorflow, for_ctranslate2):
    sources = [source for source, _ in PAIRS]
    process = without_tensorflow(BIN / "translate.py", f"--saved_model={for_ctranslate2}")
    output, errors = process.communicate("".join(f"{line}\n" for line in sources), PATIENCE)
    assert process.returncode == 0, errors
    wanted = kt.load(for_ctranslate2).translate(sources)
    assert output.splitlines() == [row[0].text for row in wanted]
    assert json.loads(errors.splitlines()[-1])["saved_model"] == str(for_ctranslate2)


def test_load(without_tensorflow, for_ctranslate2, tmp_path):
    (tmp_path / "load.py").write_text(LOAD)
    process = without_tensorflow(tmp_path / "load.py", for_ctranslate2)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    lines = output.splitlines()
    assert len(lines) == 4 and lines[1].startswith("<p>") and int(lines[2]) > 1
    assert re.fullmatch(r"[01]-[01]( [01]-[01])*", lines[3])


def test_serve(without_tensorflow, for_ctranslate2):
    process = without_tensorflow(BIN / "serve.py", f"--saved_model={for_ctranslate2}", "--port=0")
    address = None
    while address is None:
        line = process.stderr.readline()
        assert line, "the server has ended"
        address = re.search(r"http://127\.0\.0\.1:\d+", line)
    body = json.dumps({"q": "the cat", "source": "en", "target": "de"}).encode()
    with urllib.request.urlopen(f"{address[0]}/translate", body, timeout=PATIENCE) as answer:
        text = json.load(answer)["translatedText"]
    assert text == kt.load(for_ctranslate2).translate(["the cat"])[0][0].text
    with urllib.request.urlopen(f"{address[0]}/model", timeout=PATIENCE) as answer:
        card = json.load(answer)
    assert "search_ids" in card["signatures"] and "attention_ids" not in card["signatures"]
    body = json.dumps({"source": "the cat", "target": "die katze"}).encode()
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(f"{address[0]}/attention", body, timeout=PATIENCE)
    assert refusal.value.code == 400 and b"CTranslate2" in refusal.value.read()
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0


def test_requirements_are_those_of_the_distribution():
    lines = (BIN.parent / "runtime.txt").read_text().splitlines()
    wanted = [line for line in lines if not line.startswith("#")]
    project = tomllib.loads((BIN.parent / "pyproject.toml").read_text())["project"]
    extras = itertools.chain.from_iterable(project["optional-dependencies"].values())
    assert len(wanted) > 5 and set(wanted) <= {*project["dependencies"], *extras}


@pytest.mark.parametrize(
    ("program", "argument"),
    [("translate", "--model_dir={untrained}"), ("train", "--data_dir={data} --model_dir=new")],
)
def test_what_needs_tensorflow_says_so(without_tensorflow, untrained, prepared, program, argument):
    arguments = argument.format(untrained=untrained, data=prepared).split()
    process = without_tensorflow(BIN / f"{program}.py", *arguments)
    _, errors = process.communicate("a line\n", PATIENCE)
    assert process.returncode == 1
    check_line(errors, "TensorFlow", "not installed")
