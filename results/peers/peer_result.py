"""What every peer does besides training: its log, the check of its losses, and the speed that it reports.

The log is in Plumbline's own layout, which `plumbline analyze` and `compare` read as paddle_speed:
LOG_DIR/<N>n<G>g/<model>_b<batch>_<precision>_<run>.log, one line for every iteration, the warm-up too. Beside it, as
beside Plumbline's, .plumbline-case says what all logs of the folder were measured with, and who wrote them."""
import contextlib
import datetime
import json
import math
import os
import pathlib
import statistics
import sys


def settle_case(folder: pathlib.Path, case: dict) -> None:
    """A folder has logs of one configuration, for they are averaged."""
    path, text = folder / ".plumbline-case", json.dumps(case, separators=(",", ":")) + "\n"
    logs = [*folder.glob("*.log"), *folder.glob("*.log.part")]
    if logs and (not path.exists() or path.read_text() != text):
        raise FileExistsError(f"{folder} has logs of another configuration")
    path.write_text(text)


class LogFile:
    """Takes its name at once, so that a run that can't keep its log ends before it begins; has it when it is whole. A
    context manager: without write() nothing is left."""

    def __init__(self, log_dir: str, nodes: int, devices_per_node: int, case: dict, run: int | None) -> None:
        """`case`: model, batch_per_device, precision, image_size, data, for faces head, and framework."""
        folder = pathlib.Path(log_dir) / f"{nodes}n{devices_per_node}g"
        folder.mkdir(parents=True, exist_ok=True)
        settle_case(folder, case)
        model, batch, precision = (case[key] for key in ("model", "batch_per_device", "precision"))
        self.images_per_step = batch * nodes * devices_per_node
        number = run or 1
        while True:
            self.path = folder / f"{model}_b{batch}_{precision}_{number}.log"
            self.unfinished = self.path.with_name(self.path.name + ".part")
            try:
                if self.path.exists():
                    raise FileExistsError(f"{self.path} exists already")
                self.file = open(self.unfinished, "x", encoding="ascii", newline="\n")
                return
            except FileExistsError:
                if run:
                    raise
            number += 1

    def write(self, step_seconds: list, losses: list, learning_rate: float, start: datetime.datetime) -> None:
        """All lines at once, after the run; `start`: wall clock of the first iteration's begin."""
        end = start
        with self.file as log:
            for index, (seconds, loss) in enumerate(zip(step_seconds, losses, strict=True)):
                end += datetime.timedelta(seconds=seconds)
                stamp = end.strftime("%Y-%m-%d %H:%M:%S") + f",{end.microsecond // 1000:03d}"
                log.write(f"{stamp}-INFO: [Pass 0, train batch {index}] \tloss {loss:.5f}, lr {learning_rate:.5f}, "
                          f"elapse {seconds:.6f} sec Epoch[0] Batch[{index + 1}]\t"
                          f"Speed: {self.images_per_step / seconds:.2f} samples/sec\n")
        os.link(self.unfinished, self.path)  # never over another one
        self.unfinished.unlink()

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.file.close()
        self.unfinished.unlink(missing_ok=True)


def give_up(code: int, sentence: str):
    print(f"{os.path.basename(sys.argv[0])}: {sentence}", file=sys.stderr)
    raise SystemExit(code)


def open_log(args, job, case: dict):
    """A LogFile; None on other ranks than 0 and without --log-dir. `case`: as LogFile has it, without what the options say."""
    if job.rank or not args.log_dir:
        return contextlib.nullcontext()
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
