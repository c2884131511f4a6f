# The two commands:  make book  builds the HTML book;  make test  proves what it says.
# Every target installs what it needs into .venv first; once that is done, none needs the network.

PYTHON      ?=                  # the interpreter for .venv; empty: the first of python3, python3.13 … 3.11 that is 3.11 – 3.13
VENV        ?= .venv
TORCH_INDEX ?=                  # another index for torch, e.g. https://download.pytorch.org/whl/cpu for a CPU build on Linux
NB          ?=                  # for execute and notebooks: notebooks by name; empty: all
AGAIN       ?=                  # for execute: claims whose evidence shows something else, and whose sentence still says what is shown
NAME        ?=                  # for new-chapter: its name, such as my-chapter
PART        ?=                  # for new-chapter: the folder of its part, such as position
JOBS        ?= 2
PORT        ?= 8000
SHOTS       ?=                  # for test-web: a folder for screenshots
LABELS      ?=                  # for test-web: 1 to write anew what the figures that move say
WEAKEN      ?=                  # for execute and manifest: 1 if what holds a chapter is meant to be weaker than before
NODE        ?=                  # for book: none, if browsers are to set the formulas, as where there is no Node
T           ?=                  # for test-web: checks by their names, a regular expression; empty: all
PAGES       ?=                  # for test-web: of what is looked at page by page, these, as book/notation.html; empty: all
FAULTS      ?=                  # for sabotage: files with faults, as lib/smalltorch/norm.py, or engine; empty: all
DEEP        ?=                  # for deep: files of tests; empty: all
BASE        ?=                  # for reach: a commit; what can differ since then
OF          ?=                  # for reach: notebooks, pages, faults, deep, bare or plain
UV          ?= uv               # for lock: what runs uv, such as: python3 -m uv

ifeq ($(wildcard book/_tools/install.sh),)
$(error run make in the folder of the book, or name it: make -C FOLDER)
endif
ifneq ($(words $(VENV)),1)
$(error VENV: expected a path without spaces, got '$(VENV)')
endif

PY     := $(strip $(VENV))/bin/python
READY  := $(strip $(VENV))/ready
HTML   := _build/html
NBDIME := $(abspath $(strip $(VENV))/nbdime/bin)

export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export PYTHONHASHSEED  ?= 0
export PYTHONPATH      := book:book/_ext:book/paper:book/_tools
export PYTHONDONTWRITEBYTECODE := 1

