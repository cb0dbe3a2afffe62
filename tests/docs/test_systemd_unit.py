"""docs/examples/keras-transformer.service: its command and its folders."""

import configparser
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "docs" / "examples" / "keras-transformer.service"


@pytest.fixture(scope="module")
def service():
    text = UNIT.read_text(encoding="utf-8").replace("\\\n", " ")
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read_string(text)
    return unit["Service"]


def test_its_flags_are_those_of_serve(service):
    program, command, *given = shlex.split(service["ExecStart"])
    assert (Path(program).name, command) == ("keras-transformer", "serve")
    source = (ROOT / "bin" / "serve.py").read_text(encoding="utf-8")
    limits = (ROOT / "keras_transformer/kit/serving/limits.py").read_text(encoding="utf-8")
    for flag in given:
        name = flag.removeprefix("--").partition("=")[0]
        is_known = f'"{name}"' in source or re.search(rf"^    {name}: ", limits, re.M)
        assert is_known or name == "saved_model", flag


def test_it_only_writes_into_its_own_folders(service):
    assert service["ProtectSystem"] == "strict" and service["DynamicUser"] == "yes"
    (corrections,) = re.findall(r"--corrections=(\S+)", service["ExecStart"])
    assert Path(corrections).parent == Path("/var/lib", service["StateDirectory"])
    cache = service["Environment"].removeprefix("XDG_CACHE_HOME=")
    assert Path(cache, "keras-transformer") == Path("/var/cache", service["CacheDirectory"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="install systemd")
def test_systemd_reads_it(tmp_path):
    text = UNIT.read_text(encoding="utf-8")
    path = tmp_path / UNIT.name
    path.write_text(
        text.replace("/opt/keras-transformer/venv/bin/keras-transformer", sys.executable)
    )
    done = subprocess.run(
        ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, timeout=60
    )
    assert not [line for line in done.stderr.splitlines() if UNIT.name in line], done.stderr
