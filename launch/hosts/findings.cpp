#include "launch/hosts/findings.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/machine/machine.h"
#include "base/paths.h"
#include "base/text.h"
#include "base/units.h"
#include "launch/host_names.h"

namespace plumb {
namespace {

using enum Severity;
constexpr double kMiB = 1 << 20;
constexpr double kUsedGpuShare = 0.05;  // of its memory; an idle GPU's driver takes under 1 %
constexpr double kFreeDiskBytes = 1 << 30;
// Open MPI keeps some 5 MB per rank in /dev/shm (btl/vader), NCCL some 10 MB per pair of GPUs.
constexpr double kSharedMemoryBytes = 64 << 20, kSharedMemoryBytesWithGpus = 512 << 20;
constexpr double kOpenFiles = 1024;

// The least value of a counter that is a fault. Limits of NVLinks, rows and pages are those of DCGM's health
// checks (github.com/NVIDIA/DCGM at 72fa3fe: modules/health/DcgmHealthWatch.cpp,
// common/DcgmGPUHardwareLimits.h). A recovery action: nvml.h, nvmlDeviceGpuRecoveryAction_t.
constexpr struct {
  const char* counter;
  std::int64_t least;
  FindingCode code;
} kGpuLimits[]{
    {"uncorrected_errors", 1, "gpu-ecc"},           {"rows_failed", 1, "gpu-rows-out"},
    {"rows_pending", 1, "gpu-rows-reset"},          {"pages_pending", 1, "gpu-rows-reset"},
    {"rows_uncorrected", 512, "gpu-worn"},          {"pages_retired", 63, "gpu-worn"},
    {"recovery_action", 1, "gpu-recovery"},         {"nvlink_replay_errors", 1, "nvlink-errors"},
    {"nvlink_recovery_errors", 1, "nvlink-errors"}, {"nvlink_recoveries_failed", 1, "nvlink-errors"},
    {"fabric_unready", 1, "nvlink-fabric"}};

// Errors of a port's link, and the most that infiniband-diags proposes to accept
// (github.com/linux-rdma/rdma-core, infiniband-diags/etc/error_thresholds). Its limits on lost packets are
// not used: a busy network loses some.
constexpr std::int64_t kMostPortErrors = 10;
constexpr const char* kPortErrors[]{
    "symbol_error",    "link_error_recovery",         "link_downed",
    "port_rcv_errors", "local_link_integrity_errors", "excessive_buffer_overrun_errors"};

// By the immediate actions of NVIDIA's Xid catalog
// (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html), as github.com/leptonai/gpud copied them in
// October 2025: reset the GPU, restart the host, check mechanicals, and workflows for 48, 74 and 144 to 150;
// also 94, for which DCGM warns. Doctor doesn't judge the others.
constexpr int kFaultXids[]{46,  48,  54,  62,  64,  74,  79,  94,  95,  109, 110, 119, 120,
                           136, 140, 143, 144, 145, 146, 147, 148, 149, 150, 155, 156, 158};

// Collects what one host's facts alone tell.
struct HostCheck {
  const HostAnswer& answer;
  HostNotes& found;

