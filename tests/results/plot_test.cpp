#include "results/report/plot.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/bench/expect_error.h"
#include "tests/results/small_report.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using testing::Test;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ExitCode code_of(const ReportData& data, Plot plot) {
  try {
    plot_commands(data, plot);
  } catch (const Error& error) {
    return error.code();
  }
  return ExitCode::ok;
}

TEST(Plot, PublishedCurvesAreDrawnIfSelected) {
  const std::string commands = plot_commands(small_report(), Plot::throughput);
  EXPECT_TRUE(has(commands, "'MXNet fp32'"));
  EXPECT_FALSE(has(commands, "OneFlow"));
}

TEST(Plot, SpeedupLeavesOutWhatHasNone) {
  const std::string commands = plot_commands(small_report(), Plot::speedup);
  EXPECT_TRUE(has(commands, "\n1 1 1 1\n2 1.9 1.9 1.9\nend_of_data"));
  EXPECT_FALSE(has(commands, "Plumbline fp16"));
  ReportData data = small_report();
  data.curves.erase(data.curves.begin());
  EXPECT_EQ(code_of(data, Plot::speedup), ExitCode::bad_data);
  EXPECT_EQ(code_of(data, Plot::throughput), ExitCode::ok);
}

TEST(Plot, WarmupsThatDifferAreNotShaded) {
  ReportData data = small_report();
  data.runs[0].steps->warmup = 1;
  EXPECT_FALSE(has(plot_commands(data, Plot::steps), "rectangle"));
}

TEST(Plot, ProfileShowsTheLongestStepsBesideTheirRooflines) {
  ReportData data = small_report();
  data.runs[1].profile.emplace();
  for (int i = 0; i < 30; ++i)
    data.runs[1].profile->instructions.push_back({.name = "step" + std::to_string(i),
                                                  .lane = "compute",
                                                  .seconds = 0.01 / (i + 1),
                                                  .roofline_seconds = 0.002});
  data.runs[1].profile->instructions.insert(
      data.runs[1].profile->instructions.begin(),
      {.name = "bucket0.allreduce", .lane = "communication", .seconds = 1});
  data.runs[1].profile->instructions[1].name = "conv%d%s";  // no format
  const std::string commands = plot_commands(data, Plot::profile);
  EXPECT_TRUE(has(commands, "'The 25 longest compute ops: "));
  EXPECT_TRUE(has(commands, "'conv%%d%%s' 1, 'step1' 2"));
  EXPECT_TRUE(has(commands, "'step24' 25)"));
  EXPECT_FALSE(has(commands, "allreduce"));
}

MemoryUse small_use() {
  return {.arena_bytes = 4 << 20,
          .instructions = 4,
          .per_entry = 2,
          .names = {"a", "c"},
          .role_bytes = {{"activation", {1 << 20, 2 << 20}}, {"parameter", {1 << 20, 1 << 20}}}};
}

TEST(Plot, MemoryStacksRoles) {
  ReportData data = small_report();
  data.runs[0].memory = small_use();
  const std::string commands = plot_commands(data, Plot::memory);
  EXPECT_TRUE(has(commands, "$role0 << end_of_data\n0 0 1\n2 0 2\nend")) << commands;
  EXPECT_TRUE(has(commands, "$role1 << end_of_data\n0 1 2\n2 2 3\nend")) << commands;
  EXPECT_TRUE(has(commands, "'#0b62b0' title 'parameter'"));
}

TEST(Plot, PicturesOfOneRunShowTheRunThatThePageShows) {
  ReportData data = small_report();
  for (ReportRun& run : data.runs) run.memory = small_use();
  data.runs[0].label = "run 1", data.runs[1].label = "run 2";
  data.shown_run = 1;
  EXPECT_TRUE(has(plot_commands(data, Plot::memory), "Memory in use: run 2"));
  data.runs[1].memory.reset();
  EXPECT_TRUE(has(plot_commands(data, Plot::memory), "Memory in use: run 1"));
}

TEST(Plot, WhatTheDataDoNotHoldIsRefused) {
  ReportData data = small_report();
  EXPECT_EQ(code_of(data, Plot::profile), ExitCode::bad_data);
  EXPECT_EQ(code_of(data, Plot::memory), ExitCode::bad_data);
  for (ReportRun& run : data.runs) run.steps.reset();
  EXPECT_EQ(code_of(data, Plot::steps), ExitCode::bad_data);
}

class Gnuplot : public Test {
 protected:
  void SetUp() override {
    try {
      draw_with_gnuplot("plot x\n", PictureFormat::png);
    } catch (const Error& error) {
      if (error.code() == ExitCode::unavailable) GTEST_SKIP() << error.what();
      throw;
    }
  }
};

TEST_F(Gnuplot, TextOfOthersIsOnlyText) {
  const ScratchFolder scratch;
  const std::string trap = scratch / "trap";
  ReportData data = small_report();
  data.curves[0].label = "it's `touch " + trap + "` {/Bold x} @y <b>\n\"\\n'\nset output '" + trap + "'";
  const std::string picture = plot_picture(data, Plot::throughput, PictureFormat::svg);
  EXPECT_TRUE(scratch.list().empty());
  EXPECT_TRUE(has(picture, "it’s `touch " + trap + "` {/Bold x} @y &lt;b>"));
}

TEST(GnuplotLiteral, HoldsWhateverANameHolds) {
  EXPECT_EQ(gnuplot_literal("it's\n\x7f`x`\\"), "'it’s  `x`\\'");
  EXPECT_EQ(gnuplot_literal("\xff\xc3\xa9"), "'\xef\xbf\xbd\xc3\xa9'");
}

TEST_F(Gnuplot, SaysWhatItRefuses) {
  expect_error(ExitCode::internal, {"invalid command"},
               [] { draw_with_gnuplot("plt x\n", PictureFormat::svg); });
}

TEST(WithoutGnuplot, SaysWhatToInstall) {
  const ScratchFolder empty;
  const std::string path = getenv("PATH");
  setenv("PATH", empty.path().c_str(), 1);
  expect_error(ExitCode::unavailable, {"gnuplot-nox"},
               [] { draw_with_gnuplot("plot x\n", PictureFormat::svg); });
  setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace plumb
