// The step of published runs: ResNet-50 on a V100, described as a dry run does.
#pragma once

#include <cstdint>
#include <string>

#include "results/simulation/step_model.h"

namespace plumb {

// Every instruction in its roofline time: shares of a step rather than seconds. `precision`: "fp32" or
// "fp16".
StepModel published_step(const std::string& precision, std::int64_t batch_per_device);

}  // namespace plumb
