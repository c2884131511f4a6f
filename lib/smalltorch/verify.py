from smalltorch.engine.verify import *  # noqa: F403  where this module stood before
