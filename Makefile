# make quickstart   trains, scores, exports and uses a Transformer, in about four minutes
# make test         what guards correctness, in about six minutes
# make test-slow    the rest of the suite: killed trainings, several workers, browsers, notebooks,
#                   other engines, whole counts of random cases
# make test-beam    the tests of Apache Beam, which has packages of its own
# make test-marian  imported models beside Hugging Face's, with PyTorch (6 GB)
# make test-packages  installs what slow tests need of Debian's packages, as root
# make test-hard    make test three times, each in random order with other random numbers
#                   (TEST_SEED): beside a load, with the matrix products of AVX2; on one core, with
#                   those of the first AVX-512 processors; with TensorFlow's own. Each of the three
#                   is a target of its own.
# make commands     every command and sample of the documents, in small; a page's alone with
#                   PAGES=guides/paper
# make lint         ruff: rules and format
# make docs         the documentation site, with tutorials and the reference: runs/site/index.html
# make reference    writes docs/reference again, which describes the code: fields, signatures, HTTP
# make notebooks    runs the tutorials whose code has changed, in full, and keeps what they show in
#                   docs/notebooks/*.ipynb
# make benchmark    training steps beside PyTorch's (which it installs), and beside OpenNMT-tf's
#                   if OPENNMT_PYTHON names a Python that has it
# make slurm        the guide's job under Slurm, on two nodes that it starts on this machine, requeued
#                   on the way; it must end like a run alone. Root and Debian's slurm-wlm and munge
# make soak         a training run killed 30 times (SOAK_KILLS), which must end like one left alone
# Each target makes .venv and installs what it needs. PYTHON is the interpreter (3.11 to 3.13).

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python

OPENNMT_PYTHON ?=
SOAK_KILLS ?= 30
SOAK_STEPS ?= 600
# The folder of corpora: without it, the tests of real documents are skipped.
CORPORA ?=
export CORPORA
# Multi30k if its files are there, the embedded grammar otherwise.
MULTI30K := $(CORPORA)/multi30k/raw
ifneq ($(wildcard $(MULTI30K)/train.en.gz),)
SOAK_DATA := runs/soak-data/multi30k
SOAK_SOURCE := --dataset=files --vocab_size=8000 \
	--train_source=$(MULTI30K)/train.en.gz --train_target=$(MULTI30K)/train.de.gz \
	--validation_source=$(MULTI30K)/val.en.gz --validation_target=$(MULTI30K)/val.de.gz
else
SOAK_DATA := runs/soak-data/grammar
SOAK_SOURCE := --dataset=grammar --vocab_size=2000
endif

# The tests of a file stay on one worker, with what they share; the longest files begin. There is one
# worker more than cores, as tests also wait for processes of their own.
WORKERS := $(shell echo $$(($$(nproc) + 1)))
TEST := $(RUN) -m pytest --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder --durations=10
# In random order and with other random numbers; TEST_SEED determines both.
TEST_SEED := $(or $(TEST_SEED),$(shell date +%s))
SHUFFLED := $(TEST) -m "not slow" -p randomly --randomly-seed=$(TEST_SEED)
HARD := test-beside-load test-one-core test-without-onednn

.PHONY: quickstart test test-slow test-beam test-marian test-packages commands test-hard $(HARD) lint benchmark docs reference notebooks slurm soak install clean

quickstart: install
	$(RUN) bin/quickstart.py

test: install
	$(TEST) -m "not slow"

test-slow: $(VENV)/.slow $(if $(shell command -v npm),$(VENV)/.web)
	$(TEST) -m slow

test-beam: $(VENV)/.beam
	PYTHONPATH=$(VENV)/beam $(RUN) -m pytest tests/pipelines/test_beam.py

test-marian: install
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable ".[marian,marian-test]"
	$(RUN) -m pytest tests/importing/test_hugging_face.py

test-packages:
	apt-get update --quiet
	apt-get install --yes --no-install-recommends chromium nginx-light nodejs npm openssl

commands: install
	$(RUN) -m tests.pages.run_commands $(PAGES)

test-hard: $(HARD)

$(HARD): export TEST_SEED := $(TEST_SEED)

# TensorFlow 2.21 crashes if products of bfloat16 or float16 are restricted to AVX2 on a processor
# that has instructions for them. A processor without these uses TensorFlow's own products, which
# test-without-onednn tests.
test-beside-load: install
	for n in 1 2 3 4; do yes > /dev/null & busy="$$busy $$!"; done; trap "kill $$busy" EXIT; \
		ONEDNN_MAX_CPU_ISA=AVX2 $(SHUFFLED) -k "not float16"

test-one-core: install
	ONEDNN_MAX_CPU_ISA=AVX512_CORE taskset --cpu-list 0 $(SHUFFLED) --numprocesses=1

test-without-onednn: install
	TF_ENABLE_ONEDNN_OPTS=0 $(SHUFFLED)

lint: install
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

benchmark: $(VENV)/.bench
	$(RUN) benchmarks/training.py $(addprefix --opennmt_python=,$(OPENNMT_PYTHON))

# What MkDocs cannot see to be wrong in the sources, make test does (tests/test_documents.py).
docs: $(VENV)/.docs
	$(RUN) docs/site/pages.py
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict --quiet
	$(RUN) docs/site/check.py runs/site

reference: install
	$(RUN) docs/site/reference.py

notebooks: install $(VENV)/.docs
	$(RUN) docs/site/notebooks.py

slurm: install
	$(RUN) benchmarks/slurm.py --work_dir=runs/slurm --train_steps=600 -- --preset=tiny \
		--config num_layers=1 --config d_model=32 --config d_ff=32 --tokens_per_batch=500 \
		--checkpoint_steps=100 --log_steps=10 --sample_sentences=0

soak: install
	$(RUN) bin/prepare_data.py $(SOAK_SOURCE) --data_dir=$(SOAK_DATA)
	$(RUN) benchmarks/soak.py --data_dir=$(SOAK_DATA) --work_dir=runs/soak --kills=$(SOAK_KILLS) \
		-- --preset=tiny --tokens_per_batch=3000 --train_steps=$(SOAK_STEPS) \
		--checkpoint_steps=10 --log_steps=10 --sample_sentences=0 --keep_checkpoints=3

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
	touch $@ $(VENV)/.docs

# ONNX Runtime for the browser, which exported pages run; the version of export/web/page.py.
$(VENV)/.web: Makefile | $(VENV)/.made
	npm install --silent --no-save --ignore-scripts --prefix $(VENV)/web onnxruntime-web@1.30.0
	touch $@

# Beam asks for older versions of some packages, so it is put beside the others.
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
