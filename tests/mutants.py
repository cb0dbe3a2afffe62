"""Plants mutations in the code, one at a time, and checks whether a test fails.

    python -m tests.mutants list --count=100 --seed=1
    python -m tests.mutants run --count=100 --seed=1 --stage=module --results=runs/mutants.jsonl
    python -m tests.mutants table --results=runs/mutants.jsonl

A seed chooses the mutants. A mutant is identified by its text and the function around it, not by
its line, so the same one can be planted in another checkout (--tree). The stages are:

- module: for each mutant, the tests of its module, those that name the module, and those in its
  folder, without slow ones. Processes are forked from one that has imported TensorFlow.
- fast, slow, suite: the tests not marked as slow, those marked as slow, or all. They run once with
  all mutants that survived the other stages. Tests that fail then, but not without mutants, run
  again for each mutant alone.

A stage takes the mutants that no other stage of the same --name has caught, and resumes where it
was stopped. To rerun survivors, delete the lines with "survived" and "round" from the results.
"""

import argparse
import ast
import contextlib
import ctypes
import hashlib
import importlib
import itertools
import json
import os
import re
import resource
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from tests.processes import execute, take_over

ROOT = Path(__file__).resolve().parents[1]
# Area -> its modules. Braces select some of a folder's modules.
AREAS = {
    "model": "keras_transformer/model/*",
    "search": "keras_transformer/search/* "
    "keras_transformer/translate/{translator,answers,batches,texts,minimum_risk}",
    "losses and schedule": "keras_transformer/training/{losses,schedule,metrics,optimizer,adam,"
    "step,accumulation}",
    "batching": "pipelines/{batching,selection,sharding,data_set}",
    "checkpoints": "keras_transformer/training/{checkpoint_*,checkpoints,run_state,loop}",
    "vocabulary": "keras_transformer/vocabulary/* pipelines/vocabulary",
    "evaluation": "keras_transformer/evaluation/* "
    "keras_transformer/parsing/{parseval,trees,linearisation}",
    "documents": "keras_transformer/documents/*",
    "export": "keras_transformer/export/*",
    "serving": "keras_transformer/serving/*",
}
NOW = "now"  # the name of the tests without --name
MARKED = {"module": ["-m", "not slow"], "fast": ["-m", "not slow"], "slow": ["-m", "slow"]}
# Operator -> its replacement.
OPERATORS = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    **{"in": "not in", "not in": "in", "is": "is not", "is not": "is", "and": "or", "or": "and"},
    **{"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "**": "*"},
    **{"<<": ">>", ">>": "<<", "&": "|", "|": "&"},
}
OPERATOR = re.compile(r"not\s+in|is\s+not|[<>=!]=|\*\*|//|<<|>>|[-<>+*/%&|]|and|or|in|is")
NEGATIONS = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)  # each is another's negation
SEQUENCES = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
MEMORY = 10 << 30  # limit on data in bytes, for mutants that would fill the machine's memory
# Modules in a folder on the path of all tests. Every interpreter imports the first one, which makes
# an installed checkout (pip install --editable), whichever it is, refer to the copy.
SUPPORT = {
    "sitecustomize.py": """
import sys
from pathlib import Path

for finder in sys.meta_path:
    module = sys.modules.get(getattr(finder, "__module__", None))
    folders = getattr(module, "MAPPING", {})
    for name, folder in folders.items():
        folders[name] = str(Path(__file__).parents[1] / "copy" / Path(folder).name)
""",
    "mutants_plugin.py": """
import json
import os


def write(**line):
    if "PYTEST_XDIST_WORKER" not in os.environ:
        with open(os.environ["MUTANTS_REPORT"], "a") as file:
            print(json.dumps(line), file=file)


def pytest_runtest_logstart(nodeid):
    write(started=nodeid)


def pytest_runtest_logreport(report):
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        text = crash.message if crash else report.longreprtext[-200:]
        write(failed=report.nodeid, message=" ".join(text.split())[:200])


pytest_collectreport = pytest_runtest_logreport


def pytest_collection_modifyitems(config, items):
    only, without = json.loads(os.environ["MUTANTS_TESTS"])
    names = [{item.nodeid, item.nodeid.partition("::")[0]} for item in items]
    kept = [(not only or here & {*only}) and not here & {*without} for here in names]
    config.hook.pytest_deselected(items=[i for i, keep in zip(items, kept) if not keep])
    items[:] = [item for item, keep in zip(items, kept) if keep]
""",
}


