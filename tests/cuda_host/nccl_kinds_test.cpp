// Every collective kind through comm/nccl_communicator.cpp, on emulated GPUs, one per rank (EMULATED_GPUS).
// Integer patterns sum exactly, so a single wrong element shows.
#include <bit>
#include <cstdint>
#include <stdexcept>

#include "tests/cuda_host/nccl_test.h"

namespace plumb {
namespace {

using Kind = Collective::Kind;

// At most 15 + 3 * rank.
int pattern(std::size_t element, int rank) {
  return static_cast<int>((element * 7 + element / 100) % 16) + rank * 3;
}

class NcclKinds : public NcclTest {
 protected:
  std::size_t ranks() const { return static_cast<std::size_t>(job().size()); }
  int rank_of(std::size_t element, std::size_t elements) const {
    return static_cast<int>(element / (elements / ranks()));
  }
  // This rank's pattern; for an allgather only in its own part.
  std::vector<float> before(Kind kind, std::size_t elements) const {
    std::vector<float> values(elements, 99);
    for (std::size_t i = 0; i < elements; ++i)
      if (kind != Kind::allgather || rank_of(i, elements) == job().rank())
        values[i] = static_cast<float>(pattern(i, job().rank()));
    return values;
  }
  float wanted(Kind kind, std::size_t element, std::size_t elements) const {
    if (kind == Kind::allgather) return static_cast<float>(pattern(element, rank_of(element, elements)));
    if (kind == Kind::allreduce_max) return static_cast<float>(pattern(element, job().size() - 1));
    int sum = 0;
    for (int rank = 0; rank < job().size(); ++rank) sum += pattern(element, rank);
    return static_cast<float>(sum);
  }
  void expect_done(Kind kind, const cuda::DeviceMemory& memory, std::size_t elements) const {
    const std::vector<float> values = on_host<float>(memory, elements);
    for (std::size_t i = 0; i < elements; ++i) {
      if (kind == Kind::reduce_scatter_sum && rank_of(i, elements) != job().rank()) continue;
      if (values[i] == wanted(kind, i, elements)) continue;
      ADD_FAILURE() << name_of(kind) << " of " << elements << ": element " << i << " is " << values[i];
      return;
    }
  }
  void expect_carried(Kind kind) {
    const auto communicator = make();
    for (std::size_t part : {0u, 1u, 7u, 1000u}) {
      const std::size_t elements = part * ranks();
      const cuda::DeviceMemory memory = on_gpu(before(kind, elements));
      communicator->start({.kind = kind, .elements = elements}, memory.get());
      synchronize();
      expect_done(kind, memory, elements);
    }
  }
};

TEST_F(NcclKinds, GatherF32) {
  expect_carried(Kind::allgather);
}
TEST_F(NcclKinds, SumIntoEachRanksPart) {
  expect_carried(Kind::reduce_scatter_sum);
}
TEST_F(NcclKinds, TakeMaxima) {
  expect_carried(Kind::allreduce_max);
}

TEST_F(NcclKinds, GatherLabels) {
  const auto communicator = make();
  std::vector<std::int32_t> labels(5 * ranks(), -1), wanted(5 * ranks());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    wanted[i] = static_cast<std::int32_t>(i * 1000003);
    if (rank_of(i, labels.size()) == job().rank()) labels[i] = wanted[i];
  }
  const cuda::DeviceMemory memory = on_gpu(labels);
  communicator->start({.kind = Kind::allgather, .elements = labels.size(), .dtype = DType::i32},
                      memory.get());
  synchronize();
  EXPECT_EQ(on_host<std::int32_t>(memory, labels.size()), wanted);
}

TEST_F(NcclKinds, SumHalfPrecisionIntoEachRanksPart) {
  const auto communicator = make();
  std::vector<std::uint16_t> values(3 * ranks());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::bit_cast<std::uint16_t>(static_cast<_Float16>(pattern(i, job().rank())));
  const cuda::DeviceMemory memory = on_gpu(values);
  communicator->start({.kind = Kind::reduce_scatter_sum, .elements = values.size(), .dtype = DType::f16},
                      memory.get());
  synchronize();
  const std::vector<std::uint16_t> sums = on_host<std::uint16_t>(memory, values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (rank_of(i, values.size()) == job().rank()) {
      EXPECT_EQ(static_cast<float>(std::bit_cast<_Float16>(sums[i])),
                wanted(Kind::reduce_scatter_sum, i, values.size()));
    }
}

// As in a captured training step with a sharded head. In-place collectives accumulate: three replays multiply
// the sum by the cube of the world size.
TEST_F(NcclKinds, RunAnewWheneverAGraphIsReplayed) {
  const auto communicator = make();
  const std::size_t count = 12 * ranks();
  const cuda::DeviceMemory features = on_gpu(before(Kind::allgather, count));
  const cuda::DeviceMemory maxima = on_gpu(before(Kind::allreduce_max, count));
  const cuda::DeviceMemory source = on_gpu(before(Kind::reduce_scatter_sum, count));
  const cuda::DeviceMemory scattered = cuda::allocate_device(count * sizeof(float));
  const cuda::DeviceMemory bucket = on_gpu(std::vector<float>(501, 1.0f));
  {
    const cuda::ExecutableGraph graph = capture([&] {
      communicator->start({.kind = Kind::allgather, .elements = count}, features.get());
      communicator->start({.kind = Kind::allreduce_max, .elements = count}, maxima.get());
      communicator->start({.elements = 501}, bucket.get());
      cuda::check(cudaMemcpyAsync(scattered.get(), source.get(), count * sizeof(float),
                                  cudaMemcpyDeviceToDevice, stream.get()));
      communicator->start({.kind = Kind::reduce_scatter_sum, .elements = count}, scattered.get());
    });
    for (int replay = 0; replay < 3; ++replay) {
      cuda::check(cudaGraphLaunch(graph.get(), stream.get()));
      communicator->progress();
    }
    synchronize();
  }
  expect_done(Kind::allgather, features, count);
  expect_done(Kind::allreduce_max, maxima, count);
  expect_done(Kind::reduce_scatter_sum, scattered, count);
  const auto grown = static_cast<float>(ranks() * ranks() * ranks());
  EXPECT_EQ(on_host<float>(bucket, 501), std::vector<float>(501, grown));
}

TEST_F(NcclKinds, RefuseElementsThatCannotBeSharedOut) {
  if (job().size() == 1) GTEST_SKIP() << "one rank has it all";
  const auto communicator = make();
  EXPECT_THROW(communicator->start({.kind = Kind::allgather, .elements = ranks() + 1}, nullptr),
               std::logic_error);
}

// Checks the stand-in: the errors it reports would hang or corrupt a real run.
TEST_F(NcclFault, RanksThatRunAnotherKindAreFound) {
  const auto communicator = make();
  const cuda::DeviceMemory memory = on_gpu(std::vector<float>(10, 1.0f));
  communicator->start({.kind = job().rank() == 1 ? Kind::allreduce_max : Kind::allreduce_sum, .elements = 10},
                      memory.get());
  const Error error = error_of([&] { synchronize(); });
  EXPECT_NE(std::string(error.what()).find("with operation"), std::string::npos) << error.what();
}

TEST_F(NcclFault, RanksThatScatterWhereOthersGatherAreFound) {
  const auto communicator = make();
  const cuda::DeviceMemory memory = on_gpu(std::vector<float>(10, 1.0f));
  communicator->start(
      {.kind = job().rank() == 1 ? Kind::reduce_scatter_sum : Kind::allgather, .elements = 10}, memory.get());
  const Error error = error_of([&] { synchronize(); });
  EXPECT_NE(std::string(error.what()).find("rank 1 runs reduce-scatter 0 of 5 elements"), std::string::npos)
      << error.what();
}

}  // namespace
}  // namespace plumb
