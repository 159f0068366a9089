#include <gtest/gtest.h>

#include "results/report/report_data.h"
#include "tests/bench/expect_error.h"
#include "tests/results/small_report.h"

namespace plumb {
namespace {

TEST(ReportSteps, MostTimeLostComesFirst) {
  ReportData data = small_report();
  RunProfile profile;
  profile.iteration_seconds = 0.004;
  profile.busy_seconds = 0.0035;
  profile.roofline_seconds = 0.002;
  profile.instructions = {
      {"conv", "conv_forward", "forward", "compute", 0.002, 0.0015, 0, 0, "compute", "eng47|a"},
      {"load", "load", "forward", "input", 0.003, 0, 0, 0, "-", ""},
      {"norm", "norm", "forward", "compute", 0.00125, 0.0005, 0, 0, "bandwidth", ""},
      {"advance", "state", "update", "compute", 0.0000025, 0, 0, 0, "latency", ""}};
  profile.left_out = 3;
  data.runs[0].profile = profile;
  const std::string text = report_steps(data);
  EXPECT_NE(
      text.find("**\n\n4.000 ms with stamps, 3.500 ms of them in instructions, roofline 2.000 ms; most time "
                "lost first.\n\n"
                "| instruction | engine | measured ms | roofline ms | ratio | lost ms | bound by |\n"
                "| --- | --- | ---: | ---: | ---: | ---: | --- |\n"
                "| norm | - | 1.2500 | 0.5000 | 2.50 | 0.7500 | bandwidth |\n"
                "| conv | eng47\\|a | 2.0000 | 1.5000 | 1.33 | 0.5000 | compute |\n"
                "| advance | - | 0.0025 | 0.0000 | - | 0.0025 | latency |\n"
                "\n3 shorter instructions are left out.\n"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("load"), std::string::npos);
}

TEST(ReportSteps, WithoutAProfileSaysWhatIsMissing) {
  expect_error(ExitCode::bad_data, {"--profile"}, [] { report_steps(small_report()); });
}

}  // namespace
}  // namespace plumb
