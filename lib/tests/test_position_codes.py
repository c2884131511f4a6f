"""Six codes beyond their length: the texts, what the remedies do, and the stored table."""

import math

import pytest
import torch
from torch.func import functional_call

from smalltorch.engine.sample import generator
from smalltorch.experiments import position_codes
from smalltorch.experiments.position_codes import _angles, _Course, _losses, _Reader, _surprise, _texts
from smalltorch.experiments.table import stored
from smalltorch.position import frequencies


def logits(code, tokens, remedy="plain"):
    return functional_call(
        _Reader(code, remedy), {k: W[0] for k, W in _Course(code, [0]).parameters.items()}, (tokens,)
    )


def test_a_text_asks_for_its_name_and_its_letters():
    tokens, answers = _texts(generator("some texts"), 50, 40)
    name, letter, capital = tokens[:, 0], tokens[:, 1:] % 8, tokens[:, 1:] >= 8
    assert set(name.tolist()) == {4, 5, 6, 7} and (letter < 4).all() and (answers[:, 0] == -1).all()
    assert answers[:, 1:][capital].equal(name[:, None].expand(50, 39)[capital])
    after = ~capital[:, :-1]
    assert answers[:, 1:-1][after].equal(letter[:, 1:][after])
    assert 0.2 < capital.double().mean() < 0.3


def test_the_source_knows_letters_as_its_chain_does():
    tokens, answers = _texts(generator("some texts"), 50, 40)
    own, asked = _surprise(tokens, answers), answers[:, 2:] < 4
    letter = torch.cat([tokens[:, 1:] % 8, answers[:, -1:] % 4], 1)
    assert own[:, 2:-1][asked[:, :-1]].equal(position_codes.CHAIN.surprise(letter)[:, 2:-1][asked[:, :-1]])
    assert not own[:, :2].any() and not own[answers >= 4].any()
    assert float(own[:, 2:][asked].mean()) == pytest.approx(position_codes.CHAIN.rate, abs=0.05)


def test_what_is_not_asked_costs_nothing():
    tokens, answers = _texts(generator("some texts"), 3, 5)
    found = _losses(lambda read: torch.zeros(*read.shape, 8).double(), tokens, answers)
    assert not found[:, 0].any() and found[:, 1:].allclose(torch.tensor(math.log(8)).double())


def test_within_the_trained_length_no_remedy_does_anything():
    tokens = _texts(generator("some texts"), 2, position_codes.SEEN)[0]
    plain = logits("rope", tokens)
    for remedy in position_codes.REMEDIES:
        assert logits("rope", tokens, remedy).allclose(plain, atol=1e-12)
        assert _angles(remedy, 16)[0].allclose(frequencies(8)) and _angles(remedy, 16)[1] == 1


def test_the_remedies_for_twice_the_length():
    theta = frequencies(8)
    ratio = {remedy: _angles(remedy, 64)[0] / theta for remedy in position_codes.REMEDIES}
    for remedy in ("plain", "window"):
        assert ratio[remedy].equal(torch.ones(4).double())
    assert ratio["interpolation"].allclose(torch.full((4,), 0.5).double())
    assert ratio["base"].allclose(2.0 ** -torch.tensor([0, 1 / 3, 2 / 3, 1]).double())
    assert ratio["yarn"].allclose(torch.tensor([1, 0.5, 0.5, 0.5]).double())
    assert _angles("yarn", 64)[1] == pytest.approx(1 + 0.1 * math.log(2)) and _angles("base", 64)[1] == 1


@pytest.mark.parametrize("code", position_codes.CODES)
def test_no_code_looks_ahead_and_the_order_counts(code):
    tokens = _texts(generator("some texts"), 2, 48)[0]
    other = torch.cat([tokens[:, :40], tokens[:, 40:].flip(1)], 1)
    found, changed = logits(code, tokens), logits(code, other)
    assert found[:, :40].allclose(changed[:, :40], atol=1e-12) and not found[:, -1].allclose(changed[:, -1])


def test_codes_differ():
    tokens = _texts(generator("some texts"), 2, 48)[0]
    X = [functional_call(_Reader(code), {**{k: W[0] for k, W in _Course(code, [0]).parameters.items()}}, (tokens,))
         for code in ("rope", "alibi", "none", "sinusoids")]  # fmt: skip
    assert all(not a.allclose(b) for k, a in enumerate(X) for b in X[:k])


