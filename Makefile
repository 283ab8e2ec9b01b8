# Every target makes its own environment: a bare checkout and a Python 3.11-3.13 are enough.
#   make demo | test | test-all | check | bench | clean      (OPENCL=intel adds Intel's OpenCL driver for the CPU)
PYTHON ?= python3
OPENCL ?=
# Anything: an environment of its own, with the newest releases instead of the tested ones.
NEWEST ?=
# Processes that run tests: one for each core.
JOBS ?= auto

CONSTRAINTS := constraints.txt
VENV := $(if $(NEWEST),.venv-newest,.venv)
VERSIONS := $(if $(NEWEST),--upgrade --upgrade-strategy eager,--constraint $(CONSTRAINTS))
RUN := $(VENV)/bin/python -m
PIP := $(RUN) pip --disable-pip-version-check --quiet
PROJECTS := pyproject.toml plugins/cpu/pyproject.toml plugins/opencl/pyproject.toml plugins/cuda/pyproject.toml $(CONSTRAINTS)
BASE := $(VENV)/base.stamp
INTEL := $(VENV)/intel.stamp
NVRTC := $(VENV)/nvrtc.stamp
FURTHER := $(VENV)/further.stamp
# Two makes at once must not install into one environment at once.
LOCK := $(if $(shell command -v flock),flock .venv.lock)
# The tests start some hundred processes: none of them should compile every module anew.
unexport PYTHONDONTWRITEBYTECODE
KIT_DEVICES := $(VENV)/bin/python tests/house/kit_devices.py

ifeq ($(OPENCL),)
READY := $(BASE)
else ifeq ($(OPENCL),intel)
READY := $(BASE) $(INTEL)
KIT_DEVICES += --need-opencl
else
$(error OPENCL=$(OPENCL) is not known: leave it out, or say OPENCL=intel)
endif

.PHONY: help demo test test-all lint check bench clean
help:
	@sed -n 2p Makefile

$(BASE): $(PROJECTS) $(if $(NEWEST),newest)
	@$(LOCK) $(MAKE) --no-print-directory install-base

$(INTEL): $(BASE)
	@$(LOCK) $(MAKE) --no-print-directory install-intel

# What another make installed while this one waited for the lock is not installed again; newer releases are looked for.
.PHONY: newest install-base install-intel
newest:
install-base:
	@if [ -n "$(NEWEST)" ] || [ ! -e $(BASE) ] || [ -n "$$(find $(PROJECTS) -newer $(BASE))" ]; then \
	    echo "installing into $(VENV) ..." && \
	    { $(RUN) pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV); } && \
	    $(PIP) install $(VERSIONS) -e ".[test,check,demo]" -e plugins/cpu -e plugins/opencl -e plugins/cuda && \
	    touch $(BASE); fi

install-intel:
	@if [ ! -e $(INTEL) ] || [ -n "$$(find $(BASE) -newer $(INTEL))" ]; then \
	    echo "installing Intel's OpenCL driver into $(VENV) ..." && \
	    $(PIP) install $(VERSIONS) -e . -e "plugins/opencl[intel]" && \
	    touch $(INTEL); fi

# The compiler of CUDA C, which needs no GPU.
$(NVRTC): $(BASE)
	@echo "installing NVRTC into $(VENV) ..."
	@$(LOCK) $(PIP) install $(VERSIONS) -e . -e "plugins/cuda[nvrtc]" && touch $@

# What nnc is compared with and used by, in the tests that only test-all runs.
$(FURTHER): $(BASE)
	@echo "installing what test-all compares with into $(VENV) ..."
	@$(LOCK) $(PIP) install $(VERSIONS) -e ".[test-all]" && touch $@

demo: $(READY)
	@$(VENV)/bin/nnc demo

# The conformance kit, once for each device that kit_devices.py names ($(1): quick or all), with options ($(2)).
define run_kit
@devices="$$($(KIT_DEVICES) $(1))" || exit 1; for device in $$devices; do \
    echo "conformance kit on $$device"; \
    $(RUN) pytest -q -n $(JOBS) --dist worksteal $(2) --pyargs nnc_plugins.conformance --nnc-device=$$device || exit 1; done
endef

# Machine code that tests have made is kept between runs, and apart from the user's.
test test-all: export NNC_CACHE_FOLDER = $(CURDIR)/.pytest_cache/nnc

# The tests in parts, with options ($(1)): a process that runs tests keeps all of its part in memory, and what they import.
DEVICES := tests/codegen tests/cpu tests/cuda tests/opencl
TENSORS := tests/tensors
define run_tests
@$(RUN) pytest -q -n $(JOBS) --dist worksteal $(1) $(DEVICES)
@$(RUN) pytest -q -n $(JOBS) --dist worksteal $(1) $(TENSORS)
@$(RUN) pytest -q -n $(JOBS) --dist worksteal $(1) $(addprefix --ignore=,$(DEVICES) $(TENSORS))
endef

test: $(READY)
	$(call run_tests)
	$(call run_kit,quick,--nnc-one-dtype-in=12)

test-all: export HYPOTHESIS_PROFILE = all
test-all: $(READY) $(NVRTC) $(FURTHER)
	$(call run_tests,-m "")
	$(call run_kit,all,-m "")

lint: $(READY)
	@$(RUN) ruff check .
	@$(RUN) mypy

check: lint
	@$(MAKE) --no-print-directory test

bench: $(READY)
	@$(RUN) benchmarks

# Leaves the environments, which take minutes to make again.
clean:
	rm -rf build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info plugins/*/*.egg-info plugins/*/build
	find . -path './.venv*' -prune -o -name __pycache__ -type d -exec rm -rf {} +