  const HostFacts& facts() const { return answer.facts; }
  void add(FindingCode code, const FindingDetails& details = {}) const {
    found.add(code, answer.name, details);
  }
};

// "13" of "13.0"; 0 without a number.
int major_version(const std::string& version) {
  return std::atoi(version.c_str());
}

// "4.1.4" out of "Open MPI v4.1.4".
std::string dotted_version(const std::string& text) {
  const std::size_t begin = text.find_first_of("0123456789");
  return begin == std::string::npos
             ? ""
             : text.substr(begin, text.find_first_not_of("0123456789.", begin) - begin);
}

void check_start(const HostCheck& host, const ProgramFacts& program) {
  if (!program.failure.empty())
    host.add("program-start",
             {.entity = program.path, .what = program.path + " doesn't start", .detail = program.failure});
}

void check_programs(const HostCheck& host) {
  const ProgramFacts& program = host.facts().program;
  check_start(host, program);
  for (const ProgramFacts& other : host.facts().others) check_start(host, other);
  const MpiFacts& mpi = host.facts().mpi;
  if (mpi.daemon.empty()) host.add("mpi-daemon");
  const auto linked = program.libraries.find("MPI");
  if (linked == program.libraries.end() || !linked->second.starts_with("Open MPI") || mpi.version.empty())
    return;
  if (const std::string version = dotted_version(linked->second); version != mpi.version)
    host.add("mpi-mixed",
             {.what = fmt::format("mpirun is Open MPI {}, the program's library {}", mpi.version, version),
              .detail = mpi.mpirun});
}

void check_gpu(const HostCheck& host, const GpuFacts& gpu, std::size_t index) {
  const auto add = [&](FindingCode code, const std::string& values = "") {
    host.add(code, {.entity = std::to_string(index),
                    .detail = fmt::format("GPU {}{}{}", index, values.empty() ? "" : ": ", values)});
  };
  if (gpu.processes > 0 || gpu.used_bytes > kUsedGpuShare * gpu.memory_bytes)
    add("gpu-busy",
        fmt::format("{}, {:.1f} GiB of memory", counted(gpu.processes, "program"), gpu.used_bytes / kGiB));
  for (const auto& [counter, value] : gpu.counters)
    for (const auto& [name, least, code] : kGpuLimits)
      if (counter == name && value >= least)
        add(code, fmt::format("{} {}", replaced(counter, '_', " "), value));
  if (gpu.throttled)
    add("gpu-throttled", fmt::format("{}, {} MHz, {} C", fmt::join(gpu.throttle_reasons, " and "),
                                     gpu.reading.sm_clock_mhz, gpu.reading.temperature_celsius));
  if (gpu.mig == "on") add("gpu-mig");
}

void check_gpus(const HostCheck& host) {
  const HostFacts& facts = host.facts();
  for (std::size_t i = 0; i < facts.gpus.size(); ++i) check_gpu(host, facts.gpus[i], i);
  const auto cuda = facts.program.libraries.find("CUDA");
  const bool has_cuda = cuda != facts.program.libraries.end();
  if (!facts.gpus.empty() && !has_cuda && facts.program.failure.empty())
    host.add("driver-unused", {.entity = facts.program.path});
  // A driver runs programs of its own CUDA's major version and of older ones (CUDA Compatibility, minor
  // versions).
  if (has_cuda && !facts.driver_cuda.empty() &&
      major_version(facts.driver_cuda) < major_version(cuda->second))
    host.add("driver-old", {.what = fmt::format("the driver runs CUDA {} and the program wants {}",
                                                facts.driver_cuda, cuda->second),
                            .detail = "driver " + facts.driver});
}

void check_xids(const HostCheck& host) {
  const KernelLog& log = host.facts().kernel_log;
  if (log.reach.empty() && !host.facts().gpus.empty()) host.add("gpu-xid-unknown");
  for (const auto& [gpu, counts] : log.xids)
    for (const auto& [number, count] : counts)
      if (std::ranges::count(kFaultXids, std::atoi(number.c_str())) > 0)
        host.add("gpu-xid",
                 {.entity = gpu,
                  .detail = fmt::format("GPU {}: Xid {}, {}", gpu, number, counted(count, "time"))});
}

void check_ports(const HostCheck& host) {
  for (const PortFacts& port : host.facts().ports)
    for (const char* const counter : kPortErrors)
      if (const auto count = port.counters.find(counter);
          count != port.counters.end() && count->second > kMostPortErrors)
        host.add("port-errors",
                 {.entity = port.name,
                  .detail = fmt::format("{}: {} {}", port.name, replaced(counter, '_', " "), count->second)});
}

void check_limits(const HostCheck& host) {
  const HostFacts& facts = host.facts();
  const auto limit = [&](const char* name) {
    const auto found = facts.limits.find(name);
    return found == facts.limits.end() ? -1 : found->second;
  };
  const bool has_active_port =
      std::ranges::any_of(facts.ports, [](const PortFacts& port) { return port.state == "ACTIVE"; });
  if (const double bytes = limit("locked memory"); has_active_port && bytes >= 0)
    host.add("limit-locked-memory", {.detail = fmt::format("{:.0f} MiB", bytes / kMiB)});
  if (const double files = limit("open files"); files >= 0 && files < kOpenFiles)
    host.add("limit-open-files", {.detail = fmt::format("{:.0f}", files)});
  if (!facts.ports.empty() && !has_active_port)
    host.add("port-inactive", {.entity = facts.ports.front().name, .detail = facts.ports.front().name});
  const double wanted = facts.gpus.empty() ? kSharedMemoryBytes : kSharedMemoryBytesWithGpus;
  if (facts.shared_memory_free_bytes < wanted)
    host.add("shm-full", {.what = fmt::format("/dev/shm has less than {:.0f} MiB left for ranks' messages",
                                              wanted / kMiB),
                          .detail = fmt::format("{:.0f} of {:.0f} MiB", facts.shared_memory_free_bytes / kMiB,
                                                facts.shared_memory_bytes / kMiB)});
}

void check_log_folder(const HostCheck& host) {
  const FolderFacts& folder = host.facts().log_folder;
  if (folder.existing.empty()) return;
  if (!folder.writable) host.add("log-read-only", {.what = folder.existing + " can't be written"});
  if (folder.free_bytes < kFreeDiskBytes)
    host.add("log-full", {.what = "little space is left for " + folder.path,
                          .detail = fmt::format("{:.2f} GiB", folder.free_bytes / kGiB)});
}

void check_load(const HostCheck& host) {
  const HostFacts& facts = host.facts();
  if (facts.cpus > 0 && facts.load > kBusyLoadPerCpu * facts.cpus)
    host.add("cpu-load",
             {.detail = fmt::format("load {:.1f} on {}", facts.load, counted(facts.cpus, "CPU"))});
}

}  // namespace

void HostNotes::add(FindingCode code, const std::string& host, const FindingDetails& details) {
  const FindingKind& kind = *code.kind;
  const std::string text = printable(details.what.empty() ? kind.meaning : details.what);
  const std::string action = printable(details.action.empty() ? kind.action : details.action);
  auto same = std::ranges::find_if(collected_, [&](const Collected& one) {
    return one.note.code == kind.code && one.note.text == text && one.note.action == action;
  });
  if (same == collected_.end())
    same = collected_.insert(same, {.note = {.kind = kind.check,
                                             .text = text,
                                             .severity = kind.severity,
                                             .code = std::string(kind.code),
                                             .action = action},
                                    .detail = details.detail});
  same->details_differ |= same->detail != details.detail;
  Note& note = same->note;
  if (note.hosts.empty() || note.hosts.back() != host) note.hosts.push_back(host);
  NoteEntity entity{host, kind.entity, printable(details.entity)};
  if (note.entities.empty() || note.entities.back() != entity) note.entities.push_back(std::move(entity));
}

std::vector<Note> HostNotes::take() && {
  std::vector<Note> notes;
  for (Collected& found : collected_) {
    Note& note = found.note;
    const std::size_t hosts = note.hosts.size(), entities = note.entities.size();
    if (!found.detail.empty())
      note.text += fmt::format(" ({}{}{})", printable(found.detail),
                               found.details_differ && hosts > 1 ? " on " + note.hosts.front() : "",
                               entities > hosts ? fmt::format("; {} more", entities - 1) : "");
    note.text += ": " + note.action;
    note.subject = short_host_list_text(note.hosts);
    notes.push_back(std::move(note));
  }
  std::ranges::stable_sort(notes, {}, &Note::severity);
  return notes;
}

std::vector<Note> find_faults(const std::vector<HostAnswer>& answers, std::size_t expected_gpus) {
  HostNotes found;
  std::vector<const HostAnswer*> answered;
  for (const HostAnswer& answer : answers) {
    if (answer.answered)
      answered.push_back(&answer);
    else
      found.add("host-unreachable", answer.name,
                {.what = answer.failure, .action = answer.remedy, .detail = answer.failure_detail});
  }
  for (const HostAnswer* answer : answered)
    for (const auto check :
         {check_programs, check_gpus, check_xids, check_ports, check_limits, check_log_folder, check_load})
      check({*answer, found});
  for (const HostAnswer* answer : answered)
    if (const std::size_t gpus = answer->facts.gpus.size(); gpus < expected_gpus)
      found.add("gpu-missing", answer->name,
                {.what = fmt::format("{} where {} are expected", counted(gpus, "GPU"), expected_gpus)});
  compare_hosts(answered, found);
  return std::move(found).take();
}

ExitCode DoctorReport::exit_code() const {
  const auto has = [&](Severity severity) {
    return std::ranges::find(notes, severity, &Note::severity) != notes.end();
  };
  return has(error) ? ExitCode::unavailable : has(warning) ? ExitCode::regression : ExitCode::ok;
}

std::string doctor_text(const DoctorReport& report) {
  std::string text, counts;
  for (const Note& note : report.notes)
    text += fmt::format("{:<8} {} [{}]\n", name_of(*note.severity), note_text(note), note.code);
  for (const Severity severity : {error, warning, note})
    if (const auto count = std::ranges::count(report.notes, severity, &Note::severity); count > 0)
      append_part(counts, counted(count, name_of(severity)));
  const auto answered = std::ranges::count(report.hosts, true, &HostAnswer::answered);
  return text + fmt::format("{}{} answered in {:.1f} s: {}\n", counted(report.hosts.size(), "host"),
                            answered == std::ssize(report.hosts) ? "" : fmt::format(", {}", answered),
                            report.seconds, counts.empty() ? "all well" : counts);
}

const Document kDoctorDocument =
    document_of<DoctorReport>("plumbline.doctor/2", "What plumbline doctor --json found out about hosts.");

nlohmann::ordered_json doctor_json(const DoctorReport& report) {
  return document_json(kDoctorDocument.name, report);
}

}  // namespace plumb
