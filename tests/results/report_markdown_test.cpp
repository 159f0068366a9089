#include <gtest/gtest.h>

#include "base/text_table.h"
#include "results/report/report_data.h"
#include "tests/results/small_report.h"

namespace plumb {
namespace {

TEST(ReportMarkdown, HasATablePerCurveWithItsNotesBelow) {
  ReportData data = small_report();
  data.runs[0].label = "run of 1n1g";
  data.runs.push_back(data.runs[0]);
  data.runs.back().label = "its second run";
  data.curves[0].points[0].runs.push_back(data.runs.size() - 1);
  data.notes = {{"two_modes", "its runs fall into two groups", "Plumbline fp32, 1n2g"},
                {"drift", "steps become slower", "run of 1n1g"},
                {"drift", "steps become slower", "its second run"}};
  data.left_out = {"x/result.json: is cut short"};
  EXPECT_EQ(report_markdown(data), R"(**Plumbline fp32**

| case | runs | images/s, median | interval of the median | per device | speedup | efficiency |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
| 1n1g | 3 | 100.00 | 99.00 to 102.00 (range) | 100.00 | 1.00 | 100.0 % |
| 1n2g | 3 | 190.00 | 189.00 to 192.00 (range) | 95.00 | 1.90 | 95.0 % |

- 1n1g, runs 1, 2: steps become slower
- 1n2g: its runs fall into two groups

**Plumbline fp16**

| case | runs | images/s, median | interval of the median | per device | speedup | efficiency |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
| 1n2g | 3 | 300.00 | 299.00 to 302.00 (range) | 150.00 | n/a | n/a |

Left out:

- x/result.json: is cut short
)");
}

TEST(ReportMarkdown, ConfigurationsOfOneDeviceShareATable) {
  ReportData data = small_report();
  for (ReportCurve& curve : data.curves) {
    curve.points.resize(1);
    curve.points[0].case_name = "1n1g";
    curve.points[0].devices = 1;
  }
  data.curves.push_back(small_report().curves[0]);
  data.common = "synthetic";
  data.notes = {{"throttling", "held back in 100 % of the window", data.runs[0].label},
                {"throttling", "held back in 89 % of the window", data.runs[2].label},
                {"drift", "steps become slower", data.curves[1].label + ", 1n1g"}};
  const std::string text = report_markdown(data);
  EXPECT_TRUE(text.starts_with(R"(All: synthetic.

| one device | runs | images/s, median | interval of the median |
| --- | ---: | ---: | ---: |
| Plumbline fp32 | 3 | 100.00 | 99.00 to 102.00 (range) |
| Plumbline fp16 | 3 | 300.00 | 299.00 to 302.00 (range) |

- held back in 100 % of the window (and 1 more of 2 runs likewise)
- Plumbline fp16, 1n1g: steps become slower

**Plumbline fp32**

| case | runs |)"))
      << text;
}

TEST(ReportMarkdown, TextOfOthersIsOnlyText) {
  EXPECT_EQ(markdown_literal("a|b\n<img src=x> `c` *d* [e](f) & \\"),
            "a\\|b \\<img src=x> \\`c\\` \\*d\\* \\[e\\](f) \\& \\\\");
}

}  // namespace
}  // namespace plumb
