#include "launch/verdict/host_checks.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "results/anomalies/slow_links.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr double kDeviceLimit = 0.05, kBusyLimit = 0.3;    // losses of speed
constexpr double kLinkLimit = 0.25, kBusyLinkLimit = 0.5;  // losses of bandwidth; sending takes CPUs, too

std::string cannot_tell_text(double limit) {
  return fmt::format(
      "other programs run there, or hosts differ, so only a loss over {} % counts; end them and check again",
      percent_text(limit));
}

std::vector<std::string> hosts_of(const std::vector<HostAnswer>& answers) {
  std::vector<std::string> hosts;
  for (const HostAnswer& answer : answers) hosts.push_back(answer.name);
  return hosts;
}

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::ranges::find(list, item) != list.end();
}

std::string speed_text(double images_per_second) {
  return fmt::format("{:.1f} images/s", images_per_second);
}

std::string loss_text(double share) {
  return fmt::format("{:+.0f} %", 100 * (share - 1));
}

// "63.3 to 65.7 images/s"
std::string speeds_text(const std::vector<double>& speeds) {
  const auto [low, high] = std::ranges::minmax_element(speeds);
  return speeds.size() == 1 ? speed_text(*low) : fmt::format("{:.1f} to {:.1f} images/s", *low, *high);
}

// A device's speed alone against what it should be.
struct JudgedDevice {
  const ScreenedDevice* device = nullptr;
  double expected = 0;
  std::string source;
  Outcome outcome = Outcome::pass;
  double limit = kDeviceLimit;

  double share() const { return device->alone->images_per_second / expected; }
};

// Where a check of several devices was, in the order of the verdict's hosts, and their speeds.
void set_places(Check& check, std::vector<const ScreenedDevice*> devices, const Verdict& verdict) {
  std::ranges::stable_sort(devices, {}, [&](const ScreenedDevice* device) {
    return std::pair(std::ranges::find(verdict.hosts, device->host), device->index);
  });
  std::vector<double> speeds;
  for (const ScreenedDevice* device : devices) {
    check.where.push_back(device_text(*device));
    if (!contains(check.hosts, device->host)) check.hosts.push_back(device->host);
    speeds.push_back(device->alone->images_per_second);
  }
  check.measured = speeds_text(speeds);
}

void keep_speed(Verdict& verdict, const JudgedDevice& judged, Outcome outcome) {
  const ScreenedDevice& device = *judged.device;
  verdict.devices.push_back({device_text(device), device.name, device.alone->images_per_second,
                             judged.expected, judged.limit, outcome});
}

// One check for each device that doesn't pass, and one for all that do.
void add_judged(Verdict& verdict, const std::vector<JudgedDevice>& judged) {
  Check passed{.check = "device alone", .limit = kDeviceLimit};
  std::vector<const ScreenedDevice*> good;
  for (const JudgedDevice& one : judged) {
    const double speed = one.device->alone->images_per_second;
    keep_speed(verdict, one, one.outcome);
    if (one.outcome == Outcome::pass) {
      passed.expected = speed_text(one.expected);
      passed.source = one.source;
      good.push_back(one.device);
      continue;
    }
    const std::string reasons = one.device->alone->throttle_reasons;
    verdict.add({.check = "device alone",
                 .where = {device_text(*one.device)},
                 .hosts = {one.device->host},
                 .expected = speed_text(one.expected),
                 .measured = fmt::format("{} ({})", speed_text(speed), loss_text(one.share())),
                 .source = one.source,
                 .limit = one.limit,
                 .outcome = one.outcome,
                 .remark = one.outcome == Outcome::unknown ? cannot_tell_text(one.limit)
                           : reasons.empty() ? "look at its clocks, power, cooling and what else runs there"
                                             : reasons,
                 .runs = 1});
  }
  if (good.empty()) return;
  passed.runs = good.size();
  set_places(passed, good, verdict);
  verdict.add(std::move(passed));
}

JudgedDevice judged_by(const ScreenedDevice& device, double expected, const std::string& source,
                       double busy_limit) {
  JudgedDevice judged{.device = &device, .expected = expected, .source = source};
  judged.limit = std::max(busy_limit, kDeviceLimit);
  // Times, as screen compares them: 5 % more time per image.
  judged.outcome = judged.share() * (1 + kDeviceLimit) >= 1 ? Outcome::pass
                   : judged.share() > 1 - busy_limit        ? Outcome::unknown
                                                            : Outcome::fail;
  return judged;
}

