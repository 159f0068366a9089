#include <algorithm>

#include "base/machine/machine.h"
#include "bench/run/environment.h"
#include "bench/run/stages.h"
#include "comm/distinct_gpus.h"

namespace plumb {
namespace {

// Threads for images: the CPUs of this rank that training leaves. A GPU wants one for the thread that
// enqueues.
int most_workers(const BenchOptions& options, int cpus_of_rank) {
  return std::max(1, cpus_of_rank - (options.device == DeviceChoice::cuda ? 1 : options.threads));
}

// --nodes and --devices-per-node, from the job where they aren't given. Throws Error(usage) if they make
// another number of devices than there are ranks.
void fill_in_layout(const Job& job, BenchOptions& options) {
  const int ranks = job.size();
  int &nodes = options.nodes, &each = options.devices_per_node;
  if (nodes == 0 && each == 0) {
    nodes = job.nodes();
    each = job.devices_per_node();
    if (nodes * each != ranks)
      throw Error(ExitCode::usage,
                  "the launcher placed {} ranks unevenly on {} hosts, {} on the fullest; start equally many "
                  "on each, as with mpirun -np {} -H {}:{},…",
                  ranks, nodes, each, nodes * each, job.host(), each);
  }
  if (nodes == 0) nodes = std::max(1, ranks / each);
  if (each == 0) each = std::max(1, ranks / nodes);
  if (nodes * each == ranks) return;
  throw Error(
      ExitCode::usage,
      "--nodes {} with --devices-per-node {} makes {} devices, and {} {}; start as many, or leave both out",
      nodes, each, nodes * each, ranks, ranks == 1 ? "rank runs" : "ranks run");
}

bool becomes_one_launch(const BenchOptions& options, Device& device, int world_size) {
  if (!device.step_capture() || options.cuda_graph == CudaGraph::off) return false;
  const bool can = options.comm == "nccl" || !has_collectives(options, world_size);
  if (!can && options.cuda_graph == CudaGraph::on)
    throw Error(ExitCode::usage,
                "--cuda-graph on: expected a communicator of the GPU, and --comm {} sums on the host; pass "
                "--cuda-graph off or --comm nccl",
                options.comm);
  return can;
}

// Threads that take turns on one CPU wait for each other at every barrier: thousands never end.
void require_cpus(const Job& job, const BenchOptions& options) {
  const std::size_t cpus = affinity_cpus().size();
  if (options.oversubscribe_threads || cpus == 0 || static_cast<std::size_t>(options.threads) <= cpus) return;
  throw Error(ExitCode::usage,
              "--threads {}: expected at most the {} of rank {} on {}; pass {}, --bind-to none to mpirun, or "
              "--oversubscribe-threads",
              options.threads, counted(cpus, "CPU"), job.rank(), job.host(), cpus);
}

}  // namespace

ResolvedRun::ResolvedRun(const Job& its_job, const BenchOptions& asked) : job(its_job), options(asked) {
  job.enter_phase(RunPhase::preparing);
  const std::vector<int> cpus = affinity_cpus();
  const ThreadShare share =
      threads_for_this_rank(job.all_gather(fmt::format("{} {}", job.host(), cpu_list_text(cpus))), job.rank(),
                            static_cast<int>(cpus.size()), online_cpus(), cpus_per_core());
  job.together([&] {
    require_cpus(job, asked);
    std::string why_not_cuda;
    const int threads = asked.threads > 0 ? asked.threads : share.threads;
    device = make_device({.choice = asked.device,
                          .threads = threads,
                          .local_rank = job.local_rank(),
                          .deterministic = asked.deterministic},
                         &why_not_cuda);
    why_no_gpu = why_not_cuda;
    options = resolve(asked, device->limits(), job.size());
    options.threads = threads;
    fill_in_layout(job, options);
    captures = becomes_one_launch(options, *device, job.size());
    if (options.data_workers == 0) options.data_workers = most_workers(options, share.threads);
  });
  if (asked.threads == 0) remark = share.remark;
  ranks_per_gpu = require_distinct_gpus(job, device->unique_id(), asked.share_gpu);
  job.require_same("options",
                   fmt::format("{}device kind={}\nGPU libraries={}\n", options_fingerprint(asked),
                               name_of(device->limits().kind), fmt::join(cuda::library_versions(), ", ")));
}

double ResolvedRun::memory_bytes() const {
  return device->limits().memory_bytes / (device->host_staging() ? ranks_per_gpu : job.local_size());
}

}  // namespace plumb
