#include "launch/sweep/sweep_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"

namespace plumb {
namespace {

RunLength accept_all(const std::string&, const std::vector<std::string>&) {
  return {.iterations = 120, .warmup = 20};
}

SweepPlan plan_of(const std::string& text, const CheckOptions& check = accept_all) {
  return read_sweep_plan(text, "x.toml", check);
}

const std::string kCase =
    "[[case]]\nmodel = 'resnet50'\ndevices_per_node = [1, 2, 4, 8]\nbatch_sizes = [64, 128]\n"
    "precisions = ['fp32', 'fp16']\n";

std::string sweep_text(const std::string& keys) {
  return "[sweep]\n" + keys + "\n" + kCase;
}

std::vector<std::string> names(const SweepPlan& plan) {
  std::vector<std::string> all;
  for (const SweepRun& run : plan.runs) all.push_back(run.name);
  return all;
}

std::string cut_repetition(const std::string& name) {
  return name.substr(0, name.rfind('_'));
}

TEST(SweepPlan, HasEveryCaseInEveryRepetition) {
  const SweepPlan plan = plan_of(sweep_text("repetitions = 5"));
  EXPECT_EQ(plan.groups.size(), 4u);
  ASSERT_EQ(plan.runs.size(), 5u * 16);
  std::set<std::string> all;
  for (std::size_t repetition = 0; repetition < 5; ++repetition) {
    std::set<std::string> cases;
    for (std::size_t i = 0; i < 16; ++i) {
      const SweepRun& run = plan.runs[16 * repetition + i];
      EXPECT_EQ(run.repetition, static_cast<int>(repetition) + 1);
      cases.insert(cut_repetition(run.name));
      all.insert(run.name);
    }
    EXPECT_EQ(cases.size(), 16u);
  }
  EXPECT_EQ(all.size(), plan.runs.size());
}

TEST(SweepPlan, OrdersEachRepetitionAnewByTheSeed) {
  const std::vector<std::string> first = names(plan_of(sweep_text("seed = 7")));
  EXPECT_EQ(first, names(plan_of(sweep_text("seed = 7"))));
  EXPECT_NE(first, names(plan_of(sweep_text("seed = 8"))));
  std::set<std::vector<std::string>> orders;
  for (std::size_t repetition = 0; repetition < 7; ++repetition) {
    std::vector<std::string> order;
    for (std::size_t i = 0; i < 16; ++i) order.push_back(cut_repetition(first[16 * repetition + i]));
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 7u);
}

// Over many repetitions every number of devices gets every position equally often: 99 times 16 cases, 4 of
// them with 8 devices, have a mean position of 7.5 with a standard error of 0.2.
TEST(SweepPlan, DriftMeetsSmallAndLargeCasesAlike) {
  const SweepPlan plan = plan_of(sweep_text("repetitions = 99"));
  std::map<int, double> place_sum;
  for (std::size_t i = 0; i < plan.runs.size(); ++i)
    place_sum[plan.runs[i].devices()] += static_cast<double>(i % 16);
  for (const auto& [devices, sum] : place_sum) EXPECT_NEAR(sum / (99 * 4), 7.5, 0.9) << devices << " devices";
}

TEST(SweepPlan, ShellTextQuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(shell_text({"a", "", "b c", "it's", "$x"}), "a '' 'b c' 'it'\\''s' '$x'");
}

TEST(SweepPlan, HashTellsSweepsApartButNotRetriesAndPlaces) {
  const std::string hash = plan_hash(plan_of(sweep_text("seed = 1")));
  EXPECT_EQ(hash, plan_hash(plan_of(sweep_text("seed = 1\nretries = 9\ntimeout_minutes = 1.5"))));
  EXPECT_EQ(hash, plan_hash(plan_of(sweep_text("seed = 1") + "[launcher]\nprograms = 'elsewhere'\n")));
  EXPECT_NE(hash, plan_hash(plan_of(sweep_text("seed = 2"))));
  EXPECT_NE(hash, plan_hash(plan_of(sweep_text("seed = 1\nrepetitions = 5"))));
  EXPECT_NE(hash, plan_hash(plan_of(sweep_text("seed = 1") + "options = { lr = 0.5 }\n")));
  EXPECT_NE(hash, plan_hash(plan_of(sweep_text("seed = 1") + "[launcher]\narguments = []\n")));
}

TEST(SweepPlan, ProgramsAreRelativeToTheFile) {
  const std::string text = kCase + "[launcher]\nprograms = 'bin'\n";
  EXPECT_EQ(read_sweep_plan(text, "/a/x.toml", accept_all).launcher.programs, "/a/bin");
  EXPECT_EQ(read_sweep_plan(text, "x.toml", accept_all).launcher.programs, "bin");
}

}  // namespace
}  // namespace plumb
