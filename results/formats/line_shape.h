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
  std::optional<std::int64_t> epoch, iteration, from, count, writer;
  std::optional<double> value, mean, seconds, loss;
  std::string_view misfit;  // of a line that is near: the word where a number is expected
};

// begins: only the first word is there; near: all text is there, but a word where a number is expected.
enum class Fit { none, begins, near, whole };

// Text stands for itself, and
//   {epoch} {iteration} {from} {count} {writer}: a whole number after blanks or none; of "20-40" the second
//   {value} {mean} {seconds} {any}: a number after blanks or none, nan, inf, 1,530.81 and 1.53K among them;
//   {any} is passed over
//   a blank, ~: blanks or tabs, at least one, any number
//   *: anything up to the text that follows
//   ^ first, $ last: the line begins here, ends here but for blanks
//   |: or another shape
// A shape may begin anywhere in a line, so it begins with text or ^.
class LineShape {
 public:
  // The text must outlive the shape. A mistake in a constant one does not compile.
  constexpr LineShape(const char* text) : LineShape(std::string_view(text)) {}
  constexpr LineShape(std::string_view text) {
    std::string_view rest = text;
    while (!rest.empty()) add_part(rest);
    add({Kind::alternative});
    for (std::size_t i = 0; i < count_; ++i)
      if ((i == 0 || parts_[i - 1].kind == Kind::alternative) && parts_[i].kind != Kind::text &&
          parts_[i].kind != Kind::begin)
        throw "a shape begins with text or ^";
    for (std::size_t i = 0; i < count_; ++i)
      if (parts_[i].kind == Kind::skip && parts_[i + 1].kind != Kind::text) throw "text follows a *";
  }

  Fit match(std::string_view line, Captured& captured) const;

 private:
  enum class Kind { text, blanks, maybe_blanks, skip, whole_number, number, begin, end, alternative };
  struct Part {
    Kind kind = Kind::text;
    std::string_view text = {};  // in braces: the field's name
  };

  static constexpr bool is_whole_number(std::string_view name) {
    for (const char* known : {"epoch", "iteration", "from", "count", "writer"})
      if (name == known) return true;
    for (const char* known : {"value", "mean", "seconds", "any"})
      if (name == known) return false;
    throw "no such field in braces";
  }

  constexpr void add(Part part) {
    if (count_ == parts_.size()) throw "the shape is too long";
    parts_[count_++] = part;
  }

  constexpr void add_part(std::string_view& rest) {
    constexpr std::string_view kMarks = " ~*^$|", kSpecial = " ~*^$|{";
    constexpr std::array kKinds{Kind::blanks, Kind::maybe_blanks, Kind::skip,
                                Kind::begin,  Kind::end,          Kind::alternative};
    if (const std::size_t mark = kMarks.find(rest.front()); mark != std::string_view::npos) {
      add({kKinds[mark]});
      rest.remove_prefix(1);
    } else if (rest.front() == '{') {
      const std::string_view name = rest.substr(1, rest.find('}') - 1);
      add({is_whole_number(name) ? Kind::whole_number : Kind::number, name});
      rest.remove_prefix(name.size() + 2);
    } else {
      const std::string_view text = rest.substr(0, rest.find_first_of(kSpecial));
      add({Kind::text, text});
      rest.remove_prefix(text.size());
    }
  }

  Fit match_one(std::size_t first, std::size_t end, std::string_view line, Captured& captured) const;
  enum class Numbers { numbers, any_word };
  Fit match_from(std::size_t first, std::size_t end, std::string_view rest, Captured& captured) const;
  bool match_parts(std::size_t first, std::size_t end, std::string_view rest, Captured& captured,
                   Numbers numbers) const;
  bool match_any_word(std::size_t i, std::string_view& rest, Captured& captured) const;
  static bool match_part(const Part& part, std::string_view& rest, Captured& captured);

  std::array<Part, 96> parts_ = {};
  std::size_t count_ = 0;
};

// Takes a number off the front of the text, nan and inf among them; nothing if there is none. One beyond a
// double is infinite. It may have thousands' commas before a point, or two of them, and end with K or M, for
// thousands or millions; what 1,530 alone means is not known.
std::optional<double> take_number(std::string_view& text);
// Takes digits off the front of the text; nothing if there are none, or too many.
std::optional<std::int64_t> take_whole_number(std::string_view& text);
constexpr bool is_decimal_digit(char c) {
  return c >= '0' && c <= '9';
}
void skip_blanks(std::string_view& text);

}  // namespace plumb
