// Collectives of the stamped iterations: what each rank timed, and the table over all ranks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/program.h"
#include "results/record/collective_record.h"

namespace plumb {

// One rank's: seconds from start to end of each collective, its median over the iterations of `times`, in the
// order of the Program; 0 for one that was not stamped.
std::vector<double> collective_seconds(const Program& program, std::span<const InstructionTime> times);

// `seconds`: collective_seconds() of every rank, one rank behind the other. Nothing without collectives.
std::vector<CollectiveRecord> collective_records(const Program& program, std::span<const double> seconds);

// One row per collective: MiB, milliseconds and bus bandwidth in GB/s over the ranks; at most 100 columns.
// Empty without collectives.
std::string collectives_text(std::span<const CollectiveRecord> collectives);

}  // namespace plumb
