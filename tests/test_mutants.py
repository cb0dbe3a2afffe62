"""tests/mutants.py: its mutations, and that a mutant is found again after the code has changed."""

import argparse
import json

import pytest

from tests import mutants

CODE = b'''
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy

SIZE: int = 4


@cache(size=1)
def fits(n: Literal[2] = 3, *, large=False) -> bool:
    """1 < 2"""
    require(n  # is this (or that)
            not in (5,), "n", rule if n < 6 else "")
    if not n or large:
        raise InputError("n", f"{n + 1}", 7)
    logging.info("%d", n + 8)
    return n


class Sum:
    async def add(self, x):
        self.n = ops.sum(x[:, -1], axis=-1, keepdims=True)
        self.total += x @ x
        await self.done()
        while "a" + x < 0.5 <= 1e4:
            x = x ** 2 | x
'''
FOUND = [
    ("module", "constant", "4", "5"),
    ("fits", "constant", "3", "4"),
    ("fits", "true/false", "False", "True"),
    ("fits", "statement", "require(...)", "pass"),
    ("fits", "comparison", "n # is this (or that) not in (5,)", "n # is this (or that) in (5,)"),
    ("fits", "constant", "5", "6"),
    ("fits", "condition", "not n or large", "not (not n or large)"),
    ("fits", "and/or", "not n or large", "not n and large"),
    ("fits", "not", "not n", "n"),
    ("fits", "return", "n", "not (n)"),
    ("Sum.add", "statement", "self.n = ops.sum(x[:, -1], axis=-1, keepdims=True)", "pass"),
    ("Sum.add", "constant", "1", "2"),
    ("Sum.add", "axis", "-1", "0"),
    ("Sum.add", "keepdims", "True", "False"),
    ("Sum.add", "statement", "self.total += x @ x", "pass"),
    ("Sum.add", "arithmetic", "self.total += x @ x", "self.total -= x @ x"),
    ("Sum.add", "statement", "await self.done()", "pass"),
    ("Sum.add", "condition", '"a" + x < 0.5 <= 1e4', 'not ("a" + x < 0.5 <= 1e4)'),
    ("Sum.add", "comparison", '"a" + x < 0.5 <= 1e4', '"a" + x <= 0.5 <= 1e4'),
    ("Sum.add", "comparison", '"a" + x < 0.5 <= 1e4', '"a" + x < 0.5 < 1e4'),
    ("Sum.add", "constant", "0.5", "1.5"),
    ("Sum.add", "constant", "1e4", "20000.0"),
    ("Sum.add", "arithmetic", "x ** 2 | x", "x ** 2 & x"),
    ("Sum.add", "arithmetic", "x ** 2", "x * 2"),
    ("Sum.add", "constant", "2", "3"),
]


def found(code):
    return mutants.Finder(code, "a.py").places


def test_what_is_mutated():
    shown = [(m.function, m.kind, m.text, m.replacement) for m in found(CODE)]
    require = next(m.text for m in found(CODE) if m.text.startswith("require"))
    assert [
        (*names, text.replace(require, "require(...)"), new) for *names, text, new in shown
    ] == FOUND


def test_a_mutant_is_found_in_code_that_was_moved():
    before = b"def f(x):\n    return g(x, 1) + g(x,\n  1)\n"
    after = b"import a\n\ndef f(x):\n    y = h(x) + 2\n    return g(x, 1) + g(x, 1)\n"
    second = [m for m in found(before) if m.text == "1"][1]
    assert second.occurrence == 2
    start, end, replacement = found(after)[second]
    assert after[:start] + replacement + after[end:] == after.replace(b", 1)\n", b", 2)\n")
    assert second not in found(b"def f(x):\n    return g(x, 1)\n")
    assert second not in found(before.replace(b"def f", b"def h"))


def test_chosen_mutants_are_of_all_areas():
    chosen = mutants.choose(25, seed=1)
    assert [mutant.area for mutant in chosen] == ([*mutants.AREAS] * 3)[:25]
    assert chosen == mutants.choose(30, seed=1)[:25] != mutants.choose(25, seed=2)
    assert len({mutant.id for mutant in chosen}) == 25


def test_an_area_without_a_module():
    with pytest.raises(SystemExit, match=r"Received: pipelines/nothing\.py"):
        mutants.modules("pipelines/{batching,nothing}")


def test_mutants_that_are_planted_together():
    first, second, other = (
        mutants.Mutant("", "a.py", function, "constant", text, "0", 1)
        for function, text in (("f", "1"), ("f", "2"), ("g", "1"))
    )
    assert mutants.rounds_of([first, second, other]) == [[first, other], [second]]


def test_table(tmp_path, capsys):
    results, reasons = tmp_path / "results.jsonl", tmp_path / "equivalent.txt"
    chosen = mutants.choose(12, seed=1)
    outcomes = [
        (0, "now", "module", "caught"),
        (1, "now", "module", "timeout"),
        (2, "now", "module", "survived"),
        (2, "now", "slow", "caught"),
        (10, "now", "module", "survived"),
        (11, "now", "module", "survived"),
        (0, "before", "suite", "survived"),
        (1, "before", "suite", "absent"),
        (10, "before", "suite", "caught"),
    ]
    for number, name, stage, outcome in outcomes:
        mutant = chosen[number]
        line = {**mutant._asdict(), "id": mutant.id, "name": name, "stage": stage}
        with results.open("a") as file:
            print(json.dumps({**line, "outcome": outcome}), file=file)
    reasons.write_text(f"{chosen[11].id} both are 0\n")
    mutants.table(argparse.Namespace(results=results, equivalent=reasons))
    head, _, *lines = capsys.readouterr().out.splitlines()
    stages = "module | slow | before: suite | before: absent"
    assert head == f"| area | mutants | equivalent | {stages} | survived |"
    assert lines[:3] == [
        "| model | 2 | 0 | 1 | 0 | 1 | 0 | 1 |",
        "| search | 2 | 1 | 1 | 0 | 0 | 1 | 0 |",
        "| losses and schedule | 1 | 0 | 0 | 1 | 0 | 0 | 0 |",
    ]
    assert lines[10] == "| all | 5 | 1 | 2 | 1 | 1 | 1 | 1 |"
    survived, equivalent = (f"- {chosen[number].id} {chosen[number]}" for number in (10, 11))
    assert lines[11:] == [
        *("", "survived:", "", survived),
        *("", "equivalent:", "", f"{equivalent} – both are 0"),
    ]
