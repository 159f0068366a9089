#include "results/report/merged_sentences.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <utility>

#include "base/text.h"

namespace plumb {
namespace {

// A figure, or a range of them: "1740 to 1965".
const char* const kFigures = R"((\d+(?:\.\d+)?)(?: to (\d+(?:\.\d+)?))?)";

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '.' ||
         letter == '-';
}

bool is_name(const std::string& before, const std::string& after) {
  const auto ends_with = [&](const char* word) { return before.ends_with(word); };
  return (!before.empty() && is_word(before.back())) ||
         (!after.empty() && std::isalpha(static_cast<unsigned char>(after.front()))) ||
         std::ranges::any_of(std::array{"rank ", "ranks ", "run ", "runs ", "iteration "}, ends_with);
}

}  // namespace

MergedSentences::Merged MergedSentences::parsed(const std::string& sentence) {
  static const std::regex kFigure(kFigures);
  Merged merged;
  std::string words;
  std::size_t end = 0;
  for (std::sregex_iterator at(sentence.begin(), sentence.end(), kFigure), last; at != last; ++at) {
    const auto begin = static_cast<std::size_t>(at->position());
    words += sentence.substr(end, begin - end);
    end = begin + static_cast<std::size_t>(at->length());
    if (is_name(words, sentence.substr(end, 1))) {
      words += at->str();
      continue;
    }
    const std::string low = (*at)[1], high = (*at)[2].matched ? (*at)[2].str() : low;
    merged.figures.push_back({std::stod(low), std::stod(high), low, high});
    merged.words.push_back(std::exchange(words, ""));
  }
  merged.words.push_back(words + sentence.substr(end));
  return merged;
}

void MergedSentences::add(const std::string& sentence) {
  Merged one = parsed(sentence);
  const auto same = std::ranges::find(merged_, one.words, &Merged::words);
  if (same == merged_.end()) {
    merged_.push_back(std::move(one));
    return;
  }
  ++same->count;
  for (std::size_t i = 0; i < one.figures.size(); ++i) {
    Figure &all = same->figures[i], &figure = one.figures[i];
    if (figure.low < all.low) all.low = figure.low, all.low_text = figure.low_text;
    if (figure.high > all.high) all.high = figure.high, all.high_text = figure.high_text;
  }
}

std::vector<std::pair<std::string, std::size_t>> MergedSentences::all() const {
  std::vector<std::pair<std::string, std::size_t>> sentences;
  for (const Merged& merged : merged_) {
    std::string text;
    for (std::size_t i = 0; i < merged.figures.size(); ++i) {
      const Figure& figure = merged.figures[i];
      text += merged.words[i] + figure.low_text;
      if (figure.high_text != figure.low_text) text += " to " + figure.high_text;
    }
    sentences.emplace_back(text + merged.words.back(), merged.count);
  }
  return sentences;
}

}  // namespace plumb
