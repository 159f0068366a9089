#!/usr/bin/env python3
"""Makes the synthetic logs of tests/data/dialects that frameworks other than those of make_logs.py would write, each in
the framework's own lines, and what is right about them where the published script is not.

    make_dialect_logs.py OUT

OUT/<set>/<N>n<G>g/<model>_b<batch>_<precision>_<run>.log, the sets of SETS below; the same program gives the same
bytes. tests/data/dialects holds what it makes. Speeds vary by run and by iteration; wall stamps advance by each
iteration's time. Line formats are those of the programs that DLPerf (commit c89430b) ran:

    ngc_mxnet    DeepLearningExamples MxNet/Classification/RN50v1.5/fit.py, a line of each rank of all nodes
    ngc_tf       DeepLearningExamples TensorFlow/Classification/ConvNets, utils/hooks/training_hooks.py with dllogger
    ngc_pytorch  DeepLearningExamples PyTorch/Classification, dllogger
    pytorch      pytorch/examples imagenet/main.py, a line of each rank of the node
    tf2          tensorflow/models official/utils/misc/keras_utils.py
    mindspore    mindspore.train.callback LossMonitor and TimeMonitor with data_sink_steps, lines of each rank of all nodes
    oneflow_cnn  OneFlow-Benchmark Classification/cnns

and of programs that no script of DLPerf reads: results/formats/further_formats.cpp names them.

A set's name goes on with what is special about it:

    pytorch_ranks          four ranks on a node: the script's 100 lines are of 25 iterations
    pytorch_tens           iterations of more than 10 s, of which the script drops the tens
    pytorch_short, ngc_pytorch_short, ngc_tf_short
                           logs of 1n2g that end early: the script gives 0, or averages what there is
    tf2_midnight           over midnight, of which the script that reads times of the day knows nothing
    tf2_steps              lines of 50 steps, which the scripts take for 100
    mindspore_one_rank     1n2g with the lines of one rank, where the script divides by two
    oneflow_cnn_alone      no 1n1g

OUT/expected_<dialect>.json are what the original scripts print. To repeat:

    git clone https://github.com/Oneflow-Inc/DLPerf && git -C DLPerf checkout c89430b
    python3 -m venv venv && venv/bin/pip install numpy
    venv/bin/python DLPerf/<script> --log_dir OUT/<set> --output_dir RESULTS

with absolute paths, no slash at the end of OUT/<set>; each writes RESULTS/<set>_result.json. The expected files hold the
same with sorted keys: json.dumps(json.load(open(FILE)), sort_keys=True) and an end of line. The scripts:

    ngc_mxnet_speed   NVIDIADeepLearningExamples/MxNet/Classification/RN50v1.5/extract_mxnet_logs.py
    ngc_mxnet_time    NVIDIADeepLearningExamples/MxNet/Classification/RN50v1.5/extract_mxnet_logs_time.py
    ngc_tf_speed      NVIDIADeepLearningExamples/TensorFlow/Classification/ConvNets/resnet50v1.5/extract_tensorflow_logs.py
    ngc_tf_time       …/extract_tensorflow_logs_time.py in the same folder
    ngc_pytorch_time  NVIDIADeepLearningExamples/PyTorch/resnet50v1.5/extract_pytorch_logs_time.py
    pytorch           PyTorch/resnet50v1.5/extract_pytorch_logs_time.py
    tf2_speed         TensorFlow/resnet50v1.5/extract_tensorflow_logs.py
    tf2_time          TensorFlow/resnet50v1.5/extract_tensorflow_logs_time.py
    mindspore         MindSpore/resnet50v1.5/extract_mindspore_logs_time.py
    oneflow_cnn       OneFlow/Classification/ConvNets/resnet50v1.5/extract_cnn_result.py --benchmark_log_dir OUT/<set>

The last one prints a table. Its dictionary has the table's median and speedup, and as average_speed the mean of the
throughputs that the script's compute_throughput() returns for the runs, rounded by round(…, 2).

OUT/correct_<set>.<dialect>.json is what is right where the script is not; this program writes it, from the lines.
"""
import datetime
import json
import pathlib
import random
import re
import statistics
import sys

