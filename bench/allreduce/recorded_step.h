// A training step as a profiled run recorded it: program.json with the times of profile.json.
#pragma once

#include <filesystem>
#include <vector>

#include "kernels/program.h"

namespace plumb {

struct RecordedStep {
  // Compute instructions (Recorded) and collectives, in order; loading of images is left out. Buffers have
  // their sizes and views, and `Collective::buffer` is one of them.
  Program program;
  std::vector<double> seconds;  // by InstructionId; 0 for collectives
};

// Reads `program_json` and the profile.json beside it. Throws Error(bad_data) that names the file and the
// remedy: it can't be read, is no such file, the profile is missing or of another program, or the program has
// no collectives.
RecordedStep read_recorded_step(const std::filesystem::path& program_json);

}  // namespace plumb
