"""Figures that move. Each is a script, `softmax.js`, and beside it its reference, `softmax.py`, which computes the same
numbers with the library; `figures.yml` says below which figures they stand. The scripts share numbers.js, words.js,
axes.js and box.js, which build on one another. What they say is stored in `labels`, and compared.
"""
