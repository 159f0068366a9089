// bench_arcface with fault injection: PLUMB_DAMAGE selects what happens to rank 1, or with wrong_sum to all.
// A number is a signal that it gets in PLUMB_DAMAGE_PHASE ("warm-up"), as an iteration ends or in a call of
// MPI.
#include <mpi.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/run/run_program.h"
#include "bench/run/tasks.h"

namespace {

using namespace plumb;

void change_parameter(BoundStep& step, float value) {
  const ParameterId parameter = 0;
  std::vector<float> values(static_cast<std::size_t>(step.plan.graph.parameters[parameter].elements()));
  step.device->read_parameter(parameter, values);
  values.front() = value;
  step.device->write_parameter(parameter, values);
}

// The board of a rank that is to be lost or slow at a certain point; null on others.
const StatusBoard*& board_of_damaged_rank() {
  static const StatusBoard* board = nullptr;
  return board;
}

void be_lost() {
  const StatusBoard* const board = board_of_damaged_rank();
  const char* const phase = std::getenv("PLUMB_DAMAGE_PHASE");
  if (!board || !phase || phase != name_of(board->status().phase)) return;
  std::this_thread::sleep_for(std::chrono::seconds(2));  // the others hear where it is within 0.2 s
  ::raise(std::atoi(std::getenv("PLUMB_DAMAGE")));
}

// Iteration 5 takes 6 s, or as long as eight others where they are slow.
void stall(std::int64_t iteration) {
  static std::chrono::steady_clock::time_point first;
  const auto now = std::chrono::steady_clock::now();
  if (iteration == 0) first = now;
  if (iteration == 4)
    std::this_thread::sleep_for(
        std::max<std::chrono::nanoseconds>(std::chrono::seconds(6), 2 * (now - first)));
}

void damage(const std::string& kind, std::int64_t iteration, BoundStep& step) {
  be_lost();
  const bool last = iteration == step.options.iterations - 1;
  if (kind == "corrupt_at_the_end" && last) change_parameter(step, 0.123f);
  if (kind == "poison" && iteration == 0) change_parameter(step, std::numeric_limits<float>::quiet_NaN());
  if (kind == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(600));
  if (kind == "stall") stall(iteration);
  if (kind == "hang" && iteration == 3) std::this_thread::sleep_for(std::chrono::hours(1));
  if (kind == "error" && iteration == 1)
    throw Error(ExitCode::io_error, "file images/1.jpg can't be read; look after the disk");
  if (kind == "defect" && iteration == 1) throw std::logic_error("a step that nobody thought of");
}

// Damages only the largest messages, alike on every rank, so replicas stay identical.
void damage_sum(std::span<std::byte> message) {
  if (message.size() > 1'200'000) message[message.size() / 2] ^= std::byte{1};
}

}  // namespace

extern "C" int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  be_lost();
  return PMPI_Allreduce(from, to, count, type, op, comm);
}

extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                         MPI_Request* request) {
  be_lost();
  return PMPI_Isend(data, count, type, rank, tag, comm, request);
}

extern "C" int MPI_Finalize() {
  be_lost();
  return PMPI_Finalize();
}

int main(int argc, char** argv) {
  const std::string program = "bench_arcface";
  return run_program(program, [&] {
    const BenchOptions options = parse_options(argc, argv, program);
    run_job(program, {.watch = options.watch, .quiet = options.quiet}, &argc, &argv,
            [&](const Job& job, Interruption& interruption, Watchdog* watchdog) {
              const char* kind = std::getenv("PLUMB_DAMAGE");
              TrainingHooks hooks{.interruption = interruption, .watchdog = watchdog};
              if (kind != nullptr && job.rank() == 1) {
                board_of_damaged_rank() = job.board();
                hooks.after_iteration = [kind = std::string(kind)](std::int64_t iteration, BoundStep& step) {
                  damage(kind, iteration, step);
                };
              }
              if (kind != nullptr && std::string(kind) == "wrong_sum") hooks.damage_message = damage_sum;
              run_training(job, options, hooks);
            });
  });
}