MODEL, BATCH, PRECISION = "rn50", 128, "fp32"
START = datetime.datetime(2020, 8, 1, 10, 0, 0)
BEFORE_MIDNIGHT = datetime.datetime(2020, 2, 29, 23, 58, 30)


class Run:
    """The iterations of one run, one after the other."""

    def __init__(self, nodes, devices, start, slowness, rng):
        self.nodes, self.devices, self.ranks = nodes, devices, nodes * devices
        self.images = self.ranks * BATCH
        self.speed = 390.0 * self.ranks**0.97 * rng.uniform(0.97, 1.03) / slowness
        self.clock = start + datetime.timedelta(microseconds=rng.randrange(10**6))
        self.rng, self.count = rng, 0

    def next(self):
        """Seconds of the next iteration."""
        self.count += 1
        seconds = self.images / self.speed * (self.rng.uniform(0.98, 1.02) + 3.0 / self.count**2)
        self.clock += datetime.timedelta(seconds=seconds)
        return seconds

    def stamp(self, mark=".", digits=6):
        return self.clock.strftime("%Y-%m-%d %H:%M:%S") + mark + ("%06d" % self.clock.microsecond)[:digits]


def ngc_mxnet(run, iterations):
    for i in range(iterations):
        speed = run.images / run.next()
        for _ in range(run.ranks):
            run.clock += datetime.timedelta(microseconds=run.rng.randrange(200))
            yield "%s:INFO: Epoch[0] Batch [%d-%d]\tSpeed: %.2f samples/sec\tLR: %.3f" % (
                run.stamp(",", 3), i, i, speed * run.rng.uniform(0.999, 1.001), 0.001 * i)


def ngc_tf(run, iterations):
    for i in range(iterations):
        speed = run.images / run.next()
        if i >= 20:
            yield "DLL %s - (0, %d) imgs_per_sec : %r  cross_entropy : %r  learning_rate : 0.1 " % (
                run.stamp(), i, speed, 7 - i / 100)


def ngc_pytorch(run, iterations):
    for i in range(1, iterations + 1):
        speed = run.images / run.next()
        yield "DLL %s - Epoch: 0 Iteration: %d  train.loss : %.5f  train.total_ips : %.2f img/s" % (
            run.stamp(), i, 7 - i / 100, speed)


def pytorch(run, iterations):
    total = 0
    waiting = []  # a rank may print after another one has printed the next iteration
    for i in range(iterations):
        seconds = run.next()
        total += seconds
        lines = ["Epoch: [0][%3d/%d]\tTime %6.3f (%6.3f)\tData  0.001 ( 0.001)\tLoss %.4e (7.0000e+00)\tAcc@1   0.78 "
                 "(  0.78)\tAcc@5   1.56 (  1.56)" % (i, iterations, seconds * run.rng.uniform(0.99, 1.01),
                                                       total / (i + 1), 7 - i / 100) for _ in range(run.devices)]
        late = lines.pop() if run.devices > 1 and run.rng.random() < 0.1 and i + 1 < iterations else None
        yield from lines[:1] + waiting + lines[1:]
        waiting = [late] if late else []


def tf2(run, iterations, steps=100):
    for first in range(0, iterations, steps):
        seconds = sum(run.next() for _ in range(steps))
        yield "I%s 140321 keras_utils.py:145] TimeHistory: %.2f seconds, %.2f examples/second between steps %d and %d" % (
            run.clock.strftime("%m%d %H:%M:%S.%f"), seconds, run.images * steps / seconds, first, first + steps)


def mindspore(run, iterations, ranks=None):
    for i in range(1, iterations + 1):
        seconds = run.next()
        of_ranks = [seconds * 1000 * run.rng.uniform(0.999, 1.001) for _ in range(ranks or run.ranks)]
        for _ in of_ranks:
            yield "epoch: %d step: 1, loss is %.6f" % (i, 7 - i / 100)
        for ms in of_ranks:
            yield "epoch time: %5.3f ms, per step time: %5.3f ms" % (ms, ms)


