#!/usr/bin/env python3
"""Checks the machine code in a build's object files for sm_80 and sm_90: no kernel may keep registers in local memory,
and hot kernels access global memory 128 bits at a time.

  kernels.py [BUILD]    of build/release if BUILD is not given

Uses cuobjdump and nvdisasm from the CUDA toolkit or, fetched once (5.5 MB) into build/fetched/cuda_sass or
$PLUMB_FETCHED/cuda_sass, from PyPI. Exit codes: 0 all is well, 1 a kernel differs from the table, 77 skipped: no
kernels in the build, or no disassembler.
"""
import collections
import fnmatch
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

ARCHITECTURES = (80, 90)
ROOT = pathlib.Path(__file__).resolve().parents[2]
WHEELS = (
    "nvidia-cuda-cuobjdump==13.5.37 38780fee50863252a0b8926357faa91615ca1c8346490563f33a06100cd73f58",
    "nvidia-cuda-nvdisasm==13.5.37 d3fdbdd49fa53e2e4aacd3db8259d052bd2b049ececdcb69e92e083c6728e7ca",
)
DUMP = ("cuobjdump", "--dump-resource-usage", "--dump-sass", "--gpu-architecture")


class Row(NamedTuple):
    """The requirements for kernels. A main part is an innermost loop with 16-byte loads or stores of global memory
    or, if `straight`, all code outside loops. A row with a stack has no further requirements."""

    kernel: str  # short_name(), with * for any characters; the first row that matches counts
    loads: int = 0  # least 16-byte loads of a main part
    stores: int = 0  # least 16-byte stores of a main part
    narrow: str = ""  # narrower accesses that main parts may have
    straight: bool = False
    copies: int = 0  # least 16-byte copies to shared memory in the whole kernel
    stack: int = 0  # most bytes of local memory


TABLE = (
    # Norms. Loads: pixels that a thread requests at once, times tensors. A byte of a mask is for 8 channels.
    Row("norm_statistics<*f*>", loads=4),
    Row("norm_apply<*f*,false,true>", loads=4, stores=4, narrow="store 1"),
    Row("norm_apply<*f*,false,false>", loads=8, stores=4, narrow="store 1"),
    Row("norm_apply<*f*,true,false>", loads=4, stores=4),
    Row("norm_backward_sums<*f*,OneGradient>", loads=4, stores=2, narrow="load 1"),
    Row("norm_backward_sums<*f*,TwoGradients>", loads=6, stores=2, narrow="load 1"),
    Row("norm_backward_sums<*f*,MaskedByLine>", loads=4),
    Row("norm_backward_sums<*f*,ThroughPrelu>", loads=4),
    Row("norm_backward_sums<*f*,OfPair>", loads=8, narrow="load 1"),
    Row("norm_backward_sums<*f*,TwoMaskedByLine>", loads=6),
    Row("norm_backward_apply<*f*,OfPair>", loads=6, stores=4, narrow="load 1"),
    Row("norm_backward_apply<*f*,*>", loads=4, stores=2, narrow="load 1"),
    Row("masked_gradient<*f*>", loads=4, stores=2, narrow="load 1"),
    # The winner of a max pool has a byte per channel: 4 or 8 of them at once.
    Row("norm_pool_backward_apply<f32,*>", loads=12, stores=4, narrow="load 4"),
    Row("norm_pool_backward_apply<*f16,true>", loads=12, stores=4, narrow="load 8"),
    Row("norm_pool_backward_apply<*f16,false>", loads=8, stores=4, narrow="load 8"),
    Row("max_pool_forward<f32>", loads=9, stores=2, narrow="store 4", straight=True),
    Row("max_pool_forward<*f16>", loads=9, stores=2, narrow="store 8", straight=True),
    Row("average_forward<*f*>", loads=4),
    Row("average_backward<*f*>", stores=4),
    # The update, and the search for overflows.
    Row("update<*>", loads=5, stores=5),
    Row("find_overflow", loads=2),
    Row("update_rows<*f16>", loads=5, stores=4),
    Row("update_rows<f32>", loads=3, stores=2),
    # Margin heads. Narrow: norms of the last classes, and the gradient of a target.
    Row("margin_shares<*>", loads=5, narrow="load 4"),
    Row("margin_gradient<*>", loads=5, stores=4, narrow="load 4"),
    Row("class_norms<*>", loads=1),
    Row("project_rows<*>", loads=2, stores=1),
    Row("gather_rows<*f16>", loads=2, stores=1),
    Row("gather_rows<f32>", loads=1, stores=1),
    # Passes over whole tensors. Narrow: the 3 bytes of a pixel, 4 channels of half precision, a label.
    Row("accumulate<*>", loads=2, stores=1, straight=True),
    Row("cast<*>", loads=1, stores=1, straight=True),
    Row("pack_batch<*16,4>", narrow="load 1, load 4, store 4, store 8", straight=True),
    Row("pack_batch<*f*>", stores=1, narrow="load 1, load 4, store 4", straight=True),
    Row("dropout<*>", loads=1, stores=1),
    # Depthwise convolutions.
    Row("convolve_3x3<*,1,2>", loads=4, stores=2),
    Row("convolve_3x3<*,2,1>", loads=6, stores=1),
    Row("spread_3x3<*>", loads=2, stores=4),
    Row("convolve_any<*>", loads=8),
    Row("spread_any<*>", loads=2),
    Row("weights_3x3<*>", loads=4),
    Row("weights_any<*>", loads=2),
    # A ResNet's first convolution. Narrow: taps of 4 channels, once; sums of one or two channels, once.
    Row("stem_forward<*>", stores=8, copies=9, narrow="load 8"),
    Row("stem_weights<*>", copies=9, narrow="store 4, store 8", straight=True),
    # Block ends. Narrow: shifts of channels, once; one sum per channel and 128 pixels; bytes of masks.
    Row("block_end<*,(End)0,EndTile<128>,0>", stores=8, copies=24, straight=True),
    Row("block_end<*,(End)0,EndTile<128>,*>", stores=8, copies=24, narrow="store 4", straight=True),
    Row("block_end<*,(End)1,EndTile<128>,0>", stores=8, copies=24, narrow="load 4, store 1", straight=True),
    Row("block_end<*,(End)2,EndTile<128>,2>", stores=8, copies=24, narrow="load 4, store 4", straight=True),
    Row("block_end<*,(End)2,EndTile<64>,2>", stores=4, copies=12, narrow="load 4, store 4", straight=True),
    # Narrow: a coefficient of 4 weights, a bound, 4 factors, 16 rows of an input's weights.
    Row("product_norm_statistics<*,16>", loads=16, narrow="load 4, store 2, store 4, store 8"),
    Row("product_norm_factors<*,16>", loads=16, narrow="load 4, store 8"),
    # Sine and cosine reduce large arguments with an array in local memory.
    Row("finish_rows<*>", stack=40),
)


