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
  expect_error(ExitCode::bad_data, {"result.json", "not a JSON object"}, [&] { read_result_file(file); });
}

TEST(ShallowJson, RefusesDeepTextsAndObjectsOfManyKeys) {
  EXPECT_EQ(parse_shallow_json(R"({"a": [1, {"b": "}]:\"{"}]})")["a"][1]["b"], "}]:\"{");
  EXPECT_TRUE(parse_shallow_json("{\"a\": ").is_discarded());
  EXPECT_FALSE(parse_shallow_json(std::string(64, '[') + std::string(64, ']')).is_discarded());
  EXPECT_TRUE(parse_shallow_json(std::string(65, '[') + std::string(65, ']')).is_discarded());
  EXPECT_TRUE(parse_shallow_json(std::string(1'000'000, '[')).is_discarded());
  const auto object_of = [](int keys) {
    std::string text = "{";
    for (int i = 0; i < keys; ++i) text += fmt::format("{}\"{}\":{{}}", i > 0 ? "," : "", i);
    return text + "}";
  };
  EXPECT_FALSE(parse_shallow_json(object_of(2000)).is_discarded());
  EXPECT_TRUE(parse_shallow_json(object_of(2001)).is_discarded());
}

}  // namespace
}  // namespace plumb
