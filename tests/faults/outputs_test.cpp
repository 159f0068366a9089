// R7 and R8: outputs are checked before anything is computed, and runs never mix or overwrite each other.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <set>

#include "tests/bench/image_files.h"
#include "tests/faults/started_program.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

const std::string kRun = kSmallImages + "--iters 2 ";

// An option that names an output, in a command that makes it quickly.
struct OutputOption {
  std::string name, option;
  std::string (Place::*program)(const std::string&) const = nullptr;
  std::string arguments;  // up to the value
  bool is_folder = false;
  std::size_t longest_name = 255;  // bytes of the value; what is made may be longer
  std::string ending;              // of what is made
  int ranks = 1;
};

const std::string kDialect = "--dialect pytorch ";

// Of each kind of program a file and a folder.
const std::set<std::string> kMeetAllObstacles = {"ResnetOut", "ResnetWeights", "Links", "Report", "Sweep"};

const std::vector<OutputOption> kOutputs = {
    {"ResnetOut", "--output", &Place::resnet50, kRun + "--output ", true},
    {"ResnetLogDir", "--log-dir", &Place::resnet50, kRun + "--log-dir ", true},
    {"ResnetDialect", "--log-dir", &Place::resnet50, kRun + kDialect + "--log-dir ", true},
    {"ResnetWeights", "--save-weights", &Place::resnet50, kRun + "--save-weights "},
    {"FacesOut", "--output", &Place::bench, kSmall + "--iters 2 --output ", true},
    {"FacesLogDir", "--log-dir", &Place::bench, kSmall + "--iters 2 --log-dir ", true},
    {"FacesWeights", "--save-weights", &Place::bench, kSmall + "--iters 2 --save-weights "},
    {.name = "Links",
     .option = "--output",
     .program = &Place::allreduce,
     .arguments = "-b 1K -e 1K -n 2 -w 1 --output ",
     .ranks = 2},
    {"AnalyzeJson", "--json", &Place::plumbline, "analyze " PLUMB_TEST_DATA "/dialects/oneflow_cnn --json "},
    {"GateJunit", "--junit", &Place::plumbline, "gate new --baseline old --junit "},
    {"Report", "-o", &Place::plumbline, "report new -o "},
    {"History", "-o", &Place::plumbline, "report --history old -o "},
    {"Prometheus", "-o", &Place::plumbline, "export new --format prometheus -o "},
    {"Records", "OUT", &Place::make_rec, "images ", false, 251, ".rec"},
    {"Sweep", "--output", &Place::plumbline, "sweep sweep.toml --output ", true},
};

std::string command_of(const Place& place, const OutputOption& output, const std::string& value) {
  const std::string command = (place.*output.program)(output.arguments + value);
  return output.ranks == 1 ? command : Place::mpirun(output.ranks, command);
}

// A sweep of one run, by a program that leaves what a run leaves.
void write_sweep(const Place& place) {
  write_text(place.file("sweep.toml"),
             "[sweep]\nrepetitions = 1\n[launcher]\ncommand = './launcher'\narguments = []\nprograms = '.'\n"
             "[[case]]\nmodel = 'resnet50'\ndevices_per_node = [1]\nbatch_sizes = [2]\n"
             "precisions = ['fp32']\niterations = 4\nwarmup = 1\n");
  write_text(place.file("launcher"), "#!/bin/sh\nshift 2\nexec \"$@\"\n");
  const std::string real = fs::path(PLUMB_PLUMBLINE).parent_path() / "bench_resnet50";
  write_text(place.file("bench_resnet50"), R"(#!/bin/sh
case " $* " in *" --print-config "*) exec ')" + real +
                                               R"(' "$@" ;; esac
for word; do
  case $word in
    --log-dir=*) logs=${word#*=}/1n1g ;;
    --output=*) out=${word#*=}/run ;;
    --run=*) run=${word#*=} ;;
  esac
done
mkdir -p "$logs" "$out" && : >"$logs/resnet50_b2_fp32_$run.log" && echo {} >"$out/result.json"
)");
  for (const char* program : {"launcher", "bench_resnet50"})
    fs::permissions(place.file(program), fs::perms::owner_all);
}

