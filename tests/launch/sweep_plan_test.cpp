#include "launch/sweep/sweep_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"

namespace plumb {
namespace {

RunLength accept_all(const std::string&, const std::vector<std::string>&) {
  return {.iterations = 120, .warmup = 20};
}

SweepPlan plan_of(const std::string& text, const CheckOptions& check = accept_all) {
  return read_sweep_plan(text, "x.toml", check);
}

const std::string kCase =
    "[[case]]\nmodel = 'resnet50'\ndevices_per_node = [1, 2, 4, 8]\nbatch_sizes = [64, 128]\n"
    "precisions = ['fp32', 'fp16']\n";

std::string sweep_text(const std::string& keys) {
  return "[sweep]\n" + keys + "\n" + kCase;
}

std::vector<std::string> names(const SweepPlan& plan) {
  std::vector<std::string> all;
  for (const SweepRun& run : plan.runs) all.push_back(run.name);
  return all;
}

std::string cut_repetition(const std::string& name) {
  return name.substr(0, name.rfind('_'));
}

TEST(SweepPlan, HasEveryCaseInEveryRepetition) {
  const SweepPlan plan = plan_of(sweep_text("repetitions = 5"));
  EXPECT_EQ(plan.groups.size(), 4u);
  ASSERT_EQ(plan.runs.size(), 5u * 16);
  std::set<std::string> all;
  for (std::size_t repetition = 0; repetition < 5; ++repetition) {
    std::set<std::string> cases;
    for (std::size_t i = 0; i < 16; ++i) {
      const SweepRun& run = plan.runs[16 * repetition + i];
      EXPECT_EQ(run.repetition, static_cast<int>(repetition) + 1);
      cases.insert(cut_repetition(run.name));
      all.insert(run.name);
    }
    EXPECT_EQ(cases.size(), 16u);
  }
  EXPECT_EQ(all.size(), plan.runs.size());
}

TEST(SweepPlan, OrdersEachRepetitionAnewByTheSeed) {
  const std::vector<std::string> first = names(plan_of(sweep_text("seed = 7")));
  EXPECT_EQ(first, names(plan_of(sweep_text("seed = 7"))));
  EXPECT_NE(first, names(plan_of(sweep_text("seed = 8"))));
  std::set<std::vector<std::string>> orders;
  for (std::size_t repetition = 0; repetition < 7; ++repetition) {
    std::vector<std::string> order;
    for (std::size_t i = 0; i < 16; ++i) order.push_back(cut_repetition(first[16 * repetition + i]));
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 7u);
}

// Over many repetitions every number of devices gets every position equally often: 99 times 16 cases, 4 of
// them with 8 devices, have a mean position of 7.5 with a standard error of 0.2.
TEST(SweepPlan, DriftMeetsSmallAndLargeCasesAlike) {
  const SweepPlan plan = plan_of(sweep_text("repetitions = 99"));
  std::map<int, double> place_sum;
  for (std::size_t i = 0; i < plan.runs.size(); ++i)
    place_sum[plan.runs[i].devices()] += static_cast<double>(i % 16);
  for (const auto& [devices, sum] : place_sum) EXPECT_NEAR(sum / (99 * 4), 7.5, 0.9) << devices << " devices";
}

TEST(SweepPlan, CommandsSayAllThatARunIs) {
  const SweepPlan plan = plan_of(
      "[sweep]\nrepetitions = 1\n[launcher]\ncommand = 'srun'\nranks_option = '-n'\narguments = "
      "['--mpi=pmix']\n"
      "programs = '/opt/bin'\n[[case]]\nname = 'slow'\nmodel = 'r50'\ndevices_per_node = [4]\nbatch_sizes = "
      "[16]\n"
      "precisions = ['bf16']\niterations = 30\nwarmup = 5\n"
      "options = { lr = 0.01, no-overlap = true, data = 'my faces.rec', seed = 3 }");
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].name, "slow_r50_b16_bf16_1n4g_1");
  EXPECT_EQ(shell_text(command_of(plan, plan.runs[0], {"out"})),
            "srun --mpi=pmix -n 4 /opt/bin/bench_arcface --bs=16 --bf16 --backbone=r50 --iters=30 --warmup=5 "
            "'--data=my faces.rec' --lr=0.01 --no-overlap --seed=3 --nodes=1 --devices-per-node=4 --run=1 "
            "--log-dir=out/logs/slow_r50_b16_bf16 --out=out/work/slow_r50_b16_bf16_1n4g_1");
  EXPECT_EQ(SweepFolder{"out"}.log(plan, plan.runs[0]), "out/logs/slow_r50_b16_bf16/1n4g/r50_b16_bf16_1.log");
}

