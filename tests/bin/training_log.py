"""Follows the log of a training that runs in another process."""

import contextlib
import json
import subprocess

PATIENCE = 300  # seconds, on a machine under load


def events_of(model_dir):
    """Returns the events of a training that may be under way."""
    path = model_dir / "training_log.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def wait_for_step(process, model_dir, step):
    """Returns when the log has come to a step."""
    for _ in range(PATIENCE * 50):
        if any(event["step"] >= step for event in events_of(model_dir)):
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"ended before step {step}, with {process.wait(0.02)}")
    raise AssertionError(f"no step {step} in time")
