// Lower bound on the time of a training iteration: for each instruction the larger of FLOPs ÷ peak and bytes
// ÷ main-memory bandwidth, both from DeviceLimits (Williams, Waterman, Patterson: Roofline, CACM 52(4),
// 2009).
#pragma once

#include "kernels/program/program.h"
#include "kernels/program/targets.h"

namespace plumb {

struct Roofline {
  double seconds = 0;        // sum over the instructions of the compute lane
  double flops = 0;          // 2 per multiply-accumulate
  double bytes = 0;          // main-memory traffic
  double bytes_seconds = 0;  // bandwidth-bound part of `seconds`
};

double roofline_seconds(const Work& work, const DeviceLimits& limits, Precision precision);

// Precision of one instruction in a run of precision `run`: fp32 if the run uses half precision but none of
// the instruction's operands does (a head kept in fp32), or its products are fp32 all the same (Winograd's).
Precision precision_of(const Program& program, const Instruction& instruction, Precision run);

// Compute lane only; other lanes overlap with it. Throws Error(usage) if the device lacks the precision.
Roofline roofline(const Program& program, const DeviceLimits& limits, Precision precision);

// Throws Error(usage) naming the supported precisions if the device lacks this one.
double peak_flops_per_second(const DeviceLimits& limits, Precision precision);

}  // namespace plumb
