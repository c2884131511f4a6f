"""Every public callable outside the engine, with its domain and an oracle, and what becomes of bad input.

    kinds      the kinds of arguments: how a valid one is drawn, and the ways in which it can be bad
    judge      an entry of the table, a call, and what is to be said of it
    formulas   what the library computes, written a second time, in NumPy and mpmath
    table      the entries, by module: parts, positions, steps, machines, measures, files
    public     the walk through the library, for callables that the table lacks

`test_oracles.py` runs it all. A table of the outcomes, callable by callable, is printed by

    PYTHONPATH=lib:lib/tests python -m oracles [NAME ...]

and of an older library by putting the folder that it lies in first.
"""
