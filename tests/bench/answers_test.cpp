#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/bench_main.h"
#include "tests/bench/parsed_options.h"

namespace plumb {
namespace {

std::string answer(const std::vector<std::string>& arguments) {
  return answer_without_running("bench_resnet50", parsed_options(arguments)).value_or("");
}
bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
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
  if (!holds(text, "  winograd\n")) GTEST_SKIP() << "no Winograd convolutions here";
  EXPECT_FALSE(holds(here({"--verbose", "--conv", "direct"}), "  winograd\n")) << text;
  EXPECT_GT(workspace("auto"), workspace("direct"));
}

}  // namespace
}  // namespace plumb
