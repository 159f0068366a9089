// Sentences that differ in their figures only, as one.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace plumb {

// "held back in 89 % of the window" and "held back in 100 % of the window" become "held back in 89 to 100 %
// of the window". A number that is part of a name ("node2"), or of which a word says what it counts ("rank
// 3", "run 2"), is no figure.
class MergedSentences {
 public:
  void add(const std::string& sentence);
  // In the order in which they came, each with how many it stands for.
  std::vector<std::pair<std::string, std::size_t>> all() const;

 private:
  struct Figure {
    double low = 0, high = 0;
    std::string low_text, high_text;  // as they were written
  };
  struct Merged {
    std::vector<std::string> words;  // between the figures: one more than those
    std::vector<Figure> figures;
    std::size_t count = 1;
  };
  static Merged parsed(const std::string& sentence);
  std::vector<Merged> merged_;
};

}  // namespace plumb
