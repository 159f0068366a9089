#include <gtest/gtest.h>

#include "comm/gradient_reduction.h"
#include "tests/comm/small_program.h"

namespace plumb {
namespace {

Program with_one(Collective::Kind kind, std::size_t elements, DType dtype) {
  Program program;
  program.instructions.push_back({.name = "collective",
                                  .operation = Collective{.kind = kind, .elements = elements, .dtype = dtype},
                                  .lane = Lane::communication});
  return program;
}

TEST(TrafficBytes, IsTwiceTheBucketsLessOneShare) {
  GradientReductionOptions options;
  options.buckets = {.last_bucket_bytes = 640, .bucket_bytes = 640};
  const Program program = add_gradient_reduction(small_program({{640}, {640}}), options);
  EXPECT_DOUBLE_EQ(sent_bytes_per_rank(program, 1), 0);
  EXPECT_DOUBLE_EQ(sent_bytes_per_rank(program, 2), 1280);
  EXPECT_DOUBLE_EQ(sent_bytes_per_rank(program, 4), 1280 * 1.5);
}

TEST(TrafficBytes, HalvesWithF16) {
  GradientReductionOptions options;
  options.dtype = ReduceDType::fp16;
  const Program program = add_gradient_reduction(small_program({{640}, {640}}), options);
  EXPECT_DOUBLE_EQ(sent_bytes_per_rank(program, 2), 640);
}

TEST(TrafficBytes, OfMaximaIsThatOfSums) {
  EXPECT_DOUBLE_EQ(sent_bytes_per_rank(with_one(Collective::Kind::allreduce_max, 100, DType::f32), 4), 600);
}

TEST(TrafficBytes, OfGathersAndReduceScattersIsTheBufferLessOneShare) {
  for (Collective::Kind kind : {Collective::Kind::allgather, Collective::Kind::reduce_scatter_sum}) {
    EXPECT_DOUBLE_EQ(sent_bytes_per_rank(with_one(kind, 100, DType::f32), 1), 0);
    EXPECT_DOUBLE_EQ(sent_bytes_per_rank(with_one(kind, 100, DType::f32), 4), 300);
    EXPECT_DOUBLE_EQ(sent_bytes_per_rank(with_one(kind, 100, DType::f16), 2), 100);
  }
}

TEST(TrafficBytes, AddsUpAllCollectives) {
  Program program = with_one(Collective::Kind::allgather, 100, DType::i32);
  program.instructions.push_back(
      with_one(Collective::Kind::allreduce_sum, 10, DType::f32).instructions.front());
  EXPECT_DOUBLE_EQ(sent_bytes_per_rank(program, 2), 200 + 40);
}

}  // namespace
}  // namespace plumb
