"""The book as plain data. Nothing here knows of Sphinx: pages, checks and reports all read it."""
