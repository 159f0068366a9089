// Trains a small network with a margin loss as one rank of a job: Graph, Program, collectives and Runner as
// in bench_arcface, over MPI on the CPU device or over NCCL in a captured step on a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/gradient_reduction.h"
#include "comm/job.h"
#include "kernels/device.h"
#include "kernels/program/describe.h"
#include "models/graph.h"

namespace plumb {

// This rank's Graph.
using RankGraph = std::function<Graph(Head head, int rank, int world_size)>;

struct FaceTraining {
  RankGraph graph;
  Head head = Head::replicated;
  DeviceChoice device = DeviceChoice::cpu;
  DescribeOptions describe;
  std::vector<std::int64_t> labels;  // for all ranks' images
  int iterations = 3;                // all on the same batch
  bool overlap = true;
  ReduceDType reduce_dtype = ReduceDType::same;
  bool even_alone = false;  // collectives even with a single rank
  LossScaling loss_scaling;
  float pixel_factor = 1;          // on this rank's images
  bool overflowing_shard = false;  // backward writes an infinity into this rank's class-center gradient
};

struct FaceRun {
  std::vector<double> losses;     // per iteration, mean over all images
  std::vector<double> top1;       // per iteration, over all ranks' images
  std::vector<float> centers;     // all classes after the last update; rank 0 only
  std::vector<float> backbone;    // all other parameters, concatenated
  bool captured = false;          // all iterations after the first were replays of one graph
  std::vector<bool> skipped;      // per iteration: this rank's update changed nothing
  std::vector<std::string> sent;  // a step's collectives by name, in order
};

// A collective. Initial values and images depend only on the rank's place in the batch, not on the head.
FaceRun train_faces(const Job& job, const FaceTraining& training);

// A convolution, a norm with a PReLU, a dense layer of 16 features with its norm, and the loss; 3 images of
// 16 x 16 pixels per rank.
struct SmallFaceNet {
  std::int64_t classes = 101;
  double scale = 16;
  double sample_rate = 1;
  Graph operator()(Head head, int rank, int world_size) const;
  static constexpr std::int64_t kImages = 3;
};

}  // namespace plumb
