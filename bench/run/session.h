// Everything that a run needs, made in the order in which mistakes are cheapest to find: options and files
// before anything is computed, the memory plan before anything is allocated.
#pragma once

#include <memory>
#include <string>

#include "bench/data/batch_source.h"
#include "bench/options/options.h"
#include "bench/plan/step_plan.h"
#include "comm/communicator.h"
#include "comm/job.h"
#include "kernels/device.h"
#include "kernels/tuning.h"
#include "models/graph.h"
#include "models/weights.h"

namespace plumb {

// How many devices there are and where: read from the job, or as --nodes and --devices-per-node say.
struct WorldLayout {
  int nodes = 1, devices_per_node = 1;
  int devices() const { return nodes * devices_per_node; }
};
// Throws Error(usage) if --nodes x --devices-per-node is another number than `ranks`.
WorldLayout world_layout(const BenchOptions& options, int ranks, int nodes, int devices_per_node);

struct Session {
  BenchOptions options;  // resolved
  WorldLayout layout;
  std::unique_ptr<Device> device;
  std::unique_ptr<BatchSource> source;
  std::unique_ptr<Communicator> communicator;  // null if not has_collectives()
  bool captures = false;                       // an iteration becomes one launch
  bool shares_gpu = false;                     // another rank uses the same one
  StepPlan plan;                               // until prepare_session: as described
  Tuning tuning;                               // trials and remarks on rank 0 only
  // Until prepare_session: the tensors of --weights. On rank 0, and on all ranks where each has rows of its
  // own.
  TensorMap given;
  std::string why_this_device;  // " (…)", where --device auto chose it
  std::string remark;           // one sentence about threads, if there is something to say
};

// First, on every rank together: device, options, agreement between ranks. Nothing is read or allocated.
Session open_session(const Job& job, const BenchOptions& options);
// Then all that can be wrong with what is read: the described plan, data, --weights. Throws Error(bad_data),
// and Error(out_of_memory) with what would fit if the plan shows it.
void read_inputs(const Job& job, Session& session);
// At last what costs time: primitives, memory, parameters on the device.
void prepare_session(const Job& job, Session& session);

// Bytes that this rank may take of what its device has free.
double memory_of_rank(const Job& job, const Session& session);

// Parameters and running statistics as the device has them, by their public names: of a shard this rank's
// rows.
TensorFile read_tensors(const Graph& graph, const Device& device);
// The same, whole, on rank 0; what the other ranks get is worth nothing. Every rank calls it.
TensorFile gather_tensors(const Job& job, const Graph& graph, const Device& device);

}  // namespace plumb
