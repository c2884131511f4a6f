# The two commands:  make book  builds the HTML book;  make test  proves what it says.
# Every target installs what it needs into .venv first; once that is done, none needs the network.

PYTHON      ?=                  # the interpreter for .venv; empty: the first of python3, python3.13 … 3.11 that is 3.11 – 3.13
VENV        ?= .venv
TORCH_INDEX ?=                  # another index for torch, e.g. https://download.pytorch.org/whl/cpu for a CPU build on Linux
NB          ?=                  # for execute, notebooks, lint and form-fix: notebooks by name; empty: all
AGAIN       ?=                  # for execute: figures and claims that are no longer what they were, and are right
NAME        ?=                  # for new-chapter: its name, such as my-chapter
PART        ?=                  # for new-chapter: the folder of its part, such as position
JOBS        ?= 2
PORT        ?= 8000
SHOTS       ?=                  # for test-web: a folder for screenshots
LABELS      ?=                  # for test-web: 1 to write anew what the figures that move say
NODE        ?=                  # for book: none, if browsers are to set the formulas, as where there is no Node
T           ?=                  # for test-web: checks by their names, a regular expression; empty: all
PAGES       ?=                  # for test-web: of what is looked at page by page, these, as book/notation.html; empty: all
FAULTS      ?=                  # for sabotage: files with faults, as lib/smalltorch/norm.py, or engine; empty: all
DEEP        ?=                  # for deep: files of tests; empty: all
FRESH       ?=                  # for test: 1 runs also what has passed here and cannot end otherwise
BASE        ?=                  # a commit: for affected, what can differ since then; for form, what was not to get weaker
MESSAGE     ?=                  # for form: a file with the message of the commit to come, as git gives it to a hook
OF          ?=                  # for affected: notebooks, pages, faults, deep, without_library, plain or paper
UV          ?= uv               # for lock: what runs uv, such as: python3 -m uv

ifeq ($(wildcard book/_tools/install.sh),)
$(error run make in the folder of the book, or name it: make -C FOLDER)
endif
# What is given on the command line reaches the shell: names hold nothing that it reads otherwise, the rest is quoted.
without = $(if $(2),$(call without,$(subst $(firstword $(2)),,$(1)),$(wordlist 2,$(words $(2)),$(2))),$(1))
PLAIN  := a b c d e f g h i j k l m n o p q r s t u v w x y z A B C D E F G H I J K L M N O P Q R S T U V W X Y Z \
          0 1 2 3 4 5 6 7 8 9 - _ . / : ~ ^
