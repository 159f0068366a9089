// Trains a small network with a margin loss as one rank of a job: Graph, Program, collectives, Runner, as a
// run of bench_arcface has them, over MPI on the CPU device or over NCCL in a captured step on a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/gradient_reduction.h"
#include "comm/job.h"
#include "kernels/describe.h"
#include "kernels/device.h"
#include "models/graph.h"

namespace plumb {

// The Graph of this rank.
using RankGraph = std::function<Graph(Head head, int rank, int world_size)>;

struct FaceTraining {
  RankGraph graph;
  Head head = Head::replicated;
  DeviceChoice device = DeviceChoice::cpu;
  DescribeOptions describe;
  std::vector<std::int64_t> labels;  // of all ranks' images
  int iterations = 3;                // all on the same batch
  bool overlap = true;
  ReduceDType reduce_dtype = ReduceDType::same;
  bool even_alone = false;  // collectives in a job of one, too
  LossScaling loss_scaling;
  float pixel_factor = 1;          // on this rank's images
  bool overflowing_shard = false;  // backward leaves an infinity in the gradient of this rank's class centres
};

struct FaceRun {
  std::vector<double> losses;     // by iteration, mean over all images
  std::vector<double> top1;       // by iteration, images of all ranks
  std::vector<float> centres;     // after the last update, of all classes; on rank 0 only
  std::vector<float> backbone;    // … every other parameter, one after the other
  bool captured = false;          // whether all iterations but the first were replays of one graph
  std::vector<bool> skipped;      // by iteration: this rank's update changed nothing
  std::vector<std::string> sent;  // names of the collectives of a step, in order
};

// A collective. Start values and images depend on the rank's place in the batch alone, not on the head.
FaceRun train_faces(const Job& job, const FaceTraining& training);

// A convolution, a norm with a PReLU, a dense layer of 16 features and their norm, in front of the loss; 3
// images of 16 x 16 pixels a rank.
struct SmallFaceNet {
  std::int64_t classes = 101;
  double scale = 16;
  double sample_rate = 1;
  Graph operator()(Head head, int rank, int world_size) const;
  static constexpr std::int64_t kImages = 3;
};

}  // namespace plumb