enum class Under { usual, no_capabilities, read_only_disk };

// Why nothing can be made under a name. Every output meets the first of each list.
struct Obstacle {
  std::string name, value, reason;
  Under under = Under::usual;
};

const std::string kTooManyLinks = "Too many levels of symbolic links", kTaken = "exists already";
const std::vector<Obstacle> kObstacles = {
    {"NoPermission", "shut/new", "Permission denied", Under::no_capabilities},
    {"ReadOnlyDisk", "disk/new", "Read-only file system", Under::read_only_disk},
    {"FolderIsALoopOfLinks", "loop/new", kTooManyLinks},
    {"NameIsTooLong", std::string(256, 'x'), "File name too long"},
    {"FolderIsAFile", "file/new", "Not a directory"},
};
const std::vector<Obstacle> kObstaclesOfFolders = {
    {"IsALoopOfLinks", "loop", kTooManyLinks},
    {"IsAFile", "file", "Not a directory"},
    {"CannotBeMade", "/proc/new", "cannot create the folder"},
};
const std::vector<Obstacle> kObstaclesOfFiles = {
    {"IsALoopOfLinks", "loop", kTaken},
    {"IsAFile", "file", kTaken},
    {"CannotBeMade", "/proc/new", "cannot create "},
    {"FolderIsMissing", "missing/new", "folder missing does not exist; create it"},
};

struct Refusal {
  OutputOption output;
  Obstacle obstacle;
};
void PrintTo(const Refusal& refusal, std::ostream* stream) {
  *stream << refusal.output.option << " " << refusal.obstacle.reason;
}

std::vector<Refusal> refusals() {
  std::vector<Refusal> all;
  for (const OutputOption& output : kOutputs)
    for (const auto* obstacles : {&kObstacles, output.is_folder ? &kObstaclesOfFolders : &kObstaclesOfFiles})
      for (const Obstacle& obstacle : *obstacles)
        if (&obstacle == &obstacles->front() || kMeetAllObstacles.contains(output.name))
          all.push_back({output, obstacle});
  return all;
}

// Root without its capabilities is refused what anybody else is, and still reaches the programs.
std::string under(Under what, const std::string& command) {
  if (what == Under::no_capabilities && ::geteuid() == 0) return "setpriv --bounding-set=-all " + command;
  if (what == Under::read_only_disk) return with_own_mounts("mount -t tmpfs -o ro none disk && " + command);
  return command;
}

class RefusedOutputs : public testing::TestWithParam<Refusal> {};

// What the commands read is not there, so they have not looked for it; and a run says one line less.
TEST_P(RefusedOutputs, EndTheCommandAtOnceAndLeaveNothing) {
  const auto& [output, obstacle] = GetParam();
  if (obstacle.under == Under::read_only_disk && !can_mount())
    GTEST_SKIP() << "mounting is not permitted here";
  const Place place;
  write_sweep(place);
  fs::create_directory(place.file("disk"));
  fs::create_directory(place.file("shut"));
  fs::permissions(place.file("shut"), fs::perms::owner_read | fs::perms::owner_exec);
  for (const std::string ending : {"", ".rec"}) {
    fs::create_symlink("loop" + ending, place.file("loop" + ending));
    write_text(place.file("file" + ending), "keep me");
  }
  const std::vector<std::string> before = place.contents();
  const Ended ended = place.run(under(obstacle.under, command_of(place, output, obstacle.value)));
  expect_one_sentence(ended, kCannotCreate,
                      {": " + output.option + " " + obstacle.value + ": ", obstacle.reason},
                      std::string(output.name) == "Records" ? "make_rec"
                      : output.program == &Place::plumbline ? "plumbline"
                                                            : "bench_");
  EXPECT_EQ(place.contents(), before);
  EXPECT_EQ(read_text(place.file("file")), "keep me");
}

INSTANTIATE_TEST_SUITE_P(Faults, RefusedOutputs, testing::ValuesIn(refusals()), [](const auto& tested) {
  return tested.param.output.name + tested.param.obstacle.name;
});

void PrintTo(const OutputOption& output, std::ostream* stream) {
  *stream << output.option;
}

