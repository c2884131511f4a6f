"""Efficient attention: costs, sparse masks, low rank, hashing, random features, linear attention, reversible layers."""
