"""Formulas as text: what stands on a line does, and what does not is refused rather than mangled."""

import pytest

from deepdive.metadata.plain import plain


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\sqrt n", "√n"),
        (r"\sqrt{n-1}", "√(n − 1)"),
        (r"1/\sqrt{d_h}", "1/√dₕ"),
        (r"e^{2B}/n", "e^(2B)/n"),
        (r"2^L", "2^L"),
        (r"10^{17}", "10¹⁷"),
        (r"C\,r^2", "C r²"),
        (r"c_{\max}", "cₘₐₓ"),
        (r"\frac{1}{n+1}", "1/(n + 1)"),
        (r"\log n", "log n"),
        (r"\cosh(\Delta/2)", "cosh(Δ/2)"),
        (r"\prod_l(1-q_l)", "∏ₗ(1 − qₗ)"),
        (r"q_l<1", "qₗ < 1"),
        ("-B", "−B"),
        (r"a_1^2", "a₁²"),
    ],
)
def test_a_formula_on_a_line_is_text(tex, text):
    assert plain(tex) == text


@pytest.mark.parametrize("tex", [r"\begin{pmatrix}1&2\end{pmatrix}", r"\bar x", r"\nonsense"])
def test_what_does_not_stand_on_a_line_has_no_text(tex):
    assert plain(tex) is None
