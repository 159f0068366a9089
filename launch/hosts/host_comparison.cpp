// Hosts compared with each other: which one differs from the others, and in what.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/machine/machine.h"
#include "base/text.h"
#include "base/units.h"
#include "launch/host_names.h"
#include "launch/hosts/findings.h"
#include "launch/hosts/name_lookup.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr double kMemoryShare = 0.05;  // of memory that differs from the median

using Answers = std::vector<const HostAnswer*>;

// Something that all hosts should have alike.
struct ComparedFact {
  FindingCode code;
  std::string noun;
  std::function<std::string(const HostFacts&)> text;  // empty: the host doesn't tell, and isn't compared
  std::function<std::string(const HostFacts&)> entity = nullptr;
};

// "8 x NVIDIA H100, 1 x NVIDIA A100"; "none".
std::string gpus_text(const HostFacts& facts) {
  std::map<std::string, int> counts;
  for (const GpuFacts& gpu : facts.gpus) ++counts[gpu.name];
  std::string text;
  for (const auto& [name, count] : counts) append_part(text, fmt::format("{} x {}", count, name));
  return text.empty() ? "none" : text;
}

std::string ports_text(const HostFacts& facts) {
  std::string text;
  for (const PortFacts& port : facts.ports)
    append_part(text, fmt::format("{} {} {} {}", port.name, port.link_layer, port.state, port.rate));
  return text.empty() ? "none" : text;
}

std::string build_text(const ProgramFacts& program) {
  return program.build_id.empty() ? ""
                                  : fmt::format("{} ({}, commit {})", program.build_id.substr(0, 12),
                                                program.version, program.commit);
}

std::vector<ComparedFact> compared_facts() {
  const auto member = [](std::string HostFacts::*value) {
    return [value](const HostFacts& facts) { return facts.*value; };
  };
  return {{"program-build", "build", [](const HostFacts& host) { return build_text(host.program); },
           [](const HostFacts& host) { return host.program.path; }},
          {"mpi-differs", "Open MPI of mpirun", [](const HostFacts& host) { return host.mpi.version; }},
          {"cpu-model", "processor", member(&HostFacts::cpu)},
          {"cpu-count", "number of CPUs", [](const HostFacts& host) { return std::to_string(host.cpus); }},
          {"gpu-count", "GPUs", gpus_text},
          {"driver-version", "NVIDIA driver", member(&HostFacts::driver)},
          {"port-differs", "InfiniBand and RoCE ports", ports_text}};
}

// One per program that any host has next to the one of the run. Where that isn't the usual one, the whole
// package is odd, and named already.
std::vector<ComparedFact> compared_programs(const Answers& answers) {
  std::set<std::string> paths;
  std::vector<std::string> builds;
  for (const HostAnswer* answer : answers) {
    builds.push_back(answer->facts.program.build_id);
    for (const ProgramFacts& program : answer->facts.others) paths.insert(program.path);
  }
  std::vector<ComparedFact> facts;
  for (const std::string& path : paths)
    facts.push_back({"program-build", path + ": build",
                     [path, usual = usual_value(builds)](const HostFacts& host) {
                       if (host.program.build_id != usual) return std::string();
                       const auto found = std::ranges::find(host.others, path, &ProgramFacts::path);
                       return found == host.others.end() ? "none" : build_text(*found);
                     },
                     [path](const HostFacts&) { return path; }});
  return facts;
}

// One per library that any host's program names.
std::vector<ComparedFact> compared_libraries(const Answers& answers) {
  std::set<std::string> names;
  for (const HostAnswer* answer : answers)
    for (const auto& [name, version] : answer->facts.program.libraries) names.insert(name);
  std::vector<ComparedFact> facts;
  for (const std::string& name : names)
    facts.push_back({"library", "library " + name,
                     [name](const HostFacts& host) {
                       if (!host.program.failure.empty()) return std::string();
                       const auto found = host.program.libraries.find(name);
                       return found == host.program.libraries.end() ? "none" : found->second;
                     },
                     [](const HostFacts& host) { return host.program.path; }});
  return facts;
}

// Against the value that most hosts have, else against the first host's.
void name_odd_ones(const ComparedFact& fact, const Answers& answers, HostNotes& found) {
  Answers compared;
  std::vector<std::string> values;
  for (const HostAnswer* answer : answers)
    if (std::string value = fact.text(answer->facts); !value.empty()) {
      compared.push_back(answer);
      values.push_back(std::move(value));
    }
  if (std::set<std::string>(values.begin(), values.end()).size() < 2) return;
  std::string usual = usual_value(values), others = "most hosts have";
  if (usual.empty() || compared.size() == 2) {
    usual = values.front();
    others = compared.front()->name + " has";
  }
  for (std::size_t i = 0; i < compared.size(); ++i)
    if (values[i] != usual)
      found.add(fact.code, compared[i]->name,
                {.entity = fact.entity ? fact.entity(compared[i]->facts) : "",
                 .what = fmt::format("{} {} where {} {}", fact.noun, values[i], others, usual)});
}

void compare_memory(const Answers& answers, HostNotes& found) {
  const double usual =
      median(mapped(answers, [](const HostAnswer* answer) { return answer->facts.memory_bytes; }));
  for (const HostAnswer* answer : answers)
    if (const double own = answer->facts.memory_bytes;
        answers.size() > 2 && std::abs(own - usual) > kMemoryShare * usual)
      found.add("memory-size", answer->name,
                {.what = fmt::format("memory differs from the median of the hosts, {:.1f} GiB", usual / kGiB),
                 .detail = fmt::format("{:.1f} GiB", own / kGiB)});
}

