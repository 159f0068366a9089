// `plumbline accept`: its options, and its steps from host names to a verdict.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/console/print.h"
#include "base/error.h"
#include "base/output.h"
#include "base/process/side_by_side.h"
#include "base/process/this_process.h"
#include "base/steady_clock.h"
#include "base/text.h"
#include "base/units.h"
#include "launch/hosts/ask_hosts.h"
#include "launch/hosts/device_runs.h"
#include "launch/programs.h"
#include "launch/sweep/sweep.h"
#include "launch/sweep/sweep_lock.h"
#include "launch/verdict/acceptance.h"
#include "launch/verdict/host_steps.h"
#include "plumbline/command.h"

namespace plumb {
namespace {

constexpr int kSignalCode = 128;
constexpr double kInsidePatienceSeconds = 60, kLinkPatienceSeconds = 60, kLinkPatiencePerHost = 20;
constexpr const char *kExpectationInFolder = "expect.json", *kRuns = "scaling";
constexpr int kLinksAgain = 3;  // more measurements of links that seem slow

struct AcceptArguments {
  HostArguments hosts;
  ScreenWork work;
  std::string expect, against, device, save_expect, output;
  std::optional<double> link;  // GB/s
  double budget_minutes = 10;
  bool resume = false, dry_run = false, json = false;
};

OptionTable accept_options(AcceptArguments& arguments) {
  return {
      "plumbline accept",
      "Judges the hosts of a cluster: their settings, every device alone and all at once, an allreduce "
      "within "
      "each host, every link, and how a training step scales. Exit code 0: pass; 1: fail; 2: can't tell; 69: "
      "no host could be measured.",
      {host_options(arguments.hosts),
       screen_work_options(arguments.work),
       {"Judgment",
        {text_option("--expect", "FILE", arguments.expect,
                     "what the hosts should reach, written by --save-expect"),
         text_option("--against", "DIR", arguments.against,
                     "compare devices, links and scaling with an earlier accept's --output"),
         text_option("--device", "h100=8500", arguments.device,
                     "images/s that a device with this word in its name should reach alone")
             .with_default("by --expect, else as such devices")
             .rare(),
         link_option(arguments.link).with_default("by --expect, else as other links"),
         number_option("--budget", "MIN", arguments.budget_minutes,
                       {.lowest = 0, .highest = 1440, .above_lowest = true},
                       "minutes that all of it may take")}},
       {"Output",
        {text_option("-o,--output", "DIR", arguments.output,
                     "new folder for report.html, accept.json, exclude.txt, links.json, …")
             .with_default("accept/<date and time>"),
         text_option("--save-expect", "FILE", arguments.save_expect,
                     "write what good hosts reached to this file, for --expect"),
         flag_option("--resume", arguments.resume, true, "go on in --output, and keep the runs that are done")
             .rare(),
         flag_option("--dry-run", arguments.dry_run, true,
                     "print the steps and their time, and start nothing"),
         flag_option("--json", arguments.json, true, "print accept.json instead of the table").rare()}}},
      {"plumbline accept -H node[1-4] --dry-run # what it would do, and how long it would take",
       "plumbline accept -H node[1-4] --save-expect expect.json # judge the hosts by each other",
       "plumbline accept --hostfile hosts --expect expect.json -- --bs 256 --fp16 # by what is expected"}};
}

// The steps of `plumbline accept`, after those that it shares with others.
class Acceptance : private HostSteps {
 public:
  explicit Acceptance(const AcceptArguments& arguments)
      : HostSteps(arguments.work, terminal_of(stderr)),
        arguments_(arguments),
        hosts_(named_hosts(arguments.hosts)) {
    asks_others = work.program.empty();
    if (!arguments.expect.empty())
      expectation = read_expectation(arguments.expect);
    else if (!arguments.against.empty())
      expectation = read_expectation(fs::path(arguments.against) / kExpectationInFolder);
    if (expectation && work.options.empty()) work.options = expectation->options;
    if (!arguments.device.empty()) {
      if (!expectation) expectation.emplace();
      expectation->devices.insert(expectation->devices.begin(), expected_device(arguments.device));
    }
    HostArguments way = arguments.hosts;
    is_in_slurm_ = hosts_.empty() && !environment_variable("SLURM_JOB_NODELIST").empty();
    if (is_in_slurm_) {
      hosts_ = read_host_list("SLURM_JOB_NODELIST", environment_variable("SLURM_JOB_NODELIST"));
      if (way.ssh.empty()) way.ssh = "srun";
    }
    if (hosts_.empty())
      throw Error(ExitCode::usage,
                  "no hosts given; pass -H node[1-4] or --hostfile, or start it in a Slurm job");
    set_hosts(way, hosts_);
    folder_ = arguments.output.empty() ? "accept/" + utc_now("%F_%H%M%S") : arguments.output;
  }

