// TCP connections between rank 0 and every other rank, next to MPI's own. All ranks run the same build, so
// messages travel as they lie in memory.
#pragma once

#include <poll.h>

#include <chrono>
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

// A random number that rank 0 sends to all ranks over MPI. It stops port scans and other jobs, but not a
// reader of the hosts' traffic.
using Token = std::uint64_t;

// One rank's connections. Not thread-safe.
class Channel {
 public:
  struct Events {
    std::function<void(int rank, const Verdict&)> received;
    std::function<void(int rank)> closed;
  };

  Channel() = default;  // to no rank
  // On rank 0: accepts connections until all other ranks have shown the token, or `patience` is over. A
  // stranger gets nothing, and 200 ms to show it.
  Channel(const Listener& listener, int ranks, Token token, std::chrono::milliseconds patience);
  // On another rank: connects to rank 0, and tries again until `patience` is over.
  Channel(const SocketAddress& rank_0, int rank, Token token, std::chrono::milliseconds patience);

  bool is_connected(int rank) const { return static_cast<bool>(peers_[static_cast<std::size_t>(rank)]); }
  // For poll(2), which may run while another thread sends.
  std::vector<pollfd> polled() const;
  // Reads what poll(2) has found, and calls `events`.
  void receive(const std::vector<pollfd>& polled, const Events& events);
  // Never waits. A rank that is not connected, or does not read its messages, misses some.
  void send_to_all(const Verdict& message);

 private:
  std::vector<UniqueFd> peers_;  // by rank: on rank 0 to all others, elsewhere to rank 0 alone
};

}  // namespace plumb
