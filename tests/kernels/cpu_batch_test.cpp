// Batches of bytes on the CPU: staged by the runner, normalised by pack_batch.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/device.h"
#include "tests/kernels/graph_builder.h"

namespace plumb {
namespace {

TEST(CpuPackBatch, NormalisesBytesIntoPlanes) {
  GraphBuilder b({3, 6, 6, 3});
  const Graph graph = b.classify(b.conv(GraphBuilder::kImages, 8, {}));
  const auto device = cpu::make_device({.choice = DeviceChoice::cpu, .threads = 2});
  const Normalisation normalisation{{0.5F, 0.25F, 2}, {-1, 3, 0.5F}};
  Program program =
      describe(graph, {.load_batch_every_step = true, .normalisation = normalisation}, device->limits());
  device->prepare(graph, {}, program);
  device->bind(program, plan_memory(program));
  for (int round = 0; round < 3; ++round) {
    std::vector<std::uint8_t> pixels(3 * 36 * 3);
    for (std::size_t i = 0; i < pixels.size(); ++i)
      pixels[i] = static_cast<std::uint8_t>(i * 37 + 11 * round);
    const std::vector<std::int32_t> labels{round, 5, 2};
    device->stage_batch(pixels, labels);
    std::ranges::find(program.instructions, "pack_batch", &Instruction::name)->run();
    const auto* images = reinterpret_cast<const float*>(device->data(program.tensors.values[0]));
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const std::size_t c = i % 3, pixel = i / 3 % 36, image = i / 108;
      ASSERT_EQ(images[(image * 3 + c) * 36 + pixel],
                static_cast<float>(pixels[i]) * normalisation.factor[c] + normalisation.offset[c]);
    }
    const auto* held = reinterpret_cast<const std::int32_t*>(device->data(program.tensors.labels));
    EXPECT_EQ(std::vector(held, held + 3), labels);
  }
}

}  // namespace
}  // namespace plumb
