"""What `conftest` lets annotations be checked with: beartype, to which an integer is a float too, as PEP 484 has it."""

from beartype import BeartypeConf, beartype

typecheck = beartype(conf=BeartypeConf(is_pep484_tower=True))
