# `make demo` and `make test` set everything up by themselves, in .venv; Python 3.11 or newer is found or named: PYTHON=…
PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3.14 python3,$(if $(shell $(name) -c 'import sys, venv; print(sys.version_info >= (3, 11) or "")' 2>/dev/null | grep True),$(name))))
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-torch lint format docs bench clean

help: ## Show what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

setup: $(STAMP) ## Make .venv with qnnci and everything that develops it

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer was found: install one, or name it with PYTHON=…" >&2; exit 3; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $(STAMP)

demo: $(STAMP) ## Fetch real models, compile them for several chips, verify them, print the results
	$(BIN)/qnnci build --config examples/silero-vad/qnn.yaml
	$(BIN)/qnnci inspect examples/silero-vad/build/vad/SM8750/vad_fp16_SM8750_v79.bin
	$(BIN)/qnnci build --config examples/pp-ocr/qnn.yaml --graph classifier --graph recogniser

test: $(STAMP) lint ## Lint, types and all tests
	$(BIN)/python -m pytest -n auto --dist worksteal

test-torch: $(STAMP) ## Export a PyTorch model, compile it, and hold both against PyTorch; installs torch for it
	$(BIN)/python -m tests.torch_export

lint: $(STAMP) ## ruff and mypy; the YAML and shell linters run as tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP) ## Let ruff format and mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMP) ## Write the parts of the docs and the schema that come out of the code
	$(BIN)/python -m tests.generated --write

bench: $(STAMP) ## Measure what is promised, on real graphs; takes minutes; one subject: SUBJECT=bundle
	$(BIN)/python -m tests.bench $(SUBJECT)

clean: ## Remove what was made
	rm -rf $(VENV) build dist examples/*/build .pytest_cache .mypy_cache .ruff_cache
