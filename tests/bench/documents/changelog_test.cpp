// CHANGELOG.md and CITATION.cff against the program.
#include <gtest/gtest.h>

#include <string>

#include "base/build.h"
#include "bench/allreduce/allreduce_report.h"
#include "results/record/last_words.h"
#include "results/record/links.h"
#include "results/record/profile.h"
#include "results/record/schema.h"
#include "results/simulation/scaling_verdicts.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

std::string text_of(const std::string& file) {
  return read_text(PLUMB_TEST_DATA "/../../" + file);
}

// Behind what is not released yet.
TEST(Changelog, BeginsWithThisVersion) {
  const std::string version = build_json()["version"], changelog = text_of("CHANGELOG.md");
  const std::string unreleased = "\n## [Unreleased]\n";
  std::size_t first = changelog.find("\n## [");
  if (changelog.compare(first, unreleased.size(), unreleased) == 0)
    first = changelog.find("\n## [", first + unreleased.size());
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(changelog.compare(first, version.size() + 7, "\n## [" + version + "] "), 0)
      << changelog.substr(first, 30);
  EXPECT_NE(text_of("CITATION.cff").find("\nversion: " + version + "\n"), std::string::npos);
}

TEST(Changelog, ListsTheSchemasOfFiles) {
  const std::string changelog = text_of("CHANGELOG.md");
  for (const char* const schema : {kResultSchema, kLinksSchema, kLastWordsSchema, kScalingSchema,
                                   kAllreduceSchema, kProgramFormat, kProfileFormat})
    EXPECT_NE(changelog.find("`" + std::string(schema) + "`"), std::string::npos) << schema;
}

}  // namespace
}  // namespace plumb