  int run() {
    const double start = steady_seconds();
    if (arguments_.dry_run) {
      ask();
      print_text(plan_text(plan_for(hosts_.size())));
      return 0;
    }
    make_folder();
    show("facts of " + counted(hosts_.size(), "host"));
    ask();
    say(fmt::format("about {:.1f} min for {}; files in {}", plan_for(hosts_.size()).seconds() / 60,
                    counted(hosts_.size(), "host"), folder_.string()));
    judge_facts();
    judge_devices(plan_for(verdict.kept().size()).run_seconds(), devices_per_host() > 1);
    judge_insides(kInsidePatienceSeconds);
    if (verdict.kept().size() > 1) attempt("links", &Acceptance::judge_links);
    if (!verdict.kept().empty()) attempt("scaling", &Acceptance::judge_scaling);
    verdict.seconds = steady_seconds() - start;
    verdict.folder = folder_.string();
    return tell();
  }

 private:
  // A step that can't be done leaves what the others found; only a signal ends them all.
  void attempt(const std::string& check, void (Acceptance::*step)()) {
    try {
      (this->*step)();
    } catch (const Error& error) {
      if (static_cast<int>(error.code()) > kSignalCode) throw;
      verdict.add({.check = check,
                   .where = verdict.kept(),
                   .hosts = verdict.kept(),
                   .outcome = Outcome::unknown,
                   .remark = error.what()});
    }
  }

  void make_folder() {
    const Output output{.option = "--output", .path = folder_.string()};
    std::error_code error;
    if (!arguments_.resume && fs::exists(folder_, error) && !fs::is_empty(folder_, error))
      throw cannot_create(output, "the folder is not empty", "pass another --output, or --resume");
    OutputFolder(output, folder_ / "output");
    fs::create_directories(folder_ / "output", error);
  }

  AcceptPlan plan_for(std::size_t hosts) const {
    return {.hosts = static_cast<int>(hosts),
            .devices_per_host = devices_per_host(),
            .budget_seconds = 60 * arguments_.budget_minutes,
            .start_seconds = has_gpus() ? 15.0 : 3.0};
  }

  SweepLauncher launcher() const {
    SweepLauncher launcher{.command = find_launch_run().string(), .arguments = {}};
    launcher.programs = fs::path(screened_program(work)).parent_path();
    launcher.hosts = SweepHosts{.list = fmt::format("{}", fmt::join(verdict.kept(), ",")),
                                .via = is_in_slurm_ ? "srun" : ""};
    if (const std::string& ssh = arguments_.hosts.ssh; !ssh.empty() && !ssh.starts_with("srun"))
      launcher.arguments = {"--mca", "plm_rsh_agent", ssh};
    return launcher;
  }

  // A failed run counts against the hosts that its message names. Without a name it can't tell.
  void add_failed_run(const std::string& check, const std::string& why) {
    const std::vector<std::string> named = hosts_named_in(why, verdict.kept());
    verdict.add({.check = check,
                 .where = named.empty() ? verdict.kept() : named,
                 .hosts = named,
                 .outcome = named.empty() ? Outcome::unknown : Outcome::fail,
                 .remark = why});
  }

  std::optional<ExpectedLink> expected_link() const {
    if (arguments_.link) return ExpectedLink{*arguments_.link * kGiga, "--link"};
    if (expectation && expectation->link_bytes_per_second)
      return ExpectedLink{*expectation->link_bytes_per_second, "expect.json"};
    return {};
  }

  // All pairs of hosts once; nothing if that failed, which is then a check.
  std::optional<Links> measured_pairs() {
    const int hosts = static_cast<int>(verdict.kept().size());
    const fs::path file = folder_ / kLinksFile, said = folder_ / "output" / "links.txt";
    std::error_code error;
    for (const fs::path& old : {file, said}) fs::remove(old, error);
    std::vector<std::string> words = hosts_words(launcher(), hosts, 1);
    words.insert(words.end(), {(launcher().programs / "bench_allreduce").string(), "--pairs", "--device",
                               "cpu", "--output", file.string()});
    const ChildEnd end =
        run_child(words, said, signals, kLinkPatienceSeconds + kLinkPatiencePerHost * hosts, [] {});
    if (end.signal != 0)
      throw Error(static_cast<ExitCode>(kSignalCode + end.signal), "stopped by signal {}", end.signal);
    if (end.code == 0) return read_links(file);
    add_failed_run("links", end.timed_out ? "not done in time; see " + said.string()
                                          : reason_in(said, "bench_allreduce", true));
    return {};
  }

  // Measures slow links again, because a burst of other work is not a fault; until one measurement agrees
  // with another.
  void judge_links() {
    show("links between hosts");
    links_ = measured_pairs();
    for (int again = 0; links_ && again < kLinksAgain; ++again) {
      Verdict so_far{.hosts = verdict.kept()};
      add_links(so_far, *links_, expected_link());
      if (so_far.excluded().empty()) break;
      if (const auto more = measured_pairs(); !more || !keep_better_pairs(*links_, *more)) break;
    }
    if (!links_) return;
    write_output({.option = "--output", .path = (folder_ / kLinksFile).string(), .overwrite = true},
                 to_json(*links_).dump(1) + "\n");
    add_links(verdict, *links_, expected_link(), busy_hosts(good_answers()));
  }

