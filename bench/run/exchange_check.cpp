#include "bench/run/exchange_check.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/steady_clock.h"
#include "base/text.h"
#include "bench/run/device_communicator.h"

namespace plumb {
namespace {

// Shorter ones are carried out whatever they take: their time says how long the others would.
constexpr std::size_t kAlwaysBytes = std::size_t{2} << 20;
constexpr double kMostSeconds = 5;

struct Message {
  std::string name;  // "bucket0.allreduce"
  Collective collective;

  std::size_t bytes() const { return collective.elements * bytes_of(collective.dtype); }
};

// One for each kind, dtype and size, the smallest first.
std::vector<Message> distinct_messages(const Program& program) {
  std::vector<Message> messages;
  for (const Instruction& instruction : program.instructions) {
    const auto* collective = instruction.as<Collective>();
    if (!collective) continue;
    const auto is_same = [&](const Message& other) {
      return other.collective.kind == collective->kind && other.collective.dtype == collective->dtype &&
             other.collective.elements == collective->elements;
    };
    if (std::ranges::none_of(messages, is_same)) messages.push_back({instruction.name, *collective});
  }
  std::ranges::stable_sort(messages, {}, &Message::bytes);
  return messages;
}

void carry_out(BoundStep& step, const Collective& collective, DeviceMemory& memory) {
  Communicator& communicator = *step.communicator;
  try {
    communicator.wait(communicator.start(collective, step.device->data(collective.buffer)));
    wait_for_lane(*step.device, &communicator, Lane::communication);
  } catch (const Error&) {
    memory.abandon();
    throw;
  }
}

void require_right(const BoundStep& step, const Message& message, const MessagePattern::Wrong& wrong) {
  if (wrong.elements == 0) return;
  throw Error(
      ExitCode::verification_failed,
      "{} of {} elements in {} over {} is wrong on rank {} on {}: element {} is {} instead of {}, the "
      "first of {}; bench_allreduce shows which sizes are, another --comm may do",
      message.name, message.collective.elements, name_of(message.collective.dtype), step.communicator->name(),
      step.job.rank(), step.job.host(), wrong.first, wrong.found, wrong.wanted, wrong.elements);
}

// Returns the seconds that the collective took on this rank.
double check(BoundStep& step, const Message& message, DeviceMemory& memory, const MessageDamage& damage) {
  const Collective& collective = message.collective;
  const MessagePattern pattern(collective, step.job.rank(), step.job.size());
  fill_message(memory, collective, pattern, collective.buffer);
  step.job.barrier();
  const double start = steady_seconds();
  carry_out(step, collective, memory);
  const double seconds = steady_seconds() - start;
  const MessagePattern::Wrong wrong = check_message(memory, collective, pattern, damage);
  overwrite_message(memory, collective, std::byte{0});  // gaps between gradients must hold zeros
  step.job.together([&] { require_right(step, message, wrong); });
  return seconds;
}

}  // namespace

std::size_t check_exchange(BoundStep& step, const MessageDamage& damage) {
  DeviceMemory memory(*step.device);
  std::size_t checked_bytes = 0;
  double seconds = 0;  // of the last one
  for (const Message& message : distinct_messages(step.plan.program)) {
    const double expected = checked_bytes == 0 ? 0
                                               : seconds * static_cast<double>(message.bytes()) /
                                                     static_cast<double>(checked_bytes);
    std::uint64_t goes_on = message.bytes() <= kAlwaysBytes || expected <= kMostSeconds ? 1 : 0;
    step.job.broadcast(goes_on);  // ranks' clocks differ
    if (goes_on == 0) return checked_bytes;
    seconds = check(step, message, memory, damage);
    checked_bytes = message.bytes();
  }
  return 0;
}

}  // namespace plumb
