"""The engine: symbolic derivations, numeric checks, and the record of both. Nothing is imported here.

kernel                              facts, and the rules that they come out of
context  domain  differentiate      what the rules ask of one expression; how bound names are handled
binders  sums  merge_sums  signs  interval
combine                             a sum of hypotheses that shows a sign, for the kernel to check
spot_check  witness  refute              numbers that hold a step, show an instance, or break a step
derive  display  typeset  names  scope   chains of checked steps, written proofs; how they are shown and named
lemmas                              proved once, with their proofs
refusal  readonly                   how the engine refuses; what is read and not changed
sample  statement  search           random inputs, two sides at them, and the attack that begins there
rounding  balls                     what rounding explains: an estimate, and a bound
verify  facts  check  show          checks that decide, rows of facts, what both leave; numbers as text
effects  statistics  contrasts      experiments: a 95 % interval, and thresholds stated before the data
words  printed  written             the text of a chapter, held against what it computed; numbers in a text, or typed
schema  objects  ledger             what a record is, and what it names; who writes one
"""
