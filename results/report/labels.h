// Names for the configurations of one report: what tells them apart, and what they share.
#pragma once

#include <string>
#include <vector>

#include "results/analysis/configuration.h"

namespace plumb {

struct Labels {
  // One for each configuration: "fp16, batch 128, NVIDIA H200". Of a single configuration, and of those that
  // differ in nothing that is known, framework, precision and batch.
  std::vector<std::string> each;
  // What all have: "Plumbline, synthetic". Empty if they share nothing.
  std::string common;
};

// Devices are not counted. Values that are usual for a model are not named.
Labels labels_of(const std::vector<Configuration>& configurations);

}  // namespace plumb
