"""benchmarks/slurm.py without Slurm: what it needs, and the guide's job file, which it submits."""

import subprocess
import sys

import pytest

from tests.processes import ROOT
from tests.refusals import check_line

PROGRAM = ROOT / "benchmarks" / "slurm.py"


def test_packages_that_are_missing_are_named(tmp_path):
    (tmp_path / "ip").write_text("#!/bin/sh\n")
    (tmp_path / "ip").chmod(0o755)
    done = subprocess.run(
        [sys.executable, PROGRAM, f"--work_dir={tmp_path / 'run'}"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    command = "apt-get install --no-install-recommends slurm-wlm munge iproute2"
    check_line(done.stderr, "Slurm", "no slurm-wlm, munge", command)
    assert not (tmp_path / "run").exists()


@pytest.fixture
def job_file(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import slurm

    return slurm.job_file()


def test_the_job_starts_a_worker_with_its_flags_on_each_node(job_file, tmp_path):
    (tmp_path / "train.sbatch").write_text(job_file)
    (tmp_path / "srun").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "srun").chmod(0o755)
    words = ["--data_dir=a folder", "--config", "d_model=8"]
    output = subprocess.run(
        ["/bin/bash", tmp_path / "train.sbatch", *words],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert output.splitlines() == ["python", "bin/train.py", "--strategy=multi_worker", *words]
    options = job_file.splitlines()[1].split()
    assert options[0] == "#SBATCH"
    assert {"--ntasks-per-node=1", "--requeue"} < {*options}
