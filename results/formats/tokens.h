// Pieces of log lines, found as the regular expressions of the published scripts find them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace plumb {

// Python's str.isspace() for ASCII.
bool is_python_blank(char c);
// How many decimal digits stand at `begin` and behind it; 0 beyond the end.
std::size_t digits_at(std::string_view text, std::size_t begin);

// Reads a number as Python's float() does, blanks around it and underscores included: "1e999" is inf.
std::optional<double> python_float(std::string_view text);

// `.*elapse (.*?) sec`, read by float(): the text between the last "elapse " that a " sec" follows and that "
// sec". Nothing if there is no such text or it isn't a number; the number may be anything that float() reads.
std::optional<double> elapse_seconds(std::string_view line);

// `BEFORE(\d+\.\d+)AFTER`, the first, read by float(), e.g. "Total:" and " it/sec". `any`: `\d+.\d+`, where
// the dot stands for any character.
enum class Point { dot, any };
std::optional<double> decimal_between(std::string_view line, std::string_view before, std::string_view after,
                                      Point point = Point::dot);
// `Speed: (\d+.\d+) samples/sec`, the first, read by float(); the dot stands for any character.
std::optional<double> samples_per_second(std::string_view line);

// Reads a number as Python's int() does: blanks around it, a sign and underscores between digits are fine.
std::optional<std::int64_t> python_int(std::string_view text);

// The text behind the first `mark`; nothing without one.
std::optional<std::string_view> text_behind(std::string_view line, std::string_view mark);

// The number between `before` and `after`, e.g. "train batch " and "]"; nothing if there is no such number.
std::optional<std::int64_t> number_between(std::string_view line, std::string_view before,
                                           std::string_view after);

// 40 for "[40]" and "[20-40]" at the beginning of the text.
std::optional<std::int64_t> batch_in_brackets(std::string_view text);

}  // namespace plumb