class Kernel:
    """One architecture's code of a kernel."""

    def __init__(self):
        self.stack = self.copies = self.instructions = 0
        self.accesses = []  # (address, "load 4")
        self.branches = []  # (address, target)


# What counts in cuobjdump's text: an architecture, a kernel's resources, the begin of its code, an instruction.
MARKS = re.compile(
    r"^arch = sm_(?P<architecture>\d+)"
    r"|^ Function (?P<resources>\S+):\n.* STACK:(?P<stack>\d+)"
    r"|^\s*Function : (?P<function>\S+)"
    r"|^\s*/\*(?P<address>[0-9a-f]+)\*/\s+(?:@\S+\s+)?(?P<opcode>[A-Z][\w.]*)(?P<operands>[^;\n]*);",
    re.MULTILINE,
)
LOADS, STORES = ("LD", "LDG", "LDL"), ("ST", "STG", "STL")
WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}


def read_kernels(text):
    """All kernels in cuobjdump's output for one object file, by architecture and mangled name."""
    kernels = collections.defaultdict(Kernel)
    for mark in MARKS.finditer(text):
        if mark["architecture"]:
            architecture = int(mark["architecture"])
        elif mark["resources"]:
            kernels[architecture, mark["resources"]].stack = int(mark["stack"])
        elif mark["function"]:
            kernel = kernels[architecture, mark["function"]]
        else:
            add_instruction(kernel, int(mark["address"], 16), mark["opcode"].split("."), mark["operands"])
    return kernels


def add_instruction(kernel, address, opcode, operands):
    kernel.instructions += 1
    kernel.copies += opcode[0] == "LDGSTS" and "128" in opcode
    target = re.search(r"0x([0-9a-f]+)\s*$", operands)
    if opcode[0] == "BRA" and target:
        kernel.branches.append((address, int(target[1], 16)))
    elif opcode[0] in LOADS + STORES:
        where = " of local memory" if opcode[0].endswith("L") else ""
        width = next((WIDTHS[part] for part in opcode if part in WIDTHS), 4)
        kernel.accesses.append((address, f"{'load' if opcode[0] in LOADS else 'store'} {width}{where}"))


