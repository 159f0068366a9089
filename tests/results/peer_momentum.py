"""peer_momentum.py SOURCE_DIR: results/peers trains on as it should after a first step that the loss scale skipped. Runs
with PyTorch where python3 has it, else with a stand-in for its fused SGD and its GradScaler."""
import collections
import math
import sys
import types
from unittest import mock


class Tensor:
    """One number in fp32."""

    def __init__(self, value: float) -> None:
        self.value, self.grad = math.inf if value >= 2.0**128 else value, None

    def __float__(self) -> float:
        return self.value


class FusedSgd:
    """As in PyTorch 2.11: memory for momentum comes uninitialized (here NaN), and a skipped step leaves it like that."""

    def __init__(self, parameters: list, lr: float, momentum: float, weight_decay: float, fused: bool) -> None:
        assert fused and weight_decay == 0
        self.parameters, self.lr, self.momentum = parameters, lr, momentum
        self.state = collections.defaultdict(dict)

    def step(self, scale: float, overflow: bool) -> None:
        for parameter in self.parameters:
            first = "momentum_buffer" not in self.state[parameter]
            buffer = self.state[parameter].setdefault("momentum_buffer", Tensor(math.nan))
            if not overflow:
                gradient = float(parameter.grad) / scale
                buffer.value = gradient if first else self.momentum * float(buffer) + gradient
                parameter.value -= self.lr * float(buffer)


class GradScaler:
    def __init__(self, device: str, init_scale: float) -> None:
        self.current, self.overflow = init_scale, False

    def scale(self, loss: Tensor) -> Tensor:
        return Tensor(self.current * float(loss))

    def step(self, optimizer: FusedSgd) -> None:
        self.overflow = not all(math.isfinite(float(parameter.grad)) for parameter in optimizer.parameters)
        optimizer.step(self.current, self.overflow)

    def update(self) -> None:
        self.current *= 0.5 if self.overflow else 1


def stand_in() -> mock.MagicMock:
    torch = mock.MagicMock(tensor=Tensor, zeros_like=lambda tensor: Tensor(0.0))
    torch.optim.SGD, torch.amp.GradScaler, torch.nn.Module = FusedSgd, GradScaler, object
    return torch


try:
    import torch
except ImportError:
    torch = sys.modules["torch"] = stand_in()
sys.path.append(sys.argv[1] + "/results/peers")
import pytorch_training

torch.use_deterministic_algorithms(True)  # PyTorch fills uninitialized memory with NaN
weight = torch.tensor(1.0)
optimizer = pytorch_training.make_optimizer([weight], lr=0.125, momentum=0.5, decay=0.0)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**30)
weights = []
for gradient in 2.0**98, 1.0, 1.0:  # the first overflows, times 2^30
    weight.grad = scaler.scale(torch.tensor(gradient))
    scaler.step(optimizer)
    scaler.update()
    weights.append(float(weight))
# Skipped; momentum 1; momentum 0.5 * 1 + 1.
if weights != [1.0, 0.875, 0.6875]:
    sys.exit(f"after a skipped step and two of gradient 1 the weight was {weights}")