class Mutant(NamedTuple):
    """A mutation, identified without a line number.

    `replacement` replaces the `occurrence`-th occurrence of the code `text` in `function`, a
    qualified name. Any whitespace counts as one space.
    """

    area: str
    file: str
    function: str
    kind: str
    text: str
    replacement: str
    occurrence: int

    @property
    def id(self) -> str:
        return _hash(self[1:])

    def __str__(self) -> str:
        change = f"`{_short(self.text)}` → `{_short(self.replacement)}`"
        return f"{self.file} {self.function}: {self.kind}: {change}"


class Place(NamedTuple):
    """A mutant's place in a file, in bytes, and its code there."""

    start: int
    end: int
    replacement: bytes


class Finder(ast.NodeVisitor):
    """Finds everything in a module that can be mutated.

    It skips annotations, decorators, errors (all arguments of InputError, and those of `require`
    after the condition), logging, and text.
    """

    def __init__(self, source: bytes, file: str, area: str = ""):
        self.source, self.file, self.area = source, file, area
        lengths = map(len, source.splitlines(keepends=True))
        self.line_starts = list(itertools.accumulate(lengths, initial=0))
        self.scope, self.gives_bool = (), False
        self.occurrences = Counter()
        self.places: dict[Mutant, Place] = {}
        self.visit(ast.parse(source))

    def span(self, node) -> tuple[int, int]:
        start = self.line_starts[node.lineno - 1] + node.col_offset
        return start, self.line_starts[node.end_lineno - 1] + node.end_col_offset

    def code(self, node) -> str:
        return self.source[slice(*self.span(node))].decode()

    def add(self, kind: str, node, replacement: str) -> None:
        """Adds a mutant that replaces a node."""
        texts = [" ".join(text.split()) for text in (self.code(node), replacement)]
        names = (self.file, ".".join(self.scope) or "module", kind, *texts)
        self.occurrences[names] += 1
        mutant = Mutant(self.area, *names, self.occurrences[names])
        self.places[mutant] = Place(*self.span(node), replacement.encode())

    def swap(self, kind: str, node, *operands) -> None:
        """Adds a mutant with other operators between the operands, if there are replacements."""
        (position, end), text = self.span(node), b""
        for before, after in itertools.pairwise(map(self.span, operands)):
            between = self.source[before[1] : after[0]]
            bare = re.sub(rb"#.*", lambda comment: b" " * len(comment[0]), between).decode("latin1")
            found = OPERATOR.search(bare)
            if not found:
                return  # such as @
            new = OPERATORS[" ".join(found[0].split())].encode()
            text += self.source[position : before[1]]
            text += between[: found.start()] + new + between[found.end() :]
            position = after[0]
        self.add(kind, node, (text + self.source[position:end]).decode())

    def negate(self, kind: str, node: ast.expr) -> None:
        """Adds the negation of a condition, unless another kind of mutant is the same."""
        one = isinstance(node, ast.Compare) and len(node.ops) == 1
        there = (one and isinstance(node.ops[0], NEGATIONS)) or isinstance(node, ast.Constant)
        if not there and not _is_not(node):
            self.add(kind, node, f"not ({self.code(node)})")

    def visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in filter(None, nodes):
            self.visit(node)

    def visit_FunctionDef(self, node):
        outer = self.scope, self.gives_bool
        self.scope += (node.name,)
        self.gives_bool = isinstance(node.returns, ast.Name) and node.returns.id == "bool"
        self.visit_all([*node.args.defaults, *node.args.kw_defaults, *node.body])
        self.scope, self.gives_bool = outer

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        self.scope += (node.name,)
        self.visit_all(node.body)
        self.scope = self.scope[:-1]

    def visit_Raise(self, node):
        pass

    visit_JoinedStr = visit_Raise

    def visit_Call(self, node):
        name = self.code(node.func).rpartition(".")[2]
        if name == "require":
            self.visit_all(node.args[:1])
        elif name != "InputError":
            self.generic_visit(node)

    def visit_keyword(self, node):
        code = self.code(node.value)
        if node.arg == "axis" and re.fullmatch(r"-?\d+", code):
            self.add("axis", node.value, str(int(code) + 1))
        elif node.arg == "keepdims" and code in ("True", "False"):
            self.add("keepdims", node.value, str(code == "False"))
        else:
            self.visit(node.value)

    def visit_Compare(self, node):
        for pair in itertools.pairwise([node.left, *node.comparators]):
            self.swap("comparison", node, *pair)
        self.generic_visit(node)

    def visit_BinOp(self, node):
        is_type = not self.scope and isinstance(node.op, ast.BitOr)
        if not is_type and not _is_sequence(node.left) and not _is_sequence(node.right):
            self.swap("arithmetic", node, node.left, node.right)
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        self.swap("and/or", node, *node.values)
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if _is_not(node):
            self.add("not", node, self.code(node).removeprefix("not").lstrip())
        self.generic_visit(node)

    def visit_Constant(self, node):
        value = node.value
        if isinstance(value, bool):
            self.add("true/false", node, str(not value))
        elif isinstance(value, int | float):
            is_large = isinstance(value, float) and value >= 1000
            self.add("constant", node, repr(value * 2 if is_large else value + 1))

    def visit_If(self, node):
        if re.search(r"\b(__name__|TYPE_CHECKING)\b", self.code(node.test)):
            self.visit_all(node.orelse)
        else:
            self.negate("condition", node.test)
            self.generic_visit(node)

    def visit_IfExp(self, node):
        self.negate("condition", node.test)
        self.generic_visit(node)

    visit_While = visit_IfExp

    def visit_Return(self, node):
        if node.value and (self.gives_bool or isinstance(node.value, ast.Compare)):
            self.negate("return", node.value)
        self.generic_visit(node)

    def visit_Expr(self, node):
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(call, ast.Call) and not self.code(call).startswith("logging."):
            self.add("statement", node, "pass")
            self.generic_visit(node)

    def visit_Assign(self, node):
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
            self.add("statement", node, "pass")
        self.generic_visit(node)

    def visit_AnnAssign(self, node):
        if node.value and isinstance(node.target, ast.Attribute):
            self.add("statement", node, "pass")
        self.visit_all([node.value])

    def visit_AugAssign(self, node):
        self.add("statement", node, "pass")
        if not _is_sequence(node.value):
            self.swap("arithmetic", node, node.target, node.value)
        self.generic_visit(node)


