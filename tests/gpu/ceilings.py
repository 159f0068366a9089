#!/usr/bin/env python3
"""What a GPU reaches with PyTorch where nothing is in its way: copies within its memory, products of matrices in half
precision. Random data, as zeros are multiplied faster. Prints one JSON object:

  ceilings.py [--device cuda|cpu] [--copy-mib N] [--rows N]
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--copy-mib", type=int, default=4096)
    parser.add_argument("--rows", type=int, default=8192)
    options = parser.parse_args()
    name = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    source = torch.rand(options.copy_mib * 2**18, device=options.device)
    target = torch.empty_like(source)
    copied = 2 * 4 * source.numel() / seconds_of(lambda: target.copy_(source), options.device)
    answer = {"device_name": name, "torch": torch.__version__, "copy_bytes_per_second": copied,
              "copied_bytes": 8 * source.numel(), "rows": options.rows}
    del source, target
    for kind in (torch.float16, torch.bfloat16):
        one, other = (torch.randn(options.rows, options.rows, device=options.device).to(kind) for _ in range(2))
        product = torch.empty_like(one)
        rate = 2 * options.rows**3 / seconds_of(lambda: torch.matmul(one, other, out=product), options.device)
        answer[str(kind).replace("torch.", "") + "_flops_per_second"] = rate
    answer["summary"] = (f"copies {copied / 1e12:.2f} TB/s, fp16 products {answer['float16_flops_per_second'] / 1e12:.0f} "
                         f"TFLOP/s, bf16 {answer['bfloat16_flops_per_second'] / 1e12:.0f}")
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
