#include "tests/bench/run/face_ranks.h"

#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>

#include "bench/run/runner.h"
#include "comm/communicator.h"
#include "kernels/program/memory_plan.h"
#include "models/margin_head.h"
#include "models/model_builder.h"
#include "tests/models/initial_tensors.h"

namespace plumb {
namespace {

class NoBatches : public BatchSource {
 public:
  std::size_t host_bytes() const override { return 0; }
  std::string description() const override { return "one batch"; }
};

bool exchanges(const Job& job, const FaceTraining& training) {
  return job.size() > 1 || training.even_alone;
}

std::unique_ptr<Communicator> make_communicator(const Job& job, Device& device) {
  if (device.limits().kind == DeviceKind::cpu) return make_mpi_communicator(job);
  return make_nccl_communicator(job, device.queue(Lane::communication), false);
}

Program program_of(const Job& job, const FaceTraining& training, const Graph& graph, Device& device) {
  const UpdateRule rule{.momentum = 0.9, .weight_decay = 5e-4, .loss_scaling = training.loss_scaling};
  Program program = describe(graph, training.describe, device.limits());
  device.prepare(graph, rule, program);
  if (exchanges(job, training))
    program = add_gradient_reduction(std::move(program),
                                     {.buckets = {.last_bucket_bytes = 512, .bucket_bytes = 4096},
                                      .dtype = training.reduce_dtype,
                                      .world_size = job.size(),
                                      .overlap = training.overlap});
  job.require_same("Program", "hash=" + std::to_string(reduction_hash(program)) + "\n");
  return program;
}

// Makes the instruction that completes the gradient of this rank's shard write an infinity. Needs a GPU.
void overflow_shard(Program& program, Device& device) {
  BufferId gradient = 0;
  while (program.buffers.at(gradient).role != Role::gradient || !program.buffers[gradient].sharded)
    ++gradient;
  Instruction* last = nullptr;
  for (Instruction& instruction : program.instructions)
    for (const BufferUse& use : instruction.uses())
      if (use.buffer == gradient && use.writes()) last = &instruction;
  const std::size_t bytes = bytes_of(program.buffers[gradient].dtype);
  const std::shared_ptr<std::byte> infinity = device.host_staging()->allocate_pinned(sizeof(float));
  const std::uint32_t bits = bytes == sizeof(float) ? 0x7F800000 : 0x7C00;
  std::memcpy(infinity.get(), &bits, sizeof bits);
  last->run = [&device, infinity, bytes, to = device.data(gradient), compute = last->run] {
    compute();
    device.host_staging()->copy(to, infinity.get(), bytes, Lane::compute);
  };
}

void write_batch(const Job& job, const FaceTraining& training, const Graph& graph, Device& device) {
  const Shape& shape = graph.values.front().shape;
  std::mt19937 random(static_cast<unsigned>(7 + job.rank()));
  std::vector<float> images(static_cast<std::size_t>(shape.elements()));
  for (float& pixel : images)
    pixel = training.pixel_factor * (static_cast<float>(random() % 2001) / 1000 - 1);
  const auto count = static_cast<std::size_t>(shape.n);
  const std::size_t first = count * static_cast<std::size_t>(job.rank());
  device.write_batch(0, images, std::span(training.labels).subspan(first, count));
}

void write_start(const Job& job, const FaceTraining& training, const Graph& graph, Device& device) {
  const TensorMap tensors = initial_tensors(graph, 5);
  for (ParameterId p = 0; p < graph.parameters.size(); ++p)
    device.write_parameter(p, tensors.at(graph.parameters[p].name).values);
  for (StatisticId s = 0; s < graph.statistics.size(); ++s)
    device.write_statistic(s, tensors.at(graph.statistics[s].name).values);
  write_batch(job, training, graph, device);
  const bool is_scaled = training.loss_scaling.kind != LossScaling::Kind::none;
  device.write_state({.first_sample = static_cast<std::uint64_t>(job.rank() * graph.batch()),
                      .learning_rate = 0.02f,
                      .gradient_scale = 1 / static_cast<float>(job.size()),
                      .loss_scale = is_scaled ? training.loss_scaling.initial : 1});
}

void read_end(const Job& job, const Graph& graph, const Device& device, FaceRun& run) {
  for (ParameterId p = 0; p < graph.parameters.size(); ++p) {
    const Parameter& parameter = graph.parameters[p];
    std::vector<float> values(static_cast<std::size_t>(parameter.elements()));
    device.read_parameter(p, values);
    if (p + 1 == graph.parameters.size()) {
      if (parameter.shard) values = job.concatenate(values);
      if (job.rank() == 0) run.centers = std::move(values);
    } else {
      run.backbone.insert(run.backbone.end(), values.begin(), values.end());
    }
  }
}

}  // namespace

FaceRun train_faces(const Job& job, const FaceTraining& training) {
  const Graph graph = training.graph(training.head, job.rank(), job.size());
  const std::unique_ptr<Device> device =
      make_device({.choice = training.device, .threads = 1, .local_rank = job.local_rank()});
  Program program = program_of(job, training, graph, *device);
  const std::unique_ptr<Communicator> communicator =
      exchanges(job, training) ? make_communicator(job, *device) : nullptr;
  device->bind(program, plan_memory(program));
  if (training.overflowing_shard) overflow_shard(program, *device);
  write_start(job, training, graph, *device);
  FaceRun run;
  for (const Instruction& instruction : program.instructions)
    if (instruction.as<Collective>()) run.sent.push_back(instruction.name);
  NoBatches batches;
  {
    Runner runner(program, *device, communicator.get(), batches);
    for (int i = 0; i < training.iterations; ++i) {
      if (i == 1 && device->step_capture()) runner.capture();
      runner.run_iteration();
    }
    device->synchronize();
    run.captured = runner.captured();
  }
  for (int i = 0; i < training.iterations; ++i) {
    const IterationMetrics metrics = device->metrics(static_cast<std::uint64_t>(i));
    run.losses.push_back(job.sum({metrics.loss}).front() / job.size());
    run.skipped.push_back(metrics.skipped);
    run.top1.push_back(job.sum({static_cast<double>(metrics.top1)}).front());
  }
  read_end(job, graph, *device, run);
  return run;
}

Graph SmallFaceNet::operator()(Head head, int rank, int world_size) const {
  ModelBuilder net("small", DecayRule::all);
  ValueId at =
      net.conv("conv", net.images(kImages, 16), {.channels = 8, .kernel = 3, .stride = 2, .padding = 1});
  at = net.batch_norm("norm", at, {.activation = Activation::prelu, .slope = "prelu.weight"});
  at = net.dense("dense", at, 16, {he_fan_out(16), {}});
  at = net.batch_norm("features", at, {.fixed_scale = true});
  const bool replicated = head == Head::replicated;
  MarginLoss loss{.name = "head",
                  .classes = classes,
                  .scale = scale,
                  .head = head,
                  .rank = replicated ? 0 : rank,
                  .world_size = replicated ? 1 : world_size,
                  .sample_rate = sample_rate,
                  .seed = 3};
  const ClassShard shard = class_shard(classes, loss.rank, loss.world_size);
  loss.first_class = shard.first;
  net.margin_loss(loss, at, shard.count, {Initializer::Kind::normal, 0.1});
  return net.take();
}

}  // namespace plumb
