#include "comm/watchdog/succession.h"

#include <algorithm>

namespace plumb {
namespace {

constexpr double kSecondsToJoin = 2, kBetweenHosts = 0.1, kMostSecondsOfNewHosts = 3;

}  // namespace

Succession::Succession(const std::vector<std::string>& hosts, int own_rank, double now) : begin_(now) {
  for (int rank = 1; rank < own_rank; ++rank) {
    const std::string& name = hosts[static_cast<std::size_t>(rank)];
    auto host = std::ranges::find(hosts_, name, &Host::name);
    if (host == hosts_.end()) host = hosts_.insert(host, Host{.name = name, .ranks = {}, .dialled_at = {}});
    host->ranks.push_back(rank);
  }
}

bool Succession::is_dialled_now(std::size_t host, double now) const {
  const double since = std::min(now - begin_, kMostSecondsOfNewHosts);
  return static_cast<double>(host) * kBetweenHosts <= since;
}

// One that has had its time, or isn't asked as so many before it gave no sign.
bool Succession::is_left_out(const Host& host, double now) const {
  if (host.ranks.empty()) return true;
  if (host.dialled_at) return !host.joined && now - *host.dialled_at > kSecondsToJoin;
  return now - begin_ > kMostSecondsOfNewHosts + kSecondsToJoin;
}

std::vector<int> Succession::to_dial(double now) {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < hosts_.size() && is_dialled_now(i, now); ++i) {
    Host& host = hosts_[i];
    if (!host.ranks.empty() && !host.dialled_at) {
      host.dialled_at = now;
      ranks.push_back(host.ranks.front());
    }
    if (host.joined) break;
  }
  return ranks;
}

Succession::Host* Succession::host_asked_through(int rank) {
  const auto host = std::ranges::find_if(hosts_, [&](const Host& one) {
    return one.dialled_at && !one.ranks.empty() && one.ranks.front() == rank;
  });
  return host == hosts_.end() ? nullptr : &*host;
}

void Succession::joined(int rank) {
  if (Host* const host = host_asked_through(rank)) host->joined = true;
}

void Succession::closed(int rank) {
  Host* const host = host_asked_through(rank);
  if (!host) return;
  host->ranks.erase(host->ranks.begin());
  host->dialled_at.reset();
  host->joined = false;
}

std::optional<int> Succession::to_ask(double now) const {
  for (const Host& host : hosts_) {
    if (is_left_out(host, now)) continue;
    return host.joined ? std::optional(host.ranks.front()) : std::nullopt;
  }
  return std::nullopt;
}

void Succession::gives_no_answer(int rank) {
  if (Host* const host = host_asked_through(rank)) host->ranks.clear();
}

bool Succession::is_over(double now) const {
  return std::ranges::all_of(hosts_, [&](const Host& host) { return is_left_out(host, now); });
}

}  // namespace plumb
