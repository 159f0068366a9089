#include "bench/allreduce/exchange.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "kernels/cpu/state.h"
#include "kernels/cuda/plan/state.h"
#include "kernels/program/lowering.h"

namespace plumb {
namespace {

// Enough to keep a device busy, few enough for its clock.
constexpr std::size_t kIterationsAhead = 16;
constexpr std::chrono::microseconds kBetweenQuestions{10};

// A device binds the program of a network. This one has an input, and nothing is computed from it.
Graph network_without_layers() {
  Graph graph;
  graph.values = {{.name = "nothing", .shape = {.n = 1, .c = 3}}};
  return graph;
}

}  // namespace

Exchange::Exchange(const Job& job, Device& device, const std::vector<Message>& messages,
                   const std::string& comm, int ranks_per_gpu)
    : job_(job),
      device_(device),
      memory_(device),
      program_(start_lowering(network_without_layers(), {}, std::max(sizeof(cpu::State), sizeof(cuda::State)))
                   .program),
      first_buffer_(program_.buffers.size()) {
  for (const auto& [name, bytes] : messages)
    add_buffer(program_, {.name = name,
                          .role = Role::gradient,
                          .dtype = DType::u8,
                          .dims = {static_cast<std::int64_t>(bytes)},
                          .bytes = bytes,
                          .persistent = true});
  job_.together([&] { bind(ranks_per_gpu); });
  communicator_ = make_communicator(job_, comm, ranks_per_gpu > 1, device_, program_);
}

void Exchange::bind(int ranks_per_gpu) {
  device_.prepare(network_without_layers(), {}, program_);
  const MemoryPlan plan = plan_memory(program_);
  const double share =
      device_.limits().memory_bytes / (device_.host_staging() ? ranks_per_gpu : job_.local_size());
  if (static_cast<double>(plan.arena_bytes) > share)
    throw Error(ExitCode::out_of_memory,
                "rank {} on {} would need {} bytes for its messages and has {}; lower --max", job_.rank(),
                job_.host(), plan.arena_bytes, static_cast<std::int64_t>(share));
  device_.bind(program_, plan);
}

std::vector<double> Exchange::time(const Transfer& transfer, int warmup, int iterations) {
  const auto all = static_cast<std::size_t>(warmup) + static_cast<std::size_t>(iterations);
  std::vector<double> ends;
  ends.reserve(all);
  const auto collect = [&](std::size_t started, std::size_t ahead) {
    while (ends.size() < started) {
      if (const std::optional<double> end = device_.next_end()) {
        ends.push_back(*end);
      } else if (started - ends.size() > ahead) {
        communicator_->progress();
        std::this_thread::sleep_for(kBetweenQuestions);
      } else {
        return;
      }
    }
  };
  job_.barrier();
  device_.start_clock();
  for (std::size_t i = 0; i < all; ++i) {
    enqueue(transfer);
    device_.end_iteration();
    collect(i + 1, kIterationsAhead);
  }
  collect(all, 0);
  std::vector<double> seconds;
  for (std::size_t i = static_cast<std::size_t>(warmup); i < all; ++i)
    seconds.push_back(ends[i] - (i > 0 ? ends[i - 1] : 0));
  return seconds;
}

void Exchange::carry_out(const Transfer& transfer) {
  enqueue(transfer);
  device_.synchronize();
}

void Exchange::enqueue(const Transfer& transfer) {
  constexpr InstructionId kBegin = 0;  // the only point at which lanes meet
  device_.signal(kBegin, Lane::compute);
  device_.wait(kBegin, Lane::communication);
  if (transfer.from) copy_input(transfer);
  const Communicator::Ticket ticket =
      communicator_->start(transfer.collective, device_.data(transfer.collective.buffer));
  communicator_->wait(ticket);
}

// What a rank gives to the collective: an allgather its own part, a broadcast the buffer of rank 0.
void Exchange::copy_input(const Transfer& transfer) {
  const Collective& collective = transfer.collective;
  const auto rank = static_cast<std::size_t>(job_.rank());
  std::size_t bytes = collective.bytes(), begin = 0;
  if (collective.kind == Collective::Kind::allgather) {
    bytes /= static_cast<std::size_t>(job_.size());
    begin = rank * bytes;
  }
  if (collective.kind == Collective::Kind::broadcast && rank != 0) return;
  std::byte* const to = device_.data(collective.buffer) + begin;
  const std::byte* const from = device_.data(*transfer.from) + begin;
  if (HostStaging* const staging = device_.host_staging())
    staging->copy(to, from, bytes, Lane::communication);
  else
    std::memcpy(to, from, bytes);
}

}  // namespace plumb
