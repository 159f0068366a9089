// The stages of a training step, in the order that finds mistakes cheaply: options and files before anything
// is computed, the memory plan before anything is allocated. Each is made from the one before it, on every
// rank. A stage that fails throws the same error on all ranks.
#pragma once

#include <memory>
#include <string>

#include "bench/data/batch_source.h"
#include "bench/options/options.h"
#include "bench/plan/step_plan.h"
#include "comm/communicator.h"
#include "comm/job.h"
#include "kernels/device.h"
#include "kernels/program/tuning.h"
#include "models/graph.h"
#include "models/weights.h"

namespace plumb {

// The device, and options that are compared between ranks. Reads and allocates nothing.
struct ResolvedRun {
  ResolvedRun(const Job& job, const BenchOptions& asked);

  // Free bytes of the device; ranks that share its memory get equal parts.
  double memory_bytes() const;

  const Job& job;
  BenchOptions options;  // resolved, with threads, data_workers and the layout of nodes
  std::unique_ptr<Device> device;
  bool captures = false;   // an iteration becomes one launch
  int ranks_per_gpu = 1;   // on the fullest GPU of the job
  std::string why_no_gpu;  // where --device auto chose the CPU; else empty
  std::string remark;      // one sentence about threads, or empty
};

// The step as described, with the data and --weights. Throws Error(bad_data), and Error(out_of_memory) with
// the batch that would fit.
struct DescribedStep : ResolvedRun {
  explicit DescribedStep(ResolvedRun&& run);

  StepPlan plan;
  std::unique_ptr<BatchSource> source;
  // The tensors of --weights, on rank 0, or on every rank if each has its own rows.
  TensorMap given;
};

// The step with the engines, layouts and workspaces that the device chose. This stage takes time, and
// allocates no memory for the step. Throws Error(out_of_memory) likewise.
struct PlannedStep : DescribedStep {
  explicit PlannedStep(DescribedStep&& step);

  Tuning tuning;  // trials and remarks on rank 0 only

 private:
  void tune();
};

// The step with its communicator, its memory and the values of its parameters. Throws Error(out_of_memory),
// as libraries may have taken memory meanwhile.
struct BoundStep : PlannedStep {
  explicit BoundStep(PlannedStep&& step);

  std::unique_ptr<Communicator> communicator;  // null if not has_collectives()
};

// Parameters and running statistics from the device, by their public names; a shard has this rank's rows.
TensorFile read_tensors(const Graph& graph, const Device& device);
// The same with all ranks' rows, on rank 0; other ranks' result is incomplete. Every rank calls it.
TensorFile gather_tensors(const Job& job, const Graph& graph, const Device& device);

}  // namespace plumb
