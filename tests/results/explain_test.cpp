#include "results/explain/explain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <type_traits>
#include <variant>

#include "kernels/program/program.h"
#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

using enum StepCategory;

RunRecord small_record() {
  RunRecord record;
  record.status = "ok";
  record.model = "resnet50";
  record.precision = "fp32";
  record.device = "cpu";
  record.batch_per_device = 16;
  record.exposed_communication_seconds = 0.002;
  record.data_wait_seconds = 0.0005;
  record.config = {{"image_size", 224}, {"data", "synthetic"}};
  return record;
}

// 10 ms, 7 of them busy, 4 of those in convolutions.
RunProfile small_profile() {
  RunProfile profile;
  profile.iteration_seconds = 0.010;
  profile.busy_seconds = 0.007;
  profile.kinds = {{"conv_forward", 1, 0.0010, 0},
                   {"conv_backward_data", 1, 0.0012, 0},
                   {"conv_backward_weights", 1, 0.0018, 0},
                   {"norm_forward", 1, 0.0020, 0},
                   {"update", 1, 0.0010, 0}};
  return profile;
}

FrameworkTrace small_trace(std::int64_t untold) {
  FrameworkTrace trace;
  trace.steps = 3;
  trace.time[index_of(conv_forward)] = 6'000'001;
  trace.time[index_of(conv_backward_data)] = 6'000'000;
  trace.time[index_of(conv_backward_weights)] = 9'000'000;
  trace.time[index_of(conv_backward)] = untold;
  trace.time[index_of(norm)] = 7'000'000;
  trace.time[index_of(gaps)] = 17'000'000 - untold;
  trace.total = 45'000'001;
  return trace;
}

const ExplainedRow* row_of(const Explanation& explanation, StepCategory category) {
  for (const ExplainedRow& row : explanation.rows)
    if (row.category == category) return &row;
  return nullptr;
}

void expect_sums(const Explanation& explanation) {
  std::int64_t ours = 0, theirs = 0, difference = 0;
  for (const ExplainedRow& row : explanation.rows) {
    ours += row.ours;
    theirs += row.theirs;
    difference += row.difference();
  }
  EXPECT_EQ(ours, explanation.ours);
  EXPECT_EQ(theirs, explanation.theirs);
  EXPECT_EQ(difference, explanation.theirs - explanation.ours);
}

TEST(Explain, RowsAddUpWhateverTheTimes) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    RunProfile profile = small_profile();
    profile.busy_seconds = 0;
    for (ProfiledKind& kind : profile.kinds)
      profile.busy_seconds += kind.seconds = static_cast<double>(random() % 10'000'000) * 1e-9;
    profile.iteration_seconds = profile.busy_seconds * 1.01 + 1e-7;
    FrameworkTrace trace;
    trace.steps = 1 + random() % 9;
    for (std::int64_t& time : trace.time)
      trace.total += time = static_cast<std::int64_t>(random() % 100'000'000);
    const Explanation explanation = explain(small_record(), profile, trace);
    expect_sums(explanation);
    EXPECT_NEAR(static_cast<double>(explanation.ours), profile.iteration_seconds * 1e6, 7.0);
    EXPECT_NEAR(static_cast<double>(explanation.theirs),
                static_cast<double>(trace.total) / static_cast<double>(trace.steps) / 1000, 7.0);
  }
}

TEST(Explain, BusyTimeIsSharedOutLikeTheMediansAndWaitingComesFromTheRun) {
  RunProfile profile = small_profile();
  profile.busy_seconds = 0.0084;  // the sum of medians is smaller than the median of sums
  const Explanation explanation = explain(small_record(), profile, small_trace(0));
  EXPECT_EQ(row_of(explanation, norm)->ours, 2400);
  EXPECT_EQ(row_of(explanation, communication)->ours, 1600);  // no more than the wait
  EXPECT_EQ(row_of(explanation, data), nullptr);
  EXPECT_EQ(row_of(explanation, gaps)->ours, 0);
  profile.busy_seconds = 0.007;
  const Explanation waiting = explain(small_record(), profile, small_trace(0));
  EXPECT_EQ(row_of(waiting, communication)->ours, 2000);
  EXPECT_EQ(row_of(waiting, data)->ours, 500);
  EXPECT_EQ(row_of(waiting, gaps)->ours, 500);
}

TEST(Explain, BackwardConvolutionsThatDoNotSayOfWhatMergeBothSides) {
  const Explanation merged = explain(small_record(), small_profile(), small_trace(600'000));
  EXPECT_TRUE(merged.merged_backward);
  EXPECT_EQ(row_of(merged, conv_backward)->ours, 3000);
  EXPECT_EQ(row_of(merged, conv_backward)->theirs, 5200);
  EXPECT_EQ(row_of(merged, conv_backward_data), nullptr);
  const Explanation little = explain(small_record(), small_profile(), small_trace(300'000));
  EXPECT_FALSE(little.merged_backward);
  EXPECT_EQ(row_of(little, unassigned)->theirs, 100);
  expect_sums(merged);
  expect_sums(little);
}

TEST(Explain, NamesWhatTheTraceSaysIsDifferent) {
  FrameworkTrace trace = small_trace(0);
  EXPECT_TRUE(explain(small_record(), small_profile(), trace).differences.empty());
  trace.description = {{"framework", "PyTorch"}, {"version", "2.9.1+cpu"}, {"compiled", true},
                       {"model", "resnet50"},    {"precision", "fp32"},    {"batch_per_device", 8},
                       {"image_size", 224},      {"world_size", 2},        {"classes", "x"}};
  const Explanation explanation = explain(small_record(), small_profile(), trace);
  EXPECT_EQ(explanation.framework, "PyTorch 2.9.1, compiled");
  ASSERT_EQ(explanation.differences.size(), 2u);
  EXPECT_EQ(explanation.differences[0].second, "8");
  EXPECT_EQ(explanation.differences[1].what, "ranks");
  trace.description = 5;
  trace.on_gpu = true;
  EXPECT_EQ(explain(small_record(), small_profile(), trace).differences.size(), 1u);
}

template <typename... T>
std::vector<std::string_view> kinds(std::type_identity<std::variant<T...>>) {
  return {T::kName...};
}

TEST(StepCategories, EveryKindOfStepThatADeviceRunsIsSorted) {
  for (std::string_view kind : kinds(std::type_identity<Operation>())) {
    if (kind == Recorded::kName) continue;
    EXPECT_NE(category_of_instruction(kind), unassigned) << kind;
  }
  EXPECT_EQ(category_of_instruction("conv_norm_backward_data"), conv_backward_data);
  EXPECT_EQ(category_of_instruction("channel_products"), conv_backward_weights);
  EXPECT_EQ(category_of_instruction("product_norm_backward"), norm);
  EXPECT_EQ(category_of_instruction("masked_gradient"), elementwise);
  EXPECT_EQ(category_of_instruction("margin_products"), dense);
  EXPECT_EQ(category_of_instruction("margin_gradient"), loss);
  expect_error(ExitCode::bad_data, {"'attention'"}, [] { category_of_instruction("attention"); });
}

}  // namespace
}  // namespace plumb