def oneflow_cnn(run, iterations):
    for name, value in (("model", "resnet50"), ("batch_size_per_device", BATCH), ("gpu_num_per_node", run.devices),
                        ("num_nodes", run.nodes)):
        yield "%s = %s" % (name, value)
    for last in range(20, iterations + 1, 20):
        seconds = sum(run.next() for _ in range(20))
        yield "train: epoch 0, iter %d, loss: %.6f, top_1: 0.000000, top_k: 0.000000, samples/s: %.3f %r" % (
            last, 7 - last / 100, run.images * 20 / seconds,
            run.clock.replace(tzinfo=datetime.timezone.utc).timestamp() + run.rng.random() * 1e-6)


def intervals(line, every):
    """A line of all iterations since the one before: line(run, last iteration, seconds of each)."""
    def lines(run, iterations):
        for last in range(every, iterations + 1, every):
            seconds = sum(run.next() for _ in range(every)) / every
            yield from line(run, last, seconds)
    return lines


def arcface_torch(run, last, seconds):
    yield "Training: %s-Speed %.2f samples/sec   Loss %.4f   Epoch: 0   Global Step: %d   Required: 9 hours" % (
        run.stamp(",", 3), run.images / seconds, 45 - last / 100, last)


def megatron(run, last, seconds):
    yield (" iteration %8d/    2000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | learning rate: "
           "1.000E-04 | global batch size: %5d | lm loss: %.6E | loss scale: 1.0 |" % (
               last, last * run.images, seconds * 1000, run.images, 10 - last / 100))


def oneflow_train(run, last, seconds):
    for rank in range(run.ranks):
        yield "[%d] [train], epoch: 0/50, iter: %d/834, loss: %.5f, lr: 0.004604, top1: 0.00167, throughput: %.2f" % (
            rank, last, 7 - last / 100, run.images / run.ranks / seconds)


def mllog(run, last, seconds):
    yield (':::MLLOG {"namespace": "", "time_ms": %d, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": '
           '{"throughput": %.3f}, "metadata": {"step": %d}}' % (
               run.clock.replace(tzinfo=datetime.timezone.utc).timestamp() * 1000, run.images / seconds, last))


def tf_cnn_benchmarks(run, iterations):
    seconds = 0
    for i in range(1, iterations + 1):
        seconds += run.next()
        if i == 1 or i % 10 == 0:
            yield "%d\timages/sec: %.1f +/- 0.5 (jitter = 1.2)\t%.3f" % (i, run.images * i / seconds, 8 - i / 100)


def ends_early(lines):
    return lambda run, iterations: lines(run, iterations if run.ranks == 1 else 50)


# set: (lines, iterations, cases, start, slowness)
SETS = {
    "ngc_mxnet": (ngc_mxnet, 120, "1n1g,2n2g", START, 1),
    "ngc_tf": (ngc_tf, 120, "1n1g,2n8g", START, 1),
    "ngc_tf_short": (ends_early(ngc_tf), 120, "1n1g,1n2g", START, 1),
    "ngc_pytorch": (ngc_pytorch, 130, "1n1g,2n8g", START, 1),
    "ngc_pytorch_short": (ends_early(ngc_pytorch), 130, "1n1g,1n2g", START, 1),
    "pytorch": (pytorch, 130, "1n1g", START, 1),
    "pytorch_ranks": (pytorch, 126, "1n1g,1n4g", START, 1),
    "pytorch_short": (ends_early(pytorch), 126, "1n1g,1n2g", START, 1),
    "pytorch_tens": (pytorch, 126, "1n1g", START, 30.5),
    "tf2": (tf2, 700, "1n1g,1n8g", START, 1),
    "tf2_midnight": (tf2, 600, "1n1g,1n8g", BEFORE_MIDNIGHT, 1),
    "tf2_steps": (lambda run, iterations: tf2(run, iterations, 50), 600, "1n1g", START, 1),
    "mindspore": (mindspore, 130, "1n1g,2n2g", START, 1),
    "mindspore_one_rank": (lambda run, iterations: mindspore(run, iterations, 1), 130, "1n1g,1n2g", START, 1),
    "oneflow_cnn": (oneflow_cnn, 140, "1n1g,4n8g", START, 1),
    "arcface_torch": (intervals(arcface_torch, 50), 500, "1n1g,1n8g", START, 1),
    "megatron": (intervals(megatron, 10), 120, "1n1g,1n8g", START, 1),
    "oneflow_train": (intervals(oneflow_train, 20), 200, "1n1g,1n4g", START, 1),
    "mllog": (intervals(mllog, 1), 12, "1n1g,1n8g", START, 1),
    "tf_cnn_benchmarks": (tf_cnn_benchmarks, 100, "1n1g,1n8g", START, 1),
    "oneflow_cnn_alone": (oneflow_cnn, 120, "2n8g", START, 1),
}


