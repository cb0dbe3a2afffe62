import contextlib
import json
import re
import shutil
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from keras_transformer.kit.serving import server
from keras_transformer.kit.serving.limits import OWN_MACHINE, Limits
from tests.program_fixtures import foreign_lines, without_greeting
from tests.refusals import check_line

PROGRAM = Path(__file__).resolve().parents[2] / "bin" / "serve.py"
SENTENCE = "the cat sat"
PATIENCE = 300  # seconds, on a machine under load


@pytest.fixture
def served(exported, start_process, tmp_path):
    """A running server, and its address."""
    errors = tmp_path / "errors"
    process = start_process([PROGRAM, f"--saved_model={exported}", "--port=0"], errors)
    for _ in range(PATIENCE * 50):
        said = without_greeting(errors.read_text("utf-8")) if errors.exists() else ""
        if ready := re.search(r"(http://127\.0\.0\.1:\d+) ", said):
            return process, ready[1]
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"ended with {process.wait(0.02)}")
    raise AssertionError("no server in time")


def post(url, value):
    request = urllib.request.Request(url, json.dumps(value).encode())
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def test_requests_and_end(served, exported):
    from keras_transformer.loading import load

    process, url = served
    (wanted,) = load(exported).translate([SENTENCE])
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
        assert b"Translate text and documents</h1>" in page.read()
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    result = json.loads(output.splitlines()[-1])
    assert (result["requests"], result["errors"]) == (3, 0)
    assert (result["sentences"], result["batches"]) == (1, 1)
    assert "Traceback" not in errors and not foreign_lines(errors)


@pytest.mark.parametrize(
    ("argument", "subject", "received"),
    [
        ("--host=a..b", "--host", "a..b"),
        ("--device=cuda --port=0", "--device", "no GPU"),
        ("--cors_origin=x", "--cors_origin", "'x'"),
        ("--terminology=a/terms.tsv,b/terms.tsv", "--terminology", "'b/terms.tsv'"),
        ("--terminology=a/damaged.tsv", "a/damaged.tsv:1", "'a'"),
        ("--memory=absent.tmx", "--memory", "'absent.tmx'"),
        ("--corrections=mine.tsv", "--corrections", "'mine.tsv'"),
        ("--corrections=absent/mine.tmx", "--corrections", "'absent/mine.tmx'"),
        ("--corrections=damaged.tmx", "damaged.tmx:1", "no element found"),
        ("--corrections=unknown.tmx --port=0", "--corrections", "unknown.tmx"),  # languages
        ("--memory=empty.tmx --corrections=./empty.tmx", "--corrections", "'./empty.tmx'"),
    ],
)
def test_bad_flags(call_program, exported, tmp_path, argument, subject, received):
    (tmp_path / "damaged.tmx").write_text("<tmx>")
    (tmp_path / "empty.tmx").write_text("<tmx><body></body></tmx>")
    for name, content in {"a/terms": "a\tb", "b/terms": "c\td", "a/damaged": "a"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.tsv").write_text(f"{content}\n")
    done = call_program("serve", f"--saved_model={exported}", *argument.split(), cwd=tmp_path)
    assert done.code == 1
    check_line(done.errors, subject, received)
    assert done.output == ""


def test_corrections_are_a_memory_of_the_translator(call_program, exported, monkeypatch, tmp_path):
    found = []

    def serve(service, listening, host):
        listening.close()
        service.corrections.add({"source": "the cat", "translation": "der Kater"})
        found.extend(service.translator.translate(["the  cat"]))

    monkeypatch.setattr(server, "serve", serve)
    export, path = shutil.copytree(exported, tmp_path / "export"), tmp_path / "mine.tmx"
    card = export / "assets.extra" / "model_card.json"
    fields = json.loads(card.read_text()) | {"evaluation": {"languages": ["en", "de"]}}
    card.write_text(json.dumps(fields))
    flags = [f"--saved_model={export}", "--port=0", f"--corrections={path}"]
    done = call_program("serve", *flags)
    assert done.code == 0, done.errors
    ((answer,),) = found
    assert (answer.text, answer.from_memory) == ("der Kater", True)
    assert "<seg>der Kater</seg>" in path.read_text()


def test_half_copied_export(call_program, exported, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(exported, copy)
    (copy / "saved_model.pb").write_bytes((copy / "saved_model.pb").read_bytes()[:1000])
    done = call_program("serve", f"--saved_model={copy}", "--port=0")
    assert done.code == 1
    check_line(done.errors, "--saved_model", copy, "complete")


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ([], Limits(**OWN_MACHINE, prefix="--")),
        (["--host=localhost"], Limits(**OWN_MACHINE, prefix="--")),
        (["--host=0.0.0.0"], Limits(prefix="--")),
        (
            ["--max_characters=20000", "--timeout=5", "--max_waiting=3"],
            Limits(
                **OWN_MACHINE | {"max_characters": 20_000, "timeout": 5.0},
                max_waiting=3,
                prefix="--",
            ),
        ),
        (["--host=0.0.0.0", "--max_file_bytes=9"], Limits(max_file_bytes=9, prefix="--")),
    ],
)
def test_limits_of_a_server_for_its_own_machine(call_program, exported, monkeypatch, flags, wanted):
    found = []

    def serve(service, listening, host):
        listening.close()
        found.append(service.limits)

    monkeypatch.setattr(server, "serve", serve)
    done = call_program("serve", f"--saved_model={exported}", "--port=0", *flags)
    assert done.code == 0, done.errors
    assert found == [wanted]
