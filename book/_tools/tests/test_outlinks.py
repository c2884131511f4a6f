"""Links out of the book are found wherever they stand, and a dead one is told from one that only refuses scripts."""

import json
import socket
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import outlinks
from outlinks import ALIVE, CANNOT_TELL, DEAD

ROOT = Path(__file__).resolve().parents[3]
STATUS = {
    "/alive": 200,
    "/gone": 404,
    "/never": 410,
    "/broken": 500,
    "/forbidden": 403,
    "/busy": 429,
    "/doi/10.1000/unknown": 404,
}
MOVED = {"/moved": "/alive", "/moved-and-gone": "/gone", "/circle": "/circle", "/doi/10.1000/known": "/forbidden"}
PAGE = """\
One [link](https://a.example/one), another <https://a.example/two?x=1&y=2>, and https://a.example/three.
A name with brackets: [it](https://a.example/Norm_(mathematics)). Again: https://a.example/one.
Its DOI: 10.1000/182; no link: ftp://a.example/four, [a page](reading.md).
"""
REFERENCES = """\
% checked: https://a.example/comment
@article{one,
  title  = {One},
  doi    = {10.1016/j.neucom.2023.127063},
  note   = {Journal version, doi:10.1109/TPAMI.2024.3386927}
}
@misc{two,
  url    = {https://a.example/two},
  eprint = {1706.03762},
}
@misc{three, eprint = "hep-th/9901001"}
"""


