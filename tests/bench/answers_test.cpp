#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/bench_main.h"
#include "bench/options/options.h"

namespace plumb {
namespace {

std::string answer(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"bench_resnet50"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  const BenchOptions options = parse_options(static_cast<int>(argv.size()), argv.data());
  return answer_without_running("bench_resnet50", options).value_or("");
}
std::string dry_run(std::vector<std::string> further) {
  further.insert(further.begin(), {"--dry-run", "--target", "h200", "--bs", "2", "--fp16"});
  return answer(further);
}
bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(DryRunAnswer, SaysWhatIsFusedOnlyIfVerbose) {
  EXPECT_FALSE(holds(dry_run({}), "ConvBNfprop"));
  EXPECT_TRUE(holds(dry_run({"--verbose"}), "normalises layer1.0.bn1 (ConvBNfprop)"));
  EXPECT_FALSE(holds(dry_run({"--verbose", "--json"}), "ConvBNfprop"));
}

TEST(DryRunAnswer, FusionOffGivesThePlainSteps) {
  EXPECT_TRUE(holds(dry_run({"--json"}), "layer1.0.bn1.finalize"));
  EXPECT_FALSE(holds(dry_run({"--json", "--fusion", "off"}), "layer1.0.bn1.finalize"));
  EXPECT_TRUE(holds(dry_run({"--verbose", "--fusion", "off"}), "none, --fusion is off"));
}

TEST(DryRunAnswer, NamesTheLayoutThatTheGpuIsGiven) {
  const auto of = [](const std::string& target, std::vector<std::string> further) {
    further.insert(further.begin(), {"--dry-run", "--target", target, "--bs", "2", "--verbose"});
    return answer(further);
  };
  EXPECT_TRUE(holds(of("v100-16gb", {}), "layout: nchw\n"));
  EXPECT_TRUE(holds(of("v100-16gb", {"--fp16"}), "layout: nhwc\n"));
  EXPECT_TRUE(holds(of("v100-16gb", {"--layout", "nhwc"}), "layout: nhwc\n"));
  EXPECT_TRUE(holds(of("h200", {}), "layout: nhwc\n"));
  EXPECT_TRUE(holds(of("h200", {"--layout", "nchw"}), "layout: nchw\n"));
}

TEST(DryRunAnswer, OfThisCpuPlansWorkspacesAndSaysWhatRunsByWinograd) {
  const auto here = [](std::vector<std::string> further) {
    further.insert(further.begin(), {"--dry-run", "--device", "cpu", "--threads", "1", "--bs", "2"});
    return answer(further);
  };
  const auto workspace = [&](const std::string& conv) {
    const auto json = nlohmann::json::parse(here({"--conv", conv, "--json"}));
    return json.at("memory_bytes").at("workspace").get<std::size_t>();
  };
  EXPECT_GT(workspace("direct"), 0u);
  const std::string text = here({"--verbose"});
  if (!holds(text, "Winograd")) GTEST_SKIP() << "no Winograd convolutions here";
  EXPECT_TRUE(holds(text, "  layer1.0.conv2: forward, backward_weights, backward_data\n")) << text;
  EXPECT_TRUE(holds(here({"--verbose", "--conv", "direct"}), "\n0 of 48 passes")) << text;
  EXPECT_GT(workspace("auto"), workspace("direct"));
}

TEST(DryRunAnswer, LooksForOverflowsUnlessTheLossIsNotScaled) {
  EXPECT_TRUE(holds(dry_run({"--json"}), "find_overflow"));
  EXPECT_FALSE(holds(dry_run({"--json", "--loss-scale", "none"}), "find_overflow"));
}

TEST(DryRunAnswer, HasCollectivesOfManyRanksAndOfOneThatNamesACommunicator) {
  const auto steps = [](std::vector<std::string> further) {
    further.insert(further.begin(), "--json");
    const nlohmann::ordered_json json = nlohmann::ordered_json::parse(dry_run(further));
    return json.at("steps").dump();
  };
  const std::string alone = steps({}), named = steps({"--comm", "mpi"}), two = steps({"--nodes", "2"});
  EXPECT_FALSE(holds(alone, ".allreduce"));
  EXPECT_TRUE(holds(named, "bucket0.allreduce"));
  EXPECT_EQ(named, two);
  const std::string text = dry_run({"--comm", "mpi"});
  EXPECT_TRUE(holds(text, "world size 1"));
  EXPECT_TRUE(holds(text, "0.000 GB per step and rank"));
}

}  // namespace
}  // namespace plumb