def write_logs(out):
    for name, (lines, iterations, cases, start, slowness) in SETS.items():
        rng = random.Random("Plumbline " + name)
        for case in cases.split(","):
            nodes, devices = (int(number) for number in case[:-1].split("n"))
            folder = out / name / case
            folder.mkdir(parents=True, exist_ok=True)
            for number in (1, 2):
                log = folder / f"{MODEL}_b{BATCH}_{PRECISION}_{number}.log"
                run = Run(nodes, devices, start, slowness, rng)
                log.write_text("".join(line + "\n" for line in lines(run, iterations)), encoding="ascii")


def pytorch_figure(text, images):
    """All lines of iterations 26 to 125."""
    found = re.findall(r"Epoch: \[0\]\[ *(\d+)/\d+\]\tTime +([0-9.]+) ", text)
    return images / statistics.fmean(float(seconds) for i, seconds in found if 26 <= int(i) <= 125)


def tf2_time_figure(text, images):
    """From the stamp of step 100 to that of step 600, of a leap year."""
    stamps = {int(step): datetime.datetime.strptime("2020" + stamp, "%Y%m%d %H:%M:%S.%f")
              for stamp, step in re.findall(r"I(\d{4} [0-9:.]+) .* and (\d+)", text)}
    return images * 500 / (stamps[600] - stamps[100]).total_seconds()


def tf2_speed_figure(text, images):
    found = re.findall(r", ([0-9.]+) examples/second between steps (\d+)", text)
    return statistics.fmean(float(speed) for speed, first in found if 100 <= int(first) < 600)


def mindspore_figure(text, images):
    """The mean time of epochs 21 to 120 over all ranks."""
    times = [float(ms) for ms in re.findall(r"epoch time: ([0-9.]+) ms", text)]
    ranks = len(re.findall(r"epoch: 1 step: 1,", text))
    return images * 1000 / statistics.fmean(times[20 * ranks:120 * ranks])


def numpy_round(value):
    """round(np.float64(value), 2)."""
    return round(value * 100) / 100


# set, dialect: figure of one log
CORRECT = {
    ("pytorch_ranks", "pytorch"): pytorch_figure,
    ("pytorch_tens", "pytorch"): pytorch_figure,
    ("tf2_midnight", "tf2_time"): tf2_time_figure,
    ("tf2_steps", "tf2_time"): tf2_time_figure,
    ("tf2_steps", "tf2_speed"): tf2_speed_figure,
    ("mindspore_one_rank", "mindspore"): mindspore_figure,
}


def write_correct(out):
    for (name, dialect), figure in CORRECT.items():
        cases = {}
        round_average = numpy_round if dialect.endswith("_speed") else lambda value: round(value, 2)
        round_median = round_average if dialect == "pytorch" else numpy_round
        for case in SETS[name][2].split(","):
            nodes, devices = (int(number) for number in case[:-1].split("n"))
            logs = sorted((out / name / case).glob("*.log"))
            runs = [round_average(figure(log.read_text(), nodes * devices * BATCH)) for log in logs]
            cases[case] = {"average_speed": round_average(sum(runs) / len(runs)), "batch_size_per_device": BATCH,
                           "median_speed": round_median(statistics.median(runs))}
        for entry in cases.values():
            entry["speedup"] = round_median(entry["median_speed"] / cases["1n1g"]["median_speed"])
        (out / f"correct_{name}.{dialect}.json").write_text(json.dumps({MODEL: cases}, sort_keys=True) + "\n")


if __name__ == "__main__":
    write_logs(pathlib.Path(sys.argv[1]))
    write_correct(pathlib.Path(sys.argv[1]))
