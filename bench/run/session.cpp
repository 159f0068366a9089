#include "bench/run/session.h"

#include <algorithm>

#include "base/machine/limits.h"
#include "base/machine/machine.h"
#include "bench/data/image_loader.h"
#include "bench/plan/head_table.h"
#include "bench/run/device_communicator.h"
#include "bench/run/environment.h"
#include "comm/distinct_gpus.h"

namespace plumb {
namespace {

constexpr const char* kOneVector =
    "--bs 1 leaves the last norm one vector, which it makes zero: times are right, losses mean nothing";

std::int64_t classes_of(const Graph& graph) {
  if (const auto* loss = std::get_if<MarginLoss>(&graph.ops.back())) return loss->classes;
  return graph.values[std::get<SoftmaxLoss>(graph.ops.back()).in].shape.c;
}

BatchSourceOptions source_options(const Session& session, const Job& job) {
  const BenchOptions& options = session.options;
  BatchSourceOptions source{.data = options.data,
                            .batch_file = options.batch,
                            .batch_per_device = *options.batch_per_device,
                            .image_size = options.image_size,
                            .classes = classes_of(session.plan.graph),
                            .preprocessing = preprocessing_of(*options.model),
                            .seed = options.seed,
                            .rank = job.rank(),
                            .world_size = job.size(),
                            .workers = options.data_workers,
                            .as_needed = session.workers_as_needed};
  if (HostStaging* staging = session.device->host_staging())
    source.allocate = [staging](std::size_t bytes) { return staging->allocate_pinned(bytes); };
  return source;
}

// Threads for images: the CPUs of this rank that training leaves. A GPU wants one for the thread that
// enqueues.
int most_workers(const BenchOptions& options, int cpus_of_rank) {
  if (options.decode_only) return cpus_of_rank;
  return std::max(1, cpus_of_rank - (options.device == DeviceChoice::cuda ? 1 : options.threads));
}

// "; --bs 8 has room for --classes 1000", if the model has class centers.
std::string classes_that_fit(const Session& session, const Job& job, double free_bytes) {
  if (!session.options.model->margin_head) return "";
  DeviceLimits limits = session.device->limits();
  limits.memory_bytes = free_bytes;
  const std::int64_t classes =
      largest_classes(session.options, limits, job.size(), session.tuning.plain).value_or(0);
  if (classes == 0) return "";
  return fmt::format("; --bs {} has room for --classes {}", *session.options.batch_per_device, classes);
}

// But for the stacks of threads: those that compute beside this one, and those that decode.
double address_space_for_tensors(const BenchOptions& options) {
  const int decoding = options.data == "synthetic" ? 0 : options.data_workers;
  return address_space_left() - (options.threads - 1 + decoding) * stack_bytes();
}

// Throws Error(out_of_memory) if `wanted` bytes are more than this rank may take.
void require_memory(const Session& session, const Job& job, double wanted) {
  const double free = memory_of_rank(job, session);
  if (wanted <= free) return;
  // Engines' workspaces.
  const double beside_the_plan =
      wanted - make_step_plan(session.options, session.device->limits(), job.rank(), job.size(),
                              {.plain = session.tuning.plain, .prepare = {}})
                   .needed_bytes;
  const std::int64_t fits = largest_planned_batch(session.options, session.device->limits(), job.rank(),
                                                  job.size(), free - beside_the_plan, session.tuning.plain);
  throw Error(ExitCode::out_of_memory, "rank {} on {} would need {} bytes for --bs {} and has {} free; {}{}",
              job.rank(), job.host(), static_cast<std::int64_t>(wanted), *session.options.batch_per_device,
              static_cast<std::int64_t>(free),
              fits > 0 ? fmt::format("by the plan --bs {} fits", fits) : "not even --bs 1 fits",
              classes_that_fit(session, job, free));
}

// A GPU's plan says nothing of the host, which may have little memory, as in a container.
void require_host_memory(const Job& job, const BenchOptions& options, const BatchSourceOptions& source) {
  const auto wanted = static_cast<double>(ImageLoader::batches_bytes(source));
  const double free = std::min(available_bytes() / job.local_size(), address_space_for_tensors(options));
  if (wanted > free)
    throw Error(
        ExitCode::out_of_memory,
        "rank {} on {} would need {} bytes of the host's memory for images, decoded by {}, and has {} "
        "free; give a smaller --bs or fewer --data-workers",
        job.rank(), job.host(), static_cast<std::int64_t>(wanted), counted(source.workers, "worker"),
        static_cast<std::int64_t>(free));
}

// "no GPU answers (…)" of "option --device: no GPU answers (…); install …": with --device auto the remedy is
// not needed.
std::string reason_of(const std::string& sentence) {
  const std::size_t colon = sentence.starts_with("option ") ? sentence.find(": ") : std::string::npos;
  const std::size_t begin = colon == std::string::npos ? 0 : colon + 2;
  const std::size_t end = sentence.find("); ", begin);
  return sentence.substr(begin, end == std::string::npos ? end : end + 1 - begin);
}

float initial_loss_scale(const BenchOptions& options) {
  const LossScaling scaling = options.loss_scaling.value_or(LossScaling{});
  return scaling.kind == LossScaling::Kind::none ? 1 : scaling.initial;
}

bool has_shards(const Graph& graph) {
  return std::ranges::any_of(graph.parameters, [](const Parameter& one) { return one.shard.has_value(); });
}

constexpr std::int64_t kDrawnAtOnce = std::int64_t{1} << 25;  // elements: 128 MiB

// In pieces: there may be more class centers than fit into host memory.
void draw_class_centres(Session& session, ParameterId centers) {
  const Parameter& parameter = session.plan.graph.parameters[centers];
  const std::int64_t all = parameter.dims[0], columns = parameter.dims[1];
  const std::int64_t at_once = std::clamp<std::int64_t>(kDrawnAtOnce / columns, 1, all);
  std::vector<float> rows(static_cast<std::size_t>(at_once * columns));
  for (std::int64_t row = 0; row < all; row += at_once) {
    rows.resize(static_cast<std::size_t>(std::min(at_once, all - row) * columns));
    draw_rows(parameter, session.options.seed, row, rows);
    session.device->write_rows(centers, row, rows);
  }
}

// Every rank draws its own, which has the same bits everywhere; one tensor at a time is in host memory.
void draw_tensors(Session& session) {
  const Graph& graph = session.plan.graph;
  const std::optional<ParameterId> centers = class_centres(graph);
  for (ParameterId p = 0; p < graph.parameters.size(); ++p)
    if (p == centers)
      draw_class_centres(session, p);
    else
      session.device->write_parameter(p, initial_values(graph.parameters[p], session.options.seed));
  for (StatisticId s = 0; s < graph.statistics.size(); ++s)
    session.device->write_statistic(s, initial_values(graph.statistics[s]));
}

// Sends rank 0's tensors (from --weights) to every rank's device; of a shard each rank writes its own rows.
void distribute_tensors(const Job& job, Session& session, TensorMap tensors) {
  const auto hand_out = [&](const std::string& name, std::int64_t count) -> std::vector<float>& {
    std::vector<float>& values = tensors[name].values;
    values.resize(static_cast<std::size_t>(count));
    job.broadcast(values.data(), values.size());
    return values;
  };
  const Graph& graph = session.plan.graph;
  for (ParameterId p = 0; p < graph.parameters.size(); ++p) {
    const Parameter& parameter = graph.parameters[p];
    session.device->write_parameter(p, parameter.shard ? tensors.at(parameter.name).values
                                                       : hand_out(parameter.name, parameter.elements()));
  }
  for (StatisticId s = 0; s < graph.statistics.size(); ++s)
    session.device->write_statistic(s, hand_out(graph.statistics[s].name, graph.statistics[s].channels));
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
      throw Error(
          ExitCode::usage,
          "the launcher placed {} ranks unevenly on {} hosts, {} on the fullest; start equally many on "
          "each host, as with mpirun -np {} -H {}:{},…",
          ranks, nodes, each, nodes * each, job.host(), each);
  }
  if (nodes == 0) nodes = std::max(1, ranks / each);
  if (each == 0) each = std::max(1, ranks / nodes);
  if (nodes * each == ranks) return;
  throw Error(ExitCode::usage,
              "option --nodes: {} with --devices-per-node {} makes {} devices, but {} {}; start as many, or "
              "leave the layout to the hosts",
              nodes, each, nodes * each, ranks, ranks == 1 ? "rank runs" : "ranks run");
}

// Whether an iteration becomes one launch.
bool captures(const BenchOptions& options, Device& device, int world_size) {
  if (!device.step_capture() || options.cuda_graph == CudaGraph::off) return false;
  const bool can = options.comm == "nccl" || !has_collectives(options, world_size);
  if (!can && options.cuda_graph == CudaGraph::on)
    throw Error(ExitCode::usage,
                "option --cuda-graph: 'on' can't go with --comm {}, whose sums the host carries; give "
                "--cuda-graph off or --comm nccl",
                options.comm);
  return can;
}

// Threads that take turns on one CPU wait for each other at every barrier: thousands never end.
void require_cpus(const Job& job, const BenchOptions& options) {
  const std::size_t cpus = affinity_cpus().size();
  if (options.oversubscribe_threads || cpus == 0 || static_cast<std::size_t>(options.threads) <= cpus) return;
  throw Error(
      ExitCode::usage,
      "option --threads: {} are more than the {} that rank {} may use on {}; give at most {}, let mpirun "
      "bind it to more (--bind-to none), or give --oversubscribe-threads",
      options.threads, counted(cpus, "CPU"), job.rank(), job.host(), cpus);
}

// Plans the step with the engines and fused patterns in session.tuning. Returns the bytes that it needs.
double plan_tuned(const Job& job, Session& session, const UpdateRule& rule) {
  job.together([&] {
    session.plan =
        make_step_plan(session.options, session.device->limits(), job.rank(), job.size(),
                       {.plain = session.tuning.plain, .prepare = [&](const Graph& graph, Program& program) {
                          apply_tuning(session.tuning, program);
                          session.device->prepare(graph, rule, program);
                        }});
  });
  const bool shares_memory = !session.device->host_staging();
  return session.plan.needed_bytes + (shares_memory ? static_cast<double>(session.source->host_bytes()) : 0);
}

// Whether the plan fits every rank in addition to the memory that libraries use already.
bool fits(const Session& session, const Job& job, double wanted) {
  std::string mine;
  job.together([&] {
    const double taken = static_cast<double>(session.device->peak_bytes()) / session.ranks_per_gpu;
    if (wanted + taken > memory_of_rank(job, session)) mine = "no";
  });
  return std::ranges::all_of(job.all_gather(mine), [](const std::string& rank) { return rank.empty(); });
}

// Plans anew with the engines and fused layers that take the least memory. Returns the bytes that it needs.
double plan_smallest(const Job& job, Session& session, const UpdateRule& rule) {
  session.saves_memory = true;
  static_cast<EngineChoices&>(session.tuning) = *session.tuning.smallest;
  if (job.rank() == 0)
    session.tuning.remarks.push_back(
        "the fastest engines don't fit into the memory: engines and fused layers that take the least of it "
        "run instead; a smaller --bs lets the fastest run");
  return plan_tuned(job, session, rule);
}

UpdateRule rule_of(const BenchOptions& options) {
  return {.optimizer = options.optimizer,
          .momentum = options.momentum,
          .weight_decay = options.weight_decay,
          .loss_scaling = options.loss_scaling.value_or(LossScaling{})};
}

}  // namespace

