"""smalltorch: Transformers small enough to read, and an engine that checks mathematical statements about them.

    attention  position  norm  block     the parts
    models                               the models that are built from them
    weights  hub                         trained weights, and models of others
    generate  source  train              text, and small trainings
    initialisation  optim  schedules     first weights, the steps of optimisers, learning rates
    spectral  measure  collapse          how much attention amplifies, how alike tokens become
    curvature                            how steep a loss is
    efficient                            what makes attention cheaper, and what layers cost
    parallel                             one model on several processes
    experts  cache                       mixtures, and what a cache may forget
    compress                             fewer bits and weights
    attribute  superpose  circuits       what an output is due to; features that share a space, heads at work
    engine                               derivations, numerical checks, the record
    experiments                          long runs, with their tables
    data  files                          the book's texts, files written whole
    figures                              plots, drawings, and how they become SVG
    shapes                               checks of arguments

Import the module that you need: `from smalltorch.attention import attention`.
"""

__version__ = "0.2.0"
