"""What the peers are told: options with the names and defaults that bench_resnet50 and bench_arcface have."""
import argparse
import dataclasses
import os

PRECISIONS = ("fp32", "tf32", "fp16", "bf16")


class Parser(argparse.ArgumentParser):
    def error(self, message: str):
        self.exit(64, f"{self.prog}: {message}\n")

    def parse_args(self) -> argparse.Namespace:
        args = super().parse_args()
        if args.warmup >= args.iters:
            self.error(f"option --warmup: {args.warmup} leaves none of {args.iters} iterations; give less")
        return args


def number_from(lowest: int):
    def number(text: str) -> int:
        value = int(text)
        if value < lowest:
            raise argparse.ArgumentTypeError(f"{text} is less than {lowest}")
        return value
    return number


def options(description: str, batch: int, image_size: int, iterations: int, warmup: int,
            learning_rate: float) -> Parser:
    parser = Parser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bs", type=number_from(1), default=batch, help=f"images per device and step ({batch})")
    which = parser.add_mutually_exclusive_group()
    for name in PRECISIONS:
        which.add_argument(f"--{name}", dest="precision", action="store_const", const=name)
    parser.add_argument("--iters", type=number_from(1), default=iterations, help=f"steps in all ({iterations})")
    parser.add_argument("--warmup", type=number_from(0), default=warmup, help=f"leading steps left out ({warmup})")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument("--image-size", type=number_from(32), default=image_size)
    parser.add_argument("--lr", type=float, default=learning_rate, help=f"constant ({learning_rate})")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log-dir", help="log at LOG_DIR/<N>n<G>g/<model>_b<BS>_<precision>_<K>.log")
    parser.add_argument("--run", type=number_from(1), help="number K of the log (the next free one)")
    parser.set_defaults(precision="fp32")
    parser.add_argument("--threads", type=number_from(1), help="of a CPU, per rank")
    parser.add_argument("--compile", nargs="?", const="default", choices=("default", "reduce-overhead"),
                        help="through torch.compile, in its default mode or with CUDA graphs (reduce-overhead)")
    parser.add_argument("--trace", metavar="FILE", help="after the run, five more steps under PyTorch's profiler")
    return parser


@dataclasses.dataclass
class Job:
    """Who this process is, as torchrun or Open MPI's mpirun tell it."""
    rank: int = 0
    world: int = 1
    local_rank: int = 0
    local_world: int = 1

    @property
    def nodes(self) -> int:
        return self.world // self.local_world


def job_of(environment=os.environ) -> Job:
    for names in (("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
                  ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                   "OMPI_COMM_WORLD_LOCAL_SIZE")):
        if all(name in environment for name in names):
            return Job(*(int(environment[name]) for name in names))
    return Job()
