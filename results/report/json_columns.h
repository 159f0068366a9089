// How a report's lists become JSON: columns instead of objects, names kept once.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace plumb {

// Names of steps and buffers come again in every run: each is kept once, and referred to by its index.
class Names {
 public:
  std::size_t index(const std::string& name) {
    const auto [entry, is_new] = indices_.emplace(name, indices_.size());
    if (is_new) list_.push_back(name);
    return entry->second;
  }
  const nlohmann::ordered_json& list() const { return list_; }

 private:
  std::map<std::string, std::size_t> indices_;
  nlohmann::ordered_json list_ = nlohmann::ordered_json::array();
};

// One column of a list of structs.
template <typename List, typename Value>
nlohmann::ordered_json column(const List& list, const Value& value) {
  nlohmann::ordered_json values = nlohmann::ordered_json::array();
  for (const auto& item : list) values.push_back(value(item));
  return values;
}

template <typename Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace plumb
