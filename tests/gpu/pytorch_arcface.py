#!/usr/bin/env python3
"""Training throughput of face recognition in PyTorch: IResNet-50 or -100 and a margin softmax over all classes, with
the recipe of bench_arcface (pytorch_training.py has the loop, arcface_models.py the network). Needs torch. Prints one
JSON object:

    python3 pytorch_arcface.py --backbone r50 --precision fp16 --batch 128 --compile
"""
import pathlib
import sys

from torch import nn

import pytorch_training

# Beside this file in the bundle; in the repository among the references.
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "reference"))
from arcface_models import IRESNET_UNITS, Face  # noqa: E402


def make_face(args) -> nn.Module:
    face = Face(args.backbone, args.classes, 512, args.image_size, (1.0, 0.5, 0.0), dropout=0.4)
    nn.init.ones_(face.backbone.features.weight)
    nn.init.normal_(face.head.weight, std=0.01)
    return face


def main() -> None:
    parser = pytorch_training.options(__doc__, batch=128, image_size=112, iterations=150, warmup=50)
    parser.add_argument("--backbone", choices=IRESNET_UNITS, default="r50")
    parser.add_argument("--classes", type=int, default=85742)
    args = parser.parse_args()
    seconds = pytorch_training.step_seconds(args, lambda: make_face(args), args.classes, momentum=0.9, decay=5e-4)
    pytorch_training.print_result(args, args.backbone, seconds, classes=args.classes)


if __name__ == "__main__":
    main()
