from smalltorch.engine.derive import *  # noqa: F403  where this module stood before
