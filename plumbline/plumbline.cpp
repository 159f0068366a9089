// plumbline: analysis of logs and results, and the files around them; needs no GPU and no mpirun.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/build.h"
#include "base/console/print.h"
#include "base/error.h"
#include "base/options/completions.h"
#include "base/paths.h"
#include "base/process/this_process.h"
#include "plumbline/command.h"

namespace {

using plumb::Command;

void print_help() {
  std::string text = "Usage: plumbline COMMAND [options]\n\nCommands:\n";
  for (const Command& command : plumb::plumbline_commands())
    text += fmt::format("  {:<12}{}\n", command.name, command.help);
  text +=
      "\nExamples:\n"
      "  plumbline analyze --help # what most people need of a command; --help-all prints all options\n"
      "  plumbline --version --json # version and libraries\n"
      "  plumbline --completions bash # completions for bash, zsh or fish\n";
  plumb::print_text(text);
}

int run(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "-h" || name == "--help-all") {
    print_help();
    return 0;
  }
  if (name == "--version") {
    const bool as_json = argc > 2 && std::string(argv[2]) == "--json";
    const plumb::Json build = plumb::build_json();
    plumb::print_text(as_json ? plumb::json_text(build) : plumb::version_text("plumbline", build));
    return 0;
  }
  if (name == "--completions") {
    plumb::print_text(plumb::completions(argc > 2 ? argv[2] : "", "plumbline"));
    return 0;
  }
  for (const Command& command : plumb::plumbline_commands())
    if (command.name == name) return command.run(argc - 1, argv + 1);
  const std::string near =
      plumb::nearest_name(name, plumb::mapped(plumb::plumbline_commands(), &Command::name));
  throw plumb::Error(plumb::ExitCode::usage,
                     name.empty()
                         ? "expected a command; see plumbline --help"
                         : "'" + name + "' is not a command; " +
                               (near.empty() ? "plumbline --help lists them" : "did you mean " + near + "?"));
}

}  // namespace

int main(int argc, char** argv) {
  plumb::open_standard_descriptors();
  const auto own_options = [] { return plumb::table_before_commands("plumbline"); };
  if (const auto code = plumb::answer_to_shell(argc, argv, own_options, plumb::plumbline_commands()))
    return *code;
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` fails like one on a full disk
  try {
    return run(argc, argv);
  } catch (const plumb::Error& error) {
    std::fprintf(stderr, "plumbline: %s\n", plumb::printable(error.what()).c_str());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plumbline: unexpected failure (%s); report this\n", error.what());
    return static_cast<int>(plumb::ExitCode::internal);
  }
}