def _is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _is_sequence(node: ast.expr) -> bool:
    """Whether a node is clearly text or a list, with which other arithmetic always fails."""
    return isinstance(node, SEQUENCES) or (
        isinstance(node, ast.Constant) and not isinstance(node.value, int | float)
    )


def _hash(value) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:10]


def _short(text: str) -> str:
    return text if len(text) <= 70 else f"{text[:40]} ... {text[-25:]}"


def modules(patterns: str, tree: Path = ROOT) -> list[str]:
    """Returns the files of an area; each name in AREAS must have at least one."""
    files = []
    for pattern in patterns.split():
        start, _, names = pattern.rstrip("}").partition("{")
        for name in names.split(","):
            found = sorted(tree.glob(f"{start}{name}.py"))
            if not found:
                sys.exit(f"error: areas must be of modules. Received: {start}{name}.py")
            files += [path.relative_to(tree).as_posix() for path in found]
    return files


def choose(count: int, seed: int) -> list[Mutant]:
    """Chooses mutants of this checkout, the same number from each area.

    Within an area they are ordered by hash, so that changes elsewhere in the code have no effect.
    """
    areas = []
    for area, patterns in AREAS.items():
        found = [
            mutant
            for file in modules(patterns)
            for mutant in Finder((ROOT / file).read_bytes(), file, area).places
        ]
        areas.append(sorted(found, key=lambda mutant: _hash((seed, mutant.id))))
    turns = itertools.chain.from_iterable(itertools.zip_longest(*areas))
    return list(itertools.islice(filter(None, turns), count))


