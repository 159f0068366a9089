// Sets up a run, in the order that finds mistakes cheaply: options and files before anything is computed, the
// memory plan before anything is allocated.
#pragma once

#include <memory>
#include <string>

#include "base/console/messages.h"
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

struct Session {
  BenchOptions options;  // resolved, with threads, data_workers and the layout of nodes
  std::unique_ptr<Device> device;
  std::unique_ptr<BatchSource> source;
  std::unique_ptr<Communicator> communicator;  // null if not has_collectives()
  bool workers_as_needed = false;              // options.data_workers is the most, not the number
  bool captures = false;                       // an iteration becomes one launch
  int ranks_per_gpu = 1;                       // on the fullest GPU of the job
  bool saves_memory = false;                   // with the fastest choices of tuning, the step doesn't fit
  StepPlan plan;                               // until plan_session: as described
  Tuning tuning;                               // trials and remarks on rank 0 only
  // Until prepare_session: the tensors of --weights, on rank 0, or on every rank if each has its own rows.
  TensorMap given;
  std::string why_no_gpu;  // where --device auto took the CPU; else empty
  std::string remark;      // one sentence about threads, if there is something to say
};

// First step, on every rank: chooses the device, resolves options, compares them between ranks. Reads and
// allocates nothing.
Session open_session(const Job& job, const BenchOptions& options);

// Rank 0's; other ranks' say nothing. With --verbose several ranks' begin with host and rank.
Messages messages_of(const Job& job, const BenchOptions& options);
// Second step: plans the step as described, opens data and --weights. Throws Error(bad_data), and
// Error(out_of_memory) that names the batch that would fit.
void read_inputs(const Job& job, Session& session);
// Part of the last step: fills in Session::tuning, the engines and fused patterns that rank 0 finds and every
// rank takes. Rank 0 shows progress on stderr unless --quiet: a bar on a terminal, elsewhere a line every ten
// seconds. Every rank calls it.
void tune_session(const Job& job, Session& session, const UpdateRule& rule);
// Warns on rank 0 if some rank's prepared step runs by other engines than rank 0's: its GPU or libraries lack
// one that was chosen. Every rank calls it.
void compare_engines(const Job& job, Session& session);
// Third step, which takes time: tuning, primitives, and the plan with the layouts and workspaces that the
// device chose: Tuning::smallest if the fastest don't fit on some rank. Allocates nothing of it. Throws
// Error(out_of_memory) likewise.
void plan_session(const Job& job, Session& session);
// Gives the planned step its memory. If the device lacks it after all, since libraries took some meanwhile,
// plans and binds Tuning::smallest. Throws Error(out_of_memory) on all ranks.
void bind_session(const Job& job, Session& session);
// plan_session(), communicator, bind_session(), compare_engines(), then parameters on the device.
void prepare_session(const Job& job, Session& session);

// Free bytes of the device; ranks that share its memory get equal parts. Of host memory not more than the
// process may map (ulimit -v, ulimit -d).
double memory_of_rank(const Job& job, const Session& session);

// Parameters and running statistics from the device, by their public names; a shard has this rank's rows.
TensorFile read_tensors(const Graph& graph, const Device& device);
// The same with all ranks' rows, on rank 0; other ranks' result is incomplete. Every rank calls it.
TensorFile gather_tensors(const Job& job, const Graph& graph, const Device& device);

}  // namespace plumb
