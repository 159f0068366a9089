#include "comm/watchdog/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <thread>
#include <utility>

#include "base/error.h"

namespace plumb {
namespace {

constexpr int kBacklog = 1024;
constexpr std::size_t kMostQueuedBytes = 64 * sizeof(Frame);  // to one rank
constexpr int kAcceptedAtOnce = 16;                           // fewer than StrangerLimits::most: see poll()
constexpr std::chrono::milliseconds kPauseWithoutDescriptors{50};
constexpr int kFramesAtOnce = 64;  // of one connection, before others have a turn

// The length; 0 for a text that is no address.
socklen_t fill_in(const SocketAddress& from, sockaddr_storage& to) {
  auto& v4 = reinterpret_cast<sockaddr_in&>(to);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(to);
  const auto port = htons(static_cast<std::uint16_t>(from.port));
  if (inet_pton(AF_INET, from.address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = port;
    return sizeof v4;
  }
  if (inet_pton(AF_INET6, from.address.c_str(), &v6.sin6_addr) != 1) return 0;
  v6.sin6_family = AF_INET6;
  v6.sin6_port = port;
  return sizeof v6;
}

}  // namespace

Token random_token() {
  Token token{};
  if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size()))
    throw Error(ExitCode::internal,
                "the system gives no random numbers for the watchdog; give --no-watchdog");
  return token;
}

Listener listen_at(const std::string& address) {
  sockaddr_storage at{};
  const socklen_t length = fill_in({address, 0}, at);
  Listener listener{.at = {address, 0}};
  if (length > 0)
    listener.socket = UniqueFd(::socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  auto* const generic = reinterpret_cast<sockaddr*>(&at);
  socklen_t bound = sizeof at;
  if (!listener.socket || ::bind(listener.socket.get(), generic, length) != 0 ||
      ::listen(listener.socket.get(), kBacklog) != 0 ||
      ::getsockname(listener.socket.get(), generic, &bound) != 0)
    throw Error(ExitCode::unavailable, "the watchdog can't listen at '{}' ({})", address,
                length == 0 ? "no address" : std::strerror(errno));
  listener.at.port = ntohs(at.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(at).sin_port
                                                   : reinterpret_cast<const sockaddr_in6&>(at).sin6_port);
  return listener;
}

struct Endpoint::Connection {
  UniqueFd socket;
  bool dialled = false;     // by us
  bool knows_peer = false;  // it has sent its first frame
  int rank = -1;            // of the other side; accepted: as it says
  Clock::time_point since = Clock::now();
  Frame in{};
  std::size_t in_bytes = 0;
  std::vector<std::byte> out;
};

Endpoint::Endpoint(int rank, int ranks, const Token& token, Listener listener, Events events,
                   const StrangerLimits& limits)
    : rank_(rank),
      token_(token),
      listener_(std::move(listener)),
      events_(std::move(events)),
      limits_(limits),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      by_rank_(static_cast<std::size_t>(ranks), -1) {
  if (!epoll_ || !wake_)
    throw Error(ExitCode::unavailable, "the watchdog gets no descriptor ({})", std::strerror(errno));
  watch(wake_.get(), false, true);
  watch(listener_.socket.get(), false, true);
}

Endpoint::~Endpoint() = default;

void Endpoint::watch(int fd, bool also_for_writing, bool is_new) {
  epoll_event event{};
  event.events = EPOLLIN | (also_for_writing ? EPOLLOUT : 0u);
  event.data.fd = fd;
  ::epoll_ctl(epoll_.get(), is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
}

void Endpoint::add(std::unique_ptr<Connection> connection) {
  const int fd = connection->socket.get(), on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  watch(fd, false, true);
  connections_[fd] = std::move(connection);
}

void Endpoint::dial(int rank, const SocketAddress& at) {
  sockaddr_storage to{};
  const socklen_t length = fill_in(at, to);
  auto connection = std::make_unique<Connection>();
  connection->dialled = true;
  connection->rank = rank;
  if (length > 0)
    connection->socket = UniqueFd(::socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const bool begun = connection->socket &&
                     (::connect(connection->socket.get(), reinterpret_cast<sockaddr*>(&to), length) == 0 ||
                      errno == EINPROGRESS);
  if (!begun) return events_.closed(rank);
  Connection& added = *connection;
  add(std::move(connection));
  append(added, {.type = FrameType::hello});
}

void Endpoint::accept_all() {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    make_room_for_stranger();
    UniqueFd socket(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket && (errno == EMFILE || errno == ENFILE))
      std::this_thread::sleep_for(kPauseWithoutDescriptors);
    if (!socket) return;
    auto connection = std::make_unique<Connection>();
    connection->socket = std::move(socket);
    add(std::move(connection));
  }
}

// The oldest goes: a rank needs no longer than its messages take.
void Endpoint::make_room_for_stranger() {
  std::size_t strangers = 0;
  const Connection* oldest = nullptr;
  for (const auto& [fd, connection] : connections_) {
    if (connection->knows_peer || connection->dialled) continue;
    ++strangers;
    if (!oldest || connection->since < oldest->since) oldest = connection.get();
  }
  if (strangers >= limits_.most) close(oldest->socket.get());
}

void Endpoint::close_late_strangers() {
  std::vector<int> late;
  for (const auto& [fd, connection] : connections_)
    if (!connection->knows_peer && Clock::now() - connection->since > limits_.patience) late.push_back(fd);
  for (const int fd : late) close(fd);
}

void Endpoint::close(int fd) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  const std::unique_ptr<Connection> connection = std::move(found->second);
  connections_.erase(found);
  if (!connection->knows_peer && !connection->dialled) return;
  const auto rank = static_cast<std::size_t>(connection->rank);
  if (by_rank_[rank] == fd) by_rank_[rank] = -1;
  events_.closed(connection->rank);
}

void Endpoint::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void Endpoint::poll(std::chrono::milliseconds longest) {
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                 static_cast<int>(longest.count()));
  bool knocks = false;
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    if (fd == wake_.get()) {
      std::uint64_t ignored = 0;
      [[maybe_unused]] const ssize_t got = ::read(fd, &ignored, sizeof ignored);
    } else if (fd == listener_.socket.get()) {
      knocks = true;
    } else {
      const auto found = connections_.find(fd);
      if (found != connections_.end() && !found->second->out.empty() && !write_to(*found->second)) close(fd);
      read_from(fd);
    }
  }
  // Last, and few at once: those accepted before have been read before newer ones take their place.
  if (knocks) accept_all();
  close_late_strangers();
}

