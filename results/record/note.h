// A sentence about runs, hosts or files that people should know, whoever finds it: what is odd about a run, a
// verdict on scaling, a file that was left out, what is wrong with a host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/record/fields.h"

namespace plumb {

enum class Severity { error, warning, note };
inline std::string name_of(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "note";
}

// What a finding is about: a host itself, or one of its GPUs, ports or programs.
struct NoteEntity {
  std::string host, kind, name;  // "node2", "gpu", "5"; name is empty if the kind is "host"
  bool operator==(const NoteEntity&) const = default;
  static void fields(auto& self, auto&& each) {
    each("host", self.host), each("kind", self.kind, Field{"host, gpu, port or program"});
    each("name", self.name, Field{.about = "index, port or path", .written = !self.name.empty()});
  }
};

struct Note {
  std::string kind;                  // a word for programs: "slow_rank", "REJECT", "truncated"
  std::string text;                  // a sentence without its end, with its figures
  std::string subject;               // "4n8g", "runs/3", "node2"; empty: all that was looked at
  std::optional<Severity> severity;  // nothing: the kind implies it
  std::vector<std::string> hosts;    // that a note of `plumbline doctor` is about; its subject is short
  std::string code, action;          // of a finding (docs/reference/findings.md), and what to do
  std::vector<NoteEntity> entities;  // that the finding is about

  bool operator==(const Note&) const = default;
  static void fields(auto& self, auto&& each) {
    each("severity", self.severity ? name_of(*self.severity) : "",
         Field{.about = "error, warning or note", .written = self.severity.has_value()});
    each("subject", self.subject), each("kind", self.kind), each("text", self.text);
    each("hosts", self.hosts, Field{.written = !self.hosts.empty()});
    const bool is_finding = !self.code.empty();
    each("code", self.code, Field{.about = "as docs/reference/findings.md", .written = is_finding});
    each("action", self.action, Field{.about = "what to do", .written = is_finding});
    each("entities", self.entities, Field{.written = is_finding});
  }
};

// "runs/3: the warm-up was not over …", or the text alone.
inline std::string note_text(const Note& note) {
  return note.subject.empty() ? note.text : note.subject + ": " + note.text;
}

}  // namespace plumb
