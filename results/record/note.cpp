#include "results/record/note.h"

#include <algorithm>

#include "base/ranges.h"
#include "base/text_table.h"

namespace plumb {

std::string name_of(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "note";
}

std::string note_text(const Note& note) {
  return note.subject.empty() ? note.text : note.subject + ": " + note.text;
}

std::string note_items(const std::vector<Note>& notes) {
  std::string text;
  for (const Note& note : notes) text += "- " + markdown_literal(note_text(note)) + "\n";
  return text;
}

const Note* find_note(const std::vector<Note>& notes, std::string_view kind) {
  return find_in(notes, kind, &Note::kind);
}

}  // namespace plumb
