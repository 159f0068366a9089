#!/usr/bin/env python3
"""Training throughput of ResNet-50 v1.5 in JAX and Flax, NHWC under jit, with the recipe of bench_resnet50. Needs jax and
flax. One device; the batch stays on it. Prints one JSON object:

    python3 jax_resnet50.py --fp16 --bs 256 --log-dir jax_logs
"""
import datetime
import functools
import json
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.training import dynamic_scale

import peer_result
import pytorch_options

MOMENTUM, DECAY, SMOOTHING, CLASSES = 0.875, 2.0**-15, 0.1, 1000
HALF = {"fp16": jnp.float16, "bf16": jnp.bfloat16}
PRODUCTS = {"fp32": "highest", "tf32": "tensorfloat32"}  # JAX's own default for fp32 on a GPU is TF32


class ResNet50(nn.Module):
    """`dtype`: of activations; parameters and statistics are fp32."""
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, x):
        def conv(x, outputs: int, kernel: int, stride: int = 1):
            padding = [(kernel // 2, kernel // 2)] * 2
            x = nn.Conv(outputs, (kernel, kernel), (stride, stride), padding, use_bias=False, dtype=self.dtype)(x)
            return nn.BatchNorm(use_running_average=False, momentum=0.9, epsilon=1e-5, dtype=self.dtype)(x)

        x = nn.relu(conv(x, 64, 7, 2))
        x = nn.max_pool(x, (3, 3), (2, 2), ((1, 1), (1, 1)))
        for width, blocks, first_stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for block in range(blocks):
                stride = first_stride if block == 0 else 1
                y = nn.relu(conv(x, width, 1))
                y = conv(nn.relu(conv(y, width, 3, stride)), 4 * width, 1)
                x = nn.relu(y + (conv(x, 4 * width, 1, stride) if block == 0 else x))
        return nn.Dense(CLASSES, dtype=self.dtype)(x.mean((1, 2)))


def make_step(model: nn.Module, learning_rate: float):
    """step(state, images, labels) -> (state, loss); state: parameters, momentum, running statistics, loss scale."""

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, images, labels):
        parameters, momentum, running, scale = state

        def loss_of(parameters):
            logits, changed = model.apply({"params": parameters, "batch_stats": running}, images, mutable=["batch_stats"])
            targets = (1 - SMOOTHING) * jax.nn.one_hot(labels, CLASSES) + SMOOTHING / CLASSES
            loss = -(targets * jax.nn.log_softmax(logits.astype(jnp.float32))).sum(-1).mean()
            return loss, changed["batch_stats"]

        finite = True
        if scale is None:
            (loss, running), gradients = jax.value_and_grad(loss_of, has_aux=True)(parameters)
        else:
            scale, finite, (loss, running), gradients = scale.value_and_grad(loss_of, has_aux=True)(parameters)
        kept = lambda new, old: jnp.where(finite, new, old)
        moved = jax.tree.map(lambda v, g, w: kept(MOMENTUM * v + g + DECAY * w, v), momentum, gradients, parameters)
        parameters = jax.tree.map(lambda w, v: kept(w - learning_rate * v, w), parameters, moved)
        return (parameters, moved, running, scale), loss

    return step


def train(args) -> tuple:
    """Seconds and losses of the steps. The host waits for a step when the next one is under way, so the device never does."""
    jax.config.update("jax_default_matmul_precision", PRODUCTS.get(args.precision, "default"))
    keys = jax.random.split(jax.random.key(args.seed), 3)
    images = jax.random.normal(keys[0], (args.bs, args.image_size, args.image_size, 3))
    labels = jax.random.randint(keys[1], (args.bs,), 0, CLASSES)
    model = ResNet50(HALF.get(args.precision, jnp.float32))
    variables = jax.jit(model.init)(keys[2], images[:1])
    parameters = variables["params"]
    scale = dynamic_scale.DynamicScale() if args.precision == "fp16" else None
    state = (parameters, jax.tree.map(jnp.zeros_like, parameters), variables["batch_stats"], scale)
    count = sum(parameter.size for parameter in jax.tree.leaves(parameters))
    step, losses = make_step(model, args.lr), []
    marks = [time.perf_counter()]
    for i in range(args.iters + 1):
        if i < args.iters:
            state, loss = step(state, images, labels)
            losses.append(loss)
        if i > 0:
            losses[i - 1].block_until_ready()
            marks.append(time.perf_counter())
    return [b - a for a, b in zip(marks, marks[1:])], [float(loss) for loss in losses], count


def main() -> None:
    parser = pytorch_options.options(__doc__, batch=128, image_size=224, iterations=120, warmup=20, learning_rate=0.1)
    args = parser.parse_args()
    job = pytorch_options.job_of()
    if job.world > 1:
        peer_result.give_up(64, "trains on one device; start it without mpirun")
    if args.device != "auto":
        jax.config.update("jax_platforms", args.device)
    try:
        device = jax.devices()[0]
    except RuntimeError:
        peer_result.give_up(69, f"option --device: JAX has no {args.device}; give --device cpu")
    with peer_result.open_log(args, job, {"model": "resnet50", "framework": "JAX"}) as log:
        start = datetime.datetime.now()
        seconds, losses, count = train(args)
        peer_result.require_finite(losses)
        if log:
            log.write(seconds, losses, args.lr, start)
    print(json.dumps({
        "framework": "JAX", "version": jax.__version__, "model": "resnet50", "device": device.platform,
        "device_name": device.device_kind, "precision": args.precision, "batch_per_device": args.bs,
        "image_size": args.image_size, "world_size": 1, "classes": CLASSES, "trained_parameters": count,
        "log_files": [str(log.path)] if log else [], **peer_result.speed(seconds, losses, args.warmup, args.bs)}))


if __name__ == "__main__":
    main()
