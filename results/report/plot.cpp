#include "results/report/plot.h"

#include <array>
#include <utility>

#include "base/error.h"

namespace plumb {
namespace {

constexpr std::array<std::pair<const char*, Plot>, 6> kPlots{{{"throughput", Plot::throughput},
                                                              {"speedup", Plot::speedup},
                                                              {"efficiency", Plot::efficiency},
                                                              {"steps", Plot::steps},
                                                              {"profile", Plot::profile},
                                                              {"memory", Plot::memory}}};

}  // namespace

std::vector<std::string> plot_names() {
  std::vector<std::string> names;
  for (const auto& [name, plot] : kPlots) names.emplace_back(name);
  return names;
}

Plot plot_of_name(const std::string& name) {
  for (const auto& [known, plot] : kPlots)
    if (name == known) return plot;
  throw Error(ExitCode::usage, "there is no plot '{}'; --help names those that there are", name);
}

std::string plot_commands(const ReportData& data, Plot plot) {
  switch (plot) {
    case Plot::throughput:
    case Plot::speedup:
    case Plot::efficiency:
      return scaling_plot(data, plot);
    case Plot::steps:
      return steps_plot(data);
    case Plot::profile:
      return profile_plot(data);
    case Plot::memory:
      return memory_plot(data);
  }
  throw Error(ExitCode::internal, "there is no such plot");
}

std::string plot_picture(const ReportData& data, Plot plot, PictureFormat format, PictureSize size) {
  return draw_with_gnuplot(plot_commands(data, plot), format, size);
}

}  // namespace plumb
