"""Check the links that lead out of the book: from its pages, its chapters and its bibliography.

    outlinks.py

Needs the network, and of Python the standard library only. No part of `make test`, whose result must not hang on other
people's servers; a workflow runs it once a week. Ends with status 1 if a link is dead, or if there is none to check.
"""

from __future__ import annotations

import json
import re
import string
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

ROOT = Path(__file__).resolve().parents[2]
AGENT = "deep-dive-into-the-transformer (weekly check of a book's links)"
HOSTS = 4  # asked at a time, each one question after the other
PAUSE = 1.0  # seconds between two questions to a host
TIMEOUT = 20  # seconds

ALIVE, DEAD, CANNOT_TELL = "alive", "dead", "cannot tell"
SCRIPTS_REFUSED = (403, 429)  # what a reader with a browser would see, these do not say

RESOLVER = "https://doi.org/"
ADDRESS = re.compile(r"https?://(?:[^\s<>()\[\]{}\"'`|\\]|\([^\s<>()]*\))+")
DOI = re.compile(r"\bdoi\s*[:=]\s*[{\"]?(10\.\d{4,9}/[^\s{}\"<>]+)", re.IGNORECASE)
# The preprints are asked for by their DOIs too: their server, which the book's links name, asks robots to stay away.
PREPRINT = re.compile(r"\beprint\s*=\s*[{\"](\d{4}\.\d{4,5}|[a-z.-]+/\d{7})[}\"]", re.IGNORECASE)
AFTER_A_LINK = ".,;:!?*_"


class Stay(HTTPRedirectHandler):
    """Does not follow: a redirect is the answer."""

    def redirect_request(self, *_):
        return None


FOLLOWING, STAYING = build_opener(), build_opener(Stay)


# -- what there is to check --------------------------------------------------------------------------------------------


def in_text(text: str) -> set[str]:
    """The addresses in Markdown, and those of the DOIs in it."""
    found = {address.rstrip(AFTER_A_LINK) for address in ADDRESS.findall(text)}
    return found | {of_doi(doi.rstrip(AFTER_A_LINK)) for doi in DOI.findall(text)}


def in_bibliography(text: str) -> set[str]:
    """The addresses, DOIs and preprints of BibTeX entries; comments do not count."""
    entries = re.sub(r"^\s*%.*$", "", text, flags=re.MULTILINE)
    return in_text(entries) | {of_doi(f"10.48550/arXiv.{number}") for number in PREPRINT.findall(entries)}


def in_notebook(text: str) -> set[str]:
    """The addresses in the Markdown cells of a notebook."""
    cells = json.loads(text)["cells"]
    return set().union(*(in_text("".join(cell["source"])) for cell in cells if cell["cell_type"] == "markdown"))


def of_doi(doi: str) -> str:
    return RESOLVER + quote(doi, safe="/:;()")


READERS = (("book/**/*.md", in_text), ("book/**/*.bib", in_bibliography), ("notebooks/**/[!.]*.ipynb", in_notebook))


def collect(root: Path) -> dict[str, list[str]]:
    """The files that have each address."""
    found = defaultdict(list)
    for pattern, read in READERS:
        for path in sorted(root.glob(pattern)):
            for address in sorted(read(path.read_text(encoding="utf-8"))):
                found[address].append(path.relative_to(root).as_posix())
    return dict(found)


# -- asking ------------------------------------------------------------------------------------------------------------


def ask(address: str, method: str) -> tuple[str, str]:
    """What one request says of an address: ALIVE, DEAD or CANNOT_TELL, and why.

    The resolver of DOIs is not followed: that it knows where to send a reader is what a DOI promises, and publishers
    refuse scripts.
    """
    resolved = address.startswith(RESOLVER)
    try:
        request = Request(quote(address, safe=string.punctuation), method=method, headers={"User-Agent": AGENT})
        with (STAYING if resolved else FOLLOWING).open(request, timeout=TIMEOUT) as answer:
            return ALIVE, str(answer.status)
    except HTTPError as error:
        with error:
            if resolved and 300 <= error.code < 400:
                return ALIVE, str(error.code)
            return CANNOT_TELL if error.code in SCRIPTS_REFUSED else DEAD, f"{error.code} {error.reason}"
    except (OSError, HTTPException, ValueError) as error:  # no such host, no answer in time, no valid address
        return DEAD, str(error) or type(error).__name__


def check(address: str) -> tuple[str, str]:
    """Whether an address is alive, and why. Some servers know no HEAD and some need a second try, so GET decides."""
    state, why = ask(address, "HEAD")
    return ask(address, "GET") if state == DEAD else (state, why)


def check_all(addresses: Iterable[str]) -> dict[str, tuple[str, str]]:
    """What `check` says of each address: a few hosts at a time, and never two questions at once to one of them."""
    hosts = defaultdict(list)
    for address in addresses:
        hosts[urlsplit(address).netloc].append(address)

    def visit(links: list[str]) -> dict[str, tuple[str, str]]:
        answers = {}
        for number, address in enumerate(links):
            if number:
                time.sleep(PAUSE)
            answers[address] = check(address)
        return answers

    with ThreadPoolExecutor(HOSTS) as pool:
        return {address: answer for found in pool.map(visit, hosts.values()) for address, answer in found.items()}


def main() -> None:
    links = collect(ROOT)
    answers = check_all(links)
    for wanted in (CANNOT_TELL, DEAD):  # what matters most comes last
        for address, (state, why) in sorted(answers.items()):
            if state == wanted:
                print(f"{', '.join(links[address])}: {address}: {state} ({why})")
    counts = Counter(state for state, _ in answers.values())
    print(f"{len(links)} links: " + ", ".join(f"{counts[state]} {state}" for state in (ALIVE, CANNOT_TELL, DEAD)))
    sys.exit(not links or counts[DEAD] > 0)


if __name__ == "__main__":
    main()
