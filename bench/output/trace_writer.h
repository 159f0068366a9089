// trace.json: when every instruction of some iterations began and ended, for chrome://tracing and
// ui.perfetto.dev (Trace Event Format: complete events "X", times in microseconds).
#pragma once

#include <ostream>
#include <span>
#include <string>

#include "kernels/device.h"
#include "kernels/program.h"

namespace plumb {

struct TraceDescription {
  int rank = 0;
  std::string device;  // one line for people
};

// One process for the rank, one thread for each lane and one for whole iterations; written as it goes, and
// one valid JSON object at its end. Time 0 is the begin of the first instruction. A lane does one thing at a
// time, so an instruction that was enqueued during another one is shown from the end of that one.
void write_trace(std::ostream& stream, const Program& program, std::span<const InstructionTime> times,
                 const TraceDescription& description);

// The same into a new file, which has its name only when it is whole. Throws Error(io_error).
void write_trace_file(const std::string& path, const Program& program, std::span<const InstructionTime> times,
                      const TraceDescription& description);

}  // namespace plumb
