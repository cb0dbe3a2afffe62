# make quickstart   a Transformer trained, scored, exported and used, in about ten minutes
# make test         the test suite
# make lint         ruff: rules and format
# make benchmark    training steps beside PyTorch's (installs it first)
# Each makes .venv and installs what it needs. PYTHON chooses the interpreter (3.11 to 3.13).

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python

.PHONY: quickstart test lint benchmark install clean

quickstart: install
	$(RUN) bin/quickstart.py

test: install
	$(RUN) -m pytest

lint: install
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

benchmark: $(VENV)/.bench
	$(RUN) benchmarks/training.py

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else "error: Python must be 3.11 to 3.13. Received: " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable ".[test]"
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable ".[test,bench]"
	touch $@

clean:
	rm -rf $(VENV) runs
