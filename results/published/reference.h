// What Plumbline itself reached on one device: the answer to "is this number normal?".
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "results/analysis/configuration.h"

namespace plumb {

// A row of reference.csv: runs of results/measured, written by docs/make_reference.py.
struct ReferenceSpeed {
  Configuration configuration;
  double images_per_second = 0, low = 0, high = 0;  // median, smallest, largest
  std::size_t runs = 0;
  std::string source;  // folder of the runs
};

// Reads a file with the columns of reference.csv, by default Plumbline's own. Throws Error(bad_data) that
// names the file and what is wrong with it.
std::vector<ReferenceSpeed> reference_speeds(const std::string& file = "");

// Finds the reference with the same device, model, precision, batch and options, and default settings but for
// the number of iterations. Returns nullptr if there is none, or if `own` is on several devices.
const ReferenceSpeed* find_reference(const std::vector<ReferenceSpeed>& references, const Configuration& own);

// "97.3 % of 9502.2 images/s, which NVIDIA H100 80GB HBM3 reached (median of 5 runs)".
std::string reference_text(const ReferenceSpeed& reference, double images_per_second);

}  // namespace plumb
