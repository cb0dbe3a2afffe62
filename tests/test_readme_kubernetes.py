"""The guide's "Kubernetes": its two objects, and the command of a pod in a shell."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from keras_transformer.core.training.workers.addresses import own_addresses

yaml = pytest.importorskip("yaml", reason="no PyYAML; install: pip install '.[test]'")
ROOT = Path(__file__).resolve().parents[1]

# In place of Python: writes what it was told, and waits for a signal if it is to.
TRAIN = """#!/bin/bash
echo "$TF_CONFIG" > config
echo "$@" > arguments
stopped=train_steps
trap 'stopped=SIGTERM' TERM
echo > started
while [ -e wait ] && [ $stopped != SIGTERM ]; do sleep 0.05; done
[ -e fail ] && exit 1
echo "{\\"step\\": 5, \\"stopped\\": \\"$stopped\\"}"
"""


@pytest.fixture(scope="module")
def objects():
    guide = (ROOT / "docs" / "guides" / "machines.md").read_text(encoding="utf-8")
    section = re.search(r"^## Kubernetes\n(.*?)^## ", guide, re.M | re.DOTALL)[1]
    found = yaml.safe_load_all(re.search(r"```yaml\n(.*?)```", section, re.DOTALL)[1])
    return {each["kind"]: each for each in found}


def test_the_objects_belong_together(objects):
    service, job = objects["Service"], objects["Job"]
    name, spec = job["metadata"]["name"], job["spec"]
    pod = spec["template"]["spec"]
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"]
    assert service["spec"]["selector"] == {"job-name": name}  # a label that Kubernetes sets
    assert pod["subdomain"] == service["metadata"]["name"]
    mounted = {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


@pytest.fixture
def start(objects, tmp_path):
    """Starts the command of a pod as Kubernetes does."""
    (tmp_path / "python").write_text(TRAIN)
    (tmp_path / "python").chmod(0o755)
    container = objects["Job"]["spec"]["template"]["spec"]["containers"][0]
    text = container["args"][0].replace("/tmp/result", "result")
    path = f"{tmp_path}:{os.environ['PATH']}"

    def start(index):
        environment = {"PATH": path, "JOB_COMPLETION_INDEX": str(index)}
        return subprocess.Popen(
            [*container["command"], text], cwd=tmp_path, env=environment, stdout=subprocess.PIPE
        )

    return start


def test_a_pod_that_has_finished_succeeds(start, objects, tmp_path, monkeypatch):
    pod = start(1)
    assert json.loads(pod.communicate(timeout=60)[0])["stopped"] == "train_steps"
    assert pod.returncode == 0
    monkeypatch.setenv("TF_CONFIG", (tmp_path / "config").read_text())
    addresses = own_addresses()
    assert addresses.index == 1
    name, count = objects["Job"]["metadata"]["name"], objects["Job"]["spec"]["completions"]
    subdomain = objects["Job"]["spec"]["template"]["spec"]["subdomain"]
    assert addresses.workers == tuple(f"{name}-{n}.{subdomain}:2222" for n in range(count))
    assert "--strategy=multi_worker" in (tmp_path / "arguments").read_text()


def test_a_pod_that_is_told_to_end_or_fails_is_started_again(start, tmp_path):
    (tmp_path / "wait").touch()
    pod = start(0)
    while not (tmp_path / "started").exists():
        assert pod.poll() is None
    pod.send_signal(signal.SIGTERM)
    assert pod.wait(60) == 1
    assert '"SIGTERM"' in (tmp_path / "result").read_text()  # the process was told, and waited for
    (tmp_path / "wait").unlink()
    (tmp_path / "fail").touch()
    assert start(0).wait(60) == 1
