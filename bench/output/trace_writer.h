// trace.json: when every instruction of some iterations began and ended, for chrome://tracing and
// ui.perfetto.dev (Trace Event Format: complete events "X", times in microseconds).
#pragma once

#include <span>
#include <string>

#include "kernels/device.h"
#include "kernels/program.h"

namespace plumb {

// One process for rank 0, one thread for each lane and one for whole iterations: one JSON object. Time 0 is
// the begin of the first instruction. A lane does one thing at a time, so an instruction that was enqueued
// during another one is shown from the end of that one. `device`: one line for people.
std::string trace_text(const Program& program, std::span<const InstructionTime> times,
                       const std::string& device);

}  // namespace plumb
