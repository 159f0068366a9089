#!/usr/bin/env python3
"""Images per second and core of other loaders, from JPEG files in memory to 224 x 224 bytes of a random crop, flipped
at random; beside what image_speed and --decode-only print for ours. Needs torch and torchvision; with nvidia-dali that one,
too. CPU time of the process, so other programs hardly count.

    python3 image_peers.py FOLDER [IMAGES]
"""
import io
import pathlib
import sys
import time

import torch
import torchvision
from torchvision.transforms import v2

SIZE = 224


def told(name: str, images: int, run) -> None:
    run(min(images, 50))  # warm-up
    start = time.process_time()
    run(images)
    seconds = time.process_time() - start
    print(f"{name}: {images / seconds:.0f} images/s per core, {1000 * seconds / images:.2f} ms of CPU time each")


def dali(files: list, name: str) -> None:
    from nvidia.dali import fn, pipeline_def, types
    batch = 16

    @pipeline_def(batch_size=batch, num_threads=1, device_id=None)
    def loading():
        encoded, _ = fn.readers.file(files=[str(file) for file in files], random_shuffle=True)
        images = fn.decoders.image_random_crop(encoded, device="cpu", random_area=(0.08, 1.0),
                                               random_aspect_ratio=(3 / 4, 4 / 3))
        return fn.flip(fn.resize(images, size=(SIZE, SIZE), antialias=True), horizontal=fn.random.coin_flip())

    pipeline = loading()
    pipeline.build()
    told(name, images, lambda count: [pipeline.run() for _ in range(count // batch)])


files = sorted(pathlib.Path(sys.argv[1]).rglob("*.jpg"))
images = int(sys.argv[2]) if len(sys.argv) > 2 else 1008
encoded = [file.read_bytes() for file in files]
torch.set_num_threads(1)
crop = v2.Compose([v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()])


def by_torchvision(count: int) -> None:
    for i in range(count):
        crop(torchvision.io.decode_jpeg(torch.frombuffer(bytearray(encoded[i % len(files)]), dtype=torch.uint8)))


def by_pillow(count: int) -> None:
    from PIL import Image
    for i in range(count):
        v2.functional.pil_to_tensor(crop(Image.open(io.BytesIO(encoded[i % len(files)])).convert("RGB")))


told(f"torchvision {torchvision.__version__}, decode_jpeg", images, by_torchvision)
told("torchvision over Pillow, as ImageFolder does", images, by_pillow)
try:
    import nvidia.dali
    dali(files, f"NVIDIA DALI {nvidia.dali.__version__} on the CPU")
except (ImportError, RuntimeError) as error:
    print(f"NVIDIA DALI is left out: {error}")
