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
constexpr double kInsideLimit = 0.1;                       // loss of bandwidth within a host
constexpr double kLinkLimit = 0.25, kBusyLinkLimit = 0.5;  // losses of bandwidth; sending takes CPUs, too

std::string cannot_tell_text(double limit) {
  return fmt::format(
      "other programs run there, or hosts differ, so only a loss over {} % counts; end them and check again",
      percent_text(limit));
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

// A run of devices, and the name of its check.
struct DeviceCheck {
  RunMember run = nullptr;
  const char* check = "";
};
constexpr DeviceCheck kAlone{&ScreenedDevice::alone, "device alone"};
constexpr DeviceCheck kTogether{&ScreenedDevice::together, "device together"};

// A device's speed against what it should be.
struct JudgedDevice {
  const ScreenedDevice* device = nullptr;
  const ScreenRun* run = nullptr;
  double expected = 0;
  std::string source;
  Outcome outcome = Outcome::pass;
  double limit = kDeviceLimit;

  double speed() const { return run->images_per_second; }
  double share() const { return speed() / expected; }
};

// One check of several devices, in the order of the verdict's hosts.
void add_alike(Verdict& verdict, Check check, std::vector<JudgedDevice> judged) {
  if (judged.empty()) return;
  std::ranges::stable_sort(judged, {}, [&](const JudgedDevice& one) {
    return std::pair(std::ranges::find(verdict.hosts, one.device->host), one.device->index);
  });
  std::vector<double> speeds;
  for (const JudgedDevice& one : judged) {
    check.where.push_back(device_text(*one.device));
    if (!contains(check.hosts, one.device->host)) check.hosts.push_back(one.device->host);
    speeds.push_back(one.speed());
  }
  check.measured = speeds_text(speeds);
  check.runs = judged.size();
  verdict.add(std::move(check));
}

// The verdict's list of devices has their speeds alone, or together without those.
void keep_speed(Verdict& verdict, const DeviceCheck& which, const JudgedDevice& one) {
  if (which.run == kAlone.run || !one.device->alone)
    verdict.devices.push_back(
        {device_text(*one.device), one.device->name, one.speed(), one.expected, one.limit, one.outcome});
}

// One check for each device that doesn't pass, and one for all that do.
void add_judged(Verdict& verdict, const DeviceCheck& which, const std::vector<JudgedDevice>& judged) {
  Check passed{.check = which.check, .limit = kDeviceLimit};
  std::vector<JudgedDevice> good;
  for (const JudgedDevice& one : judged) {
    keep_speed(verdict, which, one);
    if (one.outcome == Outcome::pass) {
      passed.expected = speed_text(one.expected);
      passed.source = one.source;
      good.push_back(one);
      continue;
    }
    const std::string& reasons = one.run->throttle_reasons;
    verdict.add({.check = which.check,
                 .where = {device_text(*one.device)},
                 .hosts = {one.device->host},
                 .expected = speed_text(one.expected),
                 .measured = fmt::format("{} ({})", speed_text(one.speed()), loss_text(one.share())),
                 .source = one.source,
                 .limit = one.limit,
                 .outcome = one.outcome,
                 .remark = one.outcome == Outcome::unknown ? cannot_tell_text(one.limit)
                           : reasons.empty() ? "look at its clocks, power, cooling and what else runs there"
                                             : reasons,
                 .runs = 1});
  }
  add_alike(verdict, std::move(passed), std::move(good));
}

// Against what is expected of it. Times count: 5 % more time per image.
void judge(JudgedDevice& one, double expected, const std::string& source, double busy_limit) {
  one.expected = expected;
  one.source = source;
  one.limit = std::max(busy_limit, kDeviceLimit);
  one.outcome = one.share() * (1 + kDeviceLimit) >= 1 ? Outcome::pass
                : one.share() > 1 - busy_limit        ? Outcome::unknown
                                                      : Outcome::fail;
}

// Against others of their kind.
void add_relative(Verdict& verdict, const DeviceCheck& which, const DeviceKind& kind,
                  std::vector<JudgedDevice> judged, const BusyHosts& busy) {
  std::vector<JudgedDevice> told, untold;
  for (JudgedDevice& one : judged) {
    one.expected = kind.usual;
    one.source = fmt::format("median of {}", kind.devices.size());
    const bool is_busy = contains(busy.names, one.device->host);
    if (is_busy) one.limit = kBusyLimit;
    const bool is_slow = kind.was_judged() && one.speed() < kind.slow;
    if (is_slow && is_busy && one.share() >= 1 - one.limit)
      one.outcome = Outcome::unknown;
    else if (is_slow)
      one.outcome = Outcome::fail;
    else if (!kind.can_tell())
      one.outcome = Outcome::unknown;
    (is_slow || kind.can_tell() ? told : untold).push_back(one);
  }
  add_judged(verdict, which, told);
  for (const JudgedDevice& one : untold) keep_speed(verdict, which, one);
  // Devices that were judged alone may all differ together, such as on hosts that are cooled differently.
  if (which.run == kTogether.run && kind.devices.front()->alone) return;
  add_alike(verdict,
            {.check = which.check,
             .outcome = Outcome::unknown,
             .remark = kind.was_judged()
                           ? fmt::format("devices vary so much that only a loss over {} % would show",
                                         percent_text(kind.smallest_loss_shown))
                           : "fewer than three of a kind, and nothing is expected of them: pass --expect to "
                             "plumbline accept"},
            std::move(untold));
}

// What devices of this kind should reach; nothing: as much as each other. A device that ran alone is held
// against its speed alone only then.
std::optional<double> expected_speed(const ScreenedDevice& device, const DeviceCheck& which,
                                     const ExpectedDevice* expected) {
  const bool is_together = which.run == kTogether.run;
  if (expected && is_together && expected->images_per_second_together)
    return expected->images_per_second_together;
  if (is_together && device.alone) return {};
  if (expected) return expected->images_per_second;
  const double reference = (device.*which.run)->reference;
  return reference > 0 ? std::optional(reference) : std::nullopt;
}

// Devices against what is expected of their kind, else against others of their kind.
void add_speeds(Verdict& verdict, const std::vector<ScreenedDevice>& devices, const DeviceCheck& which,
                const Expectation* expectation, const BusyHosts& busy) {
  const double busy_limit = 1 - (1 - kBusyLimit) / static_cast<double>(busy.on_one_machine);
  for (const auto& [name, kind] : kinds_of(devices, which.run)) {
    const ExpectedDevice* known = expectation == nullptr ? nullptr : expectation->find(name);
    const std::optional<double> expected = expected_speed(*kind.devices.front(), which, known);
    std::vector<JudgedDevice> judged;
    for (const ScreenedDevice* device : kind.devices) {
      judged.push_back({.device = device, .run = &*(device->*which.run)});
      if (expected && known)
        judge(judged.back(), *expected, known->source, contains(busy.names, device->host) ? busy_limit : 0);
      else if (expected)  // Plumbline's own runs on such devices: other hosts may cool and feed them less
        judge(judged.back(), *expected, "reference", kBusyLimit);
    }
    if (expected)
      add_judged(verdict, which, judged);
    else
      add_relative(verdict, which, kind, std::move(judged), busy);
  }
}

// Devices that have a speed, but whose run for the comparison of bits failed.
void add_unknown_bits(Verdict& verdict, const std::vector<ScreenedDevice>& devices) {
  Check check{.check = "bits", .outcome = Outcome::unknown};
  for (const ScreenedDevice& device : devices) {
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
  std::vector<std::string> good = mapped(answers, &HostAnswer::name);
  std::string warnings;
  const int gpus = expectation == nullptr ? 0 : expectation->devices_per_host;
  for (const Note& note : find_faults(answers, static_cast<std::size_t>(gpus))) {
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
    busy.names = mapped(answers, &HostAnswer::name);
    return busy;
  }
  std::set<std::string> names;
  for (const Note& note : find_faults(answers))
    if (note.code == "cpu-load" || note.code == "gpu-busy")
      names.insert(note.hosts.begin(), note.hosts.end());
  busy.names = {names.begin(), names.end()};
  return busy;
}

void add_devices(Verdict& verdict, const std::vector<ScreenedDevice>& devices, const Expectation* expectation,
                 const BusyHosts& busy) {
  for (const ScreenedDevice& device : devices)
    if (!device.failure.empty())
      verdict.add({.check = device.alone ? kTogether.check : kAlone.check,
                   .where = {device_text(device)},
                   .hosts = {device.host},
                   .outcome = Outcome::fail,
                   .remark = device.failure});
  for (const OddBits& odd : find_odd_bits(devices))
    verdict.add({.check = "bits",
                 .where = {device_text(devices[odd.device])},
                 .hosts = {devices[odd.device].host},
                 .expected = odd.loss == odd.usual ? "same bits" : fmt::format("loss {:.6g}", odd.usual),
                 .measured = odd.loss == odd.usual ? "other bits" : fmt::format("{:.6g}", odd.loss),
                 .source = "most of its kind",
                 .outcome = Outcome::fail,
                 .remark = odd_text(odd) + "; have it replaced, as its results are wrong",
                 .runs = 1});
  add_unknown_bits(verdict, devices);
  for (const DeviceCheck& which : {kAlone, kTogether}) add_speeds(verdict, devices, which, expectation, busy);
}

void add_insides(Verdict& verdict, const std::vector<InsideOfHost>& insides, const Expectation* expectation) {
  std::vector<double> speeds, good_speeds;
  for (const InsideOfHost& one : insides)
    if (one.bytes_per_second > 0) speeds.push_back(one.bytes_per_second);
  std::optional<double> expected;
  if (expectation) expected = expectation->within_host_bytes_per_second;
  Check good{.check = "within host", .source = "expect.json", .limit = kInsideLimit};
  if (!expected && speeds.size() >= kLeastAlike) {
    expected = median(speeds);
    good.source = fmt::format("median of {}", speeds.size());
  }
  if (expected) good.expected = rate_text(*expected);
  for (const InsideOfHost& one : insides) {
    const bool is_measured = one.bytes_per_second > 0, is_judged = is_measured && expected;
    if (is_judged && one.bytes_per_second >= (1 - kInsideLimit) * *expected) {
      good.where.push_back(one.host);
      good_speeds.push_back(one.bytes_per_second);
      continue;
    }
    verdict.add({.check = good.check,
                 .where = {one.host},
                 .hosts = {one.host},
                 .expected = good.expected,
                 .measured = is_measured ? rate_text(one.bytes_per_second) : "",
                 .source = expected ? good.source : "",
                 .limit = kInsideLimit,
                 .outcome = is_judged || one.sums_are_wrong ? Outcome::fail : Outcome::unknown,
                 .remark = is_judged     ? "look at NVLink and its switches (nvidia-smi nvlink -s)"
                           : is_measured ? "fewer than three hosts, and nothing is expected of them: pass "
                                           "--expect to plumbline accept"
                                         : one.failure,
                 .runs = is_measured ? 1U : 0U});
  }
  if (good_speeds.empty()) return;
  const auto [slowest, fastest] = std::ranges::minmax_element(good_speeds);
  good.hosts = good.where;
  good.measured = fmt::format("{} to {}", rate_text(*slowest), rate_text(*fastest));
  good.runs = good_speeds.size();
  verdict.add(std::move(good));
}

void add_links(Verdict& verdict, const Links& links, const std::optional<ExpectedLink>& expected,
               const BusyHosts& busy) {
  constexpr const char* kOthers = "the other hosts";
  if (expected) verdict.expected_link = expected->bytes_per_second;
  const std::vector<std::string> hosts = mapped(links.hosts, &LinkHost::name);
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
