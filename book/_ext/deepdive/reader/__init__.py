"""The reader's edition of each chapter: its notebook in Markdown that every front end reads.

markdown    the MyST of a cell as plain Markdown
edition     a notebook as a reader opens it
write       the editions, beside the pages
"""