class Ended(NamedTuple):
    """The result of a run of pytest."""

    code: int | None  # None: a test took too long
    failed: dict[str, str]  # test -> message
    last: str | None  # the test that started last
    output: str


class Copy:
    """A copy of a checkout to plant mutants and run tests in, one pytest at a time."""

    def __init__(self, tree: Path, folder: Path, seconds: float):
        self.root, self.folder, self.seconds = folder / "copy", folder, seconds
        self.python = tree / ".venv/bin/python"
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=tree, capture_output=True, check=True).stdout
        for name in filter(None, listed.decode().split("\0")):
            if (tree / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(tree / name, self.root / name)
        if self.python.exists():
            (self.root / ".venv").symlink_to(tree / ".venv")
        else:
            self.python = Path(sys.executable)
        (folder / "support").mkdir()
        for name, text in SUPPORT.items():
            (folder / "support" / name).write_text(text)
        self.healthy: dict[str, bool] = {}  # test -> whether it passes without mutants

    def place(self, mutant: Mutant) -> Place | None:
        path = self.root / mutant.file
        source = path.read_bytes() if path.exists() else b""
        return Finder(source, mutant.file, mutant.area).places.get(mutant)

    @contextlib.contextmanager
    def planted(self, mutants: Sequence[Mutant]) -> Iterator[None]:
        """Plants mutants in the copy during the context; no two may be at the same place."""
        originals = {mutant.file: (self.root / mutant.file).read_bytes() for mutant in mutants}
        places = sorted(((self.place(mutant), mutant) for mutant in mutants), reverse=True)
        changed = dict(originals)
        for (start, end, replacement), mutant in places:  # from the end of a file to its start
            source = changed[mutant.file]
            changed[mutant.file] = source[:start] + replacement + source[end:]
            before, after = (ast.dump(ast.parse(t)) for t in (source, changed[mutant.file]))
            assert before != after, mutant
        try:
            for file, source in changed.items():
                self.write(file, source)
            yield
        finally:
            for file, source in originals.items():
                self.write(file, source)

    def write(self, file: str, source: bytes) -> None:
        path = self.root / file
        path.write_bytes(source)
        # Python would reuse compiled code if the source had the same size in the same second.
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
            compiled.unlink()

    def test(self, tests: Sequence[str], *options: str, without=(), forked: bool = True) -> Ended:
        """Runs tests.

        Args:
            tests: names of files or tests; all tests if empty.
            options: for pytest.
            without: tests to skip.
            forked: whether to run in a fork of this process or in a new interpreter.
        """
        report, output = self.folder / "report", self.folder / "output"
        report.write_text("")
        environment = {
            "MUTANTS_REPORT": str(report),
            "MUTANTS_TESTS": json.dumps([tests, without]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(self.folder / "support"),
        }
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        files = [file for file in files if file not in without and (self.root / file).exists()]
        if tests and not files:
            return Ended(0, {}, None, "")
        command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "mutants_plugin"]
        command += ["--rootdir", str(self.root), "--basetemp", str(self.folder / "tmp")]
        command += [*options, *files]
        pid = os.fork()
        if pid == 0:
            try:
                self._become(command, environment, output, forked)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(70)
        code = self._wait(pid, report)
        lines = list(map(json.loads, report.read_text().splitlines()))
        started = [line["started"] for line in lines if "started" in line]
        failed = {line["failed"]: line["message"] for line in lines if "failed" in line}
        return Ended(code, failed, (started or [None])[-1], output.read_text(errors="replace"))

    def _become(self, command: list[str], environment: dict, output: Path, forked: bool) -> None:
        """Turns this process into `python COMMAND...` in the copy, without this checkout's code."""
        _end_with_parent()
        os.setsid()
        written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        streams = [os.open(os.devnull, os.O_RDONLY), written, os.dup(written)]
        take_over(streams, {**os.environ, **environment}, self.root)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        if not forked:
            os.execv(self.python, [str(self.python), *command])
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]
        others = [path for path in sys.path if Path(path).resolve() != ROOT]
        sys.path[:] = [environment["PYTHONPATH"], *others]
        sys.dont_write_bytecode = True
        runpy.run_path(f"{environment['PYTHONPATH']}/sitecustomize.py")
        execute(command)

    def _wait(self, pid: int, report: Path) -> int | None:
        """Waits for a process; kills it and returns None if no test starts or fails for long."""
        try:
            while time.time() - report.stat().st_mtime < self.seconds:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    return os.waitstatus_to_exitcode(status)
                time.sleep(0.05)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    def is_healthy(self, test: str) -> bool:
        """Whether a test passes, or a file can be collected, without mutants."""
        if test not in self.healthy:
            options = [] if "::" in test else ["--collect-only"]
            ended = self.test([test], *options)
            self.healthy[test] = ended.code in (0, 5)
            if not self.healthy[test]:
                print(f"fails without mutants: {test}: {ended.failed.get(test)}", file=sys.stderr)
        return self.healthy[test]

    def check(self, mutant: Mutant, groups: Sequence[list[str]], *options: str) -> dict:
        """Runs groups of tests on a mutant until one fails that passes without it."""
        for group in groups:
            without = [test for test, is_healthy in self.healthy.items() if not is_healthy]
            while True:
                with self.planted([mutant]):
                    ended = self.test(group, "-x", *options, without=without)
                if ended.code in (0, 5):  # 5: no tests
                    break
                test, message = next(iter(ended.failed.items()), (ended.last or group[0], ""))
                if self.is_healthy(test):
                    if ended.code is None:
                        return {"outcome": "timeout", "test": test, "message": ""}
                    message = message or f"pytest has ended with exit code {ended.code}"
                    return {"outcome": "caught", "test": test, "message": message}
                if test in without:
                    raise RuntimeError(f"pytest fails without mutants:\n{ended.output}")
                without.append(test)
        return {"outcome": "survived"}