  SweepPlan scaling_plan() const {
    SweepGroup group{.name = "step",
                     .program = fs::path(screened_program(work)).filename().string(),
                     .options = work.options};
    if (work.options.empty() && !has_gpus()) group.options = small_cpu_step();
    std::vector<std::string> question = group.options;
    question.emplace_back("--print-config");
    const Json asked = ask_engine(screened_program(work), question);
    group.model = asked.value("backbone", "resnet50");
    group.precision = asked.at("precision");
    group.batch_per_device = 64;
    if (const auto& batch = asked.at("batch_per_device"); batch.is_number())
      group.batch_per_device = batch.get<int>();
    else
      group.options.insert(group.options.end(), {"--bs", std::to_string(group.batch_per_device)});
    return plumb::scaling_plan(plan_for(verdict.kept().size()), std::move(group), launcher(), has_gpus());
  }

  void judge_scaling() {
    const SweepPlan plan = scaling_plan();
    show(fmt::format("scaling: {}", counted(plan.runs.size(), "run")));
    const SweepFolder folder{folder_ / kRuns};
    const UniqueFd lock = claim_sweep_folder(
        folder.path, {.plan = plan_hash(plan), .build = build_hash(plan), .file = "accept"},
        arguments_.resume);
    const SweepOutcome outcome =
        run_sweep(plan, folder,
                  {.progress =
                       [&](const SweepProgress& progress) {
                         show(fmt::format("scaling: {} of {} runs, {}", progress.finished, progress.total,
                                          progress.run));
                       },
                   .warn = [](const std::string&) {},
                   .is_wanted = [&](const SweepRun& run) { return !is_settled(folder.runs(), run); }});
    if (outcome.signal != 0)
      throw Error(static_cast<ExitCode>(128 + outcome.signal),
                  "stopped by signal {}; continue with --output {} --resume", outcome.signal,
                  folder_.string());
    std::set<std::string> reasons;
    for (const FailedRun& failed : outcome.failed)
      if (reasons.insert(failed.reason).second) add_failed_run("scaling", failed.reason);
    if (outcome.finished == 0 || plan.runs.size() < 2) return;
    const BusyHosts busy = busy_hosts(good_answers());
    add_scaling(verdict, {.runs = folder.runs(),
                          .links = links_,
                          .expected_link = expected_link() ? std::optional(expected_link()->bytes_per_second)
                                                           : std::nullopt,
                          .shares_machine = busy.on_one_machine > 1,
                          .hosts = verdict.kept()});
    if (!arguments_.against.empty())
      add_against(verdict, folder.runs(), SweepFolder{fs::path(arguments_.against) / kRuns}.runs(),
                  !busy.names.empty());
  }

  Expectation good_values() const {
    Expectation good = measured_expectation(devices, insides, links_, verdict.kept());
    good.source = fmt::format("accept of {}, {}", counted(verdict.kept().size(), "host"), verdict.began);
    good.options = work.options;
    good.devices_per_host = has_gpus() ? devices_per_host() : 0;
    return good;
  }

  void save_good_values() const {
    const std::string text = fields::written(good_values()).dump(1) + "\n";
    write_output({"--output", (folder_ / kExpectationInFolder).string(), true}, text);
    if (!arguments_.save_expect.empty()) write_output({"--save-expect", arguments_.save_expect, true}, text);
  }

  int tell() {
    line.clear();
    const std::vector<std::string> excluded = verdict.excluded();
    if (!excluded.empty())
      verdict.next = fmt::format("repair {}, then plumbline accept -H {}", fmt::join(excluded, ", "),
                                 arguments_.hosts.hosts.empty() ? "…" : arguments_.hosts.hosts);
    const std::string text = verdict_text(verdict), json = json_text(verdict_json(verdict));
    std::string exclude;
    for (const std::string& host : excluded) exclude += host + "\n";
    for (const auto& [name, content] : {std::pair{"accept.txt", text},
                                        {kVerdictFile, json},
                                        {"junit.xml", verdict_junit(verdict)},
                                        {"exclude.txt", exclude},
                                        {"plumbline.prom", verdict_prometheus(verdict)}})
      write_output({.option = "--output", .path = (folder_ / name).string(), .overwrite = true}, content);
    if (!verdict.kept().empty()) save_good_values();
    print_text(arguments_.json ? json : text);
    write_accept_report(folder_);
    const bool has_measured = !devices.empty();
    return has_measured ? exit_code_of(verdict.outcome()) : static_cast<int>(ExitCode::unavailable);
  }

  const AcceptArguments& arguments_;
  std::vector<std::string> hosts_;
  bool is_in_slurm_ = false;  // without -H: its hosts, reached by srun
  fs::path folder_;
  std::optional<Links> links_;
};

// Runs all steps, writes their files and prints the verdict. Returns 0, 1 or 2 as the verdict has it, 69 if
// no device could be measured.
int accept_hosts(const AcceptArguments& arguments) {
  return Acceptance(arguments).run();
}

}  // namespace

const Command kAcceptCommand =
    make_command("accept", "judge the hosts of a cluster: pass or fail", accept_options, accept_hosts);

}  // namespace plumb
