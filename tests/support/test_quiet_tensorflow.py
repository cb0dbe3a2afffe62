import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import PATIENCE

ROOT = Path(__file__).parents[2]
LEVEL = "TF_CPP_MIN_LOG_LEVEL"
HEADER = b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
INFORMATION = b"I0000 00:00:1795724335.999915   21694 port.cc:153] oneDNN is on.\n"
WARNING = b"W0000 00:00:1795724336.000335   21694 gpu_device.cc:2433] Cannot dlopen.\n"
FAKE = f"""
import os
os.write(2, {HEADER + INFORMATION + WARNING!r} + os.environb[b"{LEVEL}"] + b"\\n")
"""


def fresh(code, *path, **environment):
    """The exit code of a new interpreter, and what it writes to its standard streams."""
    variables = {name: value for name, value in os.environ.items() if name != LEVEL}
    variables["PYTHONPATH"] = os.pathsep.join(map(str, [*path, ROOT]))
    command = code if isinstance(code, list) else ["-c", code]
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        env={**variables, **environment},
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout, done.stderr


def test_information_is_left_out(tmp_path):
    (tmp_path / "tensorflow.py").write_text(FAKE)
    code = "import keras_transformer, os, tensorflow; os.write(2, b'later')"
    level = rb"[23]\n"  # 3 where there is no GPU
    ended, output, errors = fresh(code, tmp_path)
    assert (ended, output) == (0, b"")
    assert re.fullmatch(re.escape(WARNING) + level + b"later", errors)


@pytest.mark.parametrize(
    ("level", "wanted"), [("0", HEADER + INFORMATION + WARNING), ("1", WARNING)]
)
def test_the_level_of_the_user_is_kept(tmp_path, level, wanted):
    (tmp_path / "tensorflow.py").write_text(FAKE)
    done = fresh("import keras_transformer, tensorflow", tmp_path, **{LEVEL: level})
    assert done == (0, b"", wanted + level.encode() + b"\n")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="oneDNN is switched on for x86")
@pytest.mark.parametrize("of_user", ["", "0", "1"])
def test_onednn_is_on_unless_the_user_has_switched_it_off(tmp_path, of_user):
    (tmp_path / "tensorflow.py").write_text("import os\nprint(os.environ['TF_ENABLE_ONEDNN_OPTS'])")
    unset = "import os; os.environ.pop('TF_ENABLE_ONEDNN_OPTS');" if of_user == "" else ""
    code = f"{unset} import keras_transformer, tensorflow"
    done = fresh(code.strip(), tmp_path, TF_ENABLE_ONEDNN_OPTS=of_user)
    assert done == (0, f"{of_user or 1}\n".encode(), b"")


def test_an_import_that_fails(tmp_path):
    (tmp_path / "tensorflow.py").write_text(f"{FAKE}raise ImportError('it is damaged')")
    code, _, errors = fresh("import keras_transformer, tensorflow", tmp_path, **{LEVEL: "1"})
    assert code == 1 and errors.startswith(WARNING + b"1\nTraceback")
    assert errors.endswith(b"ImportError: it is damaged\n")


def test_a_process_without_stderr(tmp_path):
    (tmp_path / "tensorflow.py").write_text("import os\nprint(os.path.exists('/dev/fd/2'))")
    code = "import os; os.close(2); import keras_transformer, tensorflow"
    assert fresh(code, tmp_path)[:2] == (0, b"False\n")


def test_first_translations_in_python(untrained, exported):
    translate = "print(kt.load({!r}, engine='tensorflow').translate(['a'])[0])".format
    lines = [translate(str(path)) for path in (untrained, exported)]
    code, output, errors = fresh("; ".join(["import keras_transformer as kt", *lines]))
    assert code == 0
    assert [line[:13] for line in output.splitlines()] == [b"[Translation("] * 2
    assert errors == b""


@pytest.mark.slow  # two processes that import TensorFlow
def test_programs(untrained, prepared, tmp_path):
    foreign = rb"\.cc[:(]\d+|absl|WARNING|CUDA|oneDNN"
    (tmp_path / "text").write_text("the cat\n")
    model = [f"--model_dir={untrained}", "--engine=tensorflow"]
    code, output, errors = fresh([ROOT / "bin/translate.py", *model, f"--input={tmp_path}/text"])
    assert code == 0 and output.count(b"\n") == 1
    assert errors.splitlines()[-1].startswith(b"{") and not re.search(foreign, errors)
    data = [f"--data_dir={prepared}", "--split=test", "--beam_size=1"]
    code, output, errors = fresh([ROOT / "bin/evaluate.py", *model, *data])
    assert code == 0 and json.loads(output)["split"] == "test"
    assert not re.search(foreign, errors)
