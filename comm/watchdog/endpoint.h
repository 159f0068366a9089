// A rank's end of the side channel: a listening socket and connections to other ranks, polled by one thread.
// Whoever doesn't know the job's token is closed within seconds and gets nothing; what it can take up is
// bounded.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "comm/watchdog/frame.h"

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

// Limits for those who haven't shown the token.
struct StrangerLimits {
  std::size_t most = 64;                     // connections at once; the oldest one goes
  std::chrono::milliseconds patience{3000};  // to show it
};

class Endpoint {
 public:
  // Called from poll(). A rank has joined once both sides have shown the token; `closed` tells of ranks that
  // had joined, and of dialled ones that can't be reached.
  struct Events {
    std::function<void(int rank)> joined;
    std::function<void(int rank, const Frame&)> received;
    std::function<void(int rank)> closed;
  };

  Endpoint(int rank, int ranks, const Token& token, Listener listener, Events events,
           const StrangerLimits& limits = {});
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  void dial(int rank, const SocketAddress& at);
  bool has_joined(int rank) const { return by_rank_[static_cast<std::size_t>(rank)] >= 0; }
  // Waits up to so long for something to happen.
  void poll(std::chrono::milliseconds longest);
  // Ends a poll() of another thread.
  void wake();

  // Queues a frame. False, and nothing is sent, if the rank hasn't joined or doesn't read.
  template <typename Value>
  bool send(int rank, FrameType type, const Value& value) {
    Frame frame{.type = type};
    put(frame, value);
    return queue(rank, frame);
  }
  template <typename Value>
  void send_to_all(FrameType type, const Value& value) {
    for (std::size_t rank = 0; rank < by_rank_.size(); ++rank) send(static_cast<int>(rank), type, value);
  }
  // Polls until all that is queued is handed to the system, or `longest` is over.
  void flush(std::chrono::milliseconds longest);

  std::size_t connections() const { return connections_.size(); }

 private:
  struct Connection;
  using Clock = std::chrono::steady_clock;

  void watch(int fd, bool also_for_writing, bool is_new);
  void add(std::unique_ptr<Connection> connection);
  void accept_all();
  void make_room_for_stranger();
  void close_late_strangers();
  void close(int fd);
  void read_from(int fd);
  bool write_to(Connection& connection);
  bool take(Connection& connection, const Frame& frame);
  bool take_first(Connection& connection, const Frame& frame);
  bool queue(int rank, Frame frame);
  bool append(Connection& connection, Frame frame);

  int rank_;
  Token token_;
  Listener listener_;
  Events events_;
  StrangerLimits limits_;
  UniqueFd epoll_, wake_;
  std::map<int, std::unique_ptr<Connection>> connections_;  // by descriptor
  std::vector<int> by_rank_;                                // descriptors of those who have joined; -1: none
};

}  // namespace plumb
