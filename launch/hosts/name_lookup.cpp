#include "launch/hosts/name_lookup.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "base/text.h"
#include "base/unique_fd.h"

namespace plumb {
namespace {

constexpr std::size_t kMostThreads = 16;  // they wait for name servers
constexpr std::size_t kNamesPerThread = 8;

std::string text_of_address(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* bytes =
      address->sa_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr)
          : &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  return inet_ntop(address->sa_family, bytes, text, sizeof text) ? text : "";
}

std::vector<std::string> addresses_of(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  std::set<std::string> addresses;
  for (const addrinfo* one = found; one; one = one->ai_next)
    if (one->ai_family == AF_INET || one->ai_family == AF_INET6)
      addresses.insert(text_of_address(one->ai_addr));
  return {addresses.begin(), addresses.end()};
}

// A TCP connection to a port where nothing is likely to listen: a host that can be reached refuses it.
class Knock {
 public:
  Knock(std::string name, const std::string& address) : name_(std::move(name)) {
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(address.c_str(), kPort, &hints, &found) != 0) return;
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
    socket_ = UniqueFd(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket_.get() < 0) return;
    error_ = ::connect(socket_.get(), found->ai_addr, found->ai_addrlen) == 0 ? 0 : errno;
  }

  const std::string& name() const { return name_; }
  bool waits() const { return error_ == EINPROGRESS; }
  pollfd asked() const { return {waits() ? socket_.get() : -1, POLLOUT, 0}; }
  void take_answer() {
    socklen_t size = sizeof error_;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error_, &size);
  }
  // Empty: it answered.
  std::string failure(double seconds) const {
    if (waits()) return fmt::format("no answer within {:g} s", seconds);
    return error_ == 0 || error_ == ECONNREFUSED ? "" : std::strerror(error_);
  }

 private:
  static constexpr const char* kPort = "9";  // discard (RFC 863)

  std::string name_;
  UniqueFd socket_;
  int error_ = 0;
};

}  // namespace

std::map<std::string, std::string> unreached_hosts(
    const std::map<std::string, std::vector<std::string>>& hosts, double seconds) {
  std::vector<Knock> knocks;
  for (const auto& [name, addresses] : hosts)
    if (!addresses.empty() && !is_loopback(addresses.front())) knocks.emplace_back(name, addresses.front());
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::ranges::any_of(knocks, &Knock::waits)) {
    std::vector<pollfd> asked;
    for (const Knock& knock : knocks) asked.push_back(knock.asked());
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0 || ::poll(asked.data(), asked.size(), static_cast<int>(left.count())) == 0) break;
    for (std::size_t i = 0; i < knocks.size(); ++i)
      if (asked[i].revents != 0) knocks[i].take_answer();
  }
  std::map<std::string, std::string> unreached;
  for (const Knock& knock : knocks)
    if (std::string why = knock.failure(seconds); !why.empty()) unreached[knock.name()] = std::move(why);
  return unreached;
}

std::map<std::string, std::vector<std::string>> look_up_names(const std::vector<std::string>& names,
                                                              double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::map<std::string, std::vector<std::string>> found;
  std::mutex mutex;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < names.size() && std::chrono::steady_clock::now() < end;) {
      std::vector<std::string> addresses = addresses_of(names[i]);
      const std::lock_guard lock(mutex);
      found[names[i]] = std::move(addresses);
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < std::min(kMostThreads, names.size() / kNamesPerThread + 1); ++i)
    threads.emplace_back(work);
  work();
  threads.clear();
  return found;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace plumb