std::vector<std::string> cases_of(const std::string& keys, const std::string& launcher = "hosts = 'n[1-4]'") {
  const SweepPlan plan =
      plan_of("[sweep]\nrepetitions = 1\n[launcher]\n" + launcher +
              "\n[[case]]\nmodel = 'resnet50'\nbatch_sizes = [8]\nprecisions = ['fp32']\n" + keys);
  std::vector<std::string> cases;
  for (const SweepRun& run : plan.runs) cases.push_back(run.case_name());
  std::ranges::sort(cases);
  return cases;
}

using Names = std::vector<std::string>;

TEST(SweepPlan, NodesAndDevicesMakeDlperfsCases) {
  EXPECT_EQ(cases_of("nodes = [1, 2, 4]\ndevices_per_node = [1, 2, 4, 8]"),
            (Names{"1n1g", "1n2g", "1n4g", "1n8g", "2n8g", "4n8g"}));
  EXPECT_EQ(cases_of("nodes = [4, 2]\ndevices_per_node = [4, 8]"), (Names{"2n4g", "2n8g", "4n8g"}));
  EXPECT_EQ(cases_of("devices_per_node = [1, 2]"), (Names{"1n1g", "1n2g"}));
}

TEST(SweepPlan, CasesMayBeNamedOneByOne) {
  EXPECT_EQ(cases_of("cases = ['1n1g', '2n4g', '4n1g']"), (Names{"1n1g", "2n4g", "4n1g"}));
  EXPECT_EQ(cases_of("cases = ['1n2g']", ""), (Names{"1n2g"})) << "on this host";
}

std::string command_over(const std::string& launcher) {
  const SweepPlan plan = plan_of("[sweep]\nrepetitions = 1\n[launcher]\nprograms = '/opt/bin'\n" + launcher +
                                 "\n[[case]]\nmodel = 'resnet50'\ncases = ['2n4g']\nbatch_sizes = [16]\n"
                                 "precisions = ['bf16']");
  return shell_text(command_of(plan, plan.runs.at(0), {"out"}));
}

TEST(SweepPlan, CommandsOverHostsAreThoseOfLaunchRun) {
  const std::string rest =
      "/opt/bin/bench_resnet50 --bs=16 --bf16 --run=1 --log-dir=out/logs/resnet50_b16_bf16 "
      "--out=out/work/resnet50_b16_bf16_2n4g_1";
  EXPECT_EQ(command_over("hosts = 'n[1-2]'"), "launch/run -H 'n[1-2]' --nodes 2 --devices 4 " + rest);
  EXPECT_EQ(command_over("hostfile = 'hosts'\ncommand = 'mpirun'\narguments = ['--oversubscribe']"),
            "launch/run --hostfile hosts --nodes 2 --devices 4 --via mpirun --with --oversubscribe " + rest);
  EXPECT_EQ(command_over("hosts = 'a,b'\ncommand = 'srun'"),
            "launch/run -H a,b --nodes 2 --devices 4 --via srun " + rest);
  EXPECT_EQ(command_over("command = 'launch/run'"), "launch/run --nodes 2 --devices 4 " + rest)
      << "a Slurm job's";
}

TEST(SweepPlan, EveryCaseOverHostsIsAskedForOnce) {
  Names asked;
  const std::string text =
      "[launcher]\nhosts = 'n[1-2]'\n" + kCase + "nodes = [1, 2]\noptions = { share-gpu = true }\n";
  read_sweep_plan(text, "x.toml", accept_all,
                  [&](const SweepLauncher& launcher, int nodes, int devices, const Names& program) {
                    asked.push_back(fmt::format("{} {}n{}g", launcher.hosts->list, nodes, devices));
                    EXPECT_EQ(shell_text(program), "bench_resnet50 --share-gpu");
                  });
  EXPECT_EQ(asked, (Names{"n[1-2] 1n1g", "n[1-2] 1n2g", "n[1-2] 1n4g", "n[1-2] 1n8g", "n[1-2] 2n8g"}));
}

