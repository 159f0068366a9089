#include "results/report/plot.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace plumb {
namespace {

// In the order of Plot.
constexpr std::array kNames{"throughput", "speedup", "efficiency", "bars", "steps", "profile", "memory"};

}  // namespace

std::vector<std::string> plot_names() {
  return {kNames.begin(), kNames.end()};
}

Plot plot_of_name(const std::string& name) {
  const auto known = std::ranges::find(kNames, name);
  if (known == kNames.end())
    throw Error(ExitCode::usage, "there is no plot '{}'; --help names those that there are", name);
  return static_cast<Plot>(known - kNames.begin());
}

std::string plot_commands(const ReportData& data, Plot plot) {
  if (plot == Plot::bars) return bars_plot(data);
  if (plot == Plot::steps) return steps_plot(data);
  if (plot == Plot::profile) return profile_plot(data);
  if (plot == Plot::memory) return memory_plot(data);
  return scaling_plot(data, plot);
}

std::string plot_picture(const ReportData& data, Plot plot, PictureFormat format) {
  return draw_with_gnuplot(plot_commands(data, plot), format,
                           plot == Plot::bars ? bars_height(data) : kPictureHeight);
}

}  // namespace plumb
