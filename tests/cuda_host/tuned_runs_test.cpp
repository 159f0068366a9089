// Tuned runs, the default: rank 0's choice on every rank, the cache, and damaged caches.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/faults/started_program.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

const std::string kArguments =
    "--device cuda --image-size 32 --bs 2 --warmup 0 --iters 2 --lr 0.00001 --threads 1 ";

struct TunedRun {
  Ended ended;
  nlohmann::ordered_json result, program;
  std::string said, csv;
};

// Uses the cache in this folder.
TunedRun run(int ranks, const std::string& cache) {
  const Place place;
  TunedRun run;
  const std::string command = place.resnet50(kArguments);
  run.ended = place.run(ranks > 1 ? Place::mpirun(ranks, command) : command,
                        "EMULATED_GPUS=2 XDG_CACHE_HOME=" + cache + " ");
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

// Convolutions only: name and time.
std::map<std::string, double> tuned_seconds(const nlohmann::ordered_json& program) {
  std::map<std::string, double> seconds;
  for (const auto& instruction : program.at("steps"))
    if (instruction.at("kind").get<std::string>().starts_with("conv_"))
      seconds[instruction.at("name")] = instruction.at("tuned_seconds").get<double>();
  return seconds;
}

TEST(TunedRuns, TakeRankZerosEnginesOnEveryRankAndRememberThem) {
  const ScratchFolder cache;
  const TunedRun first = run(2, cache.path());
  EXPECT_TRUE(first.result.at("checks").at("replicas_identical").get<bool>());
  EXPECT_TRUE(first.result.at("config").at("autotune").get<bool>());
  EXPECT_TRUE(first.csv.starts_with("problem,engine,workspace_bytes,milliseconds,chosen\n")) << first.csv;
  EXPECT_NE(first.csv.find("\"oneDNN sgemm\""), std::string::npos) << "1x1 convolutions are products, too";
  ASSERT_FALSE(tuned_seconds(first.program).empty());

  const TunedRun second = run(2, cache.path());
  EXPECT_EQ(tuned_seconds(second.program), tuned_seconds(first.program)) << "the cache was not used";
  EXPECT_EQ(second.said.find("tuning cache"), std::string::npos) << second.said;

  const std::string file = cache.path() + "/plumbline/tuning.json", whole = read_text(file);
  cache.write("plumbline/tuning.json", whole.substr(0, whole.size() / 2));
  const TunedRun third = run(1, cache.path());
  EXPECT_NE(third.said.find("tuning.json is damaged"), std::string::npos) << third.said;
}

}  // namespace
}  // namespace plumb
