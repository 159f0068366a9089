#include "launch/hosts/name_lookup.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

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

}  // namespace

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
