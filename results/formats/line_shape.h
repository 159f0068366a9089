// The shape of a log line, as text: "[Pass {epoch}, train batch {iteration}]*elapse {value} sec".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace plumb {

// What a line that fits says, as far as its shape asks for it.
struct Captured {
  std::optional<std::int64_t> epoch, iteration, from, count;
  std::optional<double> value;
};

enum class Fit { none, begins, whole };  // begins: the first word is there, the rest is not

// Text stands for itself, and
//   {epoch} {iteration} {from} {count}  a whole number; of "20-40" the second counts
//   {value} {any}                       a number, nan and inf among them, after blanks or none; {any}:
//   ignored a blank, ~                          blanks or tabs: at least one, any number
//   *                                   anything up to the text that follows
//   ^ first, $ last                     the line begins here, ends here but for blanks
//   |                                   or another shape
// A shape may begin anywhere in a line, so it begins with text or ^.
class LineShape {
 public:
  // A mistake in the text does not compile.
  consteval LineShape(const char* text) : text_(text) {  // NOLINT(google-explicit-constructor): it is data
    std::string_view rest = text_;
    while (!rest.empty()) add_part(rest);
    add({Kind::alternative});
  }

  Fit match(std::string_view line, Captured& captured) const;

 private:
  enum class Kind { text, blanks, maybe_blanks, skip, whole_number, number, begin, end, alternative };
  struct Part {
    Kind kind = Kind::text;
    std::string_view text = {};  // in braces: the field's name
  };

  consteval void add(Part part) { parts_.at(count_++) = part; }

  consteval void add_part(std::string_view& rest) {
    constexpr std::string_view kMarks = " ~*^$|", kSpecial = " ~*^$|{";
    constexpr std::array kKinds{Kind::blanks, Kind::maybe_blanks, Kind::skip,
                                Kind::begin,  Kind::end,          Kind::alternative};
    if (const std::size_t mark = kMarks.find(rest.front()); mark != std::string_view::npos) {
      add({kKinds[mark]});
      rest.remove_prefix(1);
    } else if (rest.front() == '{') {
      const std::string_view name = rest.substr(1, rest.find('}') - 1);
      const bool is_whole = name == "epoch" || name == "iteration" || name == "from" || name == "count";
      if (!is_whole && name != "value" && name != "any") throw "no such field";
      add({is_whole ? Kind::whole_number : Kind::number, name});
      rest.remove_prefix(name.size() + 2);
    } else {
      const std::string_view text = rest.substr(0, rest.find_first_of(kSpecial));
      add({Kind::text, text});
      rest.remove_prefix(text.size());
    }
  }

  Fit match_one(std::size_t first, std::size_t end, std::string_view line, Captured& captured) const;
  bool match_parts(std::size_t first, std::size_t end, std::string_view rest, Captured& captured) const;
  static bool match_part(const Part& part, std::string_view& rest, Captured& captured);

  std::string_view text_;
  std::array<Part, 32> parts_ = {};
  std::size_t count_ = 0;
};

// Takes a number off the front of the text, nan and inf among them; nothing if there is none. One beyond a
// double is infinite.
std::optional<double> take_number(std::string_view& text);
// Takes digits off the front of the text; nothing if there are none, or too many.
std::optional<std::int64_t> take_whole_number(std::string_view& text);
void skip_blanks(std::string_view& text);

}  // namespace plumb
