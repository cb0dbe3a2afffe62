"""Python processes that start with TensorFlow imported: 0.2 seconds of CPU time instead of 4.

Each is forked from a process that has imported TensorFlow and Keras but used neither, so it is in
the state of a new interpreter after these imports. `multiprocessing` keeps that process. A test
about imports, or about options that TensorFlow reads when imported, starts its own process.
"""

import atexit
import contextlib
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 600  # seconds, for a process on a machine under load

# Only on Linux are libraries sure to survive a fork.
_CONTEXT = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
_CONTEXT.set_forkserver_preload(["tensorflow", "keras", "tensorflow_text"])


class PythonProcess:
    """Runs `python COMMAND...`, with the methods of subprocess.Popen that tests use.

    Args:
        command: a program's path, or "-c" and its text; then its arguments.
        folder: for the files of stdin, stdout and, without `errors`, stderr.
        errors: the file to append stderr to.
        environment: variables that replace this process's, by default with an empty user cache.
    """

    def __init__(self, command, folder, errors=None, stdin=b"", environment=None, cwd="."):
        number = sum(1 for _ in folder.glob("stdin*"))
        files = [folder / f"{name}{number}" for name in ("stdin", "stdout", "stderr")]
        files[0].write_bytes(stdin)
        files[1].touch()
        files[2] = Path(errors or files[2])
        _, self.stdout, self.stderr = files
        if environment is None:
            environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
        arguments = (list(map(str, command)), files, dict(environment), os.path.abspath(cwd))
        self._process = _CONTEXT.Process(target=_run, args=arguments, daemon=True)
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    poll = returncode.fget

    def wait(self, timeout=PATIENCE):
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("python", timeout)
        return self.returncode

    def communicate(self, timeout=PATIENCE):
        """Waits for the end; returns the text of stdout and of stderr."""
        self.wait(timeout)
        return self.stdout.read_text("utf-8"), self.stderr.read_text("utf-8")

    def send_signal(self, number):
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def run_python(*command, folder, **options):
    """Runs `python COMMAND...`; returns its exit code, stdout and stderr."""
    process = PythonProcess(command, folder, **options)
    try:
        return process.wait(), *process.communicate()
    finally:
        process.kill()


def _run(command, files, environment, cwd):
    """Runs in the new process."""
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    modes = (os.O_RDONLY, append, append)
    streams = [os.open(path, mode) for path, mode in zip(files, modes, strict=True)]
    sys.path[:] = [path for path in sys.path if path != str(ROOT)]  # which pytest added
    take_over(streams, environment, cwd)
    execute(command)


def take_over(streams, environment, cwd):
    """Gives this forked process what a new one starts with.

    Args:
        streams: file descriptors for stdin, stdout and stderr.
        environment: all variables.
        cwd: the working directory.
    """
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # New objects, because the parent's may be for files of another kind.
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    line_by_line = {"buffering": 1, "errors": "backslashreplace"}
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False, **line_by_line)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)


def execute(command):
    """Runs `python COMMAND...` in this process, and ends it as the interpreter would."""
    code = 1
    try:
        _run_program(*command)
        code = 0
    except SystemExit as ending:
        if isinstance(ending.code, str):
            print(ending.code, file=sys.stderr)
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        threading._shutdown()  # waits for threads
        atexit._run_exitfuncs()  # in which TensorFlow deletes files
        for stream in filter(None, (sys.stdout, sys.stderr)):  # a program may have closed one
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _run_program(program, *arguments):
    """Runs a program as the interpreter would."""
    if program == "-c":
        text, *arguments = arguments
        sys.argv = ["-c", *arguments]
        sys.path.insert(0, "")
        main = sys.modules["__main__"] = type(sys)("__main__")
        exec(compile(text, "<string>", "exec"), main.__dict__)
    elif program == "-m":
        module, *arguments = arguments
        sys.argv = [module, *arguments]
        sys.path.insert(0, "")
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [program, *arguments]
        sys.path.insert(0, os.path.dirname(program))
        runpy.run_path(program, run_name="__main__")