Messages messages_of(const Job& job, const BenchOptions& options) {
  if (options.quiet || job.rank() != 0) return Messages(stderr, terminal_of(stderr), Loudness::quiet);
  if (!options.verbose) return Messages(stderr, terminal_of(stderr), Loudness::usual);
  const std::string origin = job.size() == 1 ? "" : fmt::format("{} rank {}: ", job.host(), job.rank());
  return Messages(stderr, terminal_of(stderr), Loudness::verbose, origin);
}

Session open_session(const Job& job, const BenchOptions& options) {
  job.enter_phase(RunPhase::preparing);
  Session session;
  const ThreadShare share = threads_for_this_rank(job.all_gather(placement_text(job.host(), affinity_cpus())),
                                                  job.rank(), online_cpus(), cpus_per_core());
  job.together([&] {
    require_cpus(job, options);
    std::string why_not_cuda;
    const int threads = options.threads > 0 ? options.threads : share.threads;
    session.device = make_device({.choice = options.device,
                                  .threads = threads,
                                  .local_rank = job.local_rank(),
                                  .deterministic = options.deterministic},
                                 &why_not_cuda);
    session.options = resolve(options, session.device->limits(), job.size());
    session.why_no_gpu = reason_of(why_not_cuda);
    session.options.threads = threads;
    fill_in_layout(job, session.options);
    session.captures = captures(session.options, *session.device, job.size());
    session.workers_as_needed = session.options.data_workers == 0 && !session.options.decode_only;
    if (session.options.data_workers == 0)
      session.options.data_workers = most_workers(session.options, share.threads);
  });
  if (options.threads == 0) session.remark = share.remark;
  if (options.model->margin_head && session.options.batch_per_device == 1)
    session.remark += (session.remark.empty() ? "" : "; ") + std::string(kOneVector);
  session.ranks_per_gpu = require_distinct_gpus(job, session.device->unique_id(), options.share_gpu);
  job.require_same(
      "options",
      fmt::format("{}device kind={}\nGPU libraries={}\n", options_fingerprint(options),
                  name_of(session.device->limits().kind), fmt::join(cuda::library_versions(), ", ")));
  return session;
}

