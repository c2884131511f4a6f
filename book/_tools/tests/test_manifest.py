"""Manifests: they say how strict a chapter is, and each way to weaken it is found and must be meant."""

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
held(numbers=[("of 3", 3), ("of 4", 4)])"""
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
        "words": {"numbers": 2},
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


@pytest.fixture
def root(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / manifest.ENGINE).mkdir(parents=True)
    (tmp_path / manifest.ENGINE / "search.py").write_text("STARTS, STEPS = 8, 150\nNAMES = ()\n", encoding="utf-8")

    def store(code):
        (tmp_path / "notebooks/chapter.ipynb").write_text(notebooks.text_of(chapter(code)), encoding="utf-8")
        return tmp_path

    return store


def test_a_weaker_manifest_is_written_only_if_it_is_meant(root, monkeypatch):
    monkeypatch.delenv("WEAKEN", raising=False)
    folder = root(CODE)
    assert manifest.problems(folder) and manifest.write([], folder) == [] and manifest.problems(folder) == []
    root(CODE.replace("allowance=1e-9", "allowance=1e-8"))
    lost = "chapter.toml, weaker: at_most A ≤ B: allowance was 1e-09, and is 1e-08"
    assert manifest.write([], folder)[0].endswith(lost)
    assert manifest.problems(folder) == [
        "book/data/manifests/chapter.toml is not what its notebook gives: make manifest"
    ]
    monkeypatch.setenv("WEAKEN", "1")
    assert manifest.write(["chapter"], folder) == [] and manifest.problems(folder) == []


def test_a_smaller_budget_of_the_engine_must_be_meant(root, monkeypatch):
    monkeypatch.delenv("WEAKEN", raising=False)
    folder = root(CODE)
    manifest.write([], folder)
    (folder / manifest.ENGINE / "search.py").write_text("STARTS, STEPS = 8, 15\n", encoding="utf-8")
    assert "engine.toml, weaker: constants search: STEPS was 150, and is 15" in manifest.write([], folder)[0]


def test_a_manifest_of_no_chapter_is_found(root):
    folder = root(CODE)
    manifest.write([], folder)
    (folder / manifest.FOLDER / "gone.toml").write_text("", encoding="utf-8")
    assert manifest.problems(folder) == ["book/data/manifests/gone.toml is of no chapter"]


def test_the_manifests_of_this_book_are_what_the_notebooks_give():
    assert manifest.problems() == []
