# make quickstart   a Transformer trained, scored, exported and used, in about ten minutes
# make test         the test suite, in a process a core
# make test-hard    the suite three times, each in random order with other random numbers
#                   (TEST_SEED): beside a load with AVX2's matrix products, on one core with those
#                   of AVX-512's first processors, and with TensorFlow's own; each is a target
# make lint         ruff: rules and format
# make benchmark    training steps beside PyTorch's (installs it first), and beside OpenNMT-tf's
#                   where OPENNMT_PYTHON names a Python that has it
# make api          the reference of the library, docs/api/index.html, from its docstrings (pdoc)
# make soak         a training run killed 30 times (SOAK_KILLS), which must end like one left alone
# Each makes .venv and installs what it needs. PYTHON chooses the interpreter (3.11 to 3.13).

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python

OPENNMT_PYTHON ?=
SOAK_KILLS ?= 30
SOAK_STEPS ?= 600
# Multi30k where it is at hand, else the embedded grammar.
MULTI30K ?= ../shared/data/multi30k/raw
ifneq ($(wildcard $(MULTI30K)/train.en.gz),)
SOAK_DATA := runs/soak-data/multi30k
SOAK_SOURCE := --dataset=files --vocab_size=8000 \
	--train_source=$(MULTI30K)/train.en.gz --train_target=$(MULTI30K)/train.de.gz \
	--validation_source=$(MULTI30K)/val.en.gz --validation_target=$(MULTI30K)/val.de.gz
else
SOAK_DATA := runs/soak-data/grammar
SOAK_SOURCE := --dataset=grammar --vocab_size=2000
endif

# Idle processes take over tests from busy ones; the tests of a file mostly stay together.
TEST := $(RUN) -m pytest --numprocesses=auto --dist=worksteal --durations=20
# In random order, with other random numbers; both are TEST_SEED's.
TEST_SEED := $(or $(TEST_SEED),$(shell date +%s))
SHUFFLED := $(TEST) -p randomly --randomly-seed=$(TEST_SEED)
HARD := test-beside-load test-one-core test-without-onednn

# pdoc documents what a package's __all__ names; the modules beside it are named here.
MODULES := $(filter-out %/__init__.py,$(wildcard keras_transformer/*.py)) \
	$(patsubst %/__init__.py,%,$(wildcard keras_transformer/*/__init__.py))

.PHONY: quickstart test test-hard $(HARD) lint benchmark api soak install clean

quickstart: install
	$(RUN) bin/quickstart.py

test: install
	$(TEST)

test-hard: $(HARD)

$(HARD): export TEST_SEED := $(TEST_SEED)

# With bfloat16 products held to AVX2 on a processor that has its own for them, TensorFlow 2.21
# crashes. A processor without has TensorFlow's products for them, as in test-without-onednn.
test-beside-load: install
	for n in 1 2 3 4; do yes > /dev/null & busy="$$busy $$!"; done; trap "kill $$busy" EXIT; \
		ONEDNN_MAX_CPU_ISA=AVX2 $(SHUFFLED) -k "not (bfloat16 or every_line_runs)"

test-one-core: install
	ONEDNN_MAX_CPU_ISA=AVX512_CORE taskset --cpu-list 0 $(SHUFFLED)

test-without-onednn: install
	TF_ENABLE_ONEDNN_OPTS=0 $(SHUFFLED)

lint: install
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

benchmark: $(VENV)/.bench
	$(RUN) benchmarks/training.py $(addprefix --opennmt_python=,$(OPENNMT_PYTHON))

api: $(VENV)/.docs
	rm -rf docs/api
	PDOC_ALLOW_EXEC=1 $(RUN) -m pdoc --docformat google --output-directory docs/api \
		keras_transformer $(subst /,.,$(basename $(MODULES))) pipelines

soak: install
	$(RUN) bin/prepare_data.py $(SOAK_SOURCE) --data_dir=$(SOAK_DATA)
	$(RUN) benchmarks/soak.py --data_dir=$(SOAK_DATA) --work_dir=runs/soak --kills=$(SOAK_KILLS) \
		-- --preset=tiny --tokens_per_batch=3000 --train_steps=$(SOAK_STEPS) \
		--checkpoint_steps=10 --log_steps=10 --sample_sentences=0 --keep_checkpoints=3

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else "error: Python must be 3.11 to 3.13. Received: " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable ".[test]"
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable ".[test,bench]"
	touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable ".[test,docs]"
	touch $@

clean:
	rm -rf $(VENV) runs
