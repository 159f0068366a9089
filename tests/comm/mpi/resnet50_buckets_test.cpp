// Integer patterns sum exactly in any order, so a single wrong element shows.
#include "comm/communicator.h"
#include "comm/gradient_reduction.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/comm/resnet50_program.h"
#include "tests/comm/small_program.h"

namespace plumb {
namespace {

using ResNet50Buckets = MpiTest;

std::vector<Collective> resnet50_collectives(ReduceDType dtype) {
  GradientReductionOptions options;
  options.dtype = dtype;
  return collectives_of(add_gradient_reduction(resnet50_program(), options));
}

// At most 15 + 8 * rank: sums over 16 ranks stay below 2048, exact in f16.
int pattern(std::size_t element, int rank) {
  return static_cast<int>((element * 7 + element / 1000) % 16) + rank % 16 * 8;
}

int pattern_sum(std::size_t element, int size) {
  int sum = 0;
  for (int rank = 0; rank < size; ++rank) sum += pattern(element, rank);
  return sum;
}

// Index of the first wrong element; the number of elements if all are right.
template <typename T>
std::size_t first_wrong(const std::vector<T>& values, int size) {
  std::size_t i = 0;
  while (i < values.size() && static_cast<float>(values[i]) == static_cast<float>(pattern_sum(i, size))) ++i;
  return i;
}

template <typename T>
void expect_exact_sums(const Job& job, const std::vector<Collective>& collectives) {
  const auto communicator = make_mpi_communicator(job);
  for (const Collective& collective : collectives) {
    ASSERT_EQ(bytes_of(collective.dtype), sizeof(T));
    std::vector<T> values(collective.elements);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(pattern(i, job.rank()));
    communicator->wait(communicator->start(collective, reinterpret_cast<std::byte*>(values.data())));
    EXPECT_EQ(first_wrong(values, job.size()), values.size());
  }
}

TEST_F(ResNet50Buckets, SumExactlyInF32) {
  expect_exact_sums<float>(job(), resnet50_collectives(ReduceDType::same));
}

TEST_F(ResNet50Buckets, SumExactlyInF16) {
  expect_exact_sums<_Float16>(job(), resnet50_collectives(ReduceDType::fp16));
}

TEST_F(ResNet50Buckets, HaveTheSameHashOnAllRanks) {
  const std::string hash = std::to_string(reduction_hash(add_gradient_reduction(resnet50_program(), {})));
  EXPECT_NO_THROW(job().require_same("Program", "hash=" + hash + "\n"));
}

}  // namespace
}  // namespace plumb
