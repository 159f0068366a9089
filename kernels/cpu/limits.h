// Limits of this host's CPU, for rooflines.
#pragma once

#include "kernels/program/targets.h"

namespace plumb::cpu {

// Limits of `threads` threads of this CPU. Peak = threads x clock (cpuinfo) x FLOPs per cycle of the widest
// vectors (two fused multiply-adds of 512 or 256 bits). Memory bandwidth is assumed; no interface reports it.
// Both are rough, as `source` says. memory_bytes: available_bytes() now.
DeviceLimits this_cpu(int threads);

}  // namespace plumb::cpu