def _end_with_parent() -> None:
    """Makes the system kill this process when its parent ends, in whatever way."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def module_tests(root: Path, file: str) -> list[list[str]]:
    """Returns a module's test file, test files that name the module, and others in its folder."""
    *folders, stem = file.removesuffix(".py").removeprefix("keras_transformer/").split("/")
    folder, package = "/".join(["tests", *folders]), ".".join(file.split("/")[:-1])
    names = re.compile(rf"{package}\.{stem}\b|from {package} import (\([^)]*|.*)\b{stem}\b")
    own, naming, others = [], [], []
    for path in sorted((root / "tests").rglob("test_*.py")):
        name = path.relative_to(root).as_posix()
        if name == f"{folder}/test_{stem}.py":
            own.append(name)
        elif names.search(path.read_text("utf-8")):
            naming.append(name)
        elif name.startswith(f"{folder}/"):
            others.append(name)
    return [group for group in (own, naming, others) if group]


def start_worker(tree: Path, folder: Path, seconds: float) -> None:
    """Gives this process its own copy."""
    global copy
    _end_with_parent()
    copy = Copy(tree, folder / str(os.getpid()), seconds)


def check_mutant(mutant: Mutant, tests: list[str] | None) -> dict:
    """Runs tests on a mutant, in a worker; those of its module if `tests` is None."""
    begun = time.monotonic()
    if copy.place(mutant) is None:
        found = {"outcome": "absent"}
    elif tests is None:
        found = copy.check(mutant, module_tests(copy.root, mutant.file), *MARKED["module"])
    else:
        found = copy.check(mutant, [tests] if tests else [])
    return {**found, "seconds": round(time.monotonic() - begun, 1)}


