#include "bench/options/options.h"

namespace plumb {

OptionGroup watchdog_options(WatchOptions& watch) {
  constexpr double kShortest = 1, kLongest = 1e6;
  return {"Ranks that die or hang",
          {number_option("--timeout-s", "S", watch.timeout_seconds, {kShortest, kLongest},
                         "longest time in which a rank may send no heartbeat, or fail to enter a collective "
                         "that others wait in, before all ranks end with exit code 75 and it is named; "
                         "collectives that all have entered get on top what their bytes take at 1 MB/s"),
           number_option("--startup-timeout-s", "S", watch.startup_timeout_seconds, {kShortest, kLongest},
                         "the same for start-up, tuning and the checks behind the run"),
           flag_option("--no-watchdog", watch.on, false,
                       "don't watch: a rank that is lost or stuck may leave all waiting")
               .with_key("watchdog")}};
}

}  // namespace plumb
