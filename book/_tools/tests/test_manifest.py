"""Manifests: they say how strict a chapter is, and each way to weaken it is found and must be named by a commit."""

import subprocess

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import manifest
import notebooks
from smalltorch.engine.schema import Closing, Evidence, Record, bundle

CODE = """SIZES = [(2, 2), (16, 16)]
chapter = Chapter("chapter", checks=4)
d = Derivation("chain", scope="all n", given=[rows]).start(a).le(b, because="so")
d.eq(c, because="thus").qed()
Derivation("other", scope="all n").start(a).ge(b, because="so").qed()
setting = dict(domain=softmax, shapes=[(2, 2), (4, 4)], extremes=one_hot)
attack = at_most("A ≤ B", lhs, rhs, allowance=1e-9, without={"mask": mirror}, **setting)
fails("A ≤ C", lhs, rhs, domain=softmax, shapes=[(1,)], by=1.1)
facts = computed("Facts", [("one", x, 1), ("two", y, 2)], tolerance=1e-8, at="n = 6")
stated = Contrasts("texts", {"growth": dict(above=1.5, below=3), "share": {"above": 0.5}})
proof = WrittenProof("words", d, e)
assert bool((low <= high).all())
held(numbers=[("of 3", 3), ("of 4", 4)], citations=["by {cite}`a`", "by {cite}`b`"])"""
SAID = "A ≤ B: holds, tightness 1.00; 233 inputs, attacks included"


def chapter(code=CODE, said=SAID, kinds=("derived", "verified")):
    record = Record("N1-1", "chapter", "true", "It holds.", "", tuple(Evidence(kind, "it", 0) for kind in kinds))
    outputs = [new_output("stream", text=said + "\n")]
    outputs += [new_output("display_data", bundle([record], Closing("chapter", 4, 4, ("N1-1",), 0)))] if kinds else []
    return new_notebook(cells=[new_markdown_cell("# Title"), new_code_cell(code, outputs=outputs)])


def test_a_manifest_says_how_strict_a_chapter_is():
    assert manifest.of_notebook(chapter()) == {
        "assert bool((low <= high).all())": {},
        "at_most A ≤ B": {
            "allowance": 1e-9,
            "without": "{'mask': mirror}",
            "shapes": "[(2, 2), (4, 4)]",
            "extremes": "one_hot",
            "inputs": 233,
        },
        "checks declared": {"count": 4},
        "computed Facts": {"tolerance": 1e-8, "at": "'n = 6'", "rows": 2},
        "contrast growth": {"above": 1.5, "below": 3},
        "contrast share": {"above": 0.5},
        "derivation chain": {"given": "[rows]", "steps": 2},
        "derivation other": {"steps": 1},
        "fails A ≤ C": {"shapes": "[(1,)]", "by": 1.1},
        "proof words": {"identities": 1 + 1},
        "record N1-1": {"verdict": "true", "by": "derived, verified"},
        "size SIZES": {"value": "[(2, 2), (16, 16)]"},
        "words": {"numbers": 2, "citations": 2},
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('d.eq(c, because="thus").qed()', "d.qed()"),
        ('Derivation("other", scope="all n").start(a).ge(b, because="so").qed()\n', ""),
        ("allowance=1e-9", "allowance=1e-8"),
        ('without={"mask": mirror}, ', ""),
        (", (4, 4)]", "]"),
        ("extremes=one_hot", "extremes=None"),
        ("by=1.1", "by=1.01"),
        ("tolerance=1e-8", "tolerance=1e-7"),
        (', ("two", y, 2)', ""),
        ("above=1.5", "above=1.2"),
        ("below=3", "below=4"),
        ("d, e)", "d)"),
        ("assert bool((low <= high).all())\n", ""),
        ("(low <= high).all()", "(low <= high).any()"),
        (', ("of 4", 4)', ""),
        (', "by {cite}`b`"', ""),
        ("(16, 16)", "(8, 8)"),
        ("checks=4", "checks=3"),
        ("given=[rows]", "given=[rows, more]"),
        ('Derivation("other", scope="all n")', 'Derivation("other", scope="all n", given=[rows])'),
        ("domain=softmax, shapes=[(1,)], by", "domain=softmax, shapes=[(1,)], allowance=1e-6, by"),
    ],
)
def test_each_change_that_weakens_is_found(old, new):
    assert CODE.count(old) == 1
    before, after = (manifest.of_notebook(chapter(code)) for code in (CODE, CODE.replace(old, new)))
    assert len(manifest.weaker(before, after)) == 1


