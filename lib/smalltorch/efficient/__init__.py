"""What makes attention cheaper, and what it gives up: a module each for its cost, masks, ranks, features and states."""
