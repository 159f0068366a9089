// What ranks send each other beside MPI: frames of one size, each with a code that only who knows the key can
// make. All ranks run the same build, so frames travel as they lie in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "comm/watchdog/secret.h"

namespace plumb {

enum class FrameType : std::uint32_t {
  greeting,    // who is dialled: a number used once
  answer,      // who dials: one of its own, and proof that it knows the key
  welcome,     // who is dialled: proof in return
  heartbeat,   // a RankSummary
  report,      // a rank to the hub: a Verdict of its own
  verdict,     // the hub to all: a Verdict, all end
  failing,     // a rank to the hub: it ends the job itself, with this exit code
  stand_down,  // the hub to all: a rank ends the job, no alarm any more
  goodbye      // this rank ends in good order
};

struct Frame {
  static constexpr std::size_t kPayloadBytes = 192;

  FrameType type = FrameType::greeting;
  std::int32_t rank = 0;     // the sender's
  std::uint64_t number = 0;  // 1, 2, … in each direction of a connection
  std::array<std::byte, kPayloadBytes> payload{};
  Secret code{};

  // The bytes that the code covers.
  std::span<const std::byte> covered() const {
    return std::as_bytes(std::span(this, 1)).first(offsetof(Frame, code));
  }
};
static_assert(std::is_trivially_copyable_v<Frame> && sizeof(Frame) == offsetof(Frame, code) + sizeof(Secret));

// What a proof covers: numbers that both sides make and use once, and the ranks between which they are used.
struct Handshake {
  std::array<char, 16> side{};  // "dialling", "listening"; "session": makes the key of the frames that follow
  std::array<std::byte, 16> of_listener{}, of_dialler{};
  std::int32_t listener = 0, dialler = 0;
};
using Nonce = decltype(Handshake::of_listener);

template <typename Value>
void put(Frame& frame, const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) <= Frame::kPayloadBytes);
  std::memcpy(frame.payload.data(), &value, sizeof value);
}

template <typename Value>
Value value_in(const Frame& frame) {
  static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) <= Frame::kPayloadBytes);
  Value value;
  std::memcpy(static_cast<void*>(&value), frame.payload.data(), sizeof value);
  return value;
}

}  // namespace plumb
