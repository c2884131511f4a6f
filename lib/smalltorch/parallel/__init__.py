"""Parallelism over several processes: launching them, their communication, and the ways to split a model."""
