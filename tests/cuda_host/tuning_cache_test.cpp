#include "kernels/cuda/tuning_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "tests/scratch_folder.h"

namespace plumb::cuda {
namespace {

const std::string kGpu = "H200, cuDNN 9.19.0";

std::string text_in(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::vector<EngineTrial> one_engine(const std::string& engine) {
  return {{.engine = engine, .workspace_bytes = 1 << 20, .seconds = 1.25e-4, .failure = ""}};
}

std::string best(const TuningCache& cache, const std::string& problem) {
  const auto* trials = cache.find(problem);
  return trials ? trials->front().engine : "";
}

TEST(TuningCache, RemembersEveryTrialFromRunToRun) {
  const ScratchFolder folder;
  const auto cache = folder / "cache/tuning";
  std::vector<EngineTrial> trials = one_engine("eng1_k2=3");
  trials.push_back({.engine = "eng7", .workspace_bytes = 0, .seconds = {}, .failure = "it failed"});
  TuningCache(cache, kGpu).remember("conv \"a\"", trials);
  const TuningCache next(cache, kGpu);
  ASSERT_NE(next.find("conv \"a\""), nullptr);
  const std::vector<EngineTrial>& read = *next.find("conv \"a\"");
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].engine, "eng1_k2=3");
  EXPECT_EQ(read[0].workspace_bytes, 1U << 20);
  EXPECT_EQ(read[0].seconds, 1.25e-4);
  EXPECT_EQ(read[1].failure, "it failed");
  EXPECT_FALSE(read[1].seconds);
  EXPECT_TRUE(next.remarks().empty());
}

TEST(TuningCache, KeepsAFilePerEnvironment) {
  const ScratchFolder folder;
  TuningCache one(folder.path(), kGpu), other(folder.path(), "A100");
  one.remember("a", one_engine("eng1"));
  other.remember("a", one_engine("eng3"));
  EXPECT_EQ(best(TuningCache(folder.path(), kGpu), "a"), "eng1");
  EXPECT_EQ(best(TuningCache(folder.path(), "A100"), "a"), "eng3");
  EXPECT_EQ(TuningCache(folder.path(), "H100").find("a"), nullptr);
}

TEST(TuningCache, LeavesNoUnfinishedFiles) {
  const ScratchFolder folder;
  TuningCache(folder.path(), kGpu).remember("a", one_engine("eng1"));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1);
}

TEST(TuningCache, SaysThatAFileIsDamagedAndReplacesIt) {
  const ScratchFolder folder;
  const auto file = TuningCache(folder.path(), kGpu).file();
  TuningCache(folder.path(), kGpu).remember("a", one_engine("eng1"));
  const std::string whole = text_in(file);
  std::vector<std::string> damaged{
      "",
      "[1, 2]",
      "null",
      "\xff\xfe",
      R"({"a": "eng1"})",
      R"({"format": "plumbline.tuning/3", "environment": "A100", "problems": {}})",
      R"({"format": "plumbline.tuning/3", "environment": ")" + kGpu +
          R"(", "problems": {"a": [{"engine": 7}]}})"};
  for (const std::size_t length : {whole.size() / 4, whole.size() / 2, whole.size() - 3})
    damaged.push_back(whole.substr(0, length));
  for (const std::string& text : damaged) {
    std::ofstream(file) << text;
    TuningCache cache(folder.path(), kGpu);
    EXPECT_EQ(cache.find("a"), nullptr) << text;
    ASSERT_EQ(cache.remarks().size(), 1U) << text;
    EXPECT_NE(cache.remarks().front().find("damaged"), std::string::npos);
    cache.remember("a", one_engine("eng2"));
    EXPECT_EQ(best(TuningCache(folder.path(), kGpu), "a"), "eng2") << text;
  }
}

TEST(TuningCache, WaitsForNoPipeInItsPlace) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo(TuningCache(folder.path(), kGpu).file().c_str(), 0600), 0);
  TuningCache cache(folder.path(), kGpu);
  EXPECT_EQ(cache.remarks().size(), 1U);
  cache.remember("a", one_engine("eng1"));
  EXPECT_EQ(best(TuningCache(folder.path(), kGpu), "a"), "eng1");
}

TEST(TuningCache, WritesWhatItIsGivenEvenIfItIsNotText) {
  const ScratchFolder folder;
  TuningCache cache(folder.path(), kGpu);
  cache.remember("a\xff", one_engine("eng1"));
  cache.remember("b", one_engine("eng2"));
  EXPECT_EQ(best(cache, "a\xff"), "eng1");
  EXPECT_EQ(best(TuningCache(folder.path(), kGpu), "b"), "eng2");
}

TEST(TuningCache, SaysOnceThatItCannotBeWrittenAndGoesOn) {
  const ScratchFolder folder;
  const auto in_the_way = folder.write("not_a_folder", "text");
  TuningCache cache(in_the_way / "tuning", kGpu);
  cache.remember("a", one_engine("eng1"));
  cache.remember("b", one_engine("eng2"));
  EXPECT_EQ(best(cache, "b"), "eng2");
  EXPECT_EQ(text_in(in_the_way), "text");
  ASSERT_EQ(cache.remarks().size(), 1U);
  EXPECT_NE(cache.remarks().front().find("can't be written"), std::string::npos);
}

TEST(TuningCache, WithoutAFileRemembersForThisRun) {
  TuningCache cache{std::filesystem::path(), kGpu};
  cache.remember("a", one_engine("eng1"));
  EXPECT_EQ(best(cache, "a"), "eng1");
  EXPECT_TRUE(cache.remarks().empty());
}

TEST(TuningCacheFolder, IsWhereTheDesktopSpecificationPutsCaches) {
  setenv("HOME", "/home/someone", 1);
  setenv("XDG_CACHE_HOME", "/scratch/cache", 1);
  EXPECT_EQ(tuning_cache_folder(), "/scratch/cache/plumbline/tuning");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(tuning_cache_folder(), "/home/someone/.cache/plumbline/tuning");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(tuning_cache_folder(), "/home/someone/.cache/plumbline/tuning");
  unsetenv("HOME");
  EXPECT_TRUE(tuning_cache_folder().empty());
}

}  // namespace
}  // namespace plumb::cuda
