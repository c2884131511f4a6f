"""The engine: derivations, numerical checks, and the record that both leave. Nothing is imported here.

kernel                              facts, and the rules that they come out of
context  domain  differentiate      what the rules ask of one expression
sums  regroup  signs  interval
trial  witness  refute              numbers that hold a step, show an instance, or break a step
derive  display  typeset  names  scope   chains of checked steps, written proofs; how they are shown and named
lemmas                              proved once, with their proofs
refusal                             how the engine refuses
sample  statement  search           random inputs, two sides at them, and the attack that begins there
rounding  balls                     what rounding explains: an estimate, and a bound
verify  facts  check  show          checks that decide, rows of facts, what both leave; numbers as text
effects  statistics  contrasts      experiments: a 95 % interval, and thresholds stated before the data
words                               the text of a chapter, held against what it computed
schema  ledger                      what a record is; who writes one
"""
