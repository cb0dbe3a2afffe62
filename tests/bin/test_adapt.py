"""Learning corrections with bin/adapt.py. tests/pipelines/test_adaptation.py has the details."""

import pytest

from tests.program_fixtures import PAIRS
from tests.refusals import check_line

FEW = ["--steps=1", "--replay_tokens=40", "--lora_rank=2"]


def write_pairs(path, pairs):
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))


def test_a_file_is_learned(call_program, untrained, prepared, tmp_path):
    file, adapter_dir = tmp_path / "corrections.tsv", tmp_path / "adapter"
    write_pairs(file, PAIRS[:2])
    done = call_program(
        "adapt",
        *(f"--model_dir={untrained}", f"--corrections={file}", f"--adapter_dir={adapter_dir}"),
        *(f"--data_dir={prepared}", *FEW),
    )
    assert done.code == 0, done.errors
    assert (done.result["learned"], done.result["new"]) == (2, 2)
    assert f"--adapter={adapter_dir}" in done.errors


def test_wrong_input(call_program, untrained, exported, prepared, tmp_path):
    file, adapter_dir = tmp_path / "corrections.tsv", tmp_path / "adapter"
    write_pairs(file, PAIRS)

    def line_of(**changed):
        given = {
            **{"model_dir": untrained, "corrections": file, "adapter_dir": adapter_dir},
            **{"data_dir": prepared, **changed},
        }
        done = call_program("adapt", *(f"--{name}={value}" for name, value in given.items()))
        assert done.code == 1 and not adapter_dir.exists(), done.errors
        return done.errors

    check_line(line_of(corrections=tmp_path / "absent.tsv"), "--corrections", "absent.tsv")
    check_line(line_of(corrections=tmp_path / "text.docx"), "--corrections", "text.docx", ".tmx")
    check_line(line_of(model_dir=exported), "--model_dir", exported, "import")
    check_line(line_of(model_dir=f"{untrained},{untrained}"), "--model_dir", 2, "ensemble")
    check_line(line_of(adapter_dir=""), "--adapter_dir", "''")
    check_line(line_of(data_dir=tmp_path / "none"), "--data_dir", tmp_path / "none")
    check_line(line_of(steps=0), "--steps", 0)
    file.write_text("the cat\n")
    check_line(line_of(), f"{file}:1", "the cat")
    memory = tmp_path / "corrections.tmx"
    memory.write_text("<tmx/>")
    check_line(line_of(corrections=memory), "--corrections", memory, "unknown directions")


@pytest.mark.parametrize(
    ("given", "subject", "about"),
    [
        (["--adapter_dir=new"], "--adapter_dir", "--corrections"),
        (["--adapter_dir=new", "--corrections=c.tmx"], "--data_dir", "--adapter_dir"),
        (["--data_dir=data"], "--data_dir", "--adapter_dir"),
    ],
)
def test_what_a_server_needs_to_learn(call_program, untrained, tmp_path, given, subject, about):
    done = call_program("serve", f"--model_dir={untrained}", "--port=0", *given, cwd=tmp_path)
    assert done.code == 1
    check_line(done.errors, subject, about=about)


def test_a_server_does_not_learn_into_an_export(call_program, exported, tmp_path):
    given = ["--adapter_dir=new", "--corrections=c.tmx", "--data_dir=data", "--port=0"]
    done = call_program("serve", f"--saved_model={exported}", *given, cwd=tmp_path)
    assert done.code == 1
    check_line(done.errors, "--saved_model", exported, "import")