NBVAL = $(PY) -m pytest -q -p nbreport --nbval --nbval-current-env --nbval-sanitize-with=book/_tools/nbval.sanitize \
        --nbval-cell-timeout=900 -n $(JOBS) --dist loadfile $(or $(foreach name,$(NB),notebooks/*/$(name).ipynb),notebooks)

.PHONY: again help book html takeaway serve execute manifest toc new-chapter diff-setup hook-setup clean test test-deep test-web \
        lint lock stress style form prose words order test-lib test-tools notebooks pages links sabotage deep elsewhere bare lowest reach

help:
	@echo "make book                 build the book and say where it is"
	@echo "make takeaway             the same, with the whole book as a PDF and as an offline archive"
	@echo "make test                 every check of the book: lint, library, tools, pages, notebooks"
	@echo "make test-deep            the same text with other threads and instructions; a bare machine; the sabotage"
	@echo "make test-web [T=name]    the book in a browser: formulas, requests, accessibility, search, what can be clicked and moved"
	@echo "make serve [PORT=8000]    build the book and serve it on this machine"
	@echo "make execute [NB=name]    run notebooks again and store their outputs"
	@echo "make manifest [NB=name]   write down what holds each chapter, from the outputs that are stored"
	@echo "make notebooks [NB=name]  run notebooks and compare with their stored outputs"
	@echo "make new-chapter NAME=…   start a chapter from the template (CONTRIBUTING.md)"
	@echo "make toc                  write _toc.yml and the ledger's pages as book/parts.yml and the notebooks say"
	@echo "make diff-setup           let git show what differs between notebooks with nbdime"
	@echo "make hook-setup           let git run make lint before every commit"
	@echo "make lock                 pin again what requirements.in names (CONTRIBUTING.md)"
	@echo "make lint                 style and types of the code, form of the notebooks, one sentence a line"
	@echo "make links                ask whether the pages that the book links to are still there"
	@echo "make stress               how long builds take with 47 chapters, from nothing and after a change"
	@echo "make clean                remove what was built (not .venv)"

# Looked at every time: the interpreter may be gone, and a copied checkout has an environment that leads to the first.
$(READY): again
	@PYTHON="$(strip $(PYTHON))" VENV="$(strip $(VENV))" TORCH_INDEX="$(strip $(TORCH_INDEX))" sh book/_tools/install.sh

# --- the book ---------------------------------------------------------------------------------------------------------

book: html
	@$(PY) book/_tools/pages.py "$(HTML)"
	@$(PY) book/_tools/settled.py
	@echo "The book is at file://$(CURDIR)/$(HTML)/index.html"

html: $(READY)
	@NODE="$(strip $(NODE))" $(PY) book/_tools/build.py "$(HTML)"

# The PDF is printed from the pages, and the archive holds both.
takeaway: html
	@$(PY) book/paper/onepage.py "$(HTML)"
	@$(PY) book/paper/printed.py "$(HTML)"
	@$(PY) book/paper/archive.py "$(HTML)"
	@$(PY) book/_tools/pages.py "$(HTML)"
	@$(PY) book/paper/pdf.py "$(HTML)"
	@echo "The PDF and the archive are in file://$(CURDIR)/$(HTML)/ and linked on its first page"

serve: book
	@echo "http://127.0.0.1:$(strip $(PORT))/ (stop with Ctrl-C)"
	@$(PY) -m http.server --bind 127.0.0.1 --directory "$(HTML)" $(strip $(PORT))

execute: $(READY)
	@$(PY) book/_tools/notebooks.py run -j $(JOBS) --again "$(strip $(AGAIN))" $(NB)

manifest: $(READY)
	@$(PY) book/_tools/manifest.py write $(NB)

# --- for those who write -----------------------------------------------------------------------------------------------

new-chapter: $(READY)
	@$(PY) book/_tools/new_chapter.py $(NAME) $(PART)

toc: $(READY)
	@$(PY) book/_tools/toc.py write

# nbdime brings a web server along, so it gets an environment of its own, and .venv stays as the tests know it.
diff-setup: $(READY)
	@test -x "$(NBDIME)/git-nbdiffdriver" || { $(PY) -m venv $(VENV)/nbdime && \
	 "$(NBDIME)/python" -m pip install -q --disable-pip-version-check nbdime==4.0.4; } || \
	 { echo "nbdime was not installed; is this machine online?" >&2; exit 1; }
	@git config diff.jupyternotebook.command '"$(NBDIME)/git-nbdiffdriver" diff'
	@git config merge.jupyternotebook.driver '"$(NBDIME)/git-nbmergedriver" merge %O %A %B %L %P'
	@git config merge.jupyternotebook.name "notebooks, by nbdime"
	@echo "git diff and git merge now read notebooks"

hook-setup:
	@git config core.hooksPath .githooks
	@echo "make lint now runs before every commit"

# The versions that the lists have stay, where requirements.in does not ask for others. The second list is the first with
# the hashes of every file, without torch, which has another build on every index, and without the library.
LISTS := --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-annotate \
         --excludes book/_tools/cuda.txt

lock:
	@$(UV) --version >/dev/null 2>&1 || { echo "uv is missing; install it with: pip install uv" >&2; exit 1; }
	@$(UV) pip compile -q $(LISTS) requirements.in -o requirements.txt
	@$(UV) pip compile -q $(LISTS) --generate-hashes --no-emit-package torch --no-emit-package smalltorch \
	 requirements.txt -o requirements.lock

# What interrupted writing left goes too.
clean:
	@test ! -e _build || test -e _build/.made-by-deep-dive || \
	 { echo "_build was not made by make; look what is in it, and remove it yourself" >&2; exit 1; }
	rm -rf _build .cache/lowest .cache/mypy .cache/no-node .cache/web
	@find . -path ./.venv -prune -o -type f -name '.*.unfinished' -exec rm {} +

# --- the tests --------------------------------------------------------------------------------------------------------
# The stages of a suite all run (-k), also after a failure, so that one run tells everything.

test: $(READY)
	@$(MAKE) -k --no-print-directory style form order prose words test-lib test-tools pages notebooks

test-deep: $(READY)
	@$(MAKE) -k --no-print-directory deep elsewhere bare lowest sabotage

test-web: takeaway
	@PY="$(PY)" SHOTS="$(strip $(SHOTS))" T="$(strip $(T))" PAGES="$(strip $(PAGES))" LABELS="$(strip $(LABELS))" \
	 sh book/_tools/web/run.sh "$(HTML)"

# How long builds take when the book has all its chapters; a tool, and no test.
stress: $(READY)
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && $(PY) book/_tools/stress.py "$$folder/book"

lint: style form order prose words

style: $(READY)
	@$(PY) -m ruff check -q lib book $(wildcard notebooks)
	@$(PY) -m ruff format -q --check lib book || { echo "the code is not in one form: $(PY) -m ruff format lib book"; exit 1; }
	@$(PY) -m mypy
	@$(strip $(VENV))/bin/oxlint --format=unix --deny-warnings book/_static book/_ext/deepdive/formulas.cjs book/explore book/paper book/_tools/web

form: $(READY)
	@$(PY) book/_tools/notebooks.py check
	@$(PY) book/_tools/manifest.py check

prose: $(READY)
	@$(PY) book/_tools/prose.py

words: $(READY)
	@$(PY) book/_tools/words.py
	@$(PY) book/_tools/reviews.py

order: $(READY)
	@$(PY) book/_tools/toc.py check

test-lib: $(READY)
	@$(PY) -m pytest -q -n $(JOBS) lib/tests

test-tools: $(READY)
	@$(PY) -m pytest -q -n $(JOBS) --dist worksteal book

notebooks: $(READY)
	@$(NBVAL)

# Links to other hosts, by Sphinx; only here does anything ask them, and never in `make test`.
links: $(READY)
	@$(PY) book/_tools/build.py _build/links linkcheck

pages: html
	@$(PY) book/_tools/pages.py "$(HTML)"

deep: $(READY)
	@$(PY) -m pytest -q -n $(JOBS) --dist worksteal -m deep $(DEEP)

elsewhere: $(READY)
	@echo "two threads, another instruction set, another hash seed:"
	@OMP_NUM_THREADS=2 MKL_NUM_THREADS=2 OMP_WAIT_POLICY=PASSIVE PYTHONHASHSEED=1 \
	 ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE ONEDNN_MAX_CPU_ISA=SSE41 $(NBVAL)

bare: $(READY)
	@$(PY) book/_tools/bare.py $(NB)

lowest: $(READY)
	@TORCH_INDEX="$(strip $(TORCH_INDEX))" $(PY) book/_tools/lowest.py

sabotage: $(READY)
	@$(PY) lib/tests/sabotage $(FAULTS)

# For .ci/run: which of these the deep checks look at, where the change is known.
reach: $(READY)
	@$(PY) book/_tools/reach.py "$(strip $(BASE))" "$(strip $(OF))"
