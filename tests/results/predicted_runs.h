// Measured cases of the two-layer step beside their prediction over slow links.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "results/simulation/prediction.h"
#include "results/simulation/scaling_verdicts.h"
#include "tests/results/run_folder.h"
#include "tests/results/simulated_program.h"

namespace plumb {

// 10 MiB over hosts of one device: 0.1 s a MiB and direction.
inline Links slow_links() {
  return {.comm = "mpi",
          .hosts = {{"n1", 1}, {"n2", 1}, {"n3", 1}, {"n4", 1}},
          .between_hosts = Link{0, 10.0 * (1 << 20)}};
}

class PredictionTest : public testing::Test {
 protected:
  PredictionTest() {
    basis_.configuration.model = "resnet50";
    basis_.configuration.batch_per_device = 7;
    basis_.configuration.nodes = basis_.configuration.devices_per_node = 1;
    basis_.run = "runs/one";
    basis_.step = two_layer_step();
    basis_.fastest_seconds = basis_.slowest_seconds = 7;
  }

  // A run of `seconds` a step, of which every rank waits `exposed` for collectives.
  MeasuredCase& measure(Layout layout, double seconds, double exposed = 0, double data = 0) {
    const double images_per_second = layout.devices() * 7 / seconds;
    MeasuredCase measured{
        .layout = layout, .images_per_second = images_per_second, .record = example_run(images_per_second)};
    measured.record.world_size = layout.devices();
    measured.record.exposed_communication_seconds = exposed;
    measured.record.data_wait_seconds = data;
    for (int rank = 0; rank < layout.devices(); ++rank)
      measured.record.ranks.push_back({fmt::format("n{}", rank / layout.devices_per_node + 1), exposed});
    basis_.measured.push_back(measured);
    return basis_.measured.back();
  }

  ScalingPrediction predict(const WhatIf& what_if = {}) const {
    return predict_scaling(basis_, slow_links(), what_if, cases_between(1, 4, 1));
  }
  std::vector<Note> verdicts() const { return scaling_verdicts(basis_, predict()); }
  Note only_verdict() const {
    const std::vector<Note> all = verdicts();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? Note() : all.front();
  }

  ScalingBasis basis_;
};

}  // namespace plumb
