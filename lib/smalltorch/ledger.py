from smalltorch.engine.ledger import *  # noqa: F403  where this module stood before
