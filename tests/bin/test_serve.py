import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from keras_transformer.serving.processes import usable_cores
from tests.program_fixtures import foreign_lines, without_greeting

PROGRAM = Path(__file__).resolve().parents[2] / "bin" / "serve.py"
SENTENCE = "the cat sat"
PATIENCE = 300  # seconds, on a machine under load


@pytest.fixture(scope="module")
def exported(untrained, tmp_path_factory):
    """An export, and the translator it was made of."""
    from keras_transformer.export.saved_model import export_saved_model
    from keras_transformer.loading import decoding_config, load, restore

    trained = restore(untrained)
    config = decoding_config(trained, beam_size=2)
    export_dir = tmp_path_factory.mktemp("serve") / "model"
    export_saved_model(trained.models, trained.vocabularies, export_dir, trained.card(config))
    return export_dir, load(untrained, beam_size=2)


@pytest.fixture(scope="module")
def served(exported):
    """A running server, and its address."""
    command = [sys.executable, str(PROGRAM), f"--saved_model={exported[0]}", "--port=0"]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            first = next(line for line in process.stderr if without_greeting(line))
            ready = re.search(r"serving at (http://127\.0\.0\.1:\d+) ", first)
            assert ready, first
            yield process, ready.group(1)
        finally:
            process.kill()


def post(url, value):
    request = urllib.request.Request(url, json.dumps(value).encode())
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def test_requests_and_end(served, exported):
    process, url = served
    (wanted,) = exported[1].translate([SENTENCE])
    (answers,) = post(f"{url}/translate", {"text": SENTENCE, "n_best": 2})["translations"]
    assert [answer["text"] for answer in answers] == [best.text for best in wanted]
    scores = [best.score for best in wanted]
    assert [answer["score"] for answer in answers] == pytest.approx(scores, abs=1e-3)

    attention = post(f"{url}/attention", {"source": SENTENCE, "target": "die katze"})
    S, T = len(attention["source_pieces"]), len(attention["target_pieces"])
    assert "".join(attention["source_pieces"]) == "▁the▁cat▁sat</s>"
    assert "".join(attention["target_pieces"]) == "▁die▁katze</s>"
    for name, rows, columns in (("encoder", S, S), ("decoder", T, T), ("memory", T, S)):
        ((head, _),) = attention[name]  # one layer, two heads
        assert [len(row) for row in head] == [columns] * rows
        assert [sum(row) for row in head] == pytest.approx([1] * rows, abs=0.01)
    assert attention["decoder"][0][0][0] == [1] + [0] * (T - 1), "the first sees BOS alone"

    with urllib.request.urlopen(f"{url}/", timeout=PATIENCE) as page:
        assert b"<h1>Transformer</h1>" in page.read()
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    result = json.loads(output.splitlines()[-1])
    assert (result["requests"], result["errors"]) == (3, 0)
    assert (result["sentences"], result["batches"]) == (1, 1)
    assert "Traceback" not in errors and not foreign_lines(errors)


TWO_CORES = pytest.mark.skipif(len(usable_cores()) < 2, reason="one core")


@pytest.fixture
def two_processes(exported):
    """A running server of two processes, and its address."""
    command = [sys.executable, str(PROGRAM), f"--saved_model={exported[0]}", "--port=0"]
    command.append("--processes=2")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, start_new_session=True) as process:
        try:
            lines = (re.search(r"serving at (http://\S+) until", line) for line in process.stderr)
            yield process, next(found for found in lines if found)[1]
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def workers_of(process):
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(number) for number in children.read_text().split()]


@TWO_CORES
def test_processes_answer_at_one_address(two_processes):
    process, url = two_processes
    workers = workers_of(process)
    assert len(workers) == 2
    assert not os.sched_getaffinity(workers[0]) & os.sched_getaffinity(workers[1])
    for stopped in (*workers, None):  # the system gives connections to the one that is awake
        if stopped is not None:
            os.kill(stopped, signal.SIGSTOP)
        assert post(f"{url}/translate", {"text": SENTENCE})["translations"]
        if stopped is not None:
            os.kill(stopped, signal.SIGCONT)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    result = json.loads(output.splitlines()[-1])
    assert (result["processes"], result["requests"], result["errors"]) == (2, 3, 0)
    assert "Traceback" not in errors


@TWO_CORES
def test_a_process_that_ends_ends_all(two_processes):
    process, _ = two_processes
    os.kill(workers_of(process)[1], signal.SIGKILL)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1 and output == ""
    assert errors.splitlines()[-1] == (
        "error: --processes must have the memory that they need, and run until they are told to "
        "stop. Received: process 2, which has ended with exit code -9"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--saved_model"),
        (["--saved_model=absent"], "--saved_model must be a directory that an export has made"),
        (["--saved_model={model}", "--port=70000"], "port"),
        (["--saved_model={model}", "--port=http"], "port"),
        (["--saved_model={model}", "--host=a..b"], "--host must be a name or an address"),
        (["--saved_model={model}", "--timeout=0"], "--timeout must be positive seconds"),
        (["--saved_model={model}", "--max_sentences=0"], "--max_sentences must be at least 1"),
        (["--saved_model={model}", "--max_characters=1.5"], "--max_characters=1.5"),
        (["--saved_model={model}", "--max_waiting=-1"], "--max_waiting must be at least 1"),
        (["--saved_model={model}", "--processes=0"], "--processes"),
        (["--saved_model={model}", "--processes=9999"], "--processes must be from 1 to"),
        (["--saved_model={model}", "--cors_origin=x"], "--cors_origin must be the origin of pages"),
        (["--saved_model={model}", "8501"], "every argument must be a flag"),
    ],
)
def test_bad_flags(call_program, exported, tmp_path, arguments, message):
    filled = [argument.format(model=exported[0]) for argument in arguments]
    done = call_program("serve", *filled, cwd=tmp_path)
    assert done.code == 1
    assert message in done.errors.splitlines()[-1]
    assert done.output == ""


def test_port_in_use(call_program, exported):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = call_program("serve", f"--saved_model={exported[0]}", f"--port={port}")
    assert done.code == 1
    assert (
        f"error: --port must be one that is free, or 0 for any free one. Received: 127.0.0.1:{port}"
        in done.errors
    )


def test_half_copied_export(call_program, exported, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(exported[0], copy)
    (copy / "saved_model.pb").write_bytes((copy / "saved_model.pb").read_bytes()[:1000])
    done = call_program("serve", f"--saved_model={copy}", "--port=0")
    assert done.code == 1
    assert "--saved_model must be whole" in done.errors.splitlines()[-1]
