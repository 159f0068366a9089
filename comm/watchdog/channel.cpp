#include "comm/watchdog/channel.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace plumb {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kBacklog = 1024;
constexpr int kMostQueuedBytes = 8192;  // less than any socket's buffer, so that a message fits as a whole
constexpr int kMessageBytes = sizeof(Verdict);
static_assert(std::is_trivially_copyable_v<Verdict>);

// A connection's first bytes.
struct Hello {
  Token token = 0;
  std::int32_t rank = 0;
};

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// Null if the text is not an address.
Addresses addresses_of(const SocketAddress& at) {
  const addrinfo hints{.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  ::getaddrinfo(at.address.c_str(), std::to_string(at.port).c_str(), &hints, &found);
  return {found, &::freeaddrinfo};
}

UniqueFd socket_for(const Addresses& at) {
  return UniqueFd(at ? ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1);
}

// Limits how long accept(2), connect(2) and recv(2) wait.
void limit_waits(const UniqueFd& socket) {
  constexpr timeval kLongest{.tv_sec = 0, .tv_usec = 200'000};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kLongest, sizeof kLongest);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kLongest, sizeof kLongest);
}

// poll(2) waits for whole messages, and they leave at once: a process may end right after it has sent one.
void carry_messages(const UniqueFd& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVLOWAT, &kMessageBytes, sizeof kMessageBytes);
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Listener listen_at(const std::string& address) {
  const Addresses at = addresses_of({address, 0});
  Listener listener{.socket = socket_for(at), .at = {address, 0}};
  sockaddr_in6 bound{};  // its port is where sockaddr_in's is
  socklen_t length = sizeof bound;
  if (!listener.socket || ::bind(listener.socket.get(), at->ai_addr, at->ai_addrlen) != 0 ||
      ::listen(listener.socket.get(), kBacklog) != 0 ||
      ::getsockname(listener.socket.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0)
    throw Error(ExitCode::unavailable, "the watchdog cannot listen at '{}': {}", address,
                at ? std::strerror(errno) : "not an address");
  listener.at.port = ntohs(bound.sin6_port);
  return listener;
}

// One at a time: a rank sends its hello at once.
Channel::Channel(const Listener& listener, int ranks, Token token, milliseconds patience)
    : peers_(static_cast<std::size_t>(ranks)) {
  int missing = ranks - 1;
  limit_waits(listener.socket);
  for (const auto end = steady_clock::now() + patience; missing > 0 && steady_clock::now() < end;) {
    UniqueFd socket(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) std::this_thread::sleep_for(100ms);  // without free descriptors accept(2) fails at once
    limit_waits(socket);
    Hello hello;
    const bool is_whole = ::recv(socket.get(), &hello, sizeof hello, MSG_WAITALL) == sizeof hello;
    if (!is_whole || hello.token != token || hello.rank < 1 || hello.rank >= ranks) continue;
    carry_messages(socket);
    UniqueFd& peer = peers_[static_cast<std::size_t>(hello.rank)];
    if (!peer) --missing;
    peer = std::move(socket);
  }
}

Channel::Channel(const SocketAddress& rank_0, int rank, Token token, milliseconds patience) : peers_(1) {
  const Addresses to = addresses_of(rank_0);
  const Hello hello{.token = token, .rank = rank};
  for (const auto end = steady_clock::now() + patience; steady_clock::now() < end;) {
    UniqueFd socket = socket_for(to);
    limit_waits(socket);
    if (socket && ::connect(socket.get(), to->ai_addr, to->ai_addrlen) == 0 &&
        ::send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello) {
      carry_messages(socket);
      peers_.front() = std::move(socket);
      return;
    }
    std::this_thread::sleep_for(100ms);
  }
}

// poll(2) skips the descriptor -1 of a rank that is not connected.
std::vector<pollfd> Channel::polled() const {
  std::vector<pollfd> polled;
  for (const UniqueFd& peer : peers_)
    polled.push_back({.fd = peer.get(), .events = POLLIN | POLLRDHUP, .revents = 0});
  return polled;
}

void Channel::receive(const std::vector<pollfd>& polled, const Events& events) {
  for (std::size_t i = 0; i < std::min(peers_.size(), polled.size()); ++i) {
    const int socket = peers_[i].get(), rank = static_cast<int>(i), found = polled[i].revents;
    if (found == 0 || polled[i].fd != socket) continue;
    Verdict message;
    for (int bytes = 0; ::ioctl(socket, FIONREAD, &bytes) == 0 && bytes >= kMessageBytes &&
                        ::recv(socket, &message, sizeof message, MSG_DONTWAIT) == kMessageBytes;)
      events.received(rank, message);
    if ((found & (POLLRDHUP | POLLHUP | POLLERR)) == 0) continue;
    peers_[i].reset();
    events.closed(rank);
  }
}

// A broken connection loses its bytes. Its end is seen when it is read.
void Channel::send_to_all(const Verdict& message) {
  for (const UniqueFd& peer : peers_) {
    int queued = 0;
    if (::ioctl(peer.get(), TIOCOUTQ, &queued) == 0 && queued <= kMostQueuedBytes)
      ::send(peer.get(), &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

}  // namespace plumb