@pytest.mark.parametrize(
    ("keys", "old", "new"),
    [
        ("by above steps rows inputs identities numbers relations derived citations count", 2, 1),
        ("allowance tolerance scale below", 1, 2),
        ("allowance tolerance scale given", None, 1),
    ],
)
def test_each_kind_of_strictness_has_its_direction(keys, old, new):
    for key in keys.split():
        assert not manifest.as_strict(key, old, new) and (old is None or manifest.as_strict(key, new, old))


@pytest.mark.parametrize("changes", [{"said": SAID.replace("233", "232")}, {"kinds": ("derived",)}, {"kinds": ()}])
def test_weaker_outputs_are_found(changes):
    assert len(manifest.weaker(*map(manifest.of_notebook, (chapter(), chapter(**changes))))) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('d.eq(c, because="thus").qed()', 'd.eq(c, because="thus").le(e, because="so").qed()'),
        ("allowance=1e-9", "allowance=1e-10"),
        (", (4, 4)]", ", (4, 4), (64, 64)]"),
        ("above=1.5", "above=1.6"),
        ("below=3", "below=2"),
        ("assert ", "assert right\nassert "),
    ],
)
def test_what_is_stricter_passes(old, new):
    before, after = (manifest.of_notebook(chapter(code)) for code in (CODE, CODE.replace(old, new)))
    assert before != after and manifest.weaker(before, after) == []


def test_letters_of_formulas_are_no_sizes():
    code = "N = 64\nX = A @ V\nW_1 = normal(N)\nSEEDS = range(N)"
    assert list(manifest.of_notebook(chapter(code, kinds=()))) == ["size N", "size SEEDS"]


THEOREM = r"""Before it $9$ stands.

:::{prf:theorem} A minimum
:label: a-minimum
It is no minimum, and no term is negative: $x\le\frac78$ for $n\ge3$, $\alpha_n$ and $K$.
:::

:::{prf:proof}
No number, as $9<10$.
:::"""
CAPTION, ALT = (
    "The first falls; most lie above. Dashed: the sums of a row.",
    "A line falls from 2 to 1, never below 0.97.",
)


def said_of(theorem=THEOREM, caption=CAPTION, alt=ALT):
    figure = {"mystnb": {"figure": {"name": "fig-line", "caption": caption}, "image": {"alt": alt}}}
    cells = [new_markdown_cell(theorem), new_code_cell("plot()", metadata=figure)]
    return manifest.of_notebook(new_notebook(cells=cells, metadata={"seconds": 9}))


