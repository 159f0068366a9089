#include "base/shallow_json.h"

#include <gtest/gtest.h>

#include "results/record/schema.h"
#include "tests/bench/expect_error.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST(ShallowJson, ReadsWhatHasFewLevels) {
  EXPECT_EQ(parse_shallow_json(R"({"a": [1, {"b": null}]})").at("a").size(), 2U);
  EXPECT_TRUE(parse_shallow_json(nested(kMostJsonLevels)).is_array());
  EXPECT_TRUE(parse_shallow_json("no").is_discarded());
}

TEST(ShallowJson, RefusesWhatWouldOverflowTheStack) {
  EXPECT_TRUE(parse_shallow_json(nested(300'000)).is_discarded());
  const ScratchFolder scratch;
  const auto file = scratch.write("result.json", "{\"config\": " + nested(300'000) + "}");
  expect_error(ExitCode::bad_data, {"result.json", "no JSON object"}, [&] { read_result_file(file); });
}

}  // namespace
}  // namespace plumb
