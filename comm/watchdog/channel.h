// TCP connections between rank 0 and every other rank, next to MPI's own. Messages have one size. All ranks
// run the same build, so messages travel as they lie in memory.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "comm/watchdog/hang_detector.h"

namespace plumb {

struct SocketAddress {
  std::string address;  // "10.77.0.1", "fd00::1"
  int port = 0;
};

// A socket that listens at `address`, at a port that the system chooses. Throws Error(unavailable).
struct Listener {
  UniqueFd socket;
  SocketAddress at;
};
Listener listen_at(const std::string& address);

// Random bytes that rank 0 sends to all ranks over MPI. They stop port scans and other jobs, but not a reader
// of the hosts' traffic.
using Token = std::array<std::byte, 16>;
// Throws Error(internal) if the system has no random numbers.
Token random_token();

struct WatchMessage {
  enum class Type : std::uint32_t {
    heartbeat,  // verdict.last: where the sender is
    verdict,    // rank 0 to all: all end. To rank 0: the sender has lost it
    leaving     // the sender ends with `exit_code`; 0: in good order
  };
  Type type = Type::heartbeat;
  std::int32_t exit_code = 0;
  Verdict verdict;
};

// Waits at most `longest` until something can be read from the descriptor.
void wait_readable(int descriptor, std::chrono::milliseconds longest);

// One rank's connections. Not thread-safe.
class Channel {
 public:
  struct Events {
    std::function<void(int rank, const WatchMessage&)> received;
    std::function<void(int rank)> closed;
  };

  // On rank 0: accepts connections until all other ranks have shown the token, or `patience` is over. A
  // stranger gets nothing, and 200 ms to show it.
  Channel(const Listener& listener, int ranks, const Token& token, std::chrono::milliseconds patience);
  // On another rank: connects to rank 0, and tries again until `patience` is over.
  Channel(const SocketAddress& rank_0, int rank, const Token& token, std::chrono::milliseconds patience);

  bool is_connected(int rank) const {
    return static_cast<bool>(peers_[static_cast<std::size_t>(rank)].socket);
  }
  // Waits at most `longest` for messages, or for the descriptor `wake`. Calls `events`.
  void poll(std::chrono::milliseconds longest, int wake, const Events& events);
  // Queues a message if that rank is connected. One that doesn't read its messages misses some.
  void send(int rank, const WatchMessage& message);
  void send_to_all(const WatchMessage& message);

 private:
  struct Peer {
    UniqueFd socket;
    std::vector<std::byte> in, out;
  };

  void serve(int rank, const Events& events);
  static void write_out(Peer& peer);

  std::vector<Peer> peers_;  // by rank: on rank 0 of all others, elsewhere of rank 0 alone
};

}  // namespace plumb
