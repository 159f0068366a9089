#include <gtest/gtest.h>

#include "results/anomalies/flags.h"
#include "results/compare/compare.h"
#include "results/compare/gate.h"
#include "results/compare/samples.h"
#include "tests/results/run_folder.h"

namespace plumb {
namespace {

std::string environment(const std::string& commit, const std::string& onednn, const std::string& variables) {
  return R"({"host": "node1", "cpus": 2, "build": {"commit": ")" + commit +
         R"(", "libraries": {"oneDNN": ")" + onednn + R"("}}, "variables": {)" + variables + "}}";
}

// One run folder per figure, of one configuration.
void write_runs(const ScratchFolder& scratch, const std::string& name, std::initializer_list<double> figures,
                const std::string& env_json) {
  for (const double figure : figures) {
    const std::string run = name + std::to_string(std::llround(10 * figure));
    write_run_folder(scratch, run, example_run(figure));
    if (!env_json.empty()) scratch.write(run + "/env.json", env_json);
  }
}

TEST(Surroundings, AreThoseOfEnvJsonByTheirOwnNames) {
  const ScratchFolder scratch;
  scratch.write("env.json", environment("1a2b", "2.6.3", R"("NCCL_ALGO": "Ring", "SLURM_JOB_ID": "77")"));
  const auto read = read_surroundings(scratch.path());
  ASSERT_TRUE(read);
  EXPECT_EQ(
      *read,
      (Surroundings{
          {"host", "node1"}, {"cpus", "2"}, {"commit", "1a2b"}, {"oneDNN", "2.6.3"}, {"NCCL_ALGO", "Ring"}}));
}

TEST(Surroundings, OfSeveralHostsNameThemAll) {
  const ScratchFolder scratch;
  scratch.write("env.json", R"({"host": "node1", "cpus": 2, "build": {}, "other_hosts": [
      {"host": "node2", "cpus": 2, "driver": "580.65"}, {"host": "node3", "cpus": 4}]})");
  EXPECT_EQ(*read_surroundings(scratch.path()),
            (Surroundings{{"host", "node1, node2, node3"}, {"cpus", "2, 4"}, {"driver", "580.65"}}));
}

TEST(Surroundings, OfADamagedOrForeignEnvJsonAreNotKnown) {
  const ScratchFolder scratch;
  EXPECT_FALSE(read_surroundings(scratch.path()));
  for (const char* text : {"", "{\"host\": ", "[1]", R"({"host": "node1"})"}) {
    scratch.write("env.json", text);
    EXPECT_FALSE(read_surroundings(scratch.path())) << text;
  }
}

TEST(Surroundings, OfAnEnvJsonLargerThanAnyAreNotKnownAndItIsNamed) {
  const ScratchFolder scratch;
  write_run_folder(scratch, "run", example_run(100));
  scratch.write_sparse("run/env.json");
  const LoadedSamples loaded = load_samples(scratch.path());
  ASSERT_EQ(loaded.samples.size(), 1u);
  EXPECT_FALSE(loaded.samples[0].runs[0].surroundings);
  ASSERT_EQ(loaded.notes.size(), 1u);
  EXPECT_EQ(loaded.notes[0], "file '" + (scratch / "run/env.json").string() +
                                 "' has 1099511627776 bytes, more than the 256 MiB that are read; run again "
                                 "or remove the file");
}

TEST(Surroundings, RunsOfTwoBuildsAreNamedWithTheirFigures) {
  const ScratchFolder scratch;
  write_runs(scratch, "old", {100, 101, 102}, environment("1a2b", "2.6.3", ""));
  write_runs(scratch, "new", {130, 131}, environment("3c4d", "2.6.3", R"("NCCL_ALGO": "Ring")"));
  const LoadedSamples loaded = load_samples(scratch.path());
  ASSERT_EQ(loaded.samples.size(), 1u);
  EXPECT_EQ(mixture_text(loaded.samples[0]),
            "the 5 runs of resnet50 fp32, batch 8 per device, 1n2g, some CPU, 1 thread, synthetic are not "
            "alike: commit 1a2b (3 runs, median 101.00 images/s) and 3c4d (2 runs, median 130.50 images/s); "
            "NCCL_ALGO Ring and unset");
  const std::vector<Flag> flags = sample_flags(loaded.samples[0]);
  EXPECT_TRUE(std::ranges::any_of(flags, [](const Flag& flag) {
    return flag.kind == Flag::Kind::note && flag.sentence.find("commit 1a2b") != std::string::npos;
  }));
}

TEST(Surroundings, RunsThatAreAlikeOrNotKnownSayNothing) {
  const ScratchFolder scratch;
  write_runs(scratch, "a", {100, 101}, environment("1a2b", "2.6.3", ""));
  write_runs(scratch, "b", {102}, "");
  EXPECT_EQ(mixture_text(load_samples(scratch.path()).samples.at(0)), "");
}

TEST(Surroundings, CompareAndGateNameWhatDiffersBetweenTheSides) {
  const ScratchFolder scratch;
  write_runs(scratch, "a/", {130, 131, 132, 133}, environment("1a2b", "2.6.3", ""));
  write_runs(scratch, "b/", {100, 101, 102, 103}, environment("3c4d", "3.1.0", ""));
  const std::vector<SampleSet> sets{{"a", load_samples(scratch / "a")}, {"b", load_samples(scratch / "b")}};
  const SetComparison compared = compare_sets(sets, {});
  ASSERT_EQ(compared.notes.size(), 1u);
  EXPECT_EQ(compared.notes[0],
            "a and b were not measured alike: commit 1a2b against 3c4d, oneDNN 2.6.3 against 3.1.0");
  const GateReport report = gate(sets[0].loaded.samples, sets[1].loaded.samples);
  EXPECT_EQ(report.cases.at(0).outcome, GateCase::Outcome::regression);
  EXPECT_NE(gate_summary(report).find("; measured with commit 1a2b against 3c4d, oneDNN 2.6.3 against 3.1.0"),
            std::string::npos)
      << gate_summary(report);
  EXPECT_TRUE(report.notes.empty());
  EXPECT_EQ(gate_json(report).at("cases").at(0).at("surroundings").at("commit"),
            (nlohmann::ordered_json{"1a2b", "3c4d"}));
}

TEST(Surroundings, AGateNamesSidesWhoseRunsAreNotAlike) {
  const ScratchFolder scratch;
  write_runs(scratch, "a/", {130, 131, 132}, environment("1a2b", "2.6.3", ""));
  write_runs(scratch, "b/", {100, 101}, environment("3c4d", "2.6.3", ""));
  write_runs(scratch, "b/other", {103}, environment("5e6f", "2.6.3", ""));
  const GateReport report = gate(load_samples(scratch / "a").samples, load_samples(scratch / "b").samples);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0].find("in RUN, the 3 runs of "), 0u) << report.notes[0];
}

}  // namespace
}  // namespace plumb