def main_parts(kernel):
    """The accesses of each main part, and whether the parts are straight."""
    loops = [(target, address) for address, target in kernel.branches if target < address]

    def inside(loop):
        return [access for address, access in kernel.accesses if loop[0] <= address <= loop[1]]

    wide = [loop for loop in loops if {"load 16", "store 16"} & set(inside(loop))]
    main = [a for a in wide if not any(b is not a and a[0] <= b[0] and b[1] <= a[1] for b in wide)]
    if main:
        return [inside(loop) for loop in main], False
    return [[access for address, access in kernel.accesses if not any(a <= address <= b for a, b in loops)]], True


def short_names(functions):
    """Demangled, without namespaces, parameters and spaces: norm_statistics<f16,true>."""
    text = subprocess.run(["c++filt"], input="\n".join(functions), text=True, check=True, stdout=subprocess.PIPE).stdout
    for name in text.splitlines():
        name = re.sub(r"\(anonymous namespace\)::|^void |\bplumb::|\bcuda::", "", name)
        depth = 0
        for at, character in enumerate(name):
            depth += {"<": 1, ">": -1}.get(character, 0)
            if character == "(" and depth == 0:
                name = name[:at]
                break
        for long, short in (("__half", "f16"), ("__nv_bfloat16", "bf16"), ("float", "f32"), (" ", "")):
            name = name.replace(long, short)
        yield name


def differences(kernel, row):
    """Where a hot kernel differs from its row."""
    if kernel.instructions == 0:
        return ["no machine code in the dump"]
    parts, straight = main_parts(kernel)
    if straight != row.straight:
        return ["no loop has 16-byte accesses" if straight else "a loop has 16-byte accesses, but the row is straight"]
    most = {kind: max(part.count(kind) for part in parts) for kind in ("load 16", "store 16")}
    found = [
        f"{count} of '{what}', at least {least} expected"
        for what, count, least in (
            ("load 16", most["load 16"], row.loads),
            ("store 16", most["store 16"], row.stores),
            ("copy 16", kernel.copies, row.copies),
        )
        if count < least
    ]
    allowed = {*most, *row.narrow.split(", ")}
    return found + [f"a main part has '{access}'" for access in sorted(set().union(*parts) - allowed)]


def failures(kernels, table):
    """One line per difference between table and kernels: pairs as read_kernels() has, of any number of files."""
    found = []
    unmatched = {(architecture, row.kernel) for (architecture, _), _ in kernels for row in table}
    for name, ((architecture, _), kernel) in zip(short_names(function for (_, function), _ in kernels), kernels):
        row = next((row for row in table if fnmatch.fnmatchcase(name, row.kernel)), Row(name, stack=0))
        listed = row in table
        unmatched.discard((architecture, row.kernel))
        wrong = []
        if kernel.stack > row.stack:
            wrong.append(f"{kernel.stack} bytes of local memory per thread, at most {row.stack} allowed")
        if listed and row.stack == 0:
            wrong += differences(kernel, row)
        found += [f"sm_{architecture} {name}: {one}" for one in wrong]
    return found + [f"sm_{architecture} no kernel matches the row {row}" for architecture, row in sorted(unmatched)]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def dumps(build):
    """cuobjdump's text for each object file of a build."""
    objects = sorted(build.glob("kernels/cuda/CMakeFiles/plumb_cuda*.dir/**/*.cu.o"))
    if not objects:
        skip(f"{build} has no kernels: CUDA is not part of this build")
    os.environ["PATH"] += ":/usr/local/cuda/bin"
    if not (shutil.which("cuobjdump") and shutil.which("nvdisasm")):
        if platform.machine() != "x86_64":
            skip(f"cuobjdump and nvdisasm can be fetched for x86_64 only, this is {platform.machine()}")
        fetched = pathlib.Path(os.environ.get("PLUMB_FETCHED") or ROOT / "build/fetched") / "cuda_sass"
        if subprocess.run([ROOT / "launch/fetch_wheels.sh", fetched, "bin", *WHEELS], check=False).returncode != 0:
            skip("the toolkit has no cuobjdump and nvdisasm, and they could not be fetched (see above)")
        os.environ["PATH"] = f"{fetched}/bin:{os.environ['PATH']}"
    for one in objects:
        text = ""
        for architecture in ARCHITECTURES:
            command = [*DUMP, f"sm_{architecture}", one]
            text += subprocess.run(command, text=True, check=False, stdout=subprocess.PIPE).stdout
        yield text


def main():
    build = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/release"
    kernels = [pair for text in dumps(build) for pair in read_kernels(text).items()]
    if not kernels:
        skip("this build has no kernels for sm_80 or sm_90")
    found = failures(kernels, TABLE)
    print("\n".join(found) or f"{len(kernels)} kernels agree with the table")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