def test_a_window_sees_as_far_as_its_blocks_let_it():
    tokens = _texts(generator("some texts"), 1, 100)[0]
    other = torch.cat([(tokens[:, :1] - 3) % 4 + 4, tokens[:, 1:]], 1)
    changed = (logits("rope", tokens, "window") != logits("rope", other, "window")).any(-1)[0]
    assert int(changed.nonzero().max()) == position_codes.LAYERS * (position_codes.SEEN - 1)
    assert (logits("rope", tokens) != logits("rope", other)).any(-1)[0, -1]


def test_seeds_do_not_know_of_each_other():
    alone, both = _Course("t5", [1]), _Course("t5", [0, 1])
    for course in (alone, both):
        course.train(position_codes.SEEN, 2, position_codes.RATE)
    for key, W in alone.parameters.items():
        assert W[0].allclose(both.parameters[key][1], atol=1e-9)
    before = _Course("t5", [1]).parameters
    assert all(not W.allclose(before[key]) for key, W in alone.parameters.items() if W.ndim > 2)


def test_fine_tuning_goes_on_with_its_remedy_and_with_as_many_tokens(monkeypatch):
    asked, draw = [], position_codes._texts
    monkeypatch.setattr(position_codes, "_texts", lambda rng, count, n: asked.append((count, n)) or draw(rng, count, n))
    trained = {}
    for remedy in position_codes.REMEDIES:
        course = _Course("rope", [0])
        course.train(64, 1, position_codes.RATE, remedy)
        trained[remedy] = course.parameters
    assert asked == [(position_codes.BATCH // 2, 64)] * len(position_codes.REMEDIES)
    for remedy in position_codes.REMEDIES[1:]:
        assert any(not W.allclose(trained["plain"][key], atol=1e-9) for key, W in trained[remedy].items()), remedy


def test_what_counts_is_the_second_half():
    course, held = _Course("none", [0]), position_codes.HELD_OUT
    tokens, answers = (part[:, :32].clone() for part in held)
    course.parameters["W_U"] = torch.zeros_like(course.parameters["W_U"])  # all answers are alike
    own, late = _surprise(tokens, answers), torch.arange(32) >= 16
    near = math.log(8) - own[late & (answers >= 0) & (answers < 4)].mean()
    torch.testing.assert_close(course.read(32)[:, 0], torch.stack([near, torch.tensor(math.log(8)).double()]))


def test_the_stored_table_is_whole():
    head, lines = stored("position_codes")
    assert [line.split(":")[0] for line in head] == ["command", "seeds", "versions", "hardware"]
    assert tuple(lines[0]) == position_codes.COLUMNS
    keys = [tuple(line[key] for key in position_codes.KEYS) for line in lines]
    cases = [(code, "plain") for code in position_codes.CODES] + [
        ("rope", remedy) for remedy in position_codes.REMEDIES[1:]
    ]
    tuned = [("rope", remedy, str(position_codes.TUNING), "256") for remedy in position_codes.REMEDIES]
    read = [(*case, "0", str(n)) for case in cases for n in position_codes.LENGTHS]
    assert len(keys) == len(set(keys))
    assert set(keys) == {(*key[:3], str(seed), key[3]) for key in read + tuned for seed in range(6)}
    for line in lines:
        assert -0.1 < float(line["near"]) < 3 and 0 <= float(line["far"]) < 10


def test_the_second_table_is_whole():
    head, lines = stored("position_codes_again")
    assert "--codes alibi t5 --seeds 12" in head[0]
    keys = {tuple(line[key] for key in position_codes.KEYS) for line in lines}
    read = [(code, n) for code in ("alibi", "t5") for n in position_codes.LENGTHS]
    cases = [(code, "plain", "0", str(seed), str(n)) for code, n in read for seed in range(12)]
    assert len(lines) == len(cases) and keys == set(cases)


def test_within_the_trained_length_the_stored_remedies_agree():
    _, lines = stored("position_codes")
    found = {}
    for line in lines:
        if (line["code"], line["n"]) == ("rope", "32"):
            found.setdefault(line["seed"], []).append((float(line["near"]), float(line["far"])))
    for values in found.values():
        assert len(values) == len(position_codes.REMEDIES) and all(
            v == pytest.approx(values[0], abs=2e-2) for v in values
        )


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="code"):
        list(position_codes.rows("shaw", "plain", seeds=1))
    with pytest.raises(ValueError, match="remedy"):
        list(position_codes.rows("alibi", "yarn", seeds=1))
    with pytest.raises(ValueError, match="steps"):
        list(position_codes.rows("alibi", "plain", seeds=1, steps=0))
    with pytest.raises(ValueError, match="tuning"):
        list(position_codes.rows("rope", "plain", seeds=1, tuning=-1))
