#include "kernels/program/program.h"

#include <gtest/gtest.h>

#include <set>

namespace plumb {
namespace {

Program bucket_of_two_gradients() {
  Program program;
  program.buffers = {{.name = "bucket0", .bytes = 24},
                     {.name = "a.gradient", .bytes = 16, .view = View{0, 0}},
                     {.name = "b.gradient", .bytes = 8, .view = View{0, 16}}};
  program.instructions = {
      {.name = "bucket0.reduce",
       .operation = Collective{.buffer = 0, .elements = 6, .dtype = DType::f32, .parts = {0}},
       .lane = Lane::communication}};
  return program;
}

TEST(Program, EveryKindOfCollectiveHasItsOwnName) {
  std::set<std::string_view> names;
  const int kinds = static_cast<int>(Collective::Kind::broadcast) + 1;
  for (int kind = 0; kind < kinds; ++kind) names.insert(name_of(static_cast<Collective::Kind>(kind)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kinds));
}

TEST(ReductionHash, SeesEverythingThatRanksMustAgreeOn) {
  const std::uint64_t hash = reduction_hash(bucket_of_two_gradients());
  const auto changed = [](auto change) {
    Program program = bucket_of_two_gradients();
    change(program);
    return reduction_hash(program);
  };
  EXPECT_EQ(hash, reduction_hash(bucket_of_two_gradients()));
  EXPECT_NE(hash,
            changed([](Program& p) { std::get<Collective>(p.instructions[0].operation).elements = 7; }));
  EXPECT_NE(hash, changed([](Program& p) {
              std::get<Collective>(p.instructions[0].operation).dtype = DType::f16;
            }));
  EXPECT_NE(hash, changed([](Program& p) {
              std::get<Collective>(p.instructions[0].operation).kind = Collective::Kind::allreduce_max;
            }));
  EXPECT_NE(hash, changed([](Program& p) { p.buffers[1].name = "c.gradient"; }));
  EXPECT_NE(hash, changed([](Program& p) { p.buffers[2].bytes = 4; }));
  EXPECT_NE(hash, changed([](Program& p) { p.buffers[2].layout = "1/16x1"; }));
  EXPECT_NE(hash, changed([](Program& p) { std::swap(p.buffers[1], p.buffers[2]); }));
  EXPECT_NE(hash, changed([](Program& p) { p.instructions.push_back(p.instructions[0]); }));
}

TEST(ReductionHash, IgnoresWhatStaysOnARank) {
  Program program = bucket_of_two_gradients();
  program.buffers.push_back({.name = "activation", .bytes = 4096});
  program.instructions.push_back({.name = "forward", .operation = Recorded{{{3, Access::write}}}});
  EXPECT_EQ(reduction_hash(program), reduction_hash(bucket_of_two_gradients()));
}

TEST(ReductionHash, IgnoresWhereEachRanksPartLies) {
  for (Collective::Kind kind : {Collective::Kind::allgather, Collective::Kind::reduce_scatter_sum}) {
    Program first = bucket_of_two_gradients();
    std::get<Collective>(first.instructions[0].operation).kind = kind;
    Program second = first;
    second.buffers[2].view->offset = 8;
    EXPECT_EQ(reduction_hash(first), reduction_hash(second));
    second.buffers[0].bytes = 48;
    EXPECT_NE(reduction_hash(first), reduction_hash(second));
  }
}

}  // namespace
}  // namespace plumb
