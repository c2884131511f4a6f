"""What the writer of the editions takes from the book."""

import pytest
from pybtex.database import Entry, Person

from deepdive.reader.write import cited_as


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["Su, Ada"], "Su, 2024"),
        (["van der Su, Ada", "{Kim}, Bo"], "van der Su and Kim, 2024"),
        (["Su, Ada", "Kim, Bo", "Lu, Cy"], "Su et al., 2024"),
    ],
)
def test_a_work_of_three_is_cited_by_the_first(names, said):
    entry = Entry("article", {"year": "2024"}, persons={"author": [Person(name) for name in names]})
    assert cited_as(entry) == said