TEST(SweepPlan, WhatHostsLackIsNamedAtTheKeyThatWantsIt) {
  const auto message = [](const std::string& sentence) {
    try {
      read_sweep_plan(
          "[launcher]\nhosts = 'n1,n2'\n" + kCase + "nodes = [2]\n", "x.toml", accept_all,
          [&](const SweepLauncher&, int, int, const Names&) { throw Error(ExitCode::usage, sentence); });
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message("option --nodes: too many"),
            "x.toml, line 8, column 9: 2n1g can't be run: option --nodes: too many");
  EXPECT_EQ(message("option --devices: too many"),
            "x.toml, line 5, column 20: 2n1g can't be run: option --devices: too many");
  EXPECT_EQ(message("option -H: host n1 is named twice"),
            "x.toml, line 2, column 9: 2n1g can't be run: option -H: host n1 is named twice");
}

TEST(SweepPlan, ShellTextQuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(shell_text({"a", "", "b c", "it's", "$x"}), "a '' 'b c' 'it'\\''s' '$x'");
}

TEST(SweepPlan, HashTellsSweepsApartButNotRetriesAndPlaces) {
  const std::uint64_t hash = plan_hash(plan_of(sweep_text("seed = 1")));
  EXPECT_EQ(hash, plan_hash(plan_of(sweep_text("seed = 1\nretries = 9\ntimeout_minutes = 1.5"))));
  EXPECT_EQ(hash, plan_hash(plan_of(sweep_text("seed = 1") + "[launcher]\nprograms = 'elsewhere'\n")));
  EXPECT_NE(hash, plan_hash(plan_of(sweep_text("seed = 2"))));
  EXPECT_NE(hash, plan_hash(plan_of(sweep_text("seed = 1\nrepetitions = 5"))));
  EXPECT_NE(hash, plan_hash(plan_of(sweep_text("seed = 1") + "options = { lr = 0.5 }\n")));
  EXPECT_NE(hash, plan_hash(plan_of(sweep_text("seed = 1") + "[launcher]\narguments = []\n")));
}

TEST(SweepPlan, ProgramsAreRelativeToTheFile) {
  const std::string text = kCase + "[launcher]\nprograms = 'bin'\n";
  EXPECT_EQ(read_sweep_plan(text, "/a/x.toml", accept_all).launcher.programs, "/a/bin");
  EXPECT_EQ(read_sweep_plan(text, "x.toml", accept_all).launcher.programs, "bin");
}

std::string refused_file(const std::string& text) {
  try {
    plan_of(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    return error.what();
  }
  return "accepted";
}

// Each part of a key is a table inside the last one, and the stack holds only so many.
TEST(SweepPlan, KeysOfManyPartsAreRefusedByTheirLine) {
  std::string parts = "a";
  for (int i = 1; i < 50'000; ++i) parts += i % 2 ? ".b" : " . 'c.c'";
  const std::string sentence = "x.toml, line 2: longer than 10000 letters; break it";
  EXPECT_EQ(refused_file("# a.b\n" + parts + " = 1\n"), sentence);
  EXPECT_EQ(refused_file("\n[" + parts + "]\n"), sentence);
  std::string most = "a";
  for (int i = 0; i < 4'990; ++i) most += ".b";
  EXPECT_NE(refused_file("\n[" + most + "]\n"), sentence);
}

TEST(SweepPlan, MessagesHaveNothingForATerminalToDo) {
  const std::string sentence = refused_file(kCase + "\"\\u001b[2J\\nx\" = 1\n");
  EXPECT_NE(sentence.find("'?[2J?x' is no key of "), std::string::npos) << sentence;
}

TEST(SweepPlan, WhatAProgramWouldRefuseIsNamedWhereItStands) {
  const auto refusing = [](const std::string& sentence) {
    return [sentence](const std::string&, const std::vector<std::string>&) -> RunLength {
      throw Error(ExitCode::usage, sentence);
    };
  };
  const auto message = [&](const std::string& sentence) {
    try {
      plan_of(kCase + "warmup = 4\noptions = { lr = -1 }\n", refusing(sentence));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message("option --lr: wrong"), "x.toml, line 7, column 18: option --lr: wrong");
  EXPECT_EQ(message("option --warmup: wrong"), "x.toml, line 6, column 10: option --warmup: wrong");
  EXPECT_EQ(message("option --bs: wrong"), "x.toml, line 4, column 15: option --bs: wrong");
  EXPECT_EQ(message("something else"), "x.toml, line 1, column 1: something else");
}

// "[1, 2, …, count]"
std::string numbers(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += (text.empty() ? "[" : ", ") + std::to_string(i);
  return text + "]";
}

struct BadFile {
  std::string name, text, begin, word;  // the message begins with `begin` and holds `word`
};

class BadSweepFile : public testing::TestWithParam<BadFile> {};

TEST_P(BadSweepFile, IsNamedWithLineAndColumn) {
  const auto& [name, text, begin, word] = GetParam();
  try {
    plan_of(text);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with(begin)) << message;
    EXPECT_NE(message.find(word), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, BadSweepFile,
    testing::Values(
        BadFile{"empty", "", "x.toml, line ", "no [[case]]"},
        BadFile{"syntax", "[sweep]\nseed = = 1\n", "x.toml, line 2, column 8: ", ""},
        BadFile{"binary", std::string("\x7f\x45\x4c\x46\0\1\2", 7), "x.toml, line 1, column 1: ", ""},
        BadFile{"unknown_table", kCase + "[other]\n", "x.toml, line 6, column 1: ", "'other'"},
        BadFile{"unknown_key", "[sweep]\n  repetitons = 7\n" + kCase,
                "x.toml, line 2, column 3: ", "it has repetitions"},
        BadFile{"unknown_case_key", kCase + "batch = 3\n", "x.toml, line 6, column 1: ", "'batch'"},
        BadFile{"wrong_type", sweep_text("seed = 'one'"), "x.toml, line 2, column 8: ", "a whole number"},
        BadFile{"too_many_repetitions", sweep_text("repetitions = 100"),
                "x.toml, line 2, column 15: ", "1 to 99"},
        BadFile{"number_for_a_list", "[[case]]\nmodel = 'r50'\ndevices_per_node = 8\n",
                "x.toml, line 3, column 20: ", "list"},
        BadFile{"empty_list", "[[case]]\nmodel = 'r50'\ndevices_per_node = []\n",
                "x.toml, line 3, column 20: ", "empty"},
        BadFile{"missing_model", "[[case]]\nbatch_sizes = [1]\n", "x.toml, line 1, column 1: ", "no 'model'"},
        BadFile{"unknown_model", "[[case]]\nmodel = 'vgg'\n", "x.toml, line 2, column 9: ", "resnet50, r50"},
        BadFile{"twice", "[[case]]\nmodel = 'r50'\ndevices_per_node = [1, 2, 1]\n",
                "x.toml, line 3, column 27: ", "twice"},
        BadFile{"zero_batch", "[[case]]\nmodel = 'r50'\ndevices_per_node = [1]\nbatch_sizes = [0]\n",
                "x.toml, line 4, column 16: ", "1 to 16777216"},
        BadFile{"long_list", "[[case]]\nmodel = 'r50'\ndevices_per_node = " + numbers(1001),
                "x.toml, line 3, column 20: ", "more than 1000"},
        BadFile{"too_many_runs",
                "[[case]]\nmodel = 'r50'\nprecisions = ['fp32']\ndevices_per_node = " + numbers(500) +
                    "\nbatch_sizes = " + numbers(500),
                "x.toml, line 1, column 1: ", "more than 100000 runs"},
        BadFile{"case_is_no_list", "case = 3\n", "x.toml, line 1, column 8: ", "[[case]]"},
        BadFile{"same_case_twice", kCase + kCase, "x.toml, line 6, column 1: ", "another 'name'"},
        BadFile{"name_with_slash", kCase + "name = 'a/b'\n", "x.toml, line 6, column 8: ", "letters"},
        BadFile{"nodes_without_hosts", kCase + "nodes = [1, 2]\n",
                "x.toml, line 6, column 9: ", "2n8g wants 2 hosts; name them in [launcher]"},
        BadFile{"no_case", "[[case]]\nmodel = 'r50'\ncases = ['1n16']\n",
                "x.toml, line 3, column 9: ", "2n8g"},
        BadFile{"cases_and_nodes", "[[case]]\nmodel = 'r50'\ncases = ['1n1g']\nnodes = [1]\n",
                "x.toml, line 4, column 9: ", "leave one"},
        BadFile{"hosts_and_hostfile", "[launcher]\nhosts = 'n1'\nhostfile = 'f'\n" + kCase,
                "x.toml, line 3, column 12: ", "both name hosts"},
        BadFile{"hosts_are_an_option", "[launcher]\nhosts = '--help'\n" + kCase,
                "x.toml, line 2, column 9: ", "n1,n2"},
        BadFile{"another_launcher_over_hosts", "[launcher]\nhosts = 'n1'\ncommand = 'flux'\n" + kCase,
                "x.toml, line 3, column 11: ", "mpirun, srun, or launch/run"},
        BadFile{"ranks_option_over_hosts", "[launcher]\nhosts = 'n1'\nranks_option = '-n'\n" + kCase,
                "x.toml, line 3, column 16: ", "leave 'ranks_option' out"},
        BadFile{"ranks_over_hosts", "[launcher]\nhosts = 'n1,n2'\narguments = ['-np', '1']\n" + kCase,
                "x.toml, line 3, column 13: ", "'-np' is the sweep's"},
        BadFile{"option_of_the_sweep", kCase + "options = { bs = 3 }\n",
                "x.toml, line 6, column 18: ", "batch_sizes"},
        BadFile{"option_with_dashes", kCase + "options = { '--lr' = 3 }\n",
                "x.toml, line 6, column 22: ", "dashes"},
        BadFile{"option_is_a_list", kCase + "options = { lr = [3] }\n",
                "x.toml, line 6, column 18: ", "a list"},
        BadFile{"option_is_false", kCase + "options = { quiet = false }\n",
                "x.toml, line 6, column 21: ", "leave it out"}),
    [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace plumb
