#include <gtest/gtest.h>

#include "results/report/run_parts.h"
#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

TEST(RunProfile, StepsComeLongestFirst) {
  const auto step = [](const char* name, double seconds) {
    return Json{{"name", name},          {"kind", "conv_forward"},  {"phase", "forward"},
                {"lane", "compute"},     {"seconds", seconds},      {"roofline_seconds", 1e-6},
                {"flops_per_second", 1}, {"bytes_per_second", 2.5}, {"bound_by", "compute"}};
  };
  Json json;
  json["device"] = "some CPU";
  for (const char* key : {"peak_flops_per_second", "peak_bytes_per_second", "iteration_seconds",
                          "busy_seconds", "gap_seconds", "roofline_seconds"})
    json[key] = 1.0;
  json["kinds"] =
      Json::array({{{"name", "conv_forward"}, {"ops", 2}, {"seconds", 3e-6}, {"roofline_seconds", 2e-6}}});
  json["ops"] = {step("a", 1e-6), step("b", 2e-6)};
  json["ops"][1]["engine"] = "eng0";
  const RunProfile profile = run_profile(json, "profile.json", 1);
  ASSERT_EQ(profile.instructions.size(), 1U);
  EXPECT_EQ(profile.instructions[0].name, "b");
  EXPECT_EQ(profile.instructions[0].engine, "eng0");
  EXPECT_EQ(profile.kinds[0].instructions, 2);
  EXPECT_EQ(run_profile(json, "profile.json").instructions[1].engine, "");
  json["ops"][0]["seconds"] = nullptr;
  expect_error(ExitCode::bad_data, {"profile.json", "seconds"}, [&] { run_profile(json, "profile.json"); });
  json["ops"][0].erase("seconds");
  expect_error(ExitCode::bad_data, {"profile.json", "seconds"}, [&] { run_profile(json, "profile.json"); });
}

}  // namespace
}  // namespace plumb
