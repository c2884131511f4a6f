"""Metadata for search engines, link previews and dead links: descriptions, preview images, sitemap and 404 page.

plain         a formula as text without markup
description   what a page is about, in its own first words
picture       cards and the touch icon, as PNG
head          what of this stands in the head of each page
site          the public address, and the files that stand at it
"""
