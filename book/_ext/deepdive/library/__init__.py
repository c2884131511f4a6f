"""The library's page: `reference` reads the library's source, `page` shows it."""
