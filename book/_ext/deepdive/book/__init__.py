"""The book's data model, independent of Sphinx: pages, checks and reports all read it."""
