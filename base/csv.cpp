#include "base/csv.h"

#include "base/error.h"
#include "base/text.h"

namespace plumb {
namespace {

class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  std::vector<std::vector<std::string>> records() {
    std::vector<std::vector<std::string>> records;
    while (at_ < text_.size()) {
      if (take_line_end()) continue;
      records.push_back({field()});
      while (at_ < text_.size() && !take_line_end()) {
        if (text_[at_] != ',') fail("expected a comma or the line's end after a closing quote");
        ++at_;
        records.back().push_back(field());
      }
    }
    return records;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ExitCode::bad_data, "{}:{}: {}", origin_, line_, what);
  }

  bool take_line_end() {
    const std::size_t length = text_.substr(at_).starts_with("\r\n") ? 2 : text_[at_] == '\n' ? 1 : 0;
    at_ += length;
    line_ += length > 0 ? 1 : 0;
    return length > 0;
  }

  std::string field() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted_field();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n' &&
           !text_.substr(at_).starts_with("\r\n"))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted_field() {
    std::string field;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        field += text_[at_];
      } else if (text_.substr(at_).starts_with("\"\"")) {
        field += text_[++at_];
      } else {
        ++at_;
        return field;
      }
    }
    fail("expected a closing quote");
  }

  std::string_view text_;
  const std::string& origin_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

}  // namespace

std::vector<std::vector<std::string>> csv_records(std::string_view text, const std::string& origin) {
  return CsvReader(text, origin).records();
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  return fmt::format("\"{}\"", replaced(text, '"', "\"\""));
}

std::string csv_record(const std::vector<std::string>& fields) {
  std::string record;
  for (const std::string& field : fields) record += (&field == &fields.front() ? "" : ",") + csv_field(field);
  return record + "\n";
}

}  // namespace plumb
