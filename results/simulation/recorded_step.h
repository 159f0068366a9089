// A training step as a profiled run recorded it: program.json with the times of the profile.json beside it.
// Read for `plumbline scaling` and for `bench_allreduce --compute`.
#pragma once

#include <filesystem>

#include "results/simulation/step_model.h"

namespace plumb {

struct RecordedStep {
  StepModel step;
  double roofline_seconds = 0;  // of the step; 0: not known
};

// Throws Error(bad_data) that names the file and the remedy: it can't be read or is no such file, the profile
// is missing or of another program.
RecordedStep read_recorded_step(const std::filesystem::path& program_json);

}  // namespace plumb
