#!/usr/bin/env python3
"""Training throughput of face recognition in PyTorch: IResNet-50, -100 or MobileFaceNet and a margin softmax over all
classes, with the recipe of bench_arcface (pytorch_training.py has the loop, arcface_models.py the network). Needs torch.
With several ranks each has all class centres, as with --head dp. Prints one JSON object:

    python3 pytorch_arcface.py --backbone r50 --fp16 --bs 128 --compile --log-dir pytorch_logs
"""
from torch import nn

import pytorch_options
import pytorch_training
from arcface_models import IRESNET_UNITS, Face


def make_face(args) -> nn.Module:
    embedding = 128 if args.backbone == "y1" else 512
    face = Face(args.backbone, args.classes, embedding, args.image_size, (1.0, 0.5, 0.0), dropout=0.4)
    nn.init.normal_(face.head.weight, std=0.01)
    return face


def main() -> None:
    parser = pytorch_options.options(__doc__, batch=128, image_size=112, iterations=150, warmup=50, learning_rate=0.01)
    parser.add_argument("--backbone", choices=(*IRESNET_UNITS, "y1"), default="r50")
    parser.add_argument("--classes", type=pytorch_options.number_from(2), default=85742)
    args = parser.parse_args()
    pytorch_training.run(args, args.backbone, lambda: make_face(args), args.classes, momentum=0.9, decay=5e-4)


if __name__ == "__main__":
    main()