ODD    := ; & | < > ( ) $$ ` " ' \ * ? ! { } [ ] ~
$(foreach name,NB AGAIN NAME PART JOBS PORT LABELS NODE PAGES FAULTS DEEP BASE OF,\
 $(if $(strip $(call without,$(value $(name)),$(PLAIN))),\
  $(error $(name): expected names, of letters, digits and - _ . / :, got '$(value $(name))')))
ifneq ($(call without,$(value VENV),$(ODD)),$(value VENV))
$(error VENV: expected a path without any of $(ODD), got '$(value VENV)')
endif
ifneq ($(words $(VENV)),1)
$(error VENV: expected a path without spaces, got '$(VENV)')
endif
quoted  = '$(subst ','\'',$(strip $(value $(1))))'

PY     := $(strip $(VENV))/bin/python
READY  := $(strip $(VENV))/ready
HTML   := _build/html
NBDIME := $(abspath $(strip $(VENV))/nbdime)
LAB    := $(abspath $(strip $(VENV))/lab)

export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export PYTHONHASHSEED  ?= 0
export SMALLTORCH_CACHE := $(CURDIR)/.cache/weights
export FRESH
export PYTHONPATH      := book:book/_ext:book/paper:book/_tools
export PYTHONDONTWRITEBYTECODE := 1

NOTEBOOKS = $(or $(foreach name,$(NB),notebooks/*/$(name).ipynb),notebooks)
OUTCOMES = $(PY) book/_tools/outcomes.py

.PHONY: FORCE help book html takeaway serve execute toc new-chapter diff-setup hook-setup clean test test-deep test-web \
        test-paper test-lab lab lab-setup wheel lint lock style style-code style-layout style-types style-scripts form form-fix \
        form-notebooks form-weaker \
        prose words words-chapters words-questions order test-lib test-tools notebooks pages links sabotage deep \
        elsewhere without-library lowest affected

help:
	@echo "make book                 build the book and say where it is"
	@echo "make takeaway             the same, with the whole book as a PDF and as an offline archive"
	@echo "make test                 every check of the book: lint, library, pages, notebooks; FRESH=1 also what stands"
	@echo "make test-tools           the tests of the tools, and of what starts and kills processes"
	@echo "make test-deep            the same text with other threads and instructions; a bare machine; the sabotage"
	@echo "make test-web [T=name]    the book in a browser: formulas, requests, accessibility, search, what can be clicked and moved"
	@echo "make test-lab             the chapters' notebooks in JupyterLab, and as plain pages"
	@echo "make test-paper           the whole book as a PDF and as an offline archive: made, checked, read in a browser"
	@echo "make serve [PORT=8000]    build the book and serve it on this machine"
	@echo "make lab                  open the chapters in JupyterLab, as notebooks to run and to change"
	@echo "make wheel                what a release attaches for those who run chapters elsewhere"
	@echo "make execute [NB=name]    run notebooks again and store their outputs"
	@echo "make notebooks [NB=name]  run notebooks and compare with their stored outputs"
	@echo "make new-chapter NAME=…   start a chapter from the template (CONTRIBUTING.md)"
	@echo "make toc                  write _toc.yml and the ledger's pages as book/parts.yml and the notebooks say"
	@echo "make diff-setup           let git show what differs between notebooks with nbdime"
	@echo "make hook-setup           let git run make lint before every commit"
	@echo "make lock                 pin again what requirements.in names (docs/pins.md)"
	@echo "make lint [NB=name]       style and types of the code, form of the notebooks, one sentence a line"
	@echo "make form-fix [NB=name]   put what an editor has saved into the notebooks' normal form, without running it"
	@echo "make links                ask whether the pages that the book links to are still there"
	@echo "make clean                remove what was built (not .venv)"

# Looked at every time: the interpreter may be gone, and a copied checkout has an environment that leads to the first.
$(READY): FORCE
	@PYTHON=$(call quoted,PYTHON) VENV=$(call quoted,VENV) TORCH_INDEX=$(call quoted,TORCH_INDEX) sh book/_tools/install.sh

# --- the book ---------------------------------------------------------------------------------------------------------

book: html
	@$(PY) book/_tools/pages.py "$(HTML)"
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

lab: book lab-setup
	@$(PY) book/_tools/lab.py "$(HTML)" "$(LAB)/bin/jupyter"

# What brings much along gets an environment of its own, (1), and .venv stays as the tests know it; it is made anew where its
# list of hashes, (2), has changed.
define beside
	@cmp -s $(2) "$(1)/installed" || { $(PY) -m venv --clear "$(1)" && \
	 "$(1)/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r $(2); } && \
	 cp $(2) "$(1)/installed" || { echo "$(3) was not installed; is this machine online?" >&2; exit 1; }
endef

lab-setup: $(READY)
	$(call beside,$(LAB),book/_tools/lab.lock,JupyterLab)
	@mkdir -p "$(LAB)/share/jupyter/lab/settings"
	@cp book/_tools/lab-settings.json "$(LAB)/share/jupyter/lab/settings/overrides.json"   # it asks nobody for news

wheel: $(READY)
	@$(PY) book/_tools/library_wheel.py _build/release

execute: $(READY)
	@$(PY) book/_tools/notebooks.py run -j $(JOBS) --again "$(strip $(AGAIN))" $(NB)

# --- for those who write -----------------------------------------------------------------------------------------------

new-chapter: $(READY)
	@$(PY) book/_tools/new_chapter.py $(NAME) $(PART)

toc: $(READY)
	@$(PY) book/_tools/toc.py write

diff-setup: $(READY)
	$(call beside,$(NBDIME),book/_tools/nbdime.txt,nbdime)
	@git config diff.jupyternotebook.command '"$(NBDIME)/bin/git-nbdiffdriver" diff'
	@git config merge.jupyternotebook.driver '"$(NBDIME)/bin/git-nbmergedriver" merge %O %A %B %L %P'
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
	@echo nbdime==4.0.4 | $(UV) pip compile -q $(LISTS) --generate-hashes -c requirements.lock - -o book/_tools/nbdime.txt
	@$(UV) pip compile -q $(LISTS) --generate-hashes book/_tools/lab.in -o book/_tools/lab.lock

# What interrupted writing left goes too.
clean:
	@test ! -e _build || test -e _build/.made-by-deep-dive || \
	 { echo "_build was not made by make; look what is in it, and remove it yourself" >&2; exit 1; }
	rm -rf _build .cache/lowest .cache/mypy .cache/no-node .cache/ran .cache/web .cache/weights
	@find . -path ./.venv -prune -o -type f -name '.*.unfinished' -exec rm {} +

# --- the tests --------------------------------------------------------------------------------------------------------
# The stages of a suite all run (-k), also after a failure, so that one run tells everything.

test: $(READY)
	@$(MAKE) -k --no-print-directory style form order prose words test-lib pages notebooks

test-deep: $(READY)
	@$(MAKE) -k --no-print-directory test-tools deep elsewhere without-library lowest sabotage

test-web: html
	@PY="$(PY)" SHOTS=$(call quoted,SHOTS) T=$(call quoted,T) PAGES="$(strip $(PAGES))" LABELS="$(strip $(LABELS))" \
	 sh book/_tools/web/run.sh "$(HTML)" web

# The making checks the PDF against the pages; then the archive, and the page that links both, in a browser.
test-paper: takeaway
	@PY="$(PY)" T="archive|the page book/index.html" sh book/_tools/web/run.sh "$(HTML)" paper

test-lab: book lab-setup
	@PYTHONPATH=lib "$(LAB)/bin/python" book/_tools/plain_pages.py "$(HTML)"
	@PY="$(PY)" JUPYTER="$(LAB)/bin/jupyter" sh book/_tools/web/run.sh "$(HTML)" lab

lint:
	@$(MAKE) -k --no-print-directory style form order prose words

style: style-code $(if $(strip $(NB)),,style-layout style-types style-scripts)

style-code: $(READY)
	@$(PY) -m ruff check -q $(if $(strip $(NB)),$(NOTEBOOKS),lib book $(wildcard notebooks))

style-layout: $(READY)
	@$(PY) -m ruff format -q --check lib book || { echo "the code is not in one form: $(PY) -m ruff format lib book"; exit 1; }

style-types: $(READY)
	@$(PY) -m mypy

style-scripts: $(READY)
	@$(strip $(VENV))/bin/oxlint --format=unix --deny-warnings book/_static book/_ext/deepdive/formulas.cjs book/explore book/paper book/_tools/web

form: form-notebooks form-weaker

form-notebooks: $(READY)
	@$(PY) book/_tools/notebooks.py check $(NB)

form-fix: $(READY)
	@$(PY) book/_tools/notebooks.py fix $(NB)

form-weaker: $(READY)
	@$(PY) book/_tools/manifest.py $(NB)

prose: $(READY)
	@$(PY) book/_tools/prose.py $(NB)

words: words-chapters words-questions

words-chapters: $(READY)
	@$(PY) book/_tools/numbers_in_text.py $(NB)

words-questions: $(READY)
	@$(PY) book/_tools/reviews.py

order: $(READY)
	@$(PY) book/_tools/toc.py check

test-lib: $(READY)
	@$(OUTCOMES) library -n $(JOBS)

# The tools of the book, and what of the library starts processes and kills them or measures models of each family.
test-tools: $(READY)
	@$(PY) -m pytest -q -n $(JOBS) --dist worksteal book
	@$(PY) -m pytest -q -n $(JOBS) --dist worksteal -m "processes and not deep" lib/tests

notebooks: $(READY)
	@$(OUTCOMES) notebooks -n $(JOBS) $(NB)

# Links to other hosts, by Sphinx; only here does anything ask them, and never in `make test`.
links: $(READY)
	@$(PY) book/_tools/build.py _build/links linkcheck

pages: html
	@$(PY) book/_tools/pages.py "$(HTML)"

deep: $(READY)
	@$(PY) -m pytest -q -n $(JOBS) --dist worksteal -m deep $(DEEP)

elsewhere: $(READY)
	@echo "two threads, another instruction set, another hash seed:"
	@OMP_NUM_THREADS=2 MKL_NUM_THREADS=2 OMP_WAIT_POLICY=PASSIVE PYTHONHASHSEED=1 KERNEL_SERVER=none \
	 ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE ONEDNN_MAX_CPU_ISA=SSE41 $(OUTCOMES) notebooks -n $(JOBS) $(NB)

without-library: html
	@$(PY) book/_tools/without_library.py "$(HTML)" $(NB)

lowest: $(READY)
	@TORCH_INDEX=$(call quoted,TORCH_INDEX) $(PY) book/_tools/lowest.py

sabotage: $(READY)
	@$(PY) lib/tests/sabotage $(FAULTS)

# For .ci/run: which of these the checks that take long look at, where the change is known.
affected: $(READY)
	@$(PY) book/_tools/affected.py "$(strip $(BASE))" "$(strip $(OF))"