@pytest.mark.parametrize(
    ("what", "old", "new", "said"),
    [
        ("theorem", "no minimum", "the only minimum", "was no, and is only"),
        ("theorem", "negative", "positive", "was negative, and is positive"),
        ("theorem", r"\frac78", r"\frac34", r"was \frac78, and is \frac34"),
        ("theorem", r"x\le", r"x\ge", r"was \le, and is \ge"),
        ("theorem", "ge3", "ge2", "was 3, and is 2"),
        ("theorem", r"_n", r"_x", "was n, and is x"),
        ("theorem", r"\alpha", r"\beta", r"was \alpha, and is \beta"),
        ("theorem", "$K$", "$k$", "was K, and is k"),
        ("caption", "falls", "grows", "was falls, and is grows"),
        ("caption", "most", "all", "was most, and is all"),
        ("caption", "above", "below", "was above, and is below"),
        ("caption", "Dashed", "Dotted", "was dashed, and is dotted"),
        ("caption", "a row", "a column", "was row, and is column"),
        ("alt", "falls from 2 to 1", "rises from 1 to 2", "was falls 2 1, and is rises 1 2"),
        ("alt", ", never", "", "was never, and is nothing"),
        ("alt", "line", "line always", "was nothing, and is always"),
    ],
)
def test_what_turns_the_sense_of_a_theorem_or_a_caption_is_found(what, old, new, said):
    words = {"theorem": THEOREM, "caption": CAPTION, "alt": ALT}[what]
    assert words.count(old) == 1
    (loss,) = manifest.weaker(said_of(), said_of(**{what: words.replace(old, new)}))
    assert str(loss).endswith(f": says {said}")
    assert manifest.is_named("one", loss, [f"one: {loss}: it was wrong"]) and not manifest.is_named("one", loss, [])


CHECKER = """def matrix_of(answer):
    return answer if answer.shape == (2, 2) else None


def check_it(answer, tolerance=1e-6):
    for n in (1, 3):
        found = answer(n)
        right = found.min() >= 0 and found.ndim == 2
        if not right or found.shape != (n, n) or found.isnan().any():
            return "A matrix is asked for."
    return "Right." if abs(found - 1).max() <= tolerance else "No.\""""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(1, 3)", "(1,)"),
        ("(2, 2)", "(2,)"),
        ("found.min() >= 0 and ", ""),
        ("(n, n)", "(n, 2)"),
        (" or found.isnan().any()", ""),
        ("<=", ">="),
        ("1e-6", "1e-3"),
    ],
)
def test_what_a_checker_asks_for_is_held(old, new):
    before, after = (manifest.of_notebook(chapter(code, kinds=())) for code in (CHECKER, CHECKER.replace(old, new)))
    (loss,) = manifest.weaker(before, after)
    assert str(loss).startswith(("checker check_it: says was ", "checker matrix_of: says was ")) and manifest.is_named(
        "a", loss, [f"a: {loss}: why"]
    )
    other = chapter(CHECKER.replace("No.", "Not yet.").replace("found", "matrix", 0), kinds=())
    assert manifest.weaker(before, manifest.of_notebook(other)) == []


EXERCISE = """:::{exercise} Two ★
:label: ex-two
Two rows of sum $\\frac12$.
:::

:::{dropdown} Hint
What is $1-x$?
:::"""
SOLUTION = ":::{solution} ex-two\n:class: dropdown\nNo more than $x\\le3$.\n:::"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("frac12", "frac13", r"exercise ex-two: says was \frac12, and is \frac13"),
        ("1-x", "1+x", "dropdown ex-two: says was -, and is +"),
        ("le3", "le4", "solution ex-two: says was 3, and is 4"),
    ],
)
def test_a_formula_of_an_exercise_its_hint_or_its_solution_is_held(old, new, said):
    texts = (EXERCISE + "\n\nText.", SOLUTION)
    before, after = (
        manifest.of_notebook(new_notebook(cells=[new_markdown_cell(text.replace(*change)) for text in texts]))
        for change in ((old, old), (old, new))
    )
    assert [str(loss) for loss in manifest.weaker(before, after)] == [said]


def test_other_words_turn_nothing_and_what_is_gone_is_found():
    other = said_of(THEOREM.replace("term", "part").replace("9<10", "9>8"), CAPTION.replace("lie", "stand"))
    assert manifest.weaker(said_of(), other) == []
    gone = manifest.weaker(said_of(), manifest.of_notebook(new_notebook()))
    assert {*map(str, gone)} == {
        *("gone: theorem a-minimum", "gone: caption fig-line", "gone: picture fig-line", "gone: time measured")
    }


