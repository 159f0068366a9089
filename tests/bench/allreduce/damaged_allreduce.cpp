// bench_allreduce with a bit of rank PLUMB_DAMAGED_RANK's first result that flips before it is checked; with
// PLUMB_STOPS that rank stops there instead.
#include <csignal>
#include <cstdlib>
#include <string>

#include "bench/allreduce/run_allreduce.h"
#include "comm/job.h"

namespace {

plumb::MessageDamage damage_of(const plumb::Job& job) {
  const char* const rank = std::getenv("PLUMB_DAMAGED_RANK");
  if (rank == nullptr || std::to_string(job.rank()) != rank) return {};
  if (std::getenv("PLUMB_STOPS") != nullptr) return [](std::span<std::byte>) { std::raise(SIGSTOP); };
  return [damages = 1](std::span<std::byte> result) mutable {
    if (damages-- > 0) result[result.size() / 2] ^= std::byte{0x40};
  };
}

}  // namespace

int main(int argc, char** argv) {
  return plumb::run_allreduce_program(argc, argv, damage_of);
}
