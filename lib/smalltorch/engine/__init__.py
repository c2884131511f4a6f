"""The engine: derivations, numerical checks, and the record that both leave. Nothing is imported here.

sums  signs  refute      what a derivation stands on
derive                   chains of checked steps, written proofs
sample  show  verify     random inputs, numbers as text, checks that attack
schema  ledger           what a record is; who writes one
"""
