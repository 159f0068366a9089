// "resnet50" with 7 blocks instead of 16, none wider than 64 channels: 0.7 million parameters in place
// of 25.6. Its runs take a sixth of ResNet-50's CPU time, for tests of what doesn't depend on the network.
#pragma once

#include <span>

#include "models/catalogue.h"

namespace plumb {

// A catalogue of this network only, which bench_resnet50 trains.
std::span<const Model> small_resnet();

}  // namespace plumb
