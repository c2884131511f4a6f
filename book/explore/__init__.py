"""Interactive figures. Each is a script, `softmax.js`, with a reference, `softmax.py`, which computes the same
numbers with the library; `figures.yml` says below which figures they stand. The scripts share numbers.js, text.js,
axes.js and box.js, which build on one another. What they say is stored in `labels`, and compared.
"""