// Against others of their kind, as plumbline screen judges.
void add_relative(Verdict& verdict, const ScreenReport& report,
                  const std::vector<const ScreenedDevice*>& kind, const BusyHosts& busy) {
  std::vector<double> speeds;
  for (const ScreenedDevice* device : kind) speeds.push_back(device->alone->images_per_second);
  const double usual = median(speeds);
  const auto is_slow = [&](const ScreenedDevice* device) {
    return std::ranges::any_of(report.slow, [&](const SlowDevice& slow) {
      return slow.alone && &report.devices[slow.device] == device;
    });
  };
  std::vector<JudgedDevice> judged;
  for (const ScreenedDevice* device : kind) {
    JudgedDevice one{.device = device, .expected = usual, .source = fmt::format("median of {}", kind.size())};
    const bool is_busy = contains(busy.names, device->host);
    if (is_busy) one.limit = kBusyLimit;
    if (is_slow(device))
      one.outcome = one.share() < 1 - one.limit || !is_busy ? Outcome::fail : Outcome::unknown;
    judged.push_back(one);
  }
  std::vector<const ScreenedDevice*> untold;
  if (!report.can_tell())
    std::erase_if(judged, [&](const JudgedDevice& one) {
      const bool is_untold = one.outcome == Outcome::pass;
      if (!is_untold) return false;
      untold.push_back(one.device);
      keep_speed(verdict, one, Outcome::unknown);
      return true;
    });
  add_judged(verdict, judged);
  if (untold.empty()) return;
  Check check{.check = "device alone",
              .outcome = Outcome::unknown,
              .remark = report.was_judged
                            ? fmt::format("devices vary so much that only a loss over {} % would show",
                                          percent_text(report.smallest_loss_shown))
                            : "fewer than three of a kind, and nothing is expected of them: pass --expect",
              .runs = untold.size()};
  set_places(check, untold, verdict);
  verdict.add(std::move(check));
}

// Devices that have a speed, but whose run for the comparison of bits failed.
void add_unknown_bits(Verdict& verdict, const ScreenReport& report) {
  Check check{.check = "bits", .outcome = Outcome::unknown};
  for (const ScreenedDevice& device : report.devices) {
    if (!device.failure.empty() || device.bits.failure.empty()) continue;
    check.where.push_back(device_text(device));
    if (!contains(check.hosts, device.host)) check.hosts.push_back(device.host);
    check.remark = "the deterministic run failed: " + device.bits.failure;
  }
  if (!check.where.empty()) verdict.add(std::move(check));
}

std::string rate_text(double bytes_per_second) {
  return fmt::format("{:.3g} GB/s", bytes_per_second / kGiga);
}

Check failed_link(const SlowLink& slow, const std::vector<std::string>& hosts, const std::string& source,
                  const BusyHosts& busy) {
  const bool is_bandwidth = slow.what == SlowLink::What::bandwidth;
  const auto text = [&](double value) {
    return is_bandwidth ? rate_text(value) : fmt::format("{:.1f} us", value * kMicrosecondsInSecond);
  };
  const std::string& host = hosts[slow.other.value_or(slow.place)];
  const auto is_busy = [&](const std::string& name) { return contains(busy.names, name); };
  // The other end of the link, or of the host's best link, which may be any.
  const bool other_is_busy =
      slow.other ? is_busy(hosts[slow.place]) : std::ranges::all_of(hosts, [&](const std::string& name) {
        return name == host || is_busy(name);
      });
  const double limit = is_busy(host) || other_is_busy ? kBusyLinkLimit : kLinkLimit;
  const bool fails = is_bandwidth && slow.value < (1 - limit) * slow.usual;
  return {.check = is_bandwidth ? "link" : "latency",
          .where = {slow.other ? fmt::format("{} - {}", hosts[slow.place], host) : host + " - all"},
          .hosts = {host},
          .expected = text(slow.usual),
          .measured = text(slow.value),
          .source = source,
          .limit = is_bandwidth ? std::optional(limit) : std::nullopt,
          // A busy host answers late, too.
          .outcome = fails ? Outcome::fail : Outcome::unknown,
          .remark = fails ? "check cable, port, speed setting and network card; every step waits for the "
                            "slowest link"
                    : is_bandwidth ? cannot_tell_text(limit)
                                   : "look at what else runs there and at the path to it",
          .runs = 5};
}

}  // namespace

void add_facts(Verdict& verdict, const std::vector<HostAnswer>& answers, const Expectation* expectation) {
  std::vector<std::string> good = hosts_of(answers);
  std::string warnings;
  const int gpus = expectation == nullptr ? 0 : expectation->devices_per_host;
  for (const Note& note : find_faults(answers, false, static_cast<std::size_t>(gpus))) {
    if (note.severity == Severity::warning && note.kind != "load")
      append_part(warnings, note.hosts == good ? note.text : note_text(note), "; ");
    if (note.severity != Severity::error) continue;
    for (const std::string& host : note.hosts) std::erase(good, host);
    verdict.add({.check = note.kind,
                 .where = note.hosts,
                 .hosts = note.hosts,
                 .outcome = Outcome::fail,
                 .remark = note.text});
  }
  if (good.empty()) return;
  verdict.add({.check = "facts", .where = good, .hosts = good, .remark = warnings});
}

