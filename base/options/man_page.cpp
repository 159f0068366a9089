#include "base/options/man_page.h"

namespace plumb {
namespace {

constexpr int kColumns = 72;  // of 80, as man indents text by 7

// Text that roff takes as it is: no escapes, no requests at the beginning of a line. Hyphens stay the signs
// that one types, so that options can be copied and searched.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    const bool begins_line = out.empty() || out.back() == '\n';
    if (begins_line && (letter == '.' || letter == '\'')) out += "\\&";
    if (letter == '\\')
      out += "\\e";
    else if (letter == '-')
      out += "\\-";
    else if (letter == '\n' && begins_line)
      out += "\\&\n";  // an empty line would be a request
    else
      out += letter;
  }
  return out;
}

// An argument of a request.
std::string quoted(const std::string& text) {
  return "\"" + replaced(escaped(text), '"', "\\(dq") + "\"";
}

// Text that is set as it is.
std::string unfilled(const std::string& text) {
  return ".PP\n.nf\n" + escaped(text) + "\n.fi\n";
}

std::string tagged(const std::string& tag, const std::string& text) {
  return ".TP\n.B " + quoted(tag) + "\n" + escaped(text) + "\n";
}

std::string section_text(const ManSection& section) {
  std::string text = ".SH " + quoted(section.title) + "\n";
  for (std::size_t i = 0; i < section.paragraphs.size(); ++i)
    text += (i > 0 ? ".PP\n" : "") + escaped(section.paragraphs[i]) + "\n";
  if (!section.example.empty()) text += unfilled(section.example);
  return text;
}

}  // namespace

const std::vector<std::pair<std::string, std::string>>& exit_code_texts() {
  static const std::vector<std::pair<std::string, std::string>> codes{
      {"0", "done"},
      {"1", "plumbline gate: slower than the baseline; doctor: warnings; screen, check, accept: fail"},
      {"2", "plumbline screen, check, accept: can't tell"},
      {"64",
       "usage: unknown option or value, a precision that the device lacks, ranks that disagree, two ranks on "
       "one GPU"},
      {"65", "bad input: missing, empty or broken images, weights, batches, logs, results or sweep files"},
      {"69", "no such device, library, program or host"},
      {"70", "internal error, or an error of the device"},
      {"71", "out of memory: what was wanted, what was free, and the batch that would fit"},
      {"73", "an output exists already or can't be created"},
      {"74", "reading or writing failed while running"},
      {"75", "another rank died or hangs, or a connection to it was shut"},
      {"76", "verification failed: a wrong sum, replicas that differ, a loss that isn't finite"},
      {"128 + n",
       "ended by signal n; a run in its timed window first shows what it measured (130: Ctrl-C, 143: "
       "SIGTERM)"}};
  return codes;
}

const std::vector<std::pair<std::string, std::string>>& variable_texts() {
  static const std::vector<std::pair<std::string, std::string>> variables{
      {"NO_COLOR", "set to anything: no colors"},
      {"TMPDIR", "folder where MPI keeps files during a run; needs at least 1 MiB"},
      {"XDG_CACHE_HOME", "folder of plumbline/tuning, the tuning cache; default ~/.cache"},
      {"PLUMBLINE_NVML_LIBRARY", "path of libnvidia-ml.so.1"},
      {"PLUMB_CUDA_LIBRARIES", "folders with CUDA's libraries, for the programs of launch/bundle"},
      {"OMP_WAIT_POLICY, GOMP_SPINCOUNT",
       "if neither is set, the programs set passive and 3000 and start again"}};
  return variables;
}

std::string man_page(const ManPage& page, const std::string& version) {
  std::string text =
      ".TH " + quoted(page.name) + " 1 \"\" " + quoted("Plumbline " + version) + " \"User Commands\"\n";
  text +=
      ".nh\n.ad l\n.SH NAME\n" + escaped(page.name) + " \\- " + escaped(page.purpose) + "\n.SH SYNOPSIS\n";
  for (std::size_t i = 0; i < page.synopsis.size(); ++i)
    text += (i > 0 ? ".br\n" : "") + escaped(page.synopsis[i]) + "\n";
  text += ".SH DESCRIPTION\n" + escaped(page.description) + "\n";
  for (const OptionTable& table : page.tables)
    text += ".SH OPTIONS\n" + unfilled(options_text(table, Shown::in_documents, kColumns));
  if (!page.commands.empty()) text += ".SH COMMANDS\n";
  for (const OptionTable& table : page.commands)
    text += ".SS " + quoted(table.program) + "\n" + unfilled(help_text(table, Shown::in_documents, kColumns));
  for (const ManSection& section : page.sections) text += section_text(section);
  text += ".SH \"EXIT STATUS\"\n";
  for (const auto& [code, meaning] : exit_code_texts()) text += tagged(code, meaning);
  text +=
      "Every failure is one sentence on standard error that names the option or file, the value and the "
      "remedy\\&.\n.SH ENVIRONMENT\n";
  for (const auto& [name, effect] : variable_texts()) text += tagged(name, effect);
  return text;
}

ManSection see_also(const std::string& others) {
  return {.title = "SEE ALSO", .paragraphs = {others}};
}

}  // namespace plumb
