#!/usr/bin/env python3
"""What a GPU reaches with PyTorch where nothing is in its way: copies within its memory, products of matrices in half
precision; and by NVML's counter the joules per byte and per FLOP while each of them runs for some seconds. Random data, as
zeros are multiplied faster. Prints one JSON object:

  ceilings.py [--device cuda|cpu] [--copy-mib N] [--rows N] [--seconds S]
"""
import argparse
import json
import statistics
import time

import torch

REPEATS, WARMUP = 20, 5


def seconds_of(work, device):
    """Median of single calls; on a GPU by its own clock."""
    times = []
    for _ in range(WARMUP + REPEATS):
        if device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            work()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) / 1000)
        else:
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
    return statistics.median(times[WARMUP:])


def energy_counter():
    """Joules so far of the GPU that CUDA shows first, as a function; None where NVML can't tell."""
    try:
        import pynvml  # nvidia-ml-py
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(0).uuid}")
        pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
        return lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000
    except Exception:  # whatever is missing, speeds can still be measured
        return None


def joules_of(work, seconds, joules):
    """Of one call, while it repeats for that many seconds; the counter steps every 20 to 100 ms."""
    if not joules or not seconds:
        return None
    torch.cuda.synchronize()
    start, before, calls = time.perf_counter(), joules(), 0
    while time.perf_counter() - start < seconds:
        for _ in range(10):
            work()
        torch.cuda.synchronize()
        calls += 10
    return (joules() - before) / calls


def measured(work, unit, amount, options, joules):
    """{"UNIT_per_second", "joules_per_UNIT"} of work() on `amount` of that unit."""
    rate = amount / seconds_of(work, options.device)
    energy = joules_of(work, options.seconds, joules)
    return {f"{unit}_per_second": rate, f"joules_per_{unit}": energy / amount if energy else None}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--copy-mib", type=int, default=4096)
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--seconds", type=float, default=2, help="of each loop whose energy is measured")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    joules = energy_counter() if on_gpu else None
    source = torch.rand(options.copy_mib * 2**18, device=options.device)
    target = torch.empty_like(source)
    answer = {"device_name": torch.cuda.get_device_name() if on_gpu else "cpu", "torch": torch.__version__,
              "copied_bytes": 8 * source.numel(), "rows": options.rows,
              "copy": measured(lambda: target.copy_(source), "byte", 8 * source.numel(), options, joules)}
    del source, target
    for kind in (torch.float16, torch.bfloat16):
        one, other = (torch.randn(options.rows, options.rows, device=options.device).to(kind) for _ in range(2))
        product = torch.empty_like(one)
        answer[str(kind).replace("torch.", "")] = measured(lambda: torch.matmul(one, other, out=product), "flop",
                                                           2 * options.rows**3, options, joules)
    energy = lambda of, unit: f" at {1e12 * of['joules_per_' + unit]:.3g} pJ" if of["joules_per_" + unit] else ""
    copy, fp16, bf16 = answer["copy"], answer["float16"], answer["bfloat16"]
    answer["summary"] = (f"copies {copy['byte_per_second'] / 1e12:.2f} TB/s{energy(copy, 'byte')}, fp16 products "
                         f"{fp16['flop_per_second'] / 1e12:.0f} TFLOP/s{energy(fp16, 'flop')}, bf16 "
                         f"{bf16['flop_per_second'] / 1e12:.0f}{energy(bf16, 'flop')}")
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