def failures(suite: Copy, mutants: Sequence[Mutant], stage: str) -> list[str]:
    """Returns the tests that fail with all of these mutants but not without them."""
    parallel = ["--numprocesses=auto", "--dist=worksteal", "--max-worker-restart=1000"]
    parallel += ["-o", f"faulthandler_timeout={suite.seconds / 2}"]
    parallel += ["-o", "faulthandler_exit_on_timeout=true", "--continue-on-collection-errors"]
    with suite.planted(mutants):
        ended = suite.test([], *parallel, *MARKED.get(stage, []), forked=False)
    if ended.code not in (0, 1, 5) or not all(test.startswith("tests/") for test in ended.failed):
        # A mutant breaks pytest itself.
        half = len(mutants) // 2
        if half == 0:
            files = (suite.root / "tests").rglob("test_*.py")
            return sorted(file.relative_to(suite.root).as_posix() for file in files)
        parts = (failures(suite, part, stage) for part in (mutants[:half], mutants[half:]))
        return list(dict.fromkeys(itertools.chain.from_iterable(parts)))
    failed = list(ended.failed)
    if failed:
        healthy = suite.test(failed, *parallel, forked=False)
        failed = [test for test in failed if test not in healthy.failed]
    # A failing test of behaviour is more informative than a changed number on a page.
    about_texts = ("tests/docs/", "tests/test_documents.py", "tests/test_structure.py")
    return sorted(failed, key=lambda test: test.startswith(about_texts))


def rounds_of(mutants: Sequence[Mutant]) -> list[list[Mutant]]:
    """Groups mutants that can be planted together: never two in one function."""
    numbers, rounds = Counter(), {}
    for mutant in mutants:
        place = mutant.file, mutant.function
        rounds.setdefault(numbers[place], []).append(mutant)
        numbers[place] += 1
    return list(rounds.values())


def run(options: argparse.Namespace) -> None:
    """Runs a stage, and appends its findings to the results file."""
    tree, stage = options.tree.resolve(), options.stage
    records = [record for record in read(options.results) if record["name"] == options.name]
    rounds = {
        tuple(r["round"]): r["failed"] for r in records if r["stage"] == stage and "round" in r
    }
    records = [record for record in records if "id" in record]
    done = {record["id"] for record in records if record["stage"] == stage}
    gone = {r["id"] for r in records if r["stage"] != stage and r["outcome"] != "survived"}
    chosen = [m for m in choose(options.count, options.seed) if m.id not in gone]

    def append(**record) -> None:
        line = json.dumps({"stage": stage, "name": options.name, **record}, ensure_ascii=False)
        with options.results.open("a", encoding="utf-8") as file:
            print(line, file=file)

    def check(mutants: Sequence[Mutant], tests: list[str] | None) -> None:
        tasks = {pool.submit(check_mutant, m, tests): m for m in mutants if m.id not in done}
        for number, task in enumerate(as_completed(tasks), start=1):
            mutant, found = tasks[task], task.result()
            append(id=mutant.id, **mutant._asdict(), **found)
            progress = f"{number}/{len(tasks)} {found['outcome']} {found['seconds']:.0f} s"
            print(f"{progress}: {mutant.id} {mutant}: {found.get('test', '')}", file=sys.stderr)

    # As in tests/conftest.py. Some of these take effect when libraries are imported.
    os.environ.update({"KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": "-1"})
    os.environ.update({"TF_CPP_MIN_LOG_LEVEL": "3", "TF_NUM_INTRAOP_THREADS": "1"})
    for name in ("numpy", "tensorflow", "keras", "tensorflow_text", "pytest"):
        importlib.import_module(name)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="mutants"))
        stack.callback(shutil.rmtree, folder)  # not TemporaryDirectory: forks would delete it
        worker = (start_worker, (tree, folder, options.limit))
        pool = ProcessPoolExecutor(options.jobs, get_context("fork"), *worker)
        stack.callback(pool.shutdown, cancel_futures=True)
        if stage == "module":
            check(chosen, None)
            return
        suite = Copy(tree, folder / "suite", 2 * options.limit)
        check([mutant for mutant in chosen if not suite.place(mutant)], [])
        for mutants in rounds_of([mutant for mutant in chosen if suite.place(mutant)]):
            ids = tuple(mutant.id for mutant in mutants)
            if ids not in rounds:
                rounds[ids] = failures(suite, mutants, stage)
                append(round=ids, failed=rounds[ids])
            check(mutants, rounds[ids])


