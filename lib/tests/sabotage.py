"""Sabotage: one small fault at a time, and the tests that own it must fail.

    python lib/tests/sabotage.py --engine    the faults of the engine
    python lib/tests/sabotage.py --rest      all others
    python lib/tests/sabotage.py             all of them
    python lib/tests/sabotage.py norm        those of smalltorch/norm.py

A fault is put into a copy of lib/; nothing here is changed. It is noticed if a test fails: not if the tests cannot run.
Add one as a line: module, the text that stands there (exactly once), the text that replaces it, and what owns it:
tests ("test_norm::test_derivatives") or notebooks ("spectrum/norm-bounds", run with nbval).
"""

import argparse
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ("sums", "signs", "refute", "derive", "verify", "ledger", "sample", "show")
PARALLEL = 2
SECONDS = 300  # a fault that makes its tests hang is noticed
PYTEST = ["-x", "-q", "-c", os.devnull, "--rootdir=.", "-p", "no:cacheprovider"]
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["torch", "sympy", "hypothesis", "jaxtyping", "beartype", "pytest"])


class Fault(NamedTuple):
    module: str
    old: str
    new: str
    owners: tuple[str, ...]


# One fault a line, however long.
# fmt: off
# ruff: noqa: E501
FAULTS = [
    # the normal form
    ("sums", "bound[p] in (bound.get(q), free_ranges.get(q))", "p in bound", "test_sums::test_falsehoods"),
    ("sums", "and len(factor.args) == 2:", "and factor.args:", "test_sums::test_falsehoods"),
    ("sums", "return Mul(*factors, hi - lo + 1), rest", "return Mul(*factors, hi - lo), rest", "test_sums::test_counting"),
    ("derive", "if any(not entry.base.label.is_commutative for entry in expr.atoms(Indexed)):", "if False:", "test_derive::test_factors_that_do_not_commute"),
    ("sums", "commutative=bool(e.is_commutative)", "commutative=True", "test_sums::test_falsehoods"),
    ("sums", "[Mul(*ordered)] if ordered else []", "ordered", "test_sums::test_falsehoods"),
    ("sums", "Mul(*[value if f is users[0] else f for f in factors])", "Mul(value, *[f for f in factors if f is not users[0]])", "test_sums::test_factors_that_do_not_commute"),
    ("sums", "if len(users) == 1:", "if users:", "test_sums::test_a_rule_needs_its_index_in_one_factor"),
    ("sums", "if tuple(e.xreplace(values) for e in rule.range) == bound[index]:", "if True:", "test_sums::test_a_rule_applies_to_its_own_sum_only"),
    ("sums", "if tuple(e.xreplace(values) for e in rule.range)", "if rule.range", "test_sums::test_the_range_of_a_rule_is_that_of_its_instance"),
    ("sums", "not any(index in v.free_symbols for v in values.values())", "True", "test_sums::test_a_rule_applies_to_its_own_sum_only"),
    ("sums", "_flatten(rename_bound(expr))", "_flatten(expr)", "test_sums::test_a_delta_does_not_capture"),
    ("sums", "return [term for arg in expr.args for", "return [term for arg in expr.args[1:] for", "test_sums::test_fuzz"),
    ("sums", 'Dummy(f"k{i}", integer=True) for i', 'Symbol(f"k{i}", integer=True) for i', "test_sums::test_falsehoods"),
    ("sums", "names[index] = Dummy(index.name, integer=True)", "names[index] = index", "test_sums::test_match_does_not_capture"),
    ("sums", "if not is_range(lo, hi):", "if False:", "test_sums::test_refusals"),
    ("sums", "for v in values if not lacking(v, i)", "for v in values", "test_sums::test_declared_properties_of_a_free_index_bind"),
    ("sums", ".get(value) == value_range for", ".get(value, value_range) == value_range for", "test_sums::test_match_respects_ranges"),
    # signs
    ("signs", "return _OPPOSITE[result] if negatives % 2 else result", "return result", "test_signs::test_seen"),
    ("signs", "if not expr.exp.is_nonnegative and not nonzero:", "if False:", "test_signs::test_not_seen"),
    ("signs", "if expr.exp.is_even and is_real(expr.base):", "if expr.exp.is_even:", "test_signs::test_not_seen"),
    ("signs", "        if not is_range(lo, hi):\n            return None\n", "", "test_signs::test_not_seen"),
    ("signs", "if inner in (POSITIVE, NEGATIVE) and not nonempty:", "if False:", "test_signs::test_a_sum_that_may_be_empty_is_not_positive"),
    ("signs", "return _OPPOSITE[stated]", "return stated", "test_signs::test_hypotheses"),
    ("signs", "    if None in signs:\n        return None\n", "", "test_signs::test_not_seen"),
    # derivations
    ("derive", "left - right if relation in", "right - left if relation in", "test_derive::test_strict_steps"),
    ("derive", "        if rest != 0:\n            raise StepError", "        if False:\n            raise StepError", "test_derive::test_false_equalities"),
    ("derive", "self._demand_zero(larger_minus_smaller - gap,", "self._demand_zero(S.Zero,", "test_derive::test_a_certificate_of_another_gap"),
    ("derive", 'self._demand_sign(gap, holds, "the gap")', "pass", "test_derive::test_a_false_inequality_with_a_plausible_certificate"),
    ("derive", "holds = is_positive if relation in", "holds = is_nonnegative if relation in", "test_derive::test_a_false_inequality_with_a_plausible_certificate"),
    ("derive", 'raise StepError(f"{self.name}: ≤ and ≥ in', 'str(f"{self.name}: ≤ and ≥ in', "test_derive::test_mixed_directions"),
    ("derive", "if not self._follows(hypothesis):", "if False:", "test_derive::test_missing_hypotheses_of_a_lemma"),
    ("derive", "if not inside and self.ranges.get(value) != (lo, hi):", "if False:", "test_derive::test_a_lemma_with_ranges_holds_within_them"),
    ("derive", "        if self.evidence is None:\n            raise", "        if False:\n            raise", "test_derive::test_an_unfinished_lemma"),
    ("derive", "    for name in lacking(sympify(value), declared):", "    for name in ():", "test_derive::test_values_must_have_the_declared_properties"),
    ("derive", "if not power.exp.is_nonnegative and not self._is_nonzero", "if power.exp == -2 and not self._is_nonzero", "test_derive::test_undeclared_denominators"),
    ("derive", "if expr.has(Float, ", "if expr.has(", "test_derive::test_floats_infinities_and_cases"),
    ("derive", "class _OutOfTime(BaseException):", "class _OutOfTime(Exception):", "test_derive::test_a_swallowed_time_out_still_fails"),
    ("derive", 'self._demand_zero(at_base, f"the base', 'str(f"the base', "test_derive::test_induction_needs_its_base"),
    ("derive", "if not (by.n.is_integer and (by.n - by.base).is_nonnegative):", "if False:", "test_derive::test_induction_starts_at_the_least_value"),
    ("derive", "if self._mentioned(by.n):", "if False:", "test_derive::test_induction_does_not_use_a_hypothesis_of_one_n"),
    ("derive", 'self._demand_sign(stated, is_nonnegative, "the gain")', "pass", "test_derive::test_induction_needs_a_true_gain"),
    ("derive", 'self._demand_sign(slope, is_nonnegative, "the slope")', "pass", "test_derive::test_monotone_must_hold_on_the_whole_way"),
    ("derive", "self._check_smooth(gap, by.x)", "pass", "test_derive::test_monotone_notices_a_jump"),
    ("derive", "self._unfold(rename_bound(expr))", "self._unfold(expr)", "test_derive::test_a_fact_about_one_index_is_not_about_all"),
    ("derive", "        for fact in self.facts:\n            text", "        for fact in self.facts[1:]:\n            text", "test_derive::test_everything_assumed_is_shown"),
    # numeric checks
    ("verify", "if worst.ratio > 1 + allowance:", "if worst.ratio > 2 + allowance:", "test_verify::test_a_false_statement_names_its_input"),
    ("verify", "limit=1 + allowance)", "limit=2 + allowance)", "test_verify::test_a_small_violation_after_equality_is_noticed"),
    ("verify", "if worst.ratio < by:", "if worst.ratio < 0:", "test_verify::test_fails_demands_a_violation"),
    ("verify", ", maximize=True)", ")", "test_verify::test_the_gradient_attack_climbs"),
    ("verify", "    if error > allowance:", "    if error > 1e6 * allowance:", "test_verify::test_unequal"),
    ("verify", "(a - b).abs().amax(1)", "(a - b).abs().amin(1)", "test_verify::test_unequal"),
    ("verify", "    if (rhs < 0).any():", "    if False:", "test_verify::test_a_negative_right_side_is_refused"),
    ("verify", "torch.zeros_like(lhs), lhs / rhs)", "torch.ones_like(lhs), lhs / rhs)", "test_verify::test_zero_over_zero_says_nothing_about_tightness"),
    ("verify", "if not torch.isfinite(x).all():", "if False:", "test_verify::test_nan_and_infinity"),
    ("verify", "if choices**length <= 4096:", "if choices**length <= 4:", "test_verify::test_structured_search_is_exhaustive_where_it_can_be"),
    ("verify", "best, value = neighbours[scores.argmax()]", "best, value = neighbours[scores.argmin()]", "test_verify::test_structured_search_beats_random"),
    ("verify", "if not shapes or any(", "if any(", "test_verify::test_no_inputs"),
    ("verify", "mean - 2 * error > above", "mean + 2 * error > above", "test_verify::test_measured_too_near_or_beyond"),
    ("verify", "tolerance * (abs(float(expected)) or 1.0)", "1.0", "test_verify::test_computed_names_the_first_wrong_row"),
    ("verify", "self.seen += len(lhs)", "self.seen += 2 * len(lhs)", "test_verify::test_the_number_of_inputs_is_counted"),
    # the record
    ("ledger", "if not any(e.kind in needed for e in evidence):", "if not evidence:", "test_ledger::test_weak_evidence_decides_nothing"),
    ("ledger", "not any(e is done for done in _executed)", "False", "test_ledger::test_evidence_comes_from_checks_of_this_chapter"),
    ("ledger", "    _executed.append(evidence)\n", "", "test_ledger::test_a_chapter_that_settles_its_claims"),
    ("ledger", "if len(_executed) < self.checks:", "if not _executed:", "test_ledger::test_close_demands_all_claims_and_all_checks"),
    ("ledger", "        if missing:\n", "        if False:\n", "test_ledger::test_close_demands_all_claims_and_all_checks"),
    ("ledger", "        _executed.clear()\n", "", "test_ledger::test_a_chapter_counts_from_its_beginning"),
    # refutations and numbers as text
    ("refute", "return None if TRUE[relation](a, b) else", "return", "test_refute::test_true_steps_are_not"),
    ("show", "digits - 1 - exponent)", "digits - exponent)", "test_show::test_number"),
    # attention
    ("attention", "scale = 1 / math.sqrt(sizes[\"d_h\"])", "scale = 1 / sizes[\"d_h\"]", "test_attention::test_attention_equals_torch"),
    ("attention", "dtype=torch.bool).tril()", "dtype=torch.bool).tril(1)", "test_attention::test_causal_mask_lets_token_i_see_up_to_i"),
    ("attention", "S.masked_fill(~mask, -math.inf)", "S.masked_fill(mask, -math.inf)", "test_attention::test_attention_equals_torch"),
    ("attention", "return E / Z.masked_fill(Z == 0, 1)", "return E / Z", "test_attention::test_softmax_of_a_fully_masked_row_is_zero_with_zero_gradient"),
    ("attention", "S - top.masked_fill(top == -math.inf, 0)", "S", "test_attention::test_softmax_neither_overflows_nor_underflows"),
    ("attention", "x * cos - y * sin, x * sin + y * cos", "x * cos + y * sin, y * cos - x * sin", "test_attention::test_rope_angles"),
    ("attention", "torch.arange(start, start + n,", "torch.arange(start + 1, start + n + 1,", "test_attention::test_rope_is_a_rotation_that_fixes_position_0"),
    ("attention", "K.repeat_interleave(self.heads // self.kv_heads, dim=-3)", "K.repeat(self.heads // self.kv_heads, 1, 1)", "test_attention::test_shared_key_and_value_heads_equal_torch"),
    # norms
    ("norm", "centred.square().mean(-1, keepdim=True)", "centred.square().sum(-1, keepdim=True) / (X.shape[-1] - 1)", "test_norm::test_layer_norm_equals_torch"),
    ("norm", "centred / torch.sqrt(variance + eps)", "centred / (torch.sqrt(variance) + eps)", "test_norm::test_layer_norm_equals_torch"),
    ("norm", "centred / (torch.sqrt(variance) + eps)", "centred / torch.sqrt(variance + eps)", "test_norm::test_two_conventions_by_hand"),
    ("norm", "Y = gamma * Y\n", "Y = Y\n", "test_norm::test_layer_norm_equals_torch"),
    ("norm", "X / torch.sqrt(X.square().mean", "X / torch.sqrt((X - X.mean(-1, keepdim=True)).square().mean", "test_norm::test_rms_norm_equals_torch"),
    ("norm", "self.gamma, self.beta = nn.Parameter(torch.ones(d))", "self.gamma, self.beta = nn.Parameter(1.01 * torch.ones(d))", "test_norm::test_a_fresh_norm_equals_torchs_fresh_one"),
    ("norm", "self.gamma, self.eps = nn.Parameter(torch.ones(d))", "self.gamma, self.eps = nn.Parameter(1.01 * torch.ones(d))", "test_norm::test_a_fresh_norm_equals_torchs_fresh_one"),
    # blocks
    ("block", "return X + self.ffn(self.norm_2(X))", "return self.ffn(self.norm_2(X))", "test_block::test_block_equals_torch"),
    ("block", "X = X + self.attention(self.norm_1(X)", "X = X + self.attention(X", "test_block::test_block_equals_torch"),
    ("block", "return self.norm_2(X + self.ffn(X))", "return X + self.norm_2(self.ffn(X))", "test_block::test_block_equals_torch"),
    ("block", "F.silu(X @ self.W_gate) * (X @ self.W_up)", "F.silu(X @ self.W_up) * (X @ self.W_gate)", "test_block::test_swiglu_by_its_formula"),
    ("block", "causal = mask.masked_fill(~causal, False)", "causal = mask", "test_block::test_masks_hide_padding"),
    # the spectral norm
    ("spectral", "(Mv / v).amax((-2, -1))", "(Mv / v).amin((-2, -1))", "test_spectral::test_encloses_norms_of_attention_matrices"),
    ("spectral", "(Mv / v).amax((-2, -1)).sqrt() * widen", "(Mv / v).amax((-2, -1)).sqrt()", "test_spectral::test_widened_for_rounding"),
    ("spectral", "v.norm(dim=(-2, -1)) / widen", "v.norm(dim=(-2, -1))", "test_spectral::test_widened_for_rounding"),
    ("spectral", "    v = v + FLOOR\n", "", "test_spectral::test_bounds_hold_where_the_norm_is_known"),
    ("spectral", ".masked_fill(largest == 0, 0)", "", "test_spectral::test_bounds_hold_where_the_norm_is_known"),
    ("spectral", "keepdim=True).clamp(min=1)", "keepdim=True)", "test_spectral::test_bounds_hold_where_the_norm_is_known"),
    ("spectral", "nextafter(upper * largest, torch.full_like(upper, torch.inf))", "nextafter(upper * largest, torch.zeros_like(upper))", "test_spectral::test_scale_does_not_matter"),
    ("spectral", "upper[wide] = torch.minimum(upper[wide], high)", "upper[:len(high)] = high", "test_spectral::test_parts_of_a_batch_and_matrices_that_drop_out_keep_their_places"),
    ("spectral", "_iterate(A[wide], Mv[wide], rounds[1:], rtol)", "_iterate(A[:len(wide)], Mv[:len(wide)], rounds[1:], rtol)", "test_spectral::test_parts_of_a_batch_and_matrices_that_drop_out_keep_their_places"),
    ("spectral", "(least >= 0) & (largest < torch.inf)", "(largest < torch.inf)", "test_spectral::test_bad_input_is_named"),
    ("spectral", "cholesky_ex(H).info == 0", "cholesky_ex(H).info >= 0", "test_spectral::test_fallback_refuses_a_bound_that_is_too_small"),
    ("spectral", "scale = 1 / math.sqrt(d_h) if scale is None", "scale = 1 / d_h if scale is None", "test_spectral::test_matrix_free_agrees_with_the_matrix"),
    ("spectral", "~causal_mask(stop - start).to", "~causal_mask(stop - start).mT.to", "test_spectral::test_matrix_free_agrees_with_the_matrix"),
    ("spectral", "seen = stop if causal else n", "seen = stop", "test_spectral::test_matrix_free_in_blocks_of_rows"),
    ("spectral", "Mv[:, :, :seen] += ", "Mv[:, :, :seen] = ", "test_spectral::test_matrix_free_in_blocks_of_rows"),
    ("spectral", "q, k = q.double(), k.double()", "q, k = q.float().double(), k.float().double()", "test_spectral::test_matrix_free_where_float32_overflows"),
    ("spectral", "low, high = _quotients(v, Av, Mv, widen)", "low, high = _quotients(v, Av, Mv, 1.0)", "test_spectral::test_matrix_free_allowance_grows_with_the_logits"),
    ("spectral", ".clamp(min=1e-150)", "", "test_spectral::test_matrix_free_allowance_survives_underflow"),
    ("spectral", "if columns > rows:", "if False:", "test_spectral::test_slow_matrices_of_few_rows_cost_no_more_than_their_rows"),
    ("spectral", "v = torch.where(((v > 0) & (v <= 1)).all(-1, keepdim=True), v, 1)", "pass", "test_spectral::test_matrix_free_is_vouched_for_in_float64"),
    ("spectral", "sdpa_kernel(FUSED)", "sdpa_kernel([SDPBackend.MATH])", "test_spectral::test_matrix_free_memory_is_linear"),
    ("spectral", "is_causal=causal, scale=scale)", "is_causal=not causal, scale=scale)", "test_spectral::test_fused_attention_proposes"),
    ("spectral", "    if q.dtype in HALF:\n        return Estimate(lower)\n", "", "test_spectral::test_matrix_free_below_float32_is_an_estimate"),
    ("spectral", "dtype=torch.float64).tril() /", "dtype=torch.float64).triu() /", "spectrum/causal"),
    # the command
    ("spectrum", "back = torch.cat(batches).argsort()", "back = torch.cat(batches)", "test_spectrum::test_a_saved_model_is_measured_text_by_text"),
    ("spectrum", "if not A or any(layer is None for layer in A):", "if False:", "test_spectrum::test_a_model_that_hides_its_weights_is_refused"),
    ("spectrum", "heads = spectrum.lower.mean(1)", "heads = spectrum.lower.mean(2)", "test_spectrum::test_baselines_and_table_by_hand"),
    ("spectrum", "n.double().sqrt().mean()", "n.double().mean().sqrt()", "test_spectrum::test_baselines_and_table_by_hand"),
    # the trained models
    ("models", "transpose(1, 2).flatten(0, 2)", "flatten(0, 2)", "test_models::test_smollm2_equals_transformers"),
    ("models", "if found != sha256:", "if False:", "test_models::test_altered_weights_are_refused"),
    # whole models
    ("transformer", 'partial(F.gelu, approximate="tanh")', 'partial(F.gelu, approximate="none")', "test_transformer::test_decoders_equal_transformers"),
    ("transformer", 'LayerNorm(d, eps) if norm == "pre" else nn.Identity()', "LayerNorm(d, eps)", "test_transformer::test_gpt_2_has_a_last_norm_and_gpt_1_has_none"),
    ("transformer", "causal_mask(past + n)[past:]", "causal_mask(past + n)[:n]", "test_transformer::test_a_cache_changes_nothing"),
    ("transformer", "self.norm_2(X + self.cross(X, memory, memory_mask)[0])", "self.norm_2(self.cross(X, memory, memory_mask)[0])", "test_transformer::test_encoder_decoder_equals_torch"),
    ("transformer", "N = 2 * len(model.blocks)", "N = len(model.blocks)", "test_transformer::test_gpt_2_initialisation_has_the_spread_of_transformers"),
    ("transformer", "* 10_000.0 ** (", "* 1_000.0 ** (", "test_transformer::test_sinusoids_by_their_formula"),
    ("generate", "logits[-1].argmax(-1, keepdim=True)", "logits[-1].argmin(-1, keepdim=True)", "test_transformer::test_generation_equals_transformers"),
    ("generate", ".any(1).all()", ".any(1).any()", "test_transformer::test_generation_stops"),
    ("convert", 'zip("QKV", parts, strict=True)', 'zip("KQV", parts, strict=True)', "test_transformer::test_decoders_equal_transformers"),
    # training
    ("train", "predict(tokens[:, :-1]), tokens[:, 1:]", "predict(tokens[:, 1:]), tokens[:, 1:]", "test_train::test_losses_by_their_definition"),
    ("train", "torch.where(hidden, mask_token, tokens)", "tokens", "test_train::test_losses_by_their_definition"),
    ("train", "Y = f(norm(X) if self.place == \"pre\" else X)", "Y = f(norm(X))", "test_train::test_a_full_layer_is_the_block_of_that_name"),
    ("train", 'generator(f"{name}, data {k}") for k', 'generator(f"{name}, data 0") for k', "test_train::test_seeds_trained_together_are_seeds_trained_alone"),
    # collapse
    ("collapse", "return X - X.mean(-2, keepdim=True)", "return X - X.mean(-1, keepdim=True)", "test_collapse"),
    ("collapse", "* R.abs().sum(-1).amax(-1)).sqrt()", "+ R.abs().sum(-1).amax(-1)) / 2", "test_collapse"),
    ("collapse", "return (total - n) / (n * (n - 1))", "return total / (n * n)", "test_collapse"),
    ("collapse", ".sum(-1).amax((-2, -1)).sqrt()", ".sum(-1).mean((-2, -1)).sqrt()", "test_collapse"),
    ("collapse", "masked_fill(~mask, -torch.inf)", "masked_fill(mask, -torch.inf)", "test_collapse"),
    ("collapse", "2 * mean) / 2", "mean) / 2", "test_collapse"),
    ("collapse", "e_mean = (p * e).sum(-1, keepdim=True)", "e_mean = e.mean(-1, keepdim=True)", "test_collapse"),
    ("collapse", "/ (1 + r.square() * e_mean)", "", "test_collapse"),
    ("collapse", "shared = mean[..., None, :] +", "shared = mean +", "test_collapse"),
    ("collapse", "residual(change), 3 * state.log_scale)", "residual(change), 2 * state.log_scale)", "test_collapse"),
    ("collapse", "excess = (2 * a * b + r * b.square())", "excess = (2 * a * b)", "test_collapse"),
    ("collapse", "torch.where(a == 0, torch.relu(b), crossing)", "b * (a > 0)", "test_collapse"),
    ("collapse", "(s.log_scale - top).exp()", "s.log_scale.exp()", "test_collapse"),
    ("collapse", "return drawn, 1 / p[drawn].prod(-1)", "return drawn, p.new_full((count,), len(p) ** layers)", "test_collapse"),
    ("collapse", "terms = P[..., layer, head, :, :] @ terms @", "terms = P[..., layer, head, :, :].mT @ terms @", "test_collapse"),
]
# fmt: on


