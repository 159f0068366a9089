#include "bench/plan/published_step.h"

#include <algorithm>
#include <vector>

#include "bench/output/program_json.h"
#include "bench/plan/step_plan.h"
#include "kernels/roofline.h"

namespace plumb {

StepModel published_step(const std::string& precision, std::int64_t batch_per_device) {
  const std::vector<DeviceLimits>& all = targets();
  const DeviceLimits& v100 = *std::ranges::find(all, "v100-32gb", &DeviceLimits::name);
  BenchOptions options = default_options("bench_resnet50");
  options.precision = precision == "fp32" ? Precision::fp32 : Precision::fp16;
  options.batch_per_device = batch_per_device;
  options = resolve(options, v100, 1);
  const StepPlan plan = make_step_plan(options, v100, 0, 1);
  std::vector<double> seconds;
  for (const Instruction& instruction : plan.program.instructions)
    seconds.push_back(
        roofline_seconds(instruction.work, v100, precision_of(plan.program, instruction, options.precision)));
  return step_model(program_json(plan.program, plan.memory), seconds, "the program of a V100");
}

}  // namespace plumb
