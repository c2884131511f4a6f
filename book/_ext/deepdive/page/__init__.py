"""Shared components of generated pages: the base directive, tables, filters, links and verdicts."""