# -- against an earlier commit -----------------------------------------------------------------------------------------

WIDE = CODE.replace("allowance=1e-9", "allowance=1e-8")
LOST = "chapter: at_most A ≤ B: allowance was 1e-09, and is 1e-08"


class Repository:
    """A book of one chapter and one module of the engine, in git."""

    def __init__(self, root):
        self.root, self.path, self.engine = root, root / "notebooks/part/chapter.ipynb", root / manifest.ENGINE
        self.path.parent.mkdir(parents=True)
        self.engine.mkdir(parents=True)
        (root / ".ci").mkdir()
        (root / ".gitignore").write_text(".ci\n", encoding="utf-8")
        self.constants("STARTS, STEPS = 8, 150\nNAMES = ()\n")
        self.store(CODE)
        self.git("init", "-q")
        self.base = self.commit(f"first\n\nWeakens: {LOST}: long ago")
        (root / ".ci/whole").write_text(f"{self.base}\n", encoding="utf-8")

    def git(self, *arguments):
        who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        return subprocess.run(["git", *who, *arguments], cwd=self.root, check=True, capture_output=True, text=True)

    def constants(self, text):
        (self.engine / "search.py").write_text(text, encoding="utf-8")

    def store(self, code, **changes):
        self.path.write_text(notebooks.text_of(chapter(code, **changes)), encoding="utf-8")

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").stdout.strip()

    def lines(self, *names):
        """The lines that a commit must have, without their first word."""
        return [line.removeprefix(manifest.LINE) for line in manifest.problems(names, self.root)[1:]]


@pytest.fixture
def book(tmp_path, monkeypatch):
    for name in ("BASE", "MESSAGE"):
        monkeypatch.delenv(name, raising=False)
    return Repository(tmp_path)


def test_what_is_weaker_is_found_before_the_commit_and_after_it_until_a_commit_says_why(book):
    assert manifest.problems((), book.root) == []
    book.store(WIDE)
    assert book.lines() == [f"{LOST}: <why>"]
    book.commit("wider")
    assert book.lines() == book.lines("chapter") == [f"{LOST}: <why>"] and book.lines("other") == []
    for silent in (f"Weakens: {LOST}", f"Weakens: {LOST}: ", f"Weakens: {LOST}: <why>", f"so it {LOST}: rounding"):
        book.commit(f"again\n\n{silent}")
        assert book.lines() == [f"{LOST}: <why>"]
    for other in (LOST.replace("1e-08", "1.1e-09"), LOST.replace("chapter:", "other:"), LOST.replace("≤ B", "≤ C")):
        book.commit(f"again\n\nWeakens: {other}: rounding")
        assert book.lines() == [f"{LOST}: <why>"]
    book.commit(f"again\n\nWeakens: {LOST}: rounding: it grows with n")
    assert manifest.problems((), book.root) == []


def test_the_message_of_the_commit_to_come_is_read(book, monkeypatch):
    book.store(WIDE)
    (book.root / ".ci/message").write_text(f"wider\n\nWeakens: {LOST}: rounding\n", encoding="utf-8")
    monkeypatch.setenv("MESSAGE", str(book.root / ".ci/message"))
    assert book.lines() == []


def test_while_one_works_the_last_commit_is_compared_and_otherwise_the_last_whole_run(book, monkeypatch):
    book.commit("strict, as it was")
    book.store(WIDE)
    book.commit("wider")
    book.store(WIDE.replace("by=1.1", "by=1.01"))
    assert book.lines() == ["chapter: fails A ≤ C: by was 1.1, and is 1.01: <why>"]
    monkeypatch.setenv("BASE", book.base)
    assert len(book.lines()) == 2
    monkeypatch.delenv("BASE")
    book.git("checkout", "-q", ".")
    assert book.lines() == [f"{LOST}: <why>"]
    monkeypatch.setenv("BASE", "HEAD")
    assert book.lines() == []


