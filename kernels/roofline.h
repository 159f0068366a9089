// The least time that a step of training can take on a device: for each operation the larger of FLOPs ÷ peak
// and bytes ÷ bandwidth of main memory (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009), as
// DeviceLimits gives them.
#pragma once

#include "kernels/program.h"
#include "kernels/targets.h"

namespace plumb {

struct Roofline {
  double seconds = 0;        // sum over the steps of the compute lane
  double flops = 0;          // 2 per multiply-accumulate
  double bytes = 0;          // of main memory
  double bytes_seconds = 0;  // the part of `seconds` that is set by bandwidth
};

double roofline_seconds(const Work& work, const DeviceLimits& limits, Precision precision);

// What a step computes in, in a run of that precision: fp32 where the run is in half precision and none of
// its operands is (a head that is kept in fp32).
Precision precision_of(const Program& program, const Step& step, Precision run);

// Steps of the other lanes run beside these and are left out. Throws Error(usage) if the device lacks the
// precision.
Roofline roofline(const Program& program, const DeviceLimits& limits, Precision precision);

// The peak in FLOP/s. Throws Error(usage) that names the precisions that the device has.
double peak_flops_per_second(const DeviceLimits& limits, Precision precision);

}  // namespace plumb