void Endpoint::flush(std::chrono::milliseconds longest) {
  const auto end = Clock::now() + longest;
  const auto is_queued = [](const auto& entry) {
    return entry.second->knows_peer && !entry.second->out.empty();
  };
  while (std::ranges::any_of(connections_, is_queued) && Clock::now() < end)
    poll(std::chrono::milliseconds(5));
}

// Whatever isn't a frame with the token, by whom it is due, closes the connection.
void Endpoint::read_from(int fd) {
  for (int i = 0; i < kFramesAtOnce; ++i) {
    const auto found = connections_.find(fd);
    if (found == connections_.end()) return;
    Connection& connection = *found->second;
    auto* const bytes = reinterpret_cast<std::byte*>(&connection.in);
    const ssize_t got =
        ::recv(fd, bytes + connection.in_bytes, sizeof connection.in - connection.in_bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN)) return;
    if (got <= 0) return close(fd);
    connection.in_bytes += static_cast<std::size_t>(got);
    if (connection.in_bytes < sizeof connection.in) continue;
    connection.in_bytes = 0;
    const Frame frame = connection.in;
    if (!take(connection, frame)) return close(fd);
  }
}

bool Endpoint::take(Connection& connection, const Frame& frame) {
  if (frame.token != token_) return false;
  if (!connection.knows_peer) return take_first(connection, frame);
  if (frame.rank != connection.rank) return false;
  events_.received(connection.rank, frame);
  return true;
}

bool Endpoint::take_first(Connection& connection, const Frame& frame) {
  if (connection.dialled) {
    if (frame.type != FrameType::welcome || frame.rank != connection.rank) return false;
  } else {
    const bool is_rank = frame.rank >= 0 && static_cast<std::size_t>(frame.rank) < by_rank_.size();
    if (frame.type != FrameType::hello || !is_rank || frame.rank == rank_ || has_joined(frame.rank) ||
        !append(connection, {.type = FrameType::welcome}))
      return false;
    connection.rank = frame.rank;
  }
  connection.knows_peer = true;
  by_rank_[static_cast<std::size_t>(frame.rank)] = connection.socket.get();
  events_.joined(frame.rank);
  return true;
}

bool Endpoint::queue(int rank, Frame frame) {
  if (!has_joined(rank)) return false;
  Connection& connection = *connections_.at(by_rank_[static_cast<std::size_t>(rank)]);
  if (connection.out.size() + sizeof frame > kMostQueuedBytes) return false;
  return append(connection, frame);
}

// False if the connection is broken; who called closes it, or poll() does, which sees the same.
bool Endpoint::append(Connection& connection, Frame frame) {
  frame.rank = rank_;
  frame.token = token_;
  const auto bytes = std::as_bytes(std::span(&frame, 1));
  connection.out.insert(connection.out.end(), bytes.begin(), bytes.end());
  return write_to(connection);
}

bool Endpoint::write_to(Connection& connection) {
  const int fd = connection.socket.get();
  const ssize_t sent = ::send(fd, connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR && errno != ENOTCONN) return false;
  if (sent > 0) connection.out.erase(connection.out.begin(), connection.out.begin() + sent);
  watch(fd, !connection.out.empty(), false);
  return true;
}

}  // namespace plumb
