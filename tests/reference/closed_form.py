"""Weights, images and labels in closed form: tests/kernels/closed_form.h computes the same numbers.

Weights are drawn from an integer hash of (tensor's position, element's position), so both sides agree to the last
bit; the images are smooth sums of sines, so both sides agree to the last bit but for the rounding of sin itself.
"""

import numpy as np
import torch


def even(tensor_index: int, count: int) -> np.ndarray:
    """`count` numbers in [-1, 1) with 24 random bits each: the finalizer of SplitMix64 (Steele, Lea, Flood 2014)."""
    z = np.arange(count, dtype=np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
    z += np.uint64((tensor_index + 1) * 0x9E3779B97F4A7C15 % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float64) / 2.0**23 - 1.0


def parameter(tensor_index: int, name: str, dims: tuple) -> np.ndarray:
    """A parameter by its position in the public order, its public name and its dims; fp32."""
    count = int(np.prod(dims))
    if len(dims) == 4:  # variance 2 / fan_out (He et al. 2015)
        values = np.sqrt(6.0 / (dims[0] * dims[2] * dims[3])) * even(tensor_index, count)
    elif len(dims) == 2:  # bound 1 / sqrt(fan_in)
        values = np.sqrt(1.0 / dims[1]) * even(tensor_index, count)
    elif name.endswith("relu.weight"):  # slope of a PReLU
        values = 0.25 + 0.125 * even(tensor_index, count)
    elif name.endswith(".weight"):  # scale of a norm; small at a block's end, for a well-conditioned net
        values = np.full(count, 0.2 if name.endswith("bn3.weight") else 1.0)
    elif name.endswith("fc.bias"):
        values = 0.1 * even(tensor_index, count)
    else:  # far from 0, where one rounding error could flip a ReLU and change gradients by a per cent
        values = (0.0 if name.endswith("bn3.bias") else 3.0) + even(tensor_index, count)
    return values.astype(np.float32).reshape(dims)


def images(batch: int, image_size: int) -> np.ndarray:
    """[n, 3, h, w] fp32."""
    n, c, y, x = np.meshgrid(np.arange(batch), np.arange(3), np.arange(image_size), np.arange(image_size),
                             indexing="ij")
    u, v = y / image_size, x / image_size
    values = 1.2 * np.sin(6.0 * u * (1.0 + 0.5 * n) + 1.1 * c)
    values += 0.8 * np.cos(9.0 * v * (1.0 + 0.25 * c) - 0.7 * n)
    values += 0.5 * np.sin(14.0 * u * v + n + c)
    return values.astype(np.float32)


def labels(batch: int, classes: int = 1000) -> np.ndarray:
    return (37 * np.arange(batch, dtype=np.int64) + 11) % classes


def fill(model: torch.nn.Module) -> None:
    """Gives every parameter of `model` its closed form; running statistics stay as they are (0 and 1)."""
    with torch.no_grad():
        for index, (name, tensor) in enumerate(model.named_parameters()):
            tensor.copy_(torch.from_numpy(parameter(index, name, tuple(tensor.shape))))
