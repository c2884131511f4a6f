"""Fix sphinx-proof where a proof begins with a list: its word “Proof.” must not become part of the first item."""

import re

from docutils.nodes import Node
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx_proof.directive import ProofDirective

ITEM = re.compile(r"(\d+[.)]|[-*+]) ")


class Proof(ProofDirective):
    def run(self) -> list[Node]:
        if ITEM.match(self.content[0]):
            self.content = StringList(["", *self.content], self.content.source(0))
        return super().run()


def setup(app: Sphinx) -> None:
    app.add_directive_to_domain("prf", "proof", Proof, override=True)
