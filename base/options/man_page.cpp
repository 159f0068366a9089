#include "base/options/man_page.h"

namespace plumb {

extern const std::string_view kExitCodesPage, kEnvironmentPage;  // docs/reference

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

// The first table of a page of documents, whose two columns are tags and texts.
std::string tagged_rows(std::string_view page) {
  constexpr std::string_view kHeadEnd = "|---|---|\n";
  const std::size_t begin = page.find(kHeadEnd) + kHeadEnd.size();
  std::string text;
  for (const std::string& row : split(page.substr(begin, page.find("\n\n", begin) - begin), '\n')) {
    const std::size_t between = row.find(" | ");
    text += tagged(row.substr(2, between - 2), row.substr(between + 3, row.size() - between - 5));
  }
  return text;
}

std::string section_text(const ManSection& section) {
  std::string text = ".SH " + quoted(section.title) + "\n";
  for (std::size_t i = 0; i < section.paragraphs.size(); ++i)
    text += (i > 0 ? ".PP\n" : "") + escaped(section.paragraphs[i]) + "\n";
  return text;
}

}  // namespace

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
  text += ".SH \"EXIT STATUS\"\n" + tagged_rows(kExitCodesPage) +
          "Every failure is one sentence on standard error that names the option or file, the value and the "
          "remedy\\&.\n.SH ENVIRONMENT\n";
  return text + tagged_rows(kEnvironmentPage);
}

ManSection see_also(const std::string& others) {
  return {.title = "SEE ALSO", .paragraphs = {others}};
}

}  // namespace plumb