def test_steps_that_are_named_one_by_one_are_named_as_a_whole(book):
    def step(code, *named):
        book.store(code)
        book.commit("\n".join(["a step", "", *(f"Weakens: {line}: why: so" for line in named)]))

    step(WIDE, LOST)
    step(CODE.replace("1e-9", "5e-9"))
    step(CODE.replace("1e-9", "1e-7"), LOST.replace("1e-09", "5e-09").replace("1e-08", "1e-07"))
    assert book.lines() == []
    step(CODE.replace("1e-9", "1e-6"), LOST.replace("1e-09", "1e-05").replace("1e-08", "1e-06"))
    assert book.lines() == [LOST.replace("1e-08", "1e-06") + ": <why>"]


def test_what_was_not_there_and_a_text_are_named(book):
    book.store(CODE.replace("(16, 16)", "(8, 8)").replace("by=1.1", "by=1.1, tolerance=1e-6"))
    said = book.lines()
    assert said == [
        "chapter: fails A ≤ C: tolerance was not there, and is 1e-06: <why>",
        "chapter: size SIZES: value was [(2, 2), (16, 16)], and is [(2, 2), (8, 8)]: <why>",
    ]
    book.commit("\n".join(["all", "", *(manifest.LINE + line.replace("<why>", "so: it is") for line in said)]))
    assert book.lines() == []


def test_a_smaller_budget_of_the_engine_must_be_named(book):
    book.constants("STARTS, STEPS = 8, 15\n")
    assert book.lines() == book.lines("chapter") == ["engine: constants search: STEPS was 150, and is 15: <why>"]
    (book.engine / "search.py").unlink()
    assert book.lines() == ["engine: gone: constants search: <why>"]
    book.commit("no search\n\nWeakens: engine: gone: constants search: nothing is searched")
    assert book.lines() == []


def test_a_chapter_keeps_its_name_in_another_folder_and_must_not_vanish(book):
    old = book.path
    book.path = book.root / "notebooks/other/chapter.ipynb"
    book.path.parent.mkdir()
    old.unlink()
    book.store(CODE)
    assert book.lines() == []
    book.store(WIDE)
    assert book.lines() == [f"{LOST}: <why>"]
    book.path.unlink()
    assert book.lines() == ["chapter: gone: the chapter: <why>"]


def test_nothing_is_weaker_than_what_git_does_not_know_or_than_the_template(book):
    template = notebooks.read(manifest.TEMPLATE)
    draft = book.path.with_stem("draft")
    for cells in (template.cells, [cell for cell in template.cells if "at_most" in cell.source], []):
        draft.write_text(notebooks.text_of(new_notebook(cells=cells)), encoding="utf-8")
        assert book.lines() == []
        book.commit("a draft, in pieces")
        assert book.lines() == []
    assert not any(
        manifest.of_notebook(notebooks.read(path)).keys() & manifest.checks_of_template()
        for path in notebooks.all_notebooks()
    )


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("the commit", "this clone lacks the commit .*: git fetch --unshallow"),
        ("the repository", "git says fatal: not a git repository"),
        ("the top", "this folder is not the top of a git repository"),
        ("git", "git is missing"),
    ],
)
def test_without_a_base_nothing_passes(book, monkeypatch, missing, said):
    root = book.root
    if missing == "the commit":
        (root / ".ci/whole").write_text("0" * 40, encoding="utf-8")
    if missing == "the repository":
        monkeypatch.setenv("GIT_DIR", str(root / "nowhere"))
    if missing == "the top":
        root = root / "notebooks"
    if missing == "git":
        monkeypatch.setenv("PATH", "")
    with pytest.raises(manifest.NoBase, match=said) as raised:
        manifest.problems((), root)
    assert "\n" not in str(raised.value)


def test_this_book_has_all_its_history():
    assert manifest.base_of(notebooks.ROOT)
