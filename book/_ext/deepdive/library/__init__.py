"""The library's API page: `reference` parses the library's source, `page` renders it."""
