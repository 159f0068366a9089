// Nothing is planned, created or allocated inside the timed window. This program replaces the allocator and
// oneDNN's primitive creation with counting wrappers.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <oneapi/dnnl/dnnl.h>

#include <array>
#include <atomic>
#include <cstdlib>

#include "bench/data/batch_source.h"
#include "bench/run/runner.h"
#include "kernels/device.h"
#include "kernels/program/memory_plan.h"
#include "models/resnet50.h"
#include "models/weights.h"

namespace {

// oneDNN builds a map of its arguments at every call, in blocks of some hundred bytes. Larger allocations are
// buffers.
constexpr std::size_t kArgumentMapBytes = 4096;

std::atomic<long> buffers{0}, primitives{0};

void count(std::size_t bytes) {
  if (bytes > kArgumentMapBytes) ++buffers;
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" void* __libc_malloc(std::size_t bytes);
extern "C" void* malloc(std::size_t bytes) {
  count(bytes);
  return __libc_malloc(bytes);
}
extern "C" int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  count(bytes);
  static const auto original = next<int (*)(void**, std::size_t, std::size_t)>("posix_memalign");
  return original(block, alignment, bytes);
}
extern "C" dnnl_status_t dnnl_primitive_create(dnnl_primitive_t* primitive,
                                               const_dnnl_primitive_desc_t descriptor) {
  ++primitives;
  static const auto original = next<decltype(&dnnl_primitive_create)>("dnnl_primitive_create");
  return original(primitive, descriptor);
}

namespace plumb {
namespace {

// oneDNN's GEMM packs its operands into memory that it allocates and frees itself. The dense layer uses it,
// and without AVX-512 the weight gradients of small images.
bool packs_operands(const Instruction& instruction) {
  return instruction.as<DenseForward>() || instruction.as<DenseBackwardData>() ||
         instruction.as<DenseBackwardWeights>() ||
         (instruction.as<ConvBackwardWeights>() && !__builtin_cpu_supports("avx512f"));
}

class DarkImages : public BatchSource {
 public:
  PixelBatch next() override { return {pixels_, labels_}; }
  std::size_t host_bytes() const override { return 0; }
  std::string description() const override { return "dark images"; }

 private:
  std::array<std::uint8_t, 2 * 32 * 32 * 3> pixels_{};
  std::array<std::int32_t, 2> labels_{};
};

TEST(TimedWindow, AllocatesNoBufferAndMakesNoPrimitive) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 32});
  const auto device = make_device({.choice = DeviceChoice::cpu, .threads = 1});
  Program program = describe(graph, {.load_batch_every_step = true}, device->limits());
  device->prepare(graph, {}, program);
  const MemoryPlan plan = plan_memory(program);
  device->bind(program, plan);
  for (ParameterId p = 0; p < graph.parameters.size(); ++p)
    device->write_parameter(p, initial_values(graph.parameters[p], 1));
  DarkImages source;
  device->write_state({.learning_rate = 0.01f});
  Runner runner(program, *device, nullptr, source);
  ASSERT_GT(primitives, 100) << "the counters don't count";
  ASSERT_GT(buffers, 10) << "the counters don't count";
  runner.run_iteration();  // oneDNN and OpenMP initialize in the first one
  const long made = primitives;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.as<LoadBatch>()) continue;  // the runner's
    const long before = buffers;
    instruction.run();
    if (!packs_operands(instruction)) {
      EXPECT_EQ(buffers, before) << instruction.name;
    }
  }
  const long before = buffers;
  device->stage_batch(source.next().pixels, source.next().labels);
  EXPECT_EQ(buffers, before);
  EXPECT_EQ(primitives, made);
}

}  // namespace
}  // namespace plumb