BusyHosts busy_hosts(const std::vector<HostAnswer>& answers) {
  std::map<std::string, std::size_t> names_of;  // by machine
  BusyHosts busy;
  for (const HostAnswer& answer : answers)
    if (!answer.facts.boot_id.empty())
      busy.on_one_machine = std::max(busy.on_one_machine, ++names_of[answer.facts.boot_id]);
  if (busy.on_one_machine > 1) {
    busy.names = hosts_of(answers);
    return busy;
  }
  std::set<std::string> names;
  for (const Note& note : find_faults(answers, false))
    if (note.code == "cpu-load" || note.code == "gpu-busy")
      names.insert(note.hosts.begin(), note.hosts.end());
  busy.names = {names.begin(), names.end()};
  return busy;
}

void add_devices(Verdict& verdict, const ScreenReport& report, const Expectation* expectation,
                 const BusyHosts& busy) {
  std::map<std::string, std::vector<const ScreenedDevice*>> kinds;
  for (const ScreenedDevice& device : report.devices) {
    if (device.alone) kinds[device.name].push_back(&device);
    if (!device.failure.empty())
      verdict.add({.check = "device alone",
                   .where = {device_text(device)},
                   .hosts = {device.host},
                   .outcome = Outcome::fail,
                   .remark = device.failure});
  }
  for (const OddBits& odd : report.odd)
    verdict.add({.check = "bits",
                 .where = {device_text(report.devices[odd.device])},
                 .hosts = {report.devices[odd.device].host},
                 .expected = odd.loss == odd.usual ? "same bits" : fmt::format("loss {:.6g}", odd.usual),
                 .measured = odd.loss == odd.usual ? "other bits" : fmt::format("{:.6g}", odd.loss),
                 .source = "most of its kind",
                 .outcome = Outcome::fail,
                 .remark = odd_text(odd, report.devices) + "; have it replaced, as its results are wrong",
                 .runs = 1});
  add_unknown_bits(verdict, report);
  for (const auto& [name, kind] : kinds) {
    const ExpectedDevice* expected = expectation == nullptr ? nullptr : expectation->find(name);
    if (expected == nullptr && kind.front()->alone->reference <= 0) {
      add_relative(verdict, report, kind, busy);
      continue;
    }
    std::vector<JudgedDevice> judged;
    const double busy_limit = 1 - (1 - kBusyLimit) / static_cast<double>(busy.on_one_machine);
    for (const ScreenedDevice* device : kind)
      if (expected)
        judged.push_back(judged_by(*device, expected->images_per_second, expected->source,
                                   contains(busy.names, device->host) ? busy_limit : 0));
      else  // Plumbline's own runs on such devices: other hosts may cool and feed them less
        judged.push_back(judged_by(*device, device->alone->reference, "reference", kBusyLimit));
    add_judged(verdict, judged);
  }
}

void add_links(Verdict& verdict, const Links& links, const std::optional<ExpectedLink>& expected,
               const BusyHosts& busy) {
  constexpr const char* kOthers = "the other hosts";
  if (expected) verdict.expected_link = expected->bytes_per_second;
  std::vector<std::string> hosts;
  for (const LinkHost& host : links.hosts) hosts.push_back(host.name);
  std::vector<std::string> good = hosts;
  for (SlowLink& slow :
       find_slow(links, {.expected_bytes_per_second = expected ? std::optional(expected->bytes_per_second)
                                                               : std::nullopt})) {
    const bool by_expectation = expected && slow.what == SlowLink::What::bandwidth;
    verdict.add(failed_link(slow, hosts, by_expectation ? expected->source : kOthers, busy));
    if (slow.what == SlowLink::What::bandwidth) std::erase(good, hosts[slow.other.value_or(slow.place)]);
  }
  std::vector<double> speeds;
  for (const HostPair& pair : links.pairs)
    if (contains(good, pair.first) && contains(good, pair.second))
      speeds.push_back(pair.link.bytes_per_second);
  if (speeds.empty()) return;
  const auto [slowest, fastest] = std::ranges::minmax_element(speeds);
  const bool can_compare = hosts.size() > 2;
  verdict.add({.check = "link",
               .where = good,
               .hosts = good,
               .expected = expected ? rate_text(expected->bytes_per_second) : "",
               .measured = fmt::format("{} to {}", rate_text(*slowest), rate_text(*fastest)),
               .source = expected      ? expected->source
                         : can_compare ? kOthers
                                       : "",
               .limit = kLinkLimit,
               .outcome = expected || can_compare ? Outcome::pass : Outcome::unknown,
               .remark = expected ? ""
                         : can_compare
                             ? "such a comparison misses hosts that are all slow: pass --link or --expect"
                             : "one link has none to compare with: pass --link or --expect",
               .runs = 5});
}

}  // namespace plumb
