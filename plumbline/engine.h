// Questions that only the programs that train can answer: each is asked by starting one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "results/simulation/step_model.h"

namespace plumb {

// The path of bench_resnet50 or the like: in `folder`, else beside this program, else in PATH. Throws
// Error(unavailable) if it isn't there.
std::string engine_program(const std::string& name, const std::filesystem::path& folder = {});

// What the program prints with these arguments, as JSON; null if that is no JSON. Throws Error with the
// program's own sentence and exit code.
nlohmann::ordered_json ask_engine(const std::string& program, const std::vector<std::string>& arguments);

// The step of published runs: ResNet-50 on a V100 as a dry run describes it, with every op in its
// roofline time: shares of a step rather than seconds. `precision`: "fp32" or "fp16".
StepModel published_step(const std::string& precision, std::int64_t batch_per_device);

}  // namespace plumb
