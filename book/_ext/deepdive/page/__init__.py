"""What the generated pages share: the base of their directives, tables, filters, links and verdicts."""
