#include "results/record/gpu_name.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "base/text.h"

namespace plumb {
namespace {

// "NVIDIA A100-SXM4-80GB" is "a100 sxm4 80gb".
std::string bare_name(const std::string& name) {
  std::string bare = replaced(lower_case(name), '-', " ");
  for (const std::string maker : {"nvidia ", "tesla "})
    if (bare.starts_with(maker)) bare = bare.substr(maker.size());
  return bare;
}

bool is_digit(char letter) {
  return std::isdigit(static_cast<unsigned char>(letter)) != 0;
}

bool is_memory_or_slot(const std::string& word) {
  for (const char* slot : {"sxm", "pcie", "nvl", "hbm", "mig"})
    if (word.starts_with(slot)) return true;
  return is_digit(word.front()) && word.ends_with("gb");
}

// "a100 sxm4 80gb" is an "a100".
std::string product_of(const std::string& bare) {
  std::istringstream words(bare);
  std::string product;
  for (std::string word; words >> word && !is_memory_or_slot(word);) append_part(product, word, " ");
  return product;
}

struct Generation {
  const char* name;
  int time;                         // two may share one
  std::vector<const char*> fronts;  // of their products' names
};
// As GpuGeneration.
const Generation kGenerations[]{
    {"", 0, {}},
    {"Volta", 1, {"v100", "titan v", "quadro gv"}},
    {"Turing", 1, {"t4", "quadro rtx", "titan rtx", "geforce rtx 20", "geforce gtx 16"}},
    {"Ampere", 2, {"a100", "a800", "a30", "a40", "a10", "a16", "a2", "rtx a", "geforce rtx 30"}},
    {"Ada", 3, {"l4", "l20", "geforce rtx 40"}},
    {"Hopper", 3, {"h100", "h200", "h800", "h20", "gh200"}},
    {"Blackwell", 4, {"b100", "b200", "b300", "gb200", "gb300", "gb10", "rtx pro", "geforce rtx 50"}}};

const Generation& known(GpuGeneration generation) {
  return kGenerations[static_cast<std::size_t>(generation)];
}

// Ada cards of workstations have numbers that other generations have, too.
GpuGeneration generation_of(const std::string& product) {
  if (product.ends_with("ada generation")) return GpuGeneration::ada;
  for (std::size_t i = 0; i < std::size(kGenerations); ++i)
    for (const char* front : kGenerations[i].fronts)
      if (product.starts_with(front)) return static_cast<GpuGeneration>(i);
  return GpuGeneration::unknown;
}

}  // namespace

GpuGeneration gpu_generation(const std::string& name) {
  return generation_of(product_of(bare_name(name)));
}

std::string generation_name(GpuGeneration generation) {
  return known(generation).name;
}

bool is_same_device(const std::string& a, const std::string& b) {
  return bare_name(a) == bare_name(b);
}

int gpu_distance(const std::string& own, const std::string& other) {
  constexpr int kFarthest = 9;
  const std::string own_name = bare_name(own), other_name = bare_name(other);
  const GpuGeneration mine = generation_of(product_of(own_name));
  const GpuGeneration its = generation_of(product_of(other_name));
  if (own_name == other_name && !own_name.empty()) return 0;
  if (mine == GpuGeneration::unknown) return 1;
  if (product_of(own_name) == product_of(other_name)) return 1;
  if (mine == its) return 2;
  if (its == GpuGeneration::unknown) return kFarthest;
  return 2 + std::max(1, std::abs(known(mine).time - known(its).time));
}

bool names_gpu(const std::string& wanted, const std::string& name) {
  const std::string part = bare_name(wanted);
  const std::string text = bare_name(name) + " " + lower_case(generation_name(gpu_generation(name)));
  if (part.empty()) return true;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    const bool inside = at > 0 && text[at - 1] != ' ';
    const bool cuts_number = end < text.size() && is_digit(text[end - 1]) && is_digit(text[end]);
    if (!inside && !cuts_number) return true;
  }
  return false;
}

}  // namespace plumb