class Handler(BaseHTTPRequestHandler):
    """Answers by the path; counts how many questions are open at once, and keeps who asked."""

    def do_HEAD(self):
        with self.server.lock:
            self.server.open += 1
            self.server.most_open = max(self.server.most_open, self.server.open)
            self.server.asked.append((self.command, self.path, self.headers["User-Agent"]))
        self.answer()
        with self.server.lock:
            self.server.open -= 1

    do_GET = do_HEAD

    def answer(self):
        if self.path == "/slow":
            self.server.finished.wait(10)
        if self.path.startswith("/takes-time"):
            time.sleep(0.05)
        if self.path == "/no-head":
            self.send_response(405 if self.command == "HEAD" else 200)
        elif self.path in MOVED:
            self.send_response(302)
            self.send_header("Location", MOVED[self.path])
        else:
            self.send_response(STATUS.get(self.path, 200))
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    """A server on this machine, which also resolves DOIs; it is not waited for longer than a test can bear."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.lock, server.finished = threading.Lock(), threading.Event()
    server.open, server.most_open, server.asked = 0, 0, []
    server.address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(outlinks, "RESOLVER", f"{server.address}/doi/")
    monkeypatch.setattr(outlinks, "TIMEOUT", 0.5)
    monkeypatch.setattr(outlinks, "PAUSE", 0)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.finished.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("path", "state", "why"),
    [
        ("/alive", ALIVE, "200"),
        ("/alive#section", ALIVE, "200"),
        ("/größe", ALIVE, "200"),
        ("/no-head", ALIVE, "200"),
        ("/moved", ALIVE, "200"),
        ("/moved-and-gone", DEAD, "404"),
        ("/circle", DEAD, "302"),
        ("/gone", DEAD, "404"),
        ("/never", DEAD, "410"),
        ("/broken", DEAD, "500"),
        ("/slow", DEAD, "timed out"),
        ("/forbidden", CANNOT_TELL, "403"),
        ("/busy", CANNOT_TELL, "429"),
        ("/doi/10.1000/known", ALIVE, "302"),
        ("/doi/10.1000/unknown", DEAD, "404"),
    ],
)
def test_what_a_server_says_is_understood(server, path, state, why):
    found = outlinks.check(server.address + path)
    assert found[0] == state and why in found[1]


def test_an_address_without_a_server_is_dead():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert outlinks.check(f"http://127.0.0.1:{port}/")[0] == DEAD


def test_an_address_that_is_none_is_dead():
    assert outlinks.check("http://[/")[0] == DEAD


def test_who_asks_says_so_and_refusal_is_not_argued_with(server):
    outlinks.check(f"{server.address}/busy")
    assert server.asked == [("HEAD", "/busy", outlinks.AGENT)]


def test_a_host_is_asked_one_question_at_a_time_with_a_pause_between(server, monkeypatch):
    naps, sleep = [], time.sleep
    monkeypatch.setattr(outlinks, "PAUSE", 0.001)
    monkeypatch.setattr(outlinks.time, "sleep", lambda seconds: (naps.append(seconds), sleep(seconds)))
    addresses = [f"{server.address}/takes-time/{number}" for number in range(4)]
    assert outlinks.check_all(addresses) == dict.fromkeys(addresses, (ALIVE, "200"))
    assert server.most_open == 1
    assert naps.count(0.001) == 3


def test_addresses_are_found_in_text():
    assert outlinks.in_text(PAGE) == {
        "https://a.example/one",
        "https://a.example/two?x=1&y=2",
        "https://a.example/three",
        "https://a.example/Norm_(mathematics)",
        "https://doi.org/10.1000/182",
    }


def test_addresses_and_identifiers_are_found_in_a_bibliography():
    assert outlinks.in_bibliography(REFERENCES) == {
        "https://doi.org/10.1016/j.neucom.2023.127063",
        "https://doi.org/10.1109/TPAMI.2024.3386927",
        "https://a.example/two",
        "https://doi.org/10.48550/arXiv.1706.03762",
        "https://doi.org/10.48550/arXiv.hep-th/9901001",
    }


def test_addresses_are_found_in_the_text_of_a_notebook_and_not_in_its_code():
    cells = [
        {"cell_type": "markdown", "source": ["See [a](https://a.example/", "one)."]},
        {"cell_type": "code", "source": "get('https://a.example/code')", "outputs": []},
    ]
    assert outlinks.in_notebook(json.dumps({"cells": cells})) == {"https://a.example/one"}


def make_book(root, server, *paths):
    (root / "book/parts").mkdir(parents=True)
    (root / "notebooks/part").mkdir(parents=True)
    links = "\n".join(server.address + path for path in paths)
    (root / "book/parts/part.md").write_text(links, encoding="utf-8")
    (root / "book/references.bib").write_text("@misc{a, doi = {10.1000/known}}", encoding="utf-8")
    cell = {"cell_type": "markdown", "source": f"[Here]({server.address}/alive)."}
    (root / "notebooks/part/chapter.ipynb").write_text(json.dumps({"cells": [cell]}), encoding="utf-8")


def run(root, monkeypatch):
    monkeypatch.setattr(outlinks, "ROOT", root)
    with pytest.raises(SystemExit) as left:
        outlinks.main()
    return int(left.value.code)


def test_a_dead_link_is_named_with_the_file_that_has_it(server, tmp_path, monkeypatch, capsys):
    make_book(tmp_path, server, "/alive", "/gone", "/forbidden")
    assert run(tmp_path, monkeypatch) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"book/parts/part.md: {server.address}/forbidden: cannot tell (403 Forbidden)",
        f"book/parts/part.md: {server.address}/gone: dead (404 Not Found)",
        "4 links: 2 alive, 1 cannot tell, 1 dead",
    ]
    assert Counter(path for _, path, _ in server.asked)["/alive"] == 1  # in two files, asked for once


def test_what_only_refuses_scripts_is_no_failure(server, tmp_path, monkeypatch, capsys):
    make_book(tmp_path, server, "/alive", "/busy")
    assert run(tmp_path, monkeypatch) == 0
    assert capsys.readouterr().out.endswith("3 links: 2 alive, 1 cannot tell, 0 dead\n")


def test_a_book_without_links_is_a_failure(tmp_path, monkeypatch):
    assert run(tmp_path, monkeypatch) == 1


def test_this_book_has_links_in_its_bibliography():
    found = [files for address, files in outlinks.collect(ROOT).items() if address.startswith(outlinks.RESOLVER)]
    assert len(found) > 50 and all("book/references.bib" in files for files in found)
