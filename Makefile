# make quickstart   trains, scores, exports and uses a Transformer, in about four minutes
# make test-plain   tests that need no TensorFlow, in less than a minute: to run at each save
# make test         these and the other fast tests, which guard correctness, in about six minutes;
#                   in 15 on a processor with only AVX2 that has other work, too
# make test-slow    the other tests: killed trainings, several workers, browsers, notebooks, other
#                   engines, exhaustive random cases
# make test-beam    tests of Apache Beam, which needs a separate set of packages
# make test-marian  compares imported models with Hugging Face's, with PyTorch (6 GB)
# make test-packages  installs the Debian packages that slow tests lack, as root
# make test-hard    make test three times, in random order with other random numbers (TEST_SEED):
#                   under load with AVX2 matrix products; on one core with the products of the
#                   first AVX-512 processors; with TensorFlow's own. Each is also a target
# make commands     runs every command and sample in the documents, at small size; with
#                   PAGES=guides/paper, those on one page
# make lint         ruff: rules and format
# make docs         builds the site, with tutorials, flags and docstrings: runs/site/index.html
# make notebooks    writes the tutorials to docs/notebooks/*.ipynb, and runs changed ones in full,
#                   for make docs: runs/notebooks
# make race         prepares, trains and scores on Multi30k with three seeds, against the clock; with
#                   CORPORA=FOLDER, its text is in FOLDER/multi30k/raw
# make benchmark    compares training steps with PyTorch's (which it installs), and OpenNMT-tf's if
#                   OPENNMT_PYTHON is a Python that has it
# Each target makes .venv and installs what it needs. PYTHON is the interpreter (3.11 to 3.13).

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python

OPENNMT_PYTHON ?=
# The folder of corpora; without it, tests of real documents are skipped.
CORPORA ?=
export CORPORA

# A file's tests stay on one worker and share their fixtures; the longest files run first. There is
# one more worker than cores, as tests also wait for processes that they start.
WORKERS := $(shell echo $$(($$(nproc) + 1)))
TEST := $(RUN) -m pytest --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder --durations=10
# TEST_SEED determines the order and the random numbers.
TEST_SEED := $(or $(TEST_SEED),$(shell date +%s))
SHUFFLED := $(TEST) -m "not slow" -p randomly --randomly-seed=$(TEST_SEED)
HARD := test-beside-load test-one-core test-without-onednn

.PHONY: quickstart test test-plain test-tensorflow test-slow test-all test-beam test-marian test-packages commands test-hard $(HARD) lint race benchmark docs notebooks install clean

quickstart: install
	$(RUN) bin/quickstart.py

test: test-plain test-tensorflow

test-plain: install
	$(TEST) -m plain

test-tensorflow: install
	$(TEST) -m "not slow and not plain"

# What the slow tests need is installed; those that need more are skipped.
SLOW := $(VENV)/.slow $(if $(shell command -v npm),$(VENV)/.web)

test-slow: $(SLOW)
	$(TEST) -m slow

test-all: $(SLOW) test-plain
	$(TEST) -m "not plain"

test-beam: $(VENV)/.beam
	PYTHONPATH=$(VENV)/beam $(RUN) -m pytest tests/pipelines/test_beam.py

test-marian: install
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable ".[marian,marian-test]"
	$(RUN) -m pytest tests/kit/exchange/test_hugging_face.py

# PROGRAM:PACKAGE. A machine may have Node.js from elsewhere, which Debian's npm conflicts with.
TEST_PROGRAMS := chromium:chromium nginx:nginx-light node:nodejs npm:npm openssl:openssl

test-packages:
	missing=$$(for pair in $(TEST_PROGRAMS); do \
		PATH="$$PATH:/usr/sbin" command -v $${pair%:*} > /dev/null || echo $${pair#*:}; \
	done); \
	[ -z "$$missing" ] || { \
		apt-get update --quiet && \
		apt-get install --yes --no-install-recommends $$missing; \
	}

commands: install
	$(RUN) -m tests.pages.run_commands $(PAGES)

test-hard: $(HARD)

$(HARD): export TEST_SEED := $(TEST_SEED)

# TensorFlow 2.21 crashes if a processor with instructions for bfloat16 or float16 products is
# restricted to older ones. Processors without these use TensorFlow's own products, which
# test-without-onednn covers.
test-beside-load: install
	for n in 1 2 3 4; do yes > /dev/null & busy="$$busy $$!"; done; trap "kill $$busy" EXIT; \
		ONEDNN_MAX_CPU_ISA=AVX2 $(SHUFFLED) -k "not float16"

test-one-core: install
	ONEDNN_MAX_CPU_ISA=AVX512_CORE taskset --cpu-list 0 $(SHUFFLED) --numprocesses=1 \
		-k "not float16"

test-without-onednn: install
	TF_ENABLE_ONEDNN_OPTS=0 $(SHUFFLED)

lint: install
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

race: install
	rm -rf runs/race
	$(RUN) benchmarks/race.py --folder=$(or $(CORPORA),.)/multi30k/raw

benchmark: $(VENV)/.bench
	$(RUN) benchmarks/training.py $(addprefix --opennmt_python=,$(OPENNMT_PYTHON))

# tests/test_documents.py finds the errors in the sources that MkDocs cannot detect. With --quiet,
# --strict would find none. The last line lists pages that load something from elsewhere.
docs: $(VENV)/.docs
	$(RUN) docs/site/pages.py
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict
	! grep -rlE '<(embed|iframe|img|link|script|source|video)[^>]* (href|src)="?(https?:)?//' \
		--include='*.html' runs/site

notebooks: install $(VENV)/.docs
	$(RUN) docs/site/notebooks.py

install: $(VENV)/.installed

$(VENV)/.made:
	$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else "error: Python must be 3.11 to 3.13. Received: " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: pyproject.toml setup.py constraints.txt | $(VENV)/.made
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable ".[test]"
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable ".[test,bench]"
	touch $@

$(VENV)/.slow: pyproject.toml setup.py constraints.txt | $(VENV)/.made
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable ".[test,docs,jax]"
	touch $@ $(VENV)/.installed $(VENV)/.docs

# ONNX Runtime Web for exported pages, in the version given in kit/exchange/web/page.py.
$(VENV)/.web: Makefile | $(VENV)/.made
	npm install --silent --no-save --ignore-scripts --prefix $(VENV)/web onnxruntime-web@1.30.0
	touch $@

# Beam needs older versions of some packages, so it is installed in a separate folder.
$(VENV)/.beam: pyproject.toml constraints.txt | $(VENV)/.installed
	grep -vE "^(pillow|protobuf|pyarrow|python-dateutil|sentencepiece)==" constraints.txt \
		> $(VENV)/beam.txt
	$(VENV)/bin/pip install --quiet --constraint $(VENV)/beam.txt --target $(VENV)/beam \
		--upgrade apache-beam "sentencepiece<0.2.3"
	touch $@

$(VENV)/.docs: pyproject.toml setup.py constraints.txt | $(VENV)/.made
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) runs
