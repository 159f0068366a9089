// Tuned runs, the default: rank 0's choice on every rank, the cache, and damaged caches.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/faults/started_program.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

const std::string kArguments = "--device cuda --image-size 32 --warmup 0 --iters 2 --lr 0.00001 --threads 1 ";

struct TunedRun {
  Ended ended;
  nlohmann::ordered_json result, program;
  std::string said, csv;
};

TunedRun run(int ranks, const std::string& arguments, const std::string& environment) {
  const Place place;
  TunedRun run;
  const std::string command = place.resnet50(kArguments + arguments);
  run.ended = place.run(ranks > 1 ? Place::mpirun(ranks, command) : command, environment);
  for (const std::string& line : run.ended.lines) run.said += line + "\n";
  EXPECT_EQ(run.ended.exit_code, 0) << run.said;
  if (run.ended.exit_code != 0) return run;
  run.result = place.result();
  for (const std::string& name : place.contents()) {
    if (name.ends_with("/program.json"))
      run.program = nlohmann::ordered_json::parse(read_text(place.file(name)));
    if (name.ends_with("/tuning.csv")) run.csv = read_text(place.file(name));
  }
  return run;
}

TunedRun run_with_cache(int ranks, const std::string& folder) {
  return run(ranks, "--bs 2", "EMULATED_GPUS=2 XDG_CACHE_HOME=" + folder + " ");
}

// Convolutions only: name and time.
std::map<std::string, double> tuned_seconds(const nlohmann::ordered_json& program) {
  std::map<std::string, double> seconds;
  for (const auto& instruction : program.at("ops"))
    if (instruction.at("kind").get<std::string>().starts_with("conv_"))
      seconds[instruction.at("name")] = instruction.at("tuned_seconds").get<double>();
  return seconds;
}

TEST(TunedRuns, TakeRankZerosEnginesOnEveryRankAndRememberThem) {
  const ScratchFolder cache;
  const TunedRun first = run_with_cache(2, cache.path());
  EXPECT_TRUE(first.result.at("checks").at("replicas_identical").get<bool>());
  EXPECT_TRUE(first.result.at("config").at("autotune").get<bool>());
  EXPECT_TRUE(first.csv.starts_with("problem,engine,workspace_bytes,milliseconds,chosen\n")) << first.csv;
  EXPECT_NE(first.csv.find("\"oneDNN sgemm\""), std::string::npos) << "1x1 convolutions are products, too";
  ASSERT_FALSE(tuned_seconds(first.program).empty());

  const TunedRun second = run_with_cache(2, cache.path());
  EXPECT_EQ(tuned_seconds(second.program), tuned_seconds(first.program)) << "the cache was not used";
  EXPECT_EQ(second.said.find("tuning cache"), std::string::npos) << second.said;

  const std::string file = "plumbline/tuning/" + cache.list("plumbline/tuning").front();
  cache.write(file, "{");
  const TunedRun third = run_with_cache(1, cache.path());
  EXPECT_NE(third.said.find(file + " is damaged"), std::string::npos) << third.said;
}

TEST(TunedRuns, NameTheLayersWithoutAFusedEngineAndComputeThemByPlainSteps) {
  const std::string fp16 = "--bs 4 --fp16 --loss-scale 128 --no-autotune --verbose ";
  const TunedRun fallen = run(1, fp16, "EMULATED_NO_FUSED_ENGINES=1 "),
                 plain = run(1, fp16 + "--fusion off", "");
  ASSERT_EQ(plain.ended.exit_code, 0);
  ASSERT_TRUE(fallen.result.contains("unfused_layers")) << fallen.said;
  for (const auto& layer : fallen.result.at("unfused_layers")) {
    EXPECT_NE(layer.at("reason").get<std::string>().find("engine"), std::string::npos) << layer;
    EXPECT_NE(fallen.ended.output.find(layer.at("layer").get<std::string>()), std::string::npos)
        << fallen.ended.output;
  }
  EXPECT_FALSE(plain.result.contains("unfused_layers"));
  for (const auto& instruction : fallen.program.at("ops"))
    EXPECT_NE(instruction.at("kind"), "conv_norm_backward_data") << instruction;
  // Few images of 1x1 at the end make later losses those of any rounding. Our own kernels still fuse: ends of
  // blocks are not rounded before they are normalized.
  const auto loss = plain.result.at("loss").front().get<double>();
  EXPECT_NEAR(fallen.result.at("loss").front().get<double>(), loss, 0.002 * loss);
}

// Times differ from run to run.
TEST(TunedRuns, ChooseNothingByTimeWhereRunsAreToRepeat) {
  const ScratchFolder cache;
  const TunedRun deterministic = run(1, "--bs 2 --deterministic", "XDG_CACHE_HOME=" + cache.path() + " ");
  EXPECT_TRUE(cache.list().empty());
  for (const auto& instruction : deterministic.program.at("ops"))
    EXPECT_FALSE(instruction.contains("tuned_seconds")) << instruction;
}

}  // namespace
}  // namespace plumb
