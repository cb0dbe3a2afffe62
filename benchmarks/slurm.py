"""Runs the guide's job file under Slurm, requeues it, and compares it with an uninterrupted run.

    make slurm         (or: python benchmarks/slurm.py --work_dir=runs/slurm --train_steps=600 \\
        -- --preset=tiny --tokens_per_batch=500 --log_steps=10 --checkpoint_steps=100)

It starts its own cluster: two nodes with one processor each, in network namespaces on this machine,
with munge, slurmctld and two slurmds, whose files are in --work_dir. All of it stops when the
program ends, and nothing outside is used or changed. The flags after `--` are passed to
bin/train.py, with --deterministic. The data is the embedded grammar. Requires Linux, root, and the
Debian packages slurm-wlm, munge and iproute2. Prints one JSON line.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from soak import TRAIN, events, same_curves, same_weights
from timing import InputError, check_positive, log, require, run

ROOT = TRAIN.parent.parent
PROGRAMS = {"slurm-wlm": "slurmctld", "munge": "munged", "iproute2": "ip"}
NODES = ("node9", "node10")  # in Slurm's order, which is not alphabetical
INSIDE = "KERAS_TRANSFORMER_SLURM"  # is set within the namespaces
PATIENCE = 900  # seconds to wait for a job or a daemon

CONFIGURATION = """
ClusterName=test
SlurmctldHost=controller(10.99.0.1)
SlurmUser=root
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdSpoolDir={folder}/spool.%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
KillWait=60
NodeName=node9 NodeAddr=10.99.0.9 NodeHostname=controller CPUs=1
NodeName=node10 NodeAddr=10.99.0.10 NodeHostname=controller CPUs=1
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work_dir", type=Path, required=True)
    parser.add_argument("--train_steps", type=int, default=600)
    parser.add_argument("words", nargs="*", metavar="-- FLAGS", help="for bin/train.py")
    arguments = parser.parse_args()
    check_positive(arguments, "train_steps")
    missing = [package for package, name in PROGRAMS.items() if shutil.which(name) is None]
    rule = "must be installed: apt-get install --no-install-recommends " + " ".join(PROGRAMS)
    require(not missing, "Slurm", rule, f"no {', '.join(missing)}")
    require(os.geteuid() == 0, "user", "must be root, who can start a cluster", os.geteuid())
    if INSIDE not in os.environ:
        namespaces = ["--mount", "--net", "--uts", "--pid", "--mount-proc"]
        words = ["unshare", *namespaces, "--fork", "--kill-child", sys.executable, *sys.argv]
        os.execvpe("unshare", words, {**os.environ, INSIDE: "yes"})
    compare(arguments.work_dir.resolve(), arguments.train_steps, arguments.words)


