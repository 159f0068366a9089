// A report of two curves of own runs, small enough to know every value.
#pragma once

#include "results/report/report_data.h"

namespace plumb {

inline ReportPoint report_point(int devices, double median, std::optional<double> speedup) {
  ReportPoint point;
  point.case_name = "1n" + std::to_string(devices) + "g";
  point.devices = devices;
  point.images_per_second = {median - 1, median, median + 2};
  point.median_images_per_second = median;
  point.interval = Interval{median - 1, median + 2, 0.75};
  point.speedup = speedup;
  if (speedup) point.efficiency = *speedup / devices;
  return point;
}

inline ReportRun report_run(const Configuration& configuration, double step_seconds) {
  ReportRun run;
  run.configuration = configuration;
  run.label = configuration_text(configuration) + ", run 1";
  run.steps = StepTimes{.iterations = 4, .warmup = 2};
  for (const double factor : {5.0, 1.0, 1.0, 1.5}) run.steps->median_seconds.push_back(step_seconds * factor);
  run.steps->min_seconds = run.steps->max_seconds = run.steps->median_seconds;
  return run;
}

// fp32 with 100 images/s on one device and 190 on two; fp16 with 300, on two only.
inline ReportData small_report() {
  ReportData data;
  for (const std::string precision : {"fp32", "fp16"}) {
    ReportCurve curve;
    curve.label = "Plumbline " + precision;
    curve.configuration = {.framework = "Plumbline",
                           .model = "resnet50",
                           .precision = precision,
                           .device = "NVIDIA H200",
                           .data = "synthetic",
                           .batch_per_device = 128};
    const bool both = precision == "fp32";
    if (both) curve.points.push_back(report_point(1, 100, 1));
    curve.points.push_back(both ? report_point(2, 190, 1.9) : report_point(2, 300, std::nullopt));
    for (ReportPoint& point : curve.points) {
      Configuration configuration = curve.configuration;
      configuration.nodes = 1;
      configuration.devices_per_node = point.devices;
      point.runs = {data.runs.size()};
      data.runs.push_back(report_run(configuration, both ? 0.1 : 0.05));
    }
    data.curves.push_back(curve);
  }
  return data;
}

}  // namespace plumb
