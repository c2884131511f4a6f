"""The engine: derivations, numerical checks, and the record that both leave. Nothing is imported here.

kernel                              facts, and the rules that they come out of
context  domain  differentiate      what the rules ask of one expression
sums  regroup  signs  interval
trial  witness  refute              numbers that hold a step, show an instance, or break a step
derive  display  names  scope       chains of checked steps, written proofs; how they are shown and named
lemmas                              proved once, with their proofs
refusal                             how the engine refuses
sample  show  verify                random inputs, numbers as text, checks that attack
schema  ledger                      what a record is; who writes one
"""
