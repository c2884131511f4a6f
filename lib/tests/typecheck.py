"""What the import hook of `conftest` checks annotations with: beartype, to which an integer is a float too (PEP 484)."""

from beartype import BeartypeConf, beartype

typecheck = beartype(conf=BeartypeConf(is_pep484_tower=True))