class LongOutputs : public testing::TestWithParam<OutputOption> {};

TEST_P(LongOutputs, AreMade) {
  const OutputOption& output = GetParam();
  const Place place;
  write_sweep(place);
  write_example_runs(place, "old", 100);
  write_example_runs(place, "new", 101);
  write_image_folder(place.file("images"), 1, 1);
  for (const std::size_t bytes : {output.longest_name - 8, output.longest_name}) {
    const std::string value = (output.is_folder ? "missing/deep/" : "") + std::string(bytes, 'x');
    const Ended ended = place.run(command_of(place, output, value));
    EXPECT_EQ(ended.exit_code, 0) << testing::PrintToString(ended.lines);
    EXPECT_TRUE(fs::exists(place.file(value + output.ending))) << bytes;
    EXPECT_TRUE(place.contents_ending_in(".part").empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, LongOutputs, testing::ValuesIn(kOutputs),
                         [](const auto& tested) { return tested.param.name; });

struct Conflict {
  std::string name, arguments;
  std::vector<std::string> words;
};
void PrintTo(const Conflict& conflict, std::ostream* stream) {
  *stream << conflict.arguments;
}

// With logs that are there, or where one output can be made and a later one can't.
const std::vector<Conflict> kConflicts = {
    {"RunNumberOfAFinishedLog",
     "--run 7",
     {"--run 7: logs/1n1g/resnet50_b2_fp32_7.log exists already", "pass another --run"}},
    {"RunNumberOfAnUnfinishedLog",
     "--run 8",
     {"--run 8: logs/1n1g/resnet50_b2_fp32_8.log exists already", "pass another --run"}},
    {"LogDirAfterOut", "--log-dir /proc/logs --output new/deep", {"--log-dir /proc/logs: cannot create"}},
    {"WeightsBeforeOut", "--save-weights nowhere/w --output new", {"--save-weights nowhere/w: "}},
    {"FolderOfADialectAfterTheFirst",
     kDialect + "--log-dir half --output new",
     {"--log-dir half: cannot create half/pytorch/1n1g: Not a directory"}},
};

class ConflictingOutputs : public testing::TestWithParam<Conflict> {};

TEST_P(ConflictingOutputs, AreRefusedAtOnceAndLeaveNothing) {
  const Place place;
  fs::create_directories(place.file("logs/1n1g"));
  write_text(place.file("logs/1n1g/resnet50_b2_fp32_7.log"), "seven\n");
  write_text(place.file("logs/1n1g/resnet50_b2_fp32_8.log.part"), "eight\n");
  write_text(place.file("logs/1n1g/.plumbline-case"),
             "{\"model\":\"resnet50\",\"batch_per_device\":2,\"precision\":\"fp32\",\"image_size\":32}\n");
  fs::create_directory(place.file("half"));
  write_text(place.file("half/pytorch"), "");
  const std::vector<std::string> before = place.contents();
  expect_one_sentence(place.run(place.resnet50(kRun + GetParam().arguments)), kCannotCreate,
                      GetParam().words);
  EXPECT_EQ(place.contents(), before);
  EXPECT_EQ(read_text(place.file("logs/1n1g/resnet50_b2_fp32_7.log")), "seven\n");
  EXPECT_EQ(read_text(place.file("logs/1n1g/resnet50_b2_fp32_8.log.part")), "eight\n");
}

INSTANTIATE_TEST_SUITE_P(Faults, ConflictingOutputs, testing::ValuesIn(kConflicts),
                         [](const auto& tested) { return tested.param.name; });

TEST(Outputs, EightStartsAtOnceNeitherMixNorOverwrite) {
  const Place place;
  // One Place, because all share the folder; all write messages to one file.
  std::vector<std::unique_ptr<StartedProgram>> programs;
  const std::string command = place.bench(kSmall + "--iters 2 ");
  for (int i = 0; i < 8; ++i) programs.push_back(std::make_unique<StartedProgram>(place, command, ""));
  for (const auto& program : programs) EXPECT_EQ(program->wait().exit_code, 0);
  const std::vector<std::string> logs = place.contents_ending_in(".log");
  std::vector<std::string> expected;
  for (int run = 1; run <= 8; ++run)
    expected.push_back("logs/1n1g/y1_b2_fp32_" + std::to_string(run) + ".log");
  EXPECT_EQ(logs, expected);
  for (const std::string& log : logs) EXPECT_EQ(expect_whole_lines(place.file(log)), 2) << log;
  EXPECT_TRUE(place.contents_ending_in(".part").empty());
  std::set<std::string> named;
  for (const std::string& name : place.contents_ending_in("/result.json")) {
    const auto result = nlohmann::json::parse(read_text(place.file(name)));
    EXPECT_EQ(result.at("status"), "ok") << name;
    named.insert(result.at("log_files").at(0).get<std::string>());
  }
  EXPECT_EQ(named, std::set<std::string>(expected.begin(), expected.end()));
}

TEST(Outputs, CaseFolderOfAnotherConfigurationIsRefused) {
  const Place place;
  ASSERT_EQ(place.run(place.resnet50(kRun)).exit_code, 0);
  write_image_folder(place.file("images"), 2, 4);
  const std::vector<std::string> before = place.contents();
  const std::string common = "--iters 2 --warmup 1 --threads 1 ";
  for (const std::string other :
       {"--image-size 32 --bs 3", "--image-size 64 --bs 2", "--image-size 32 --bs 2 --data images"}) {
    const Ended ended = place.run("rm -f ../messages; " + place.resnet50(common + other));
    expect_one_sentence(
        ended, kCannotCreate,
        {"logs/1n1g holds resnet50_b2_fp32_1.log of another configuration (", "pass another --log-dir"});
    EXPECT_EQ(place.contents(), before) << other;
  }
}

TEST(Outputs, RunOffATerminalSaysAtMostFourLinesAndEndsWithItsFolder) {
  const Place place;
  write_image_folder(place.file("images"), 2, 4);
  write_text(place.file("images/broken.jpg"), "");
  for (const auto& entry : std::filesystem::directory_iterator(place.file("images")))
    if (entry.is_directory()) {
      write_text(entry.path() / "broken.jpg", "no picture");
      break;
    }
  const Ended ended = place.run(
      Place::mpirun(2, place.resnet50(kSmallImages + "--iters 6 --data images --data-workers 1 --verbose")));
  ASSERT_EQ(ended.exit_code, 0) << ended.launcher_messages;
  EXPECT_LE(ended.lines.size(), 4u);
  ASSERT_FALSE(ended.lines.empty());
  EXPECT_TRUE(std::filesystem::exists(place.file(ended.lines.back() + "/result.json"))) << ended.lines.back();
}

TEST(Outputs, ATemporaryFolderThatIsNotThereIsNamed) {
  const Place place;
  expect_one_sentence(place.run(place.plumbline("screen"), "TMPDIR=/nowhere"), kCannotCreate,
                      {"TMPDIR /nowhere: cannot create a folder in it", "set TMPDIR"}, "plumbline");
}

TEST(Outputs, AWorkingFolderThatIsGoneIsNotADefect) {
  const Place place;
  const std::string gone = "mkdir gone && cd gone && rmdir ../gone && ";
  const Ended doctor = place.run(gone + place.plumbline("doctor --program ./none"));
  EXPECT_NE(doctor.exit_code, kInternal) << testing::PrintToString(doctor.lines);
  const Place other;
  const Ended run = other.run(gone + other.resnet50(kRun));
  EXPECT_EQ(run.exit_code, kCannotCreate);
  ASSERT_FALSE(run.lines.empty());  // the first may be MPI's
  EXPECT_EQ(run.lines.back(),
            "bench_resnet50: --output runs: cannot create the folder: No such file or directory; pass "
            "another --output");
}

// A failure to print the table doesn't fail a checked run.
TEST(Outputs, FullStdoutIsLoudButTheRunStands) {
  const Place place;
  const Ended ended = place.run(place.resnet50(kRun) + " >/dev/full");
  EXPECT_EQ(ended.exit_code, 74);
  EXPECT_EQ(place.contents_ending_in(".log").size(), 1u);
  EXPECT_EQ(place.result().at("status"), "ok");
}

}  // namespace
}  // namespace plumb
