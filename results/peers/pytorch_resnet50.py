#!/usr/bin/env python3
"""Training throughput of ResNet-50 v1.5 in PyTorch, with the recipe of bench_resnet50 (pytorch_training.py has the
loop). Needs torch, not torchvision. Prints one JSON object:

    python3 pytorch_resnet50.py --fp16 --bs 256 --compile --log-dir pytorch_logs
    mpirun -np 8 python3 pytorch_resnet50.py --fp16 --bs 256 --trace pytorch.json
"""
import torch
from torch import nn

import pytorch_options
import pytorch_training


class Bottleneck(nn.Module):
    """1x1, 3x3 (with the stride, as in v1.5), 1x1 to four times the width, around a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.body(x) + self.shortcut(x))


def resnet50() -> nn.Module:
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def main() -> None:
    parser = pytorch_options.options(__doc__, batch=128, image_size=224, iterations=120, warmup=20, learning_rate=0.1)
    args = parser.parse_args()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    pytorch_training.run(args, "resnet50", lambda: pytorch_training.WithLoss(resnet50(), criterion), classes=1000,
                         momentum=0.875, decay=2.0**-15)


if __name__ == "__main__":
    main()