// GPUs whose links do less than the best of their kind on all hosts. All NVLinks must be up if any is
// (docs.nvidia.com/health-validation/reference/checks/nvlink: nvlink_active), but NVML calls them inactive
// where a GPU is split up (DCGM's MonitorNVLinkStatus). PCIe's current generation sinks in GPUs at rest, and
// is not compared.
void compare_links(const Answers& answers, HostNotes& found) {
  constexpr struct {
    FindingCode code;
    const char *counter, *best;
  } kCompared[]{{"nvlink-down", "nvlinks_up", "nvlinks"},
                {"gpu-pcie", "pcie_width", "pcie_width"},
                {"gpu-pcie", "pcie_generation_max", "pcie_generation_max"}};
  std::map<std::string, std::int64_t> most;
  for (const HostAnswer* answer : answers)
    for (const GpuFacts& gpu : answer->facts.gpus)
      for (const auto& [counter, value] : gpu.counters)
        most[gpu.name + counter] = std::max(most[gpu.name + counter], value);
  for (const HostAnswer* answer : answers)
    for (std::size_t i = 0; i < answer->facts.gpus.size(); ++i)
      for (const auto& [code, counter, best] : kCompared) {
        const GpuFacts& gpu = answer->facts.gpus[i];
        const auto own = gpu.counters.find(counter);
        if (own == gpu.counters.end() || gpu.mig == "on" || most[gpu.name + counter] == 0) continue;
        if (const std::int64_t least = most[gpu.name + best]; own->second < least)
          found.add(code, answer->name,
                    {.entity = std::to_string(i),
                     .detail = fmt::format("GPU {}: {} {} of {}", i, replaced(counter, '_', " "), own->second,
                                           least)});
      }
}

bool share_any(const std::vector<std::string>& first, const std::vector<std::string>& second) {
  return std::ranges::find_first_of(first, second) != first.end();
}

// A host's own view on a name, beside that of the host that asked.
void check_view(const HostAnswer& viewer, const HostAnswer& named, const std::vector<std::string>& seen,
                HostNotes& found) {
  const bool is_own = viewer.name == named.name;
  if (seen.empty()) {
    found.add("name-missing", viewer.name,
              {.what = fmt::format("has no address for {}", is_own ? "its own name" : named.name)});
  } else if (std::ranges::all_of(seen, is_loopback) && named.addresses && !named.addresses->empty() &&
             !std::ranges::all_of(*named.addresses, is_loopback)) {
    found.add("name-loopback", viewer.name,
              {.what = fmt::format("resolves {} to a loopback address, which others can't reach",
                                   is_own ? "its own name" : named.name),
               .detail = seen.front()});
  } else if (named.addresses && !named.addresses->empty() && !share_any(seen, *named.addresses) &&
             !std::ranges::all_of(*named.addresses, is_loopback)) {
    found.add("name-differs", viewer.name,
              {.what = fmt::format("resolves {} to {}, and the asking host to {}", named.name, seen.front(),
                                   named.addresses->front())});
  }
}

// Names: without an address, that lead to loopback, that hosts resolve differently, and two names of one
// host.
void compare_names(const Answers& answers, HostNotes& found) {
  std::map<std::string, const HostAnswer*> by_name;
  for (const HostAnswer* answer : answers) by_name.emplace(answer->name, answer);
  std::map<std::string, const HostAnswer*> machines;
  for (const HostAnswer* answer : answers) {
    if (answer->addresses && answer->addresses->empty()) found.add("name-unknown", answer->name);
    for (const auto& [name, seen] : answer->facts.names)
      if (const auto named = by_name.find(name);
          named != by_name.end() && named->second->addresses && !named->second->addresses->empty())
        check_view(*answer, *named->second, seen, found);
    if (answer->facts.boot_id.empty()) continue;
    const auto [first, is_new] = machines.try_emplace(answer->facts.boot_id + answer->facts.host, answer);
    if (!is_new)
      found.add("name-twice", answer->name,
                {.what = fmt::format("is the same host as {}", first->second->name)});
  }
}

// Hosts that others don't reach over the network, even where a login does.
void check_reach(const Answers& answers, HostNotes& found) {
  std::map<std::string, std::size_t> failures;  // by the name of the host that isn't reached
  // Hosts that gave no facts are told of already.
  const auto answered = [&](const std::string& name) {
    return std::ranges::find(answers, name, &HostAnswer::name) != answers.end();
  };
  for (const HostAnswer* answer : answers)
    for (const auto& [name, why] : answer->facts.unreached)
      if (answered(name)) ++failures[name];
  const auto is_cut_off = [&](const std::string& name) {
    const auto failed = failures.find(name);
    return failed != failures.end() && 2 * failed->second >= answers.size() - 1;
  };
  for (const HostAnswer* answer : answers)
    for (const auto& [name, why] : answer->facts.unreached) {
      if (is_cut_off(name))
        found.add("network-host", name, {.detail = why});
      else if (answered(name) && !is_cut_off(answer->name))
        found.add("network-path", answer->name,
                  {.what = fmt::format("doesn't reach {} over the network", name), .detail = why});
    }
}

}  // namespace

void compare_hosts(const Answers& answers, HostNotes& found) {
  compare_names(answers, found);
  check_reach(answers, found);
  for (const auto& facts : {compared_facts(), compared_programs(answers), compared_libraries(answers)})
    for (const ComparedFact& fact : facts) name_odd_ones(fact, answers, found);
  if (!answers.empty()) compare_memory(answers, found);
  compare_links(answers, found);
}

}  // namespace plumb