void read_inputs(const Job& job, Session& session) {
  const BenchOptions& options = session.options;
  job.together([&] {
    session.plan = make_step_plan(options, session.device->limits(), job.rank(), job.size());
    require_memory(session, job, session.plan.needed_bytes);
    if (!options.weights.empty() && (job.rank() == 0 || has_shards(session.plan.graph)))
      session.given =
          tensors_for(session.plan.graph, read_safetensors(options.weights, "--weights"), options.weights);
    if (options.data != "synthetic" && session.device->host_staging())
      require_host_memory(job, options, source_options(session, job));
    session.source = make_batch_source(source_options(session, job));
  });
  job.require_same("--data", session.source->fingerprint());
}

void plan_session(const Job& job, Session& session) {
  const UpdateRule rule = rule_of(session.options);
  tune_session(job, session, rule);
  double wanted = plan_tuned(job, session, rule);
  if (session.tuning.smallest && !fits(session, job, wanted)) wanted = plan_smallest(job, session, rule);
  job.together([&] { require_memory(session, job, wanted); });
  const Program& program = session.plan.program;
  // GPUs of several kinds may choose different ones.
  job.require_same("--layout", program.layout ? fmt::format("--layout={}\n", name_of(*program.layout)) : "");
  job.require_same("Program", fmt::format("hash={}\n", reduction_hash(program)));
}

