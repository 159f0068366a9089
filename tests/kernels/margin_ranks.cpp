#include "tests/kernels/margin_ranks.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>

#include "kernels/program/describe.h"
#include "kernels/program/memory_plan.h"
#include "kernels/program/program.h"
#include "models/margin_head.h"

namespace plumb {
namespace {

struct Rank {
  Graph graph;
  Program program;
  std::unique_ptr<Device> device;
  ClassShard shard;

  const Buffer* find(const std::string& name, BufferId& id) const {
    for (id = 0; id < program.buffers.size(); ++id)
      if (program.buffers[id].name == name) return &program.buffers[id];
    return nullptr;
  }
};

ClassShard shard_of(const MarginRanks& setup, int rank) {
  return class_shard(setup.classes, rank, setup.ranks);
}

template <typename T>
std::span<const T> part_of(const std::vector<T>& all, std::int64_t first, std::int64_t count) {
  return std::span(all).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
}

Rank make_rank(const MarginRanks& setup, const MarginTensors& tensors, int rank) {
  Rank made{.graph = margin_graph(setup, rank), .program = {}, .device = {}, .shard = shard_of(setup, rank)};
  made.device = cpu::make_device({.choice = DeviceChoice::cpu, .threads = setup.threads});
  made.program = describe(made.graph, {}, made.device->limits());
  made.device->prepare(made.graph, setup.rule, made.program);
  made.device->bind(made.program, plan_memory(made.program));
  const std::int64_t own = setup.images * setup.embedding;
  made.device->write_parameter(
      0, part_of(tensors.centers, made.shard.first * setup.embedding, made.shard.count * setup.embedding));
  made.device->write_batch(part_of(tensors.features, rank * own, own),
                           part_of(tensors.labels, rank * setup.images, setup.images));
  made.device->write_state(
      {.learning_rate = setup.learning_rate, .gradient_scale = 1 / static_cast<float>(setup.ranks)});
  return made;
}

// Every rank's buffer in a collective.
std::vector<std::byte*> places_of(std::vector<Rank>& ranks, BufferId buffer) {
  std::vector<std::byte*> places;
  for (Rank& rank : ranks) places.push_back(rank.device->data(buffer));
  return places;
}

void all_gather(const std::vector<std::byte*>& places, std::size_t part_bytes) {
  for (std::size_t from = 0; from < places.size(); ++from)
    for (std::byte* to : places)
      std::memmove(to + from * part_bytes, places[from] + from * part_bytes, part_bytes);
}

std::vector<float> reduced(const std::vector<std::byte*>& places, std::size_t elements, bool sum) {
  std::vector<float> result(elements, sum ? 0 : -std::numeric_limits<float>::infinity());
  for (const std::byte* place : places) {
    const auto* values = reinterpret_cast<const float*>(place);
    for (std::size_t i = 0; i < elements; ++i)
      result[i] = sum ? result[i] + values[i] : std::max(result[i], values[i]);
  }
  return result;
}

void run_collective(std::vector<Rank>& ranks, const Collective& collective) {
  using Kind = Collective::Kind;
  const std::vector<std::byte*> places = places_of(ranks, collective.buffer);
  const std::size_t part = collective.elements / ranks.size();
  if (collective.kind == Kind::allgather) return all_gather(places, part * bytes_of(collective.dtype));
  if (collective.dtype != DType::f32) throw std::logic_error("only floats are reduced");
  const std::vector<float> result =
      reduced(places, collective.elements, collective.kind != Kind::allreduce_max);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    auto* to = reinterpret_cast<float*>(places[rank]);
    if (collective.kind != Kind::reduce_scatter_sum) {
      std::copy(result.begin(), result.end(), to);
      continue;
    }
    // The other parts are undefined afterwards: NaN catches accidental use.
    std::fill_n(to, collective.elements, std::numeric_limits<float>::quiet_NaN());
    std::copy_n(result.data() + rank * part, part, to + rank * part);
  }
}

void append(std::vector<float>& to, const float* values, std::size_t count, int divisor) {
  for (std::size_t i = 0; i < count; ++i) to.push_back(values[i] / static_cast<float>(divisor));
}

// Saves an instruction's results on all ranks before others overwrite them.
void keep(std::vector<Rank>& ranks, const Instruction& instruction, const MarginRanks& setup,
          MarginRun& run) {
  const auto* backward = instruction.as<MarginFeaturesBackward>();
  if (!backward) return;
  run.feature_gradient.clear();
  for (Rank& rank : ranks)
    append(run.feature_gradient, reinterpret_cast<const float*>(rank.device->data(backward->d_features)),
           static_cast<std::size_t>(setup.images * setup.embedding), setup.ranks);
}

void run_iteration(std::vector<Rank>& ranks, const MarginRanks& setup, MarginRun& run) {
  const std::vector<Instruction>& instructions = ranks.front().program.instructions;
  for (InstructionId id = 0; id < instructions.size(); ++id) {
    if (const auto* collective = instructions[id].as<Collective>()) {
      run_collective(ranks, *collective);
      continue;
    }
    for (Rank& rank : ranks) rank.program.instructions.at(id).run();
    keep(ranks, instructions[id], setup, run);
  }
}

std::vector<std::int32_t> samples_of(Rank& rank) {
  BufferId id = 0;
  const Buffer* buffer = rank.find("head.samples", id);
  if (!buffer) return {};
  const auto* values = reinterpret_cast<const std::int32_t*>(rank.device->data(id));
  return {values, values + buffer->dims[0]};
}

void take_note(std::vector<Rank>& ranks, int iteration, MarginRun& run) {
  double loss = 0;
  int top1 = 0;
  run.samples.emplace_back();
  for (Rank& rank : ranks) {
    const IterationMetrics metrics = rank.device->metrics(static_cast<std::uint64_t>(iteration));
    loss += metrics.loss / static_cast<double>(ranks.size());
    top1 += metrics.top1;
    run.samples.back().push_back(samples_of(rank));
  }
  run.losses.push_back(loss);
  run.top1.push_back(top1);
}

}  // namespace

