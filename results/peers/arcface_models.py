"""IResNet, MobileFaceNet y1 and the margin loss in PyTorch, with the parameters in the order and under the names
that bench_arcface has. What they are: insightface 863a7ea9 (fresnet unit 3 with output E, fmobilefacenet y1) and
arcface_torch at 7fadd420 for IResNet's names. Under autocast the last dense layer, the last norm and the softmax are
fp32, the products with the class centres half. Reference values are made without dropout, which no two generators
share."""

from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional

IRESNET_UNITS = {"r50": (3, 4, 14, 3), "r100": (3, 13, 30, 3)}


def norm2d(channels: int, eps: float) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=eps, momentum=0.1)


def embedding_norm(embedding: int) -> nn.BatchNorm1d:
    norm = nn.BatchNorm1d(embedding, eps=2e-5, momentum=0.1)
    norm.weight.requires_grad_(False)
    return norm


class Unit(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int):
        super().__init__()
        self.bn1 = norm2d(inside, 2e-5)
        self.conv1 = nn.Conv2d(inside, outside, 3, padding=1, bias=False)
        self.bn2 = norm2d(outside, 2e-5)
        self.prelu = nn.PReLU(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, stride=stride, padding=1, bias=False)
        self.bn3 = norm2d(outside, 2e-5)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(inside, outside, 1, stride=stride, bias=False),
                                            norm2d(outside, 2e-5))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.bn3(self.conv2(self.prelu(self.bn2(self.conv1(self.bn1(x)))))) + shortcut


def without_autocast(x: torch.Tensor):
    return torch.autocast(x.device.type, enabled=False)


def at_least_fp32(x: torch.Tensor) -> torch.Tensor:
    return x if x.dtype == torch.float64 else x.float()


class IResNet(nn.Module):
    def __init__(self, units, embedding: int, image_size: int, dropout: float):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        self.bn1 = norm2d(64, 2e-5)
        self.prelu = nn.PReLU(64)
        inside = 64
        for stage, count in enumerate(units):
            outside = 64 << stage
            blocks = [Unit(inside if i == 0 else outside, outside, 2 if i == 0 else 1) for i in range(count)]
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
            inside = outside
        self.bn2 = norm2d(512, 2e-5)
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(512 * (image_size // 16) ** 2, embedding)
        self.features = embedding_norm(embedding)

    def forward(self, x):
        x = self.prelu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = torch.flatten(self.dropout(self.bn2(x)), 1)
        with without_autocast(x):
            return self.features(self.fc(at_least_fp32(x)))


class MobileFaceNet(nn.Module):
    """Layers by the names of the specification's table, in one flat dictionary."""

    def __init__(self, embedding: int, image_size: int):
        super().__init__()
        self.plan = []  # (name, residual: "begin", "end" or "")
        self.layers = nn.ModuleDict()
        self.add("conv_1", 3, 64, 3, 2, 1)
        self.add("conv_2_dw", 64, 64, 3, 1, 64)
        inside = 64
        for halving, wide, residual, residual_wide, count, outside in (
                ("dconv_23", 128, "res_3", 128, 4, 64), ("dconv_34", 256, "res_4", 256, 6, 128),
                ("dconv_45", 512, "res_5", 256, 2, 128)):
            self.add_block(halving, inside, wide, outside, False)
            for block in range(count):
                self.add_block(f"{residual}_block{block}", outside, residual_wide, outside, True)
            inside = outside
        self.add("conv_6sep", 128, 512, 1, 1, 1)
        self.add("conv_6dw7_7", 512, 512, image_size // 16, 1, 512, linear=True, padding=0)
        self.layers["pre_fc1"] = nn.Linear(512, embedding)
        self.layers["fc1"] = embedding_norm(embedding)

    def add(self, name, inside, outside, kernel, stride, groups, linear=False, padding=None, residual=""):
        padding = kernel // 2 if padding is None else padding
        self.layers[name + "_conv2d"] = nn.Conv2d(inside, outside, kernel, stride, padding, groups=groups, bias=False)
        self.layers[name + "_batchnorm"] = norm2d(outside, 1e-3)
        if not linear:
            self.layers[name + "_relu"] = nn.PReLU(outside)
        self.plan.append((name, residual))

    def add_block(self, name, inside, wide, outside, residual):
        self.add(name + "_conv_sep", inside, wide, 1, 1, 1, residual="begin" if residual else "")
        self.add(name + "_conv_dw", wide, wide, 3, 1 if residual else 2, wide)
        self.add(name + "_conv_proj", wide, outside, 1, 1, 1, linear=True, residual="end" if residual else "")

    def forward(self, x):
        kept = None
        for name, residual in self.plan:
            kept = x if residual == "begin" else kept
            x = self.layers[name + "_batchnorm"](self.layers[name + "_conv2d"](x))
            if name + "_relu" in self.layers:
                x = self.layers[name + "_relu"](x)
            x = x + kept if residual == "end" else x
        x = torch.flatten(x, 1)
        with without_autocast(x):
            return self.layers["fc1"](self.layers["pre_fc1"](at_least_fp32(x)))


class Head(nn.Module):
    """Combined margin (m1, m2, m3) on the target's cosine, scale 64, cross-entropy; the exact derivative."""

    def __init__(self, classes: int, embedding: int, margins):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, embedding))
        self.margins = margins

    def forward(self, features, labels):
        m1, m2, m3 = self.margins
        cosines = functional.linear(functional.normalize(features), functional.normalize(self.weight))
        with without_autocast(cosines):
            cosines = cosines.to(features.dtype)
            target = cosines.gather(1, labels[:, None]).clamp(-1 + 1e-7, 1 - 1e-7)
            moved = torch.cos(m1 * torch.acos(target) + m2) - m3
            return functional.cross_entropy(64 * cosines.scatter(1, labels[:, None], moved), labels)


class Face(nn.Module):
    def __init__(self, model: str, classes: int, embedding: int, image_size: int, margins, dropout: float = 0.0):
        super().__init__()
        self.backbone = (MobileFaceNet(embedding, image_size) if model == "y1" else
                         IResNet(IRESNET_UNITS[model], embedding, image_size, dropout))
        self.head = Head(classes, embedding, margins)

    def forward(self, images, labels):
        return self.head(self.backbone(images), labels)

    def public(self, tensors) -> OrderedDict:
        """Names as bench_arcface has them."""
        return OrderedDict((name.removeprefix("backbone.").removeprefix("layers."), t) for name, t in tensors)
