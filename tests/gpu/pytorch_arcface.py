#!/usr/bin/env python3
"""Training throughput of face recognition in PyTorch: IResNet-50 or -100 and a margin softmax over all classes, with the
recipe of bench_arcface (pytorch_training.py has the loop). In half precision the last dense layer, the last norm and the
softmax are fp32, the products with the class centres half. Needs torch. Prints one JSON object:

    python3 pytorch_arcface.py --backbone r50 --precision fp16 --batch 128 --compile
"""
import math

import torch
from torch import nn
from torch.nn import functional

import pytorch_training

UNITS = {"r50": (3, 4, 14, 3), "r100": (3, 13, 30, 3)}
EPSILON = 2e-5


def norm(channels: int) -> nn.Module:
    return nn.BatchNorm2d(channels, eps=EPSILON)


class Unit(nn.Module):
    """Norm, 3x3, norm, PReLU, 3x3 with the stride, norm, around a shortcut; nothing behind the sum."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            norm(inputs), nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False), norm(outputs), nn.PReLU(outputs),
            nn.Conv2d(outputs, outputs, 3, stride, 1, bias=False), norm(outputs))
        self.shortcut = nn.Identity()
        if stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), norm(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x) + self.shortcut(x)


class Face(nn.Module):
    """Images to the cosines between their features and all class centres."""

    def __init__(self, units: tuple, image_size: int, classes: int, embedding: int = 512, dropout: float = 0.4) -> None:
        super().__init__()
        layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), norm(64), nn.PReLU(64)]
        inputs = 64
        for outputs, count in zip((64, 128, 256, 512), units):
            for unit in range(count):
                layers.append(Unit(inputs, outputs, 2 if unit == 0 else 1))
                inputs = outputs
        self.backbone = nn.Sequential(*layers, norm(512), nn.Dropout(dropout), nn.Flatten())
        self.dense = nn.Linear(512 * (image_size // 16) ** 2, embedding)
        self.features = nn.BatchNorm1d(embedding, eps=EPSILON)
        nn.init.ones_(self.features.weight)
        self.features.weight.requires_grad_(False)
        self.centres = nn.Parameter(0.01 * torch.randn(classes, embedding))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.backbone(images)
        with torch.autocast(x.device.type, enabled=False):
            features = self.features(self.dense(x.float()))
        return functional.linear(functional.normalize(features), functional.normalize(self.centres))


def arcface_loss(cosines: torch.Tensor, labels: torch.Tensor, margin: float = 0.5, scale: float = 64) -> torch.Tensor:
    with torch.autocast(cosines.device.type, enabled=False):
        cosines = cosines.float()
        target = cosines.gather(1, labels[:, None]).clamp(-1 + 1e-7, 1 - 1e-7)
        moved = target * math.cos(margin) - torch.sqrt(1 - target * target) * math.sin(margin)
        return functional.cross_entropy(scale * cosines.scatter(1, labels[:, None], moved), labels)


def main() -> None:
    parser = pytorch_training.options(__doc__, batch=128, image_size=112, iterations=150, warmup=50)
    parser.add_argument("--backbone", choices=UNITS, default="r50")
    parser.add_argument("--classes", type=int, default=85742)
    args = parser.parse_args()
    seconds = pytorch_training.step_seconds(args, lambda: Face(UNITS[args.backbone], args.image_size, args.classes),
                                            arcface_loss, args.classes, momentum=0.9, decay=5e-4)
    pytorch_training.print_result(args, args.backbone, seconds, classes=args.classes)


if __name__ == "__main__":
    main()
