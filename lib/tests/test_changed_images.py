"""The long run on images: the shapes, what changes them, the two models, and the stored table."""

import pytest
import torch
import torch.nn.functional as F

from smalltorch.engine.sample import generator, normal
from smalltorch.experiments import changed_images
from smalltorch.experiments.changed_images import BOARD, CHANGES, MODELS, PIXELS, SHAPES, SIDE, _drawn
from smalltorch.experiments.table import stored

IMAGES, KIND, ROW, COLUMN = _drawn(generator("some images"), 400)


def test_a_shape_stands_at_its_place_on_noise():
    assert all(
        set(part.tolist()) == set(range(size)) for part, size in ((KIND, 4), (ROW, SIDE - 4), (COLUMN, SIDE - 4))
    )
    ground = IMAGES.clone()
    for image, kind, row, column in zip(ground, KIND, ROW, COLUMN, strict=True):
        image[row : row + 5, column : column + 5] -= PIXELS[kind]
    assert ground.std() == pytest.approx(0.2, abs=0.002) and ground.mean().abs() < 0.005 and ground.abs().max() < 1.2


def test_a_change_alters_the_shapes_that_the_chapter_says():
    looks_as_before = {
        how: "".join(name for name, shape in zip(SHAPES, PIXELS, strict=True) if change(shape).equal(shape))
        for how, change in CHANGES.items()
        if how in ("upright", "mirrored", "turned")
    }
    assert looks_as_before == {"upright": "LT+O", "mirrored": "T+O", "turned": "+O"}
    shifted = CHANGES["shifted"](IMAGES)
    assert shifted[:, 1:, 1:].equal(IMAGES[:, :-1, :-1]) and shifted[:, 0, 1:].equal(IMAGES[:, -1, :-1])
    assert CHANGES["checkerboard"](IMAGES).sub(IMAGES).allclose(BOARD) and BOARD[0, :3].tolist() == [-0.5, 0.5, -0.5]


def test_the_embedding_and_the_filters_are_convolutions():
    model = MODELS["ViT"]().double()
    model.W_U.data = normal("a readout", 24, 4)
    cut = F.unfold(IMAGES[:, None], 3, stride=3).mT
    slid = F.conv2d(IMAGES[:, None], model.W_E.mT.unflatten(1, (1, 3, 3)), stride=3).flatten(2).mT
    assert (cut @ model.W_E).allclose(slid) and model(IMAGES).allclose(model.of_patches(cut))

    model = MODELS["CNN"]().double()
    model.W_U.data = normal("a readout", 20, 4)
    filters = (W.mT.unflatten(1, (-1, 5, 5)) for W in (model.W_1, model.W_2))
    X = IMAGES[:, None]
    for kernel in filters:
        X = F.conv2d(X, kernel).relu()
    assert model(IMAGES).allclose(X.mean((2, 3)) @ model.W_U)


@torch.no_grad()
def test_codes_tell_places():
    for codes in (True, False):
        torch.manual_seed(0)
        model = MODELS["ViT"](codes).double()
        model.W_U.copy_(normal("a readout", 24, 4))
        tokens = normal("patches", 16, 9)
        assert model.of_patches(tokens).allclose(model.of_patches(tokens.flip(0))) != codes


def test_the_stored_table_is_whole():
    _, lines = stored("changed_images")
    assert tuple(lines[0]) == changed_images.COLUMNS
    assert [tuple(line[key] for key in changed_images.KEYS) for line in lines] == [
        (model, str(seed), shape, whole)
        for model in MODELS
        for seed in range(changed_images.SEEDS)
        for shape in SHAPES
        for whole in ("0", "1")
    ]
    for seed in range(changed_images.SEEDS):
        _, kind, row, column = _drawn(generator(f"images, test {seed}"), changed_images.TESTED)
        for line in (line for line in lines if line["seed"] == str(seed)):
            these = (kind == SHAPES.index(line["shape"])) & ((torch.maximum(row, column) < 7) == int(line["whole"]))
            assert int(line["images"]) == int(these.sum())
    assert all(0 <= float(line[how]) <= 1 for line in lines for how in CHANGES)


def test_bad_arguments_are_named():
    for model, seeds, steps, name in (("RNN", 1, 1, "model"), ("ViT", 0, 1, "seeds"), ("CNN", 1, 0, "steps")):
        with pytest.raises(ValueError, match=name):
            list(changed_images.rows(model, seeds=seeds, steps=steps))
