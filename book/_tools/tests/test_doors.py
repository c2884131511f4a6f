"""What stands at the doors of the repository is as a forge demands it, and what it says of the house is so.

Forms for issues, workflows, the list of what is kept up to date, and the pages for those who write and maintain.
"""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
FORMS = sorted(path for path in ROOT.glob(".github/ISSUE_TEMPLATE/*.yml") if path.name != "config.yml")
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
DOCS = sorted(ROOT.glob("docs/**/*.md"))
PAGES = [
    *DOCS,
    *(ROOT / name for name in ("CONTRIBUTING.md", ".github/PULL_REQUEST_TEMPLATE.md", ".github/SECURITY.md")),
]

# Of GitHub's schema for forms: the keys that there may be, and for the types of elements that are used here those of
# their attributes, first what must be there.
FORM_KEYS = {"name", "description", "title", "labels", "assignees", "projects", "type", "body"}
ATTRIBUTES = {
    "markdown": ({"value"}, set()),
    "input": ({"label"}, {"description", "placeholder", "value"}),
    "textarea": ({"label"}, {"description", "placeholder", "value", "render"}),
    "dropdown": ({"label", "options"}, {"description", "multiple"}),
}
PINNED = re.compile(r"[\w.-]+(?:/[\w.-]+)+@[0-9a-f]{40} # v\d[\w.]*")
NAMED = re.compile(r"`(\.?\w[\w.-]*(?:/[\w.-]+)+/?)`|`(\w[\w.-]*/)`")  # with a slash and nothing but a path's signs
LINKED = re.compile(r"\]\((?!https?:)([^)#\s]+)")
MADE = (".cache/", "_build/", ".venv/")  # by make, and so not in every clone


def names(path):
    return path.relative_to(ROOT).as_posix()


def form_problems(form):
    """What a forge would refuse in a form for issues, one line each."""
    found = [f"{key} is unknown" for key in sorted(form.keys() - FORM_KEYS)]
    found += [f"{key} is missing" for key in ("name", "description", "body") if not form.get(key)]
    body = form.get("body") or []
    if body and all(element.get("type") == "markdown" for element in body):
        found.append("nothing can be filled in")
    for key, values in (
        ("id", [element["id"] for element in body if "id" in element]),
        ("label", [element.get("attributes", {}).get("label") for element in body]),
    ):
        found += [
            f"the {key} {value!r} stands twice" for value in sorted({*filter(None, values)}) if values.count(value) > 1
        ]
    for number, element in enumerate(body, start=1):
        found += [f"element {number}: {problem}" for problem in element_problems(element)]
    return found


def element_problems(element):
    if element.get("type") not in ATTRIBUTES:
        return [f"the type {element.get('type')!r} is unknown"]
    demanded, allowed = ATTRIBUTES[element["type"]]
    attributes, found = element.get("attributes", {}), []
    found += [f"{key} is unknown" for key in sorted(element.keys() - {"type", "id", "attributes", "validations"})]
    found += [f"{key} is unknown" for key in sorted(attributes.keys() - demanded - allowed)]
    found += [f"{key} is missing" for key in sorted(demanded) if not attributes.get(key)]
    found += [
        f"{key} is not text"
        for key in ("label", "description", "value")
        if key in attributes and not isinstance(attributes[key], str)
    ]
    if not re.fullmatch(r"[\w-]+", element.get("id", "none"), re.ASCII):
        found.append(f"the id {element['id']!r} has other signs than letters, digits, - and _")
    if element.get("validations", {"required": True}).keys() != {"required"}:
        found.append("validations has other keys than required")
    options = attributes.get("options") or []
    if not all(isinstance(option, str) for option in options):
        found.append("an option is not text")
    if len(set(options)) != len(options):
        found.append("an option stands twice")
    return found


@pytest.mark.parametrize("path", FORMS, ids=names)
def test_a_form_is_as_the_forge_demands(path):
    assert form_problems(yaml.safe_load(path.read_text(encoding="utf-8"))) == []


def test_whoever_does_not_find_a_form_can_write_without():
    chooser = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/config.yml").read_text(encoding="utf-8"))
    assert chooser == {"blank_issues_enabled": True}  # other places to ask would have an address, and there is none


# -- workflows ---------------------------------------------------------------------------------------------------------


def unpinned(workflow):
    """The actions of a workflow's text that are not named by a commit, with the version beside it."""
    used = re.findall(r"^\s*(?:- )?uses:\s*(.+?)\s*$", workflow, re.MULTILINE)
    return [action for action in used if not PINNED.fullmatch(action)]


@pytest.mark.parametrize("path", WORKFLOWS, ids=names)
def test_actions_are_named_by_their_commits(path):
    text = path.read_text(encoding="utf-8")
    assert "uses:" in text and unpinned(text) == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=names)
def test_a_workflow_may_read_and_no_more_unless_a_job_says_so(path):
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["permissions"] == {"contents": "read"}


# -- what is kept up to date -------------------------------------------------------------------------------------------


def test_what_is_pinned_is_looked_after():
    kept = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text(encoding="utf-8"))
    assert kept["version"] == 2
    files = {"uv": "requirements.in", "npm": "package-lock.json", "github-actions": ".github/workflows"}
    assert [update["package-ecosystem"] for update in kept["updates"]] == list(files)
    for update in kept["updates"]:
        assert update["schedule"] == {"interval": "monthly"} and len(update["groups"]) == 1
        assert (ROOT / update["directory"].lstrip("/") / files[update["package-ecosystem"]]).exists()


# -- the pages for those who write and maintain ------------------------------------------------------------------------


def missing(page, root):
    """The paths that a page names in backticks or links to, and that do not exist; not those of what is made."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    named = [name for both in NAMED.findall(text) for name in both if name and not name.startswith(MADE)]
    found = [name for name in named if not (root / name).exists()]
    return sorted({*found, *(link for link in LINKED.findall(text) if not (page.parent / link).exists())})


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_what_a_page_names_exists(page):
    assert missing(page, ROOT) == []


def test_every_decision_is_listed_once_in_order():
    listed = (ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")
    pages = [page for page in DOCS if re.match(r"\d{4}-", page.name)]
    titles = [page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for page in pages]
    assert re.findall(r"^\d+\. \[.+?\]\((.+?)\)", listed, re.MULTILINE) == [page.name for page in pages]
    assert re.findall(r"^(\d+\. )\[(.+?)\]", listed, re.MULTILINE) == [
        (f"{number}. ", title.removeprefix(f"{number}. ")) for number, title in enumerate(titles, start=1)
    ]
