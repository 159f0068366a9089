#include "comm/watchdog/channel.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "base/error.h"

namespace plumb {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kBacklog = 1024;
constexpr std::size_t kMostQueuedBytes = 64 * sizeof(WatchMessage);
constexpr milliseconds kBetweenTries{100}, kPatienceWithStranger{200};
constexpr int kNonBlocking = SOCK_NONBLOCK | SOCK_CLOEXEC;

// A connection's first bytes.
struct Hello {
  Token token{};
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
  return UniqueFd(at ? ::socket(at->ai_family, SOCK_STREAM | kNonBlocking, 0) : -1);
}

milliseconds until(steady_clock::time_point end) {
  return std::max(0ms, std::chrono::ceil<milliseconds>(end - steady_clock::now()));
}

bool is_ready(int socket, short events, milliseconds longest) {
  pollfd asked{.fd = socket, .events = events, .revents = 0};
  return ::poll(&asked, 1, static_cast<int>(longest.count())) == 1;
}

void send_without_delay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Returns an empty descriptor if the connection fails.
UniqueFd connection_to(const SocketAddress& at, milliseconds patience) {
  const Addresses to = addresses_of(at);
  UniqueFd socket = socket_for(to);
  if (!socket) return {};
  int error = ::connect(socket.get(), to->ai_addr, to->ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS && is_ready(socket.get(), POLLOUT, patience)) {
    socklen_t size = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  return error == 0 ? std::move(socket) : UniqueFd();
}

// Appends the bytes that have arrived. False at the connection's end.
bool receive(int socket, std::vector<std::byte>& in) {
  std::array<std::byte, 16 * sizeof(WatchMessage)> bytes;
  for (;;) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    in.insert(in.end(), bytes.begin(), bytes.begin() + got);
    if (static_cast<std::size_t>(got) < bytes.size()) return true;
  }
}

template <typename Value>
std::optional<Value> take_first(std::vector<std::byte>& in) {
  if (in.size() < sizeof(Value)) return std::nullopt;
  Value value;
  std::memcpy(static_cast<void*>(&value), in.data(), sizeof value);
  in.erase(in.begin(), in.begin() + sizeof value);
  return value;
}

template <typename Value>
void append(std::vector<std::byte>& out, const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  std::ranges::copy(std::as_bytes(std::span(&value, 1)), std::back_inserter(out));
}

}  // namespace

void wait_readable(int descriptor, milliseconds longest) {
  is_ready(descriptor, POLLIN, longest);
}

Token random_token() {
  Token token{};
  if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size()))
    throw Error(ExitCode::internal, "the system has no random numbers for the watchdog; pass --no-watchdog");
  return token;
}

Listener listen_at(const std::string& address) {
  const Addresses at = addresses_of({address, 0});
  Listener listener{.socket = socket_for(at), .at = {address, 0}};
  sockaddr_in6 bound{};  // its port is where sockaddr_in's is
  socklen_t length = sizeof bound;
  if (!listener.socket || ::bind(listener.socket.get(), at->ai_addr, at->ai_addrlen) != 0 ||
      ::listen(listener.socket.get(), kBacklog) != 0 ||
      ::getsockname(listener.socket.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0)
    throw Error(ExitCode::unavailable, "the watchdog cannot listen at '{}' ({})", address,
                at ? std::strerror(errno) : "not an address");
  listener.at.port = ntohs(bound.sin6_port);
  return listener;
}

// One at a time: a rank sends its hello at once.
Channel::Channel(const Listener& listener, int ranks, const Token& token, milliseconds patience)
    : peers_(static_cast<std::size_t>(ranks)) {
  int missing = ranks - 1;
  for (const auto end = steady_clock::now() + patience; missing > 0 && steady_clock::now() < end;) {
    wait_readable(listener.socket.get(), until(end));
    UniqueFd socket(::accept4(listener.socket.get(), nullptr, nullptr, kNonBlocking));
    if (!socket) std::this_thread::sleep_for(kBetweenTries);
    if (!socket || !is_ready(socket.get(), POLLIN, kPatienceWithStranger)) continue;
    Hello hello;
    const bool is_whole = ::recv(socket.get(), &hello, sizeof hello, 0) == sizeof hello;
    if (!is_whole || hello.token != token || hello.rank < 1 || hello.rank >= ranks) continue;
    send_without_delay(socket.get());
    Peer& peer = peers_[static_cast<std::size_t>(hello.rank)];
    if (!peer.socket) --missing;
    peer.socket = std::move(socket);
  }
}

Channel::Channel(const SocketAddress& rank_0, int rank, const Token& token, milliseconds patience)
    : peers_(1) {
  Peer& peer = peers_.front();
  for (const auto end = steady_clock::now() + patience; !peer.socket && steady_clock::now() < end;) {
    peer.socket = connection_to(rank_0, until(end));
    if (!peer.socket) std::this_thread::sleep_for(std::min(kBetweenTries, until(end)));
  }
  if (!peer.socket) return;
  send_without_delay(peer.socket.get());
  append(peer.out, Hello{.token = token, .rank = rank});
  write_out(peer);
}

void Channel::poll(milliseconds longest, int wake, const Events& events) {
  std::vector<pollfd> asked{{.fd = wake, .events = POLLIN, .revents = 0}};
  std::vector<int> ranks;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i].socket) continue;
    const short writes = peers_[i].out.empty() ? 0 : POLLOUT;
    asked.push_back(
        {.fd = peers_[i].socket.get(), .events = static_cast<short>(POLLIN | writes), .revents = 0});
    ranks.push_back(static_cast<int>(i));
  }
  if (::poll(asked.data(), asked.size(), static_cast<int>(longest.count())) < 1) return;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (asked[i + 1].revents != 0) serve(ranks[i], events);
}

void Channel::serve(int rank, const Events& events) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  write_out(peer);
  const bool open = receive(peer.socket.get(), peer.in);
  while (const std::optional<WatchMessage> message = take_first<WatchMessage>(peer.in))
    events.received(rank, *message);
  if (open) return;
  peer = {};
  events.closed(rank);
}

void Channel::send(int rank, const WatchMessage& message) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (!peer.socket || peer.out.size() > kMostQueuedBytes) return;
  append(peer.out, message);
  write_out(peer);
}

void Channel::send_to_all(const WatchMessage& message) {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) send(static_cast<int>(rank), message);
}

// A broken connection loses its bytes. Its end is seen when it is read.
void Channel::write_out(Peer& peer) {
  if (peer.out.empty()) return;
  const ssize_t sent = ::send(peer.socket.get(), peer.out.data(), peer.out.size(), MSG_NOSIGNAL);
  if (sent > 0) peer.out.erase(peer.out.begin(), peer.out.begin() + sent);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) peer.out.clear();
}

}  // namespace plumb
