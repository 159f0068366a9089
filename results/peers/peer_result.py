"""What every peer does besides training: its log, the check of its losses, and the speed that it reports."""
import math
import os
import statistics
import sys

from log_file import LogFile


def give_up(code: int, sentence: str):
    print(f"{os.path.basename(sys.argv[0])}: {sentence}", file=sys.stderr)
    raise SystemExit(code)


def open_log(args, job, case: dict) -> LogFile | None:
    """`case`: as LogFile has it, without what the options say."""
    if job.rank or not args.log_dir:
        return None
    case = {"batch_per_device": args.bs, "precision": args.precision, "image_size": args.image_size, "data": "synthetic"} | case
    try:
        return LogFile(args.log_dir, job.nodes, job.local_world, case, args.run)
    except OSError as error:
        give_up(73, f"option --log-dir: no log can be made: {error}; give another")


def require_finite(losses: list) -> None:
    wrong = next((step for step, loss in enumerate(losses) if not math.isfinite(loss)), None)
    if wrong is not None:
        before = f" after {losses[wrong - 1]:.4g}" if wrong else ""
        give_up(76, f"the loss is {losses[wrong]} at iteration {wrong}{before}, so the speed counts for nothing; give a "
                "smaller --lr")


def speed(seconds: list, losses: list, warmup: int, images: int) -> dict:
    """`images`: of all ranks in a step. `startup_seconds`: what the warm-up takes longer than as many later steps, by
    compiling, trying engines and capturing graphs."""
    window = seconds[warmup:]
    step = statistics.median(window)
    return {"iterations": len(seconds), "warmup": warmup, "startup_seconds": sum(seconds[:warmup]) - warmup * step,
            "images_per_second": {"mean": images * len(window) / sum(window), "median": images / step},
            "step_seconds": seconds, "loss": losses}
