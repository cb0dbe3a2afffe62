"""Measures how the cost of a training step grows with length, batch, vocabulary and replicas.

Part of benchmarks/training.py (--growth). One quantity changes at a time; the others stay as in
BASE. Each point is measured in its own process. Exponents are fitted to the larger half of the
sizes, for the time of a step, the operations in its matrix products, and the memory beyond that of
the imported libraries.
"""

import dataclasses
from collections.abc import Callable

from charts import Line, Panel
from layers import doubled, slope
from step_clock import Work
from timing import log
from workers import run_worker, step_gigaflops

BASE = Work(128, 256, 4, 4, vocab_size=8000, sentences=128, length=32, steps=5, seconds=8.0)
QUICK = Work(16, 16, 1, 2, vocab_size=200, sentences=8, length=8, steps=2, matrix=256)


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A quantity, its sizes, and the work at each size."""

    label: str
    sizes: list[int]
    change: Callable[[Work, int], Work]


def sweeps(base: Work, quick: bool) -> dict[str, Sweep]:
    tokens = base.sentences * base.length

    def sizes(first, last):
        return doubled(first, first * 2 if quick else last)

    return {
        "length": Sweep(
            f"tokens of a sentence ({tokens} of a batch)",
            sizes(base.length // 2, 1024),
            lambda work, n: work._replace(length=n, sentences=tokens // n),
        ),
        "batch": Sweep(
            f"tokens of a batch, in sentences of {base.length}",
            sizes(tokens // 8, 4 * tokens),
            lambda work, n: work._replace(sentences=n // work.length),
        ),
        "vocabulary": Sweep(
            "words of the vocabulary",
            sizes(base.vocab_size // 8, 8 * base.vocab_size),
            lambda work, n: work._replace(vocab_size=n),
        ),
        "replicas": Sweep(
            "replicas that share a batch, on this CPU",
            sizes(1, 8),
            lambda work, n: work._replace(replicas=n),
        ),
    }


def measure_growth(quick: bool) -> dict[str, dict]:
    """Measures every sweep: {quantity: {"sizes", "seconds", "megabytes", ..., "exponents"}}."""
    base = QUICK if quick else BASE
    known: dict[Work, dict] = {}  # BASE itself is a point of every sweep
    found = {}
    for name, sweep in sweeps(base, quick).items():
        points = []
        for size in sweep.sizes:
            work = sweep.change(base, size)
            if work not in known:
                known[work] = measure_point(work)
            points.append(known[work])
            log(f"{name} {size}: {points[-1]}")
        found[name] = summed_up(sweep.sizes, points)
    return found


def measure_point(work: Work) -> dict[str, float]:
    run = run_worker("our_step.py", work.as_json())
    return {
        "seconds": run["seconds"],
        "gigaflops": float(f"{step_gigaflops(work):.4g}"),
        "megabytes": run["peak_megabytes"],
        "own_megabytes": round(run["peak_megabytes"] - run["imported_megabytes"], 1),
        "first_step_seconds": run["first_step_seconds"],
    }


def summed_up(sizes: list[int], points: list[dict[str, float]]) -> dict:
    """Returns the points as columns, and the exponents fitted to the larger half of the sizes."""
    columns = {name: [point[name] for point in points] for name in points[0]}
    half = len(sizes) // 2
    exponents = {
        name: slope(sizes[half:], columns[name][half:])
        for name in ("seconds", "gigaflops", "own_megabytes")
    }
    return {"sizes": sizes, **columns, "exponents": exponents}


def growth_table(found: dict[str, dict]) -> str:
    """Formats the first and last point of each sweep, and the exponents."""
    from keras_transformer.text_table import text_table

    header = ("quantity", "sizes", "ms a step", "MB", "time ~ n^", "products ~ n^", "memory ~ n^")
    rows = []
    for name, sweep in found.items():
        milliseconds = [1000 * seconds for seconds in sweep["seconds"]]
        ends = [
            f"{values[0]:,.0f} to {values[-1]:,.0f}"
            for values in (sweep["sizes"], milliseconds, sweep["megabytes"])
        ]
        rows.append([name, *ends, *sweep["exponents"].values()])
    return text_table(header, rows)


def growth_panels(found: dict[str, dict], quick: bool) -> list[Panel]:
    """Makes two panels per quantity: step time with its matrix products, and memory."""
    panels = []
    for name, sweep in sweeps(QUICK if quick else BASE, quick).items():
        measured = found[name]
        title = name.capitalize()
        shared = name == "replicas"  # the work is the same at all sizes: compare with one replica

        def line(label, values, colour=0, dashed=False, sizes=sweep.sizes):
            return Line(label, list(zip(sizes, values, strict=True)), colour, dashed)

        place = 0 if shared else -1  # the size at which theory equals measurement
        scale = 1000 * measured["seconds"][place] / measured["gigaflops"][place]
        in_theory = [scale * gigaflops for gigaflops in measured["gigaflops"]]
        times = [
            line("measured", [1000 * seconds for seconds in measured["seconds"]]),
            line("matrix products", in_theory, dashed=True),
        ]
        memory = [
            line("peak", measured["megabytes"]),
            line("beyond the imported libraries", measured["own_megabytes"], 1),
        ]
        time = Panel(f"{title}: time of a step", sweep.label, "milliseconds", times)
        panels.append(time._replace(log_y=not shared))
        panels.append(Panel(f"{title}: memory", sweep.label, "megabytes", memory, log_y=False))
    return panels
