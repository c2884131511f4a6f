"""Long experiments, each with its stored table: `python -m smalltorch.experiments.NAME` makes `NAME.csv`.

Chapters read the tables (`table.stored`) and repeat a row. The cases of a run are tasks of Dask (`runner`).
"""
