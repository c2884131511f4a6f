"""Essay pages: verdicts within the text, and the line that says which claims the essay settles.

{claim}`C150`   a verdict, which leads to its row on the page of the ledger that the essay has
{settled}       what the essay settles, in one line, as a chapter's last cell has it
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from deepdive.book.chapter import Chapter
from deepdive.book.contents import ledger_page
from deepdive.claims import settled_line
from deepdive.page.directive import BookDirective
from deepdive.page.links import link
from deepdive.page.verdicts import mark
from smalltorch.engine.schema import anchor

logger = logging.getLogger(__name__)


class ClaimRole(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        chapter: Chapter | None = self.env.book_records.pages.get(self.env.docname)
        record = next((record for record, _ in chapter.records if record.claim == self.text), None) if chapter else None
        if chapter is None or record is None or record.kind is None:
            logger.warning("%s has no verdict here", self.text, location=self.get_location(), type="ledger")
            return [], []
        return [link([mark(record.kind)], ledger_page(chapter.name), f"#{anchor(record.claim)}")], []


class Settled(BookDirective):
    def run(self) -> list[nodes.Node]:
        return [settled_line(self.book, self.book.pages[self.env.docname])]


def setup(app: Sphinx) -> None:
    app.add_role("claim", ClaimRole())
    app.add_directive("settled", Settled)