def compare(work_dir, steps, words):
    """Runs both trainings in the namespaces, and prints how they ended."""
    cluster, together, alone, data = (work_dir / n for n in ("cluster", "model", "alone", "data"))
    for folder in (cluster, together, alone):
        shutil.rmtree(folder, ignore_errors=True)
    cluster.mkdir(parents=True)
    prepare = ["--dataset=grammar", "--vocab_size=2000", f"--data_dir={data}"]
    call(sys.executable, ROOT / "bin" / "prepare_data.py", *prepare)
    words = [f"--data_dir={data}", f"--train_steps={steps}", "--deterministic", *words]
    start_network(cluster)
    start_daemons(cluster)
    middle = train_under_slurm(cluster, [*words, f"--model_dir={together}"], together, steps // 3)
    log("one process with two replicas")
    replicas = ["--strategy=mirrored", f"--replicas={len(NODES)}", f"--model_dir={alone}"]
    call(sys.executable, TRAIN, *words, *replicas)
    result = {
        "requeued_at_step": middle,
        "steps": last_step(together),
        "same_weights": same_weights(alone, together),
        "same_curves": same_curves(alone, together),
    }
    print(json.dumps(result))
    is_same = result["same_weights"] and result["same_curves"]
    require(is_same, None, "must hold two equal models", "different ones", work_dir)


def start_network(folder):
    """Creates a network namespace and an address for each node, and host names for all."""
    call("mount", "-t", "tmpfs", "none", "/run")
    call("hostname", "controller")
    ip("link set lo up")
    ip("link add bridge type bridge")
    ip("address add 10.99.0.1/24 dev bridge")
    ip("link set bridge up")
    names = ["127.0.0.1 localhost", "10.99.0.1 controller"]
    for node in NODES:
        address = f"10.99.0.{node.removeprefix('node')}"
        ip(f"netns add {node}")
        ip(f"link add {node} type veth peer name outside netns {node}")
        ip(f"link set {node} master bridge up")
        ip(f"-n {node} address add {address}/24 dev outside")
        ip(f"-n {node} link set outside up")
        ip(f"-n {node} link set lo up")
        names.append(f"{address} {node}")
    (folder / "hosts").write_text("\n".join(names) + "\n")
    call("mount", "--bind", folder / "hosts", "/etc/hosts")


def ip(words):
    call("ip", *words.split())


def start_daemons(folder):
    """Starts munged, slurmctld and a slurmd per node; returns when the nodes are idle."""
    (folder / "slurm.conf").write_text(CONFIGURATION.format(folder=folder))
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    os.environ["SLURM_CONF"] = f"{folder}/slurm.conf"
    start(
        folder,
        *("munged", "--foreground", "--force", f"--key-file={folder}/munge.key"),
        *(f"--socket={folder}/munge.socket", f"--seed-file={folder}/munge.seed"),
        *(f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log"),
    )
    wait_until(lambda: (folder / "munge.socket").exists(), folder / "munge.log")
    start(folder, "slurmctld", "-D")
    for node in NODES:
        start(folder, "nsenter", f"--net=/run/netns/{node}", "slurmd", "-D", "-N", node)
    wait_until(nodes_are_idle, folder / "slurmctld.log")


def nodes_are_idle():
    command = ["sinfo", "--noheader", "--format=%t", "--Node"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.split() == ["idle"] * len(NODES)


def job_file():
    """Returns the job file from docs/guides/machines.md."""
    guide = (ROOT / "docs" / "guides" / "machines.md").read_text(encoding="utf-8")
    return re.search(r"```bash\n(#!/bin/bash\n#SBATCH.*?)```", guide, re.DOTALL)[1]


def train_under_slurm(folder, words, model_dir, middle):
    """Submits the job, requeues it after step `middle`, and waits; returns that step."""
    said = folder / "job.log"
    (folder / "train.sbatch").write_text(job_file())
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    job = call("sbatch", "--parsable", f"--output={said}", folder / "train.sbatch", *words)

    def state():
        return call("squeue", "--noheader", "--format=%T", "--states=all", f"--job={job}")

    def has_ended():
        return state() not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")

    wait_until(lambda: last_step(model_dir) >= middle or has_ended(), said)
    require(not has_ended(), "job", f"must run until step {middle}; see {said}", state())
    requeued_at = last_step(model_dir)
    log(f"step {requeued_at}: scontrol requeue {job}")
    call("scontrol", "requeue", job)
    wait_until(lambda: state() == "PENDING", folder / "slurmctld.log")
    log(said.read_text().splitlines()[-1])
    # Slurm would wait two more minutes before it restarts the job.
    call("scontrol", "update", f"JobId={job}", "StartTime=now")
    wait_until(has_ended, said)
    require(state() == "COMPLETED", "job", f"must complete; see {said}", state())
    return requeued_at


def last_step(model_dir):
    return max((line["step"] for line in events(model_dir)), default=0)


def call(*command):
    """Runs a command; returns its output."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    last = done.stderr.strip().rpartition("\n")[2]
    require(done.returncode == 0, None, "must exit with code 0", last, " ".join(map(str, command)))
    return done.stdout.strip()


def start(folder, *command):
    with open(folder / "daemons.log", "ab") as said:
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)


def wait_until(condition, log_file):
    for _ in range(PATIENCE * 2):
        if condition():
            return
        time.sleep(0.5)
    raise InputError("Slurm", f"must start within {PATIENCE} s; see {log_file}")


if __name__ == "__main__":
    run(main)
