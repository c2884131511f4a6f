"""The table: an entry for every public callable outside the engine."""

from . import (
    caches,
    compress,
    costs,
    efficient,
    efficient_low_rank,
    features,
    files,
    finding,
    machines,
    measures,
    mixtures,
    parts,
    positions,
    states,
    steps,
    superposing,
)

GROUPS = {
    "parts": parts.ENTRIES,
    "caches": caches.ENTRIES,
    "positions": positions.ENTRIES,
    "efficient": efficient.ENTRIES,
    "steps": steps.ENTRIES,
    "machines": machines.ENTRIES,
    "mixtures": mixtures.ENTRIES,
    "collapse": measures.COLLAPSE,
    "spectral": measures.SPECTRAL,
    "measure": measures.MEASURE,
    "curvature": measures.CURVATURE,
    "features": features.ENTRIES,
    "low-rank": efficient_low_rank.ENTRIES,
    "files": files.ENTRIES,
    "states": states.ENTRIES,
    "costs": costs.ENTRIES,
    "compress": compress.ENTRIES,
    "superpose": superposing.ENTRIES,
    "circuits": finding.ENTRIES,
}
ENTRIES = [entry for group in GROUPS.values() for entry in group]
