#include "results/report/plot.h"

#include "models/error.h"

namespace plumb {

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
