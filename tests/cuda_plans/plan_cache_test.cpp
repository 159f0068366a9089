#include "kernels/cuda/plan_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>

#include "tests/scratch_folder.h"

namespace plumb::cuda {
namespace {

std::string text_in(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(PlanCache, RemembersFromRunToRun) {
  const ScratchFolder folder;
  const auto file = folder / "cache/engines.json";
  PlanCache(file).remember("H200, conv \"a\"", "eng1_k2=3");
  const PlanCache next(file);
  EXPECT_EQ(next.find("H200, conv \"a\""), "eng1_k2=3");
  EXPECT_EQ(next.find("A100, conv \"a\""), std::nullopt);
}

TEST(PlanCache, TheLatestChoiceCounts) {
  const ScratchFolder folder;
  PlanCache cache(folder / "engines.json");
  cache.remember("conv", "eng1");
  cache.remember("conv", "eng2");
  EXPECT_EQ(cache.find("conv"), "eng2");
  EXPECT_EQ(PlanCache(folder / "engines.json").find("conv"), "eng2");
}

TEST(PlanCache, KeepsWhatOthersWroteSinceItWasRead) {
  const ScratchFolder folder;
  const auto file = folder / "engines.json";
  PlanCache one(file), other(file);
  one.remember("a", "eng1");
  other.remember("b", "eng2");
  const PlanCache next(file);
  EXPECT_EQ(next.find("a"), "eng1");
  EXPECT_EQ(next.find("b"), "eng2");
}

TEST(PlanCache, LeavesNoUnfinishedFiles) {
  const ScratchFolder folder;
  PlanCache(folder / "engines.json").remember("a", "eng1");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1);
}

TEST(PlanCache, CountsADamagedFileAsEmptyAndReplacesIt) {
  const ScratchFolder folder;
  for (const std::string damaged :
       {"", "{\"a\": \"eng", "[1, 2]", "null", "\xff\xfe", "{\"a\": 7, \"b\": {}}"}) {
    const auto file = folder.write("engines.json", damaged);
    PlanCache cache(file);
    EXPECT_EQ(cache.find("a"), std::nullopt) << damaged;
    cache.remember("a", "eng1");
    EXPECT_EQ(PlanCache(file).find("a"), "eng1") << damaged;
  }
}

TEST(PlanCache, TakesTheSoundEntriesOfAFileThatOthersSpoilt) {
  const ScratchFolder folder;
  const PlanCache cache(folder.write("engines.json", R"({"a": 7, "b": "eng2"})"));
  EXPECT_EQ(cache.find("a"), std::nullopt);
  EXPECT_EQ(cache.find("b"), "eng2");
}

TEST(PlanCache, WritesWhatItIsGivenEvenIfItIsNotText) {
  const ScratchFolder folder;
  PlanCache cache(folder / "engines.json");
  cache.remember("a\xff", "eng1");
  cache.remember("b", "eng2");
  EXPECT_EQ(cache.find("a\xff"), "eng1");
  EXPECT_EQ(PlanCache(folder / "engines.json").find("b"), "eng2");
}

TEST(PlanCache, LeavesAFileAloneThatCannotBeReplaced) {
  const ScratchFolder folder;
  const auto in_the_way = folder.write("not_a_folder", "text");
  PlanCache cache(in_the_way / "engines.json");
  cache.remember("a", "eng1");
  EXPECT_EQ(cache.find("a"), "eng1");
  EXPECT_EQ(text_in(in_the_way), "text");
}

TEST(PlanCache, WithoutAFileRemembersForThisRun) {
  PlanCache cache{std::filesystem::path()};
  cache.remember("a", "eng1");
  EXPECT_EQ(cache.find("a"), "eng1");
}

TEST(PlanCacheFile, IsWhereTheDesktopSpecificationPutsCaches) {
  setenv("HOME", "/home/someone", 1);
  setenv("XDG_CACHE_HOME", "/scratch/cache", 1);
  EXPECT_EQ(plan_cache_file(), "/scratch/cache/plumbline/cudnn_engines.json");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(plan_cache_file(), "/home/someone/.cache/plumbline/cudnn_engines.json");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(plan_cache_file(), "/home/someone/.cache/plumbline/cudnn_engines.json");
  unsetenv("HOME");
  EXPECT_TRUE(plan_cache_file().empty());
}

}  // namespace
}  // namespace plumb::cuda