def read(path: Path) -> list[dict]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def table(options: argparse.Namespace) -> None:
    """Prints a table of areas, and lists the mutants that no test caught."""
    lines = options.equivalent.read_text("utf-8").splitlines() if options.equivalent else []
    reasons = dict(line.split(maxsplit=1) for line in lines if line)
    records = [record for record in read(options.results) if "id" in record]
    mutants = {r["id"]: Mutant(*(r[field] for field in Mutant._fields)) for r in records}
    columns = {"mutants": set(mutants), "equivalent": mutants.keys() & reasons.keys()}
    caught = set()
    for record in records:
        is_now = record["name"] == NOW
        prefix = "" if is_now else f"{record['name']}: "
        column = columns.setdefault(f"{prefix}{record['stage']}", set())
        if record["outcome"] in ("caught", "timeout"):
            column.add(record["id"])
            caught |= {record["id"]} if is_now else set()
        elif record["outcome"] == "absent":
            columns.setdefault(f"{prefix}absent", set()).add(record["id"])
    survivors = {r["id"] for r in records if r["name"] == NOW and r["outcome"] == "survived"}
    columns["survived"] = survivors - caught - reasons.keys()
    print(f"| area | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}")
    areas = {area: {i for i, mutant in mutants.items() if mutant.area == area} for area in AREAS}
    for area, ids in {**areas, "all": set(mutants)}.items():
        print(f"| {area} | {' | '.join(str(len(ids & column)) for column in columns.values())} |")
    for title in ("survived", "equivalent"):
        print(f"\n{title}:\n")
        for i in sorted(columns[title], key=mutants.get):
            print(f"- {i} {mutants[i]}{f' – {reasons[i]}' if i in reasons else ''}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="print the chosen mutants")
    running = commands.add_parser("run", help="run tests on the chosen mutants")
    showing = commands.add_parser("table", help="print which were caught, in Markdown")
    for command in (listing, running):
        command.add_argument("--count", type=int, default=100)
        command.add_argument("--seed", type=int, default=1)
    for command in (running, showing):
        command.add_argument("--results", type=Path, required=True, help="file of JSON lines")
    running.add_argument("--stage", choices=["module", "fast", "slow", "suite"], required=True)
    running.add_argument("--tree", type=Path, default=ROOT, help="checkout (default: this one)")
    running.add_argument("--jobs", type=int, default=2, help="number of parallel mutants")
    running.add_argument("--name", default=NOW, help="name for the tests, such as before")
    running.add_argument("--limit", type=float, default=300, help="time limit per test, in seconds")
    showing.add_argument("--equivalent", type=Path, help="file of lines with an id and a reason")
    options = parser.parse_args()
    if options.command == "list":
        for mutant in choose(options.count, options.seed):
            print(mutant.id, f"[{mutant.area}]", mutant)
    else:
        {"run": run, "table": table}[options.command](options)


if __name__ == "__main__":
    main()
