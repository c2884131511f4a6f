"""One model on several processes: starting them, what they say to each other, and the ways to split a model."""