void bind_session(const Job& job, Session& session) {
  const auto bind = [&] {
    job.together([&] { session.device->bind(session.plan.program, session.plan.memory); });
  };
  try {
    return bind();
  } catch (const Error& error) {
    const bool may_shrink = session.tuning.smallest && !session.saves_memory;
    if (error.code() != ExitCode::out_of_memory || !may_shrink) throw;
  }
  plan_smallest(job, session, rule_of(session.options));
  bind();
}

void prepare_session(const Job& job, Session& session) {
  plan_session(job, session);
  const BenchOptions& options = session.options;
  // Allocates first what can't report how much memory is left; a failure to bind can.
  if (has_collectives(options, job.size()))
    session.communicator = make_communicator(job, options.comm, session.ranks_per_gpu > 1, *session.device,
                                             session.plan.program);
  bind_session(job, session);
  compare_engines(job, session);
  if (options.weights.empty())
    job.together([&] { draw_tensors(session); });
  else
    distribute_tensors(job, session, std::move(session.given));
  session.device->write_state(
      {.iteration = 0,
       .first_sample = static_cast<std::uint64_t>(job.rank() * session.plan.graph.batch()),
       .learning_rate = static_cast<float>(options.learning_rate),
       .gradient_scale = 1 / static_cast<float>(job.size()),
       .loss_scale = initial_loss_scale(options)});
  const bool synthetic = options.data == "synthetic" && options.batch.empty();
  if (synthetic && session.device->make_synthetic_batch(options.seed, job.rank())) return;
  if (const auto batch = session.source->same_every_step())
    session.device->write_batch(batch->images, batch->labels);
}

double memory_of_rank(const Job& job, const Session& session) {
  const bool is_host_memory = !session.device->host_staging();
  const double share =
      session.device->limits().memory_bytes / (is_host_memory ? job.local_size() : session.ranks_per_gpu);
  return is_host_memory ? std::min(share, address_space_for_tensors(session.options)) : share;
}

TensorFile read_tensors(const Graph& graph, const Device& device) {
  TensorFile file;
  for (ParameterId p = 0; p < graph.parameters.size(); ++p) {
    Tensor& tensor = file.floats[graph.parameters[p].name];
    tensor.dims = graph.parameters[p].dims;
    tensor.values.resize(static_cast<std::size_t>(graph.parameters[p].elements()));
    device.read_parameter(p, tensor.values);
  }
  for (StatisticId s = 0; s < graph.statistics.size(); ++s) {
    Tensor& tensor = file.floats[graph.statistics[s].name];
    tensor.dims = {graph.statistics[s].channels};
    tensor.values.resize(static_cast<std::size_t>(graph.statistics[s].channels));
    device.read_statistic(s, tensor.values);
  }
  return file;
}

TensorFile gather_tensors(const Job& job, const Graph& graph, const Device& device) {
  TensorFile file = read_tensors(graph, device);
  for (const Parameter& parameter : graph.parameters) {
    if (!parameter.shard) continue;
    Tensor& tensor = file.floats[parameter.name];
    tensor.dims.front() = parameter.shard->all_rows;
    tensor.values = job.concatenate(tensor.values);
  }
  return file;
}

}  // namespace plumb
