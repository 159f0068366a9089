#include "kernels/cuda/tuning_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "kernels/cuda/vendors/conv.h"
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
  const auto file = folder / "cache/tuning.json";
  std::vector<EngineTrial> trials = one_engine("eng1_k2=3");
  trials.push_back({.engine = "eng7", .workspace_bytes = 0, .seconds = {}, .failure = "it failed"});
  TuningCache(file, kGpu).remember("conv \"a\"", trials);
  const TuningCache next(file, kGpu);
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

TEST(TuningCache, ForgetsTrialsOfOurKernelsOfAnotherVersion) {
  const ScratchFolder folder;
  const auto file = folder / "tuning.json";
  std::vector<EngineTrial> trials = one_engine(kOwnKernel);
  trials.push_back(one_engine("eng1").front());
  TuningCache(file, kGpu).remember("stem", trials);
  EXPECT_EQ(best(TuningCache(file, kGpu), "stem"), kOwnKernel);
  const std::string written = text_in(file), version = "\"version\": ";
  const std::size_t at = written.find(version);
  ASSERT_NE(at, std::string::npos) << written;
  std::string older = written, of_none = written;
  older.replace(at + version.size(), 1, "0");
  of_none.replace(at, version.size(), "\"another\": ");
  for (const std::string& text : {older, of_none}) {
    folder.write("tuning.json", text);
    const TuningCache cache(file, kGpu);
    EXPECT_EQ(best(cache, "stem"), "eng1");
    EXPECT_TRUE(cache.remarks().empty());
  }
}

TEST(TuningCache, SaysWhichGpusAndLibrariesItKnowsWhereThisOneIsNotAmongThem) {
  const ScratchFolder folder;
  const auto file = folder / "tuning.json";
  TuningCache(file, kGpu).remember("conv", one_engine("eng1"));
  for (const std::string other : {"A100, cuDNN 9.19.0", "H200, cuDNN 9.10.2"}) {
    const TuningCache cache(file, other);
    EXPECT_EQ(cache.find("conv"), nullptr);
    ASSERT_EQ(cache.remarks().size(), 1U);
    EXPECT_NE(cache.remarks().front().find(kGpu), std::string::npos) << cache.remarks().front();
    EXPECT_NE(cache.remarks().front().find(other), std::string::npos) << cache.remarks().front();
  }
}

TEST(TuningCache, KeepsOtherEnvironmentsAndWhatOthersWroteSinceItWasRead) {
  const ScratchFolder folder;
  const auto file = folder / "tuning.json";
  TuningCache one(file, kGpu), same(file, kGpu), other(file, "A100");
  one.remember("a", one_engine("eng1"));
  same.remember("b", one_engine("eng2"));
  other.remember("a", one_engine("eng3"));
  const TuningCache next(file, kGpu);
  EXPECT_EQ(best(next, "a"), "eng1");
  EXPECT_EQ(best(next, "b"), "eng2");
  EXPECT_EQ(best(TuningCache(file, "A100"), "a"), "eng3");
  TuningCache(file, kGpu).remember("a", one_engine("eng4"));
  EXPECT_EQ(best(TuningCache(file, kGpu), "a"), "eng4");
}

TEST(TuningCache, LeavesNoUnfinishedFiles) {
  const ScratchFolder folder;
  TuningCache(folder / "tuning.json", kGpu).remember("a", one_engine("eng1"));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1);
}

TEST(TuningCache, SaysThatAFileIsDamagedAndReplacesIt) {
  const ScratchFolder folder;
  const auto sound = folder / "sound.json";
  TuningCache(sound, kGpu).remember("a", one_engine("eng1"));
  const std::string whole = text_in(sound);
  std::vector<std::string> damaged{
      "",
      "[1, 2]",
      "null",
      "\xff\xfe",
      "{\"a\": \"eng1\"}",
      R"({"format": "plumbline.tuning/2", "environments": {")" + kGpu + R"(": {"a": [{"engine": 7}]}}})"};
  for (const std::size_t length : {whole.size() / 4, whole.size() / 2, whole.size() - 3})
    damaged.push_back(whole.substr(0, length));
  for (const std::string& text : damaged) {
    const auto file = folder.write("tuning.json", text);
    TuningCache cache(file, kGpu);
    EXPECT_EQ(cache.find("a"), nullptr) << text;
    ASSERT_EQ(cache.remarks().size(), 1U) << text;
    EXPECT_NE(cache.remarks().front().find("damaged"), std::string::npos);
    cache.remember("a", one_engine("eng2"));
    EXPECT_EQ(best(TuningCache(file, kGpu), "a"), "eng2") << text;
  }
}

TEST(TuningCache, WaitsForNoPipeInItsPlace) {
  const ScratchFolder folder;
  const auto pipe = folder / "tuning.json";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  TuningCache cache(pipe, kGpu);
  EXPECT_EQ(cache.remarks().size(), 1U);
  cache.remember("a", one_engine("eng1"));
  EXPECT_EQ(best(TuningCache(pipe, kGpu), "a"), "eng1");
}

TEST(TuningCache, WritesWhatItIsGivenEvenIfItIsNotText) {
  const ScratchFolder folder;
  TuningCache cache(folder / "tuning.json", kGpu);
  cache.remember("a\xff", one_engine("eng1"));
  cache.remember("b", one_engine("eng2"));
  EXPECT_EQ(best(cache, "a\xff"), "eng1");
  EXPECT_EQ(best(TuningCache(folder / "tuning.json", kGpu), "b"), "eng2");
}

TEST(TuningCache, SaysOnceThatItCannotBeWrittenAndGoesOn) {
  const ScratchFolder folder;
  const auto in_the_way = folder.write("not_a_folder", "text");
  TuningCache cache(in_the_way / "tuning.json", kGpu);
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

TEST(TuningCacheFile, IsWhereTheDesktopSpecificationPutsCaches) {
  setenv("HOME", "/home/someone", 1);
  setenv("XDG_CACHE_HOME", "/scratch/cache", 1);
  EXPECT_EQ(tuning_cache_file(), "/scratch/cache/plumbline/tuning.json");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(tuning_cache_file(), "/home/someone/.cache/plumbline/tuning.json");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(tuning_cache_file(), "/home/someone/.cache/plumbline/tuning.json");
  unsetenv("HOME");
  EXPECT_TRUE(tuning_cache_file().empty());
}

}  // namespace
}  // namespace plumb::cuda