Graph margin_graph(const MarginRanks& setup, int rank) {
  const ClassShard shard = shard_of(setup, rank);
  Graph graph{.model = "test"};
  graph.values.push_back({"images", {setup.images, 1, 1, setup.embedding}});
  graph.parameters.push_back({.name = "head.weight", .dims = {shard.count, setup.embedding}});
  if (setup.head != Head::replicated) graph.parameters[0].shard = RowShard{shard.first, setup.classes};
  graph.ops.push_back(MarginLoss{.name = "head",
                                 .in = 0,
                                 .weight = 0,
                                 .classes = setup.classes,
                                 .first_class = shard.first,
                                 .margins = setup.margins,
                                 .scale = setup.scale,
                                 .gradient = setup.gradient,
                                 .head = setup.head,
                                 .rank = rank,
                                 .world_size = setup.ranks,
                                 .sample_rate = setup.sample_rate,
                                 .seed = 5});
  return graph;
}

MarginRun run_margin_ranks(const MarginRanks& setup, const MarginTensors& tensors) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < setup.ranks; ++rank) ranks.push_back(make_rank(setup, tensors, rank));
  MarginRun run;
  for (int i = 0; i < setup.iterations; ++i) {
    run_iteration(ranks, setup, run);
    take_note(ranks, i, run);
  }
  for (const Rank& rank : ranks) {
    std::vector<float> values(static_cast<std::size_t>(rank.shard.count * setup.embedding));
    rank.device->read_gradient(0, values);
    append(run.centre_gradient, values.data(), values.size(), setup.ranks);
    rank.device->read_parameter(0, values);
    run.centers.insert(run.centers.end(), values.begin(), values.end());
  }
  return run;
}

MarginTensors random_margin_tensors(const MarginRanks& setup, std::uint32_t seed) {
  std::mt19937 bits(seed);  // the same everywhere, unlike the standard distributions
  const auto even = [&] { return static_cast<float>(bits() / 2147483648.0 - 1.0); };
  MarginTensors tensors;
  tensors.features.resize(static_cast<std::size_t>(setup.ranks * setup.images * setup.embedding));
  tensors.centers.resize(static_cast<std::size_t>(setup.classes * setup.embedding));
  std::generate(tensors.features.begin(), tensors.features.end(), even);
  std::generate(tensors.centers.begin(), tensors.centers.end(), even);
  for (std::int64_t i = 0; i < setup.ranks * setup.images; ++i)
    tensors.labels.push_back(bits() % setup.classes);
  return tensors;
}

}  // namespace plumb
