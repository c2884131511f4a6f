"""smalltorch: Transformers small enough to read, and an engine that checks what is said about them.

    attention  norm  block  models  spectral    the Transformer and its real weights
    transformer  convert  generate  train       older machines, others' weights, text, small trainings
    sums  derive  verify  ledger                derivations, numerical checks, the record

Import the module that you need: `from smalltorch.attention import attention`.
"""

__version__ = "0.1.0"
