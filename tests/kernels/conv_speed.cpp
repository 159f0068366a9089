// conv_speed fp32|bf16 THREADS ROUNDS [BATCH IN OUT SIDE STRIDE]…: CPU time of the three passes of 3x3
// convolutions, directly and by Winograd's algorithm, in turn; lower quartiles over the rounds, and what the
// rule expects (docs/explanation/cpu-winograd.md). CPU time over threads, as other programs may use the
// cores.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "kernels/device.h"
#include "kernels/program/winograd.h"
#include "tests/kernels/graph_builder.h"

namespace plumb {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The convolution behind a 1x1 convolution, so that it has all three passes.
class Convolution {
 public:
  Convolution(const Graph& graph, Precision precision, int threads, Winograd winograd)
      : device_(cpu::make_device({.choice = DeviceChoice::cpu, .threads = threads})) {
    program_ = describe(graph, {.precision = precision, .winograd = winograd}, device_->limits());
    device_->prepare(graph, {}, program_);
    device_->bind(program_, plan_memory(program_));
    const TestTensors tensors = random_tensors(graph, 7);
    for (ParameterId p = 0; p < graph.parameters.size(); ++p)
      device_->write_parameter(p, tensors.parameters[p]);
    device_->write_batch(tensors.images, tensors.labels);
    for (const Instruction& instruction : program_.instructions) instruction.run();
  }
  DeviceLimits limits() const { return device_->limits(); }
  double seconds(const std::string& pass) const {
    const auto found = std::ranges::find(program_.instructions, "conv1." + pass, &Instruction::name);
    const double begin = cpu_seconds();
    found->run();
    return cpu_seconds() - begin;
  }

 private:
  std::unique_ptr<Device> device_;
  Program program_;
};

double lower_quartile(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 4];
}

void measure(Precision precision, int threads, int rounds, std::int64_t batch, std::int64_t in,
             std::int64_t out, std::int64_t side, int stride) {
  GraphBuilder b({batch, side, side, 3});
  const ValueId made =
      b.conv(b.conv(GraphBuilder::kImages, in, {}), out, {.kernel = 3, .stride = stride, .padding = 1});
  const Graph graph = b.classify(b.max_pool(made, 1, 1, 0));
  const Convolution direct(graph, precision, threads, Winograd::never);
  const Convolution fast(graph, precision, threads, Winograd::everywhere);
  constexpr std::pair<ConvPass, const char*> kPasses[]{{ConvPass::forward, "forward"},
                                                       {ConvPass::backward_data, "backward_data"},
                                                       {ConvPass::backward_weights, "backward_weights"}};
  for (const auto& [pass, name] : kPasses) {
    const auto expected = winograd_pass(graph, std::get<Conv>(graph.ops[1]), pass, fast.limits(), precision);
    std::vector<double> before, after;
    for (int round = 0; round < rounds; ++round) {
      before.push_back(direct.seconds(name) / threads);
      after.push_back(fast.seconds(name) / threads);
    }
    const double a = lower_quartile(before), c = lower_quartile(after);
    fmt::print("{:>4} {:>4} {:>4} {:>4} {} {:<17} {:>9.2f} ms {:>9.2f} ms {:>6.2f} times as fast", batch, in,
               out, side, stride, name, 1e3 * a, 1e3 * c, a / c);
    fmt::print(", expected {:.2f}: {}\n", 1 / expected->relative_time,
               is_faster(*expected) ? kWinograd : kDirect);
  }
}

}  // namespace
}  // namespace plumb

int main(int argc, char** argv) {
  const std::string precision = argc < 2 ? "" : argv[1];
  if (argc < 9 || (argc - 4) % 5 != 0 || (precision != "fp32" && precision != "bf16")) {
    fmt::print(stderr, "usage: conv_speed fp32|bf16 THREADS ROUNDS [BATCH IN OUT SIDE STRIDE]...\n");
    return 64;
  }
  for (int i = 4; i < argc; i += 5)
    plumb::measure(precision == "bf16" ? plumb::Precision::bf16 : plumb::Precision::fp32, std::atoi(argv[2]),
                   std::atoi(argv[3]), std::atoi(argv[i]), std::atoi(argv[i + 1]), std::atoi(argv[i + 2]),
                   std::atoi(argv[i + 3]), std::atoi(argv[i + 4]));
}