def run(owners: tuple[str, ...], fault: Fault | None = None) -> tuple[int, str]:
    """The exit status of the owning tests on a copy of lib/ with the fault, and their output."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "lib")
        for part in ("smalltorch", "tests"):
            shutil.copytree(ROOT / "lib" / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        Path(folder, "book").symlink_to(ROOT / "book")  # the ledger reads the claims beside the library
        if fault is not None:
            file = copy / "smalltorch" / f"{fault.module}.py"
            file.write_text(file.read_text(encoding="utf-8").replace(fault.old, fault.new), encoding="utf-8")
        run_them = run_notebooks if "/" in owners[0] else run_tests
        return run_them(owners, folder)


def run_tests(owners: tuple[str, ...], folder: str) -> tuple[int, str]:
    """In a process forked from one that has imported torch and sympy, but not the library: half a second, not three."""
    output = Path(folder, "output")
    tests = ["lib/tests/{}.py{}{}".format(*owner.partition("::")) for owner in owners]
    process = SERVER.Process(target=forked, args=(folder, tests, str(output)))
    process.start()
    process.join(SECONDS)
    if process.exitcode is None:
        process.kill()
        process.join()
        return 1, "timed out"
    # The status is read from a file: when two threads look at one process, multiprocessing can lose its exit code.
    status = Path(f"{output}.status")
    return (
        int(status.read_text(encoding="utf-8")) if status.exists() else 3,
        output.read_text(encoding="utf-8") if output.exists() else "",
    )


def forked(folder: str, tests: list[str], output: str) -> None:
    os.chdir(folder)
    with open(output, "w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1), os.dup2(file.fileno(), 2)
    sys.path.insert(0, str(Path(folder, "lib")))  # in front of an installed library
    sys.dont_write_bytecode = True
    import pytest

    status = int(pytest.main([*PYTEST, *tests]))
    imported = sys.modules["smalltorch"].__file__ if "smalltorch" in sys.modules else "nowhere"
    if not imported.startswith(folder):
        print(f"smalltorch was imported from {imported}")
        status = 3
    Path(f"{output}.status").write_text(str(status), encoding="utf-8")


def run_notebooks(owners: tuple[str, ...], folder: str) -> tuple[int, str]:
    """The kernel of a notebook takes the library from PYTHONPATH."""
    notebooks = [str(ROOT / "notebooks" / f"{owner}.ipynb") for owner in owners]
    options = [
        "--nbval",
        "--nbval-current-env",
        f"--nbval-sanitize-with={ROOT / 'book/_tools/nbval.sanitize'}",
        f"--nbval-cell-timeout={SECONDS}",
        *notebooks,
    ]
    environment = os.environ | {"PYTHONPATH": str(Path(folder, "lib"))}
    environment.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    where = subprocess.run(
        [sys.executable, "-c", "import smalltorch; print(smalltorch.__file__)"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    ).stdout
    if not where.startswith(folder):
        return 3, f"smalltorch was imported from {where}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *PYTEST, *options], cwd=folder, env=environment, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def examine(fault: Fault) -> str:
    """ "" if the fault is noticed, else what is wrong."""
    count = (ROOT / "lib" / "smalltorch" / f"{fault.module}.py").read_text(encoding="utf-8").count(fault.old)
    if count != 1:
        return f"NOT APPLIED: the text stands there {count} times"
    status, output = run(fault.owners, fault)
    if status == 1:
        return ""
    return "NOT NOTICED" if status == 0 else f"TESTS DID NOT RUN (status {status})\n{output[-2000:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Put in one fault at a time; the tests that own it must fail.")
    parser.add_argument("modules", nargs="*", help="only the faults of these modules")
    parser.add_argument("--engine", action="store_true", help="only the faults of the engine")
    parser.add_argument("--rest", action="store_true", help="only the faults of the rest of the library")
    arguments = parser.parse_args()
    faults = [Fault(module, old, new, tuple(owners)) for module, old, new, *owners in FAULTS]
    if arguments.engine or arguments.rest:
        faults = [fault for fault in faults if (fault.module in ENGINE) == arguments.engine]
    if arguments.modules:
        faults = [fault for fault in faults if fault.module in arguments.modules]

    owners = tuple(dict.fromkeys(owner for fault in faults for owner in fault.owners))
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with ThreadPoolExecutor(PARALLEL) as pool:
        results = pool.map(examine, faults)
        sound = [
            pool.submit(run, kind)
            for kind in (tuple(o for o in owners if "/" not in o), tuple(o for o in owners if "/" in o))
            if kind
        ]
        missed = 0
        for fault, problem in zip(faults, results, strict=True):
            missed += bool(problem)
            change = f"{fault.old.strip()} → {fault.new.strip() or 'nothing'}".replace("\n", " ↵ ")
            print(f"{problem or 'noticed'}: {fault.module}.py: {change}   [{', '.join(fault.owners)}]", flush=True)
        for done in sound:
            status, output = done.result()
            if status != 0:
                missed += 1
                print(f"WITHOUT A FAULT the owning tests do not pass:\n{output[-3000:]}")
    print(f"{len(faults) - min(missed, len(faults))} passed, {missed} failed")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
