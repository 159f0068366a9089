#include <functional>
#include <map>

#include "base/text.h"
#include "models/catalogue.h"
#include "results/report/report_curves.h"

namespace plumb {
namespace {

struct Property {
  std::string what, text;
  auto operator<=>(const Property&) const = default;
};

std::string image_size_text(const Configuration& c) {
  const Model* model = find_model(c.model);
  const bool is_usual_size = model != nullptr && model->image_size == c.image_size;
  return c.image_size > 0 && !is_usual_size ? fmt::format("{} pixels", c.image_size) : "";
}

// In the order in which labels name them.
std::vector<Property> properties_of(const Configuration& c) {
  std::vector<Property> properties;
  const auto add = [&](const std::string& what, const std::string& text) {
    if (!text.empty()) properties.push_back({what, text});
  };
  const auto words = [](const std::string& name, const std::string& value) {
    return replaced(name, '_', " ") + " " + value;
  };
  add("framework", c.framework);
  add("model", c.model);
  add("precision", c.precision);
  add("batch", c.batch_per_device > 0 ? fmt::format("batch {}", c.batch_per_device) : "");
  add("device", c.device);
  add("data", c.data);
  add("image size", image_size_text(c));
  add("head", c.head == "none" || c.head.empty() ? "" : "head " + c.head);
  add("classes", c.classes > 0 ? fmt::format("{} classes", c.classes) : "");
  for (const auto& [name, value] : c.options)
    if (!is_usual(name, value)) add("option " + name, words(name, value));
  for (const auto& [name, value] : c.settings) add("setting " + name, words(name, value));
  return properties;
}

bool is_worded_together(const std::string& what) {
  return what == "framework" || what == "model" || what == "precision";
}

// "Plumbline fp16, batch 128"
template <typename Wanted>
std::string joined_properties(const Configuration& c, const Wanted& wanted) {
  std::string text;
  bool after_words = false;
  for (const Property& property : properties_of(c)) {
    if (!wanted(property)) continue;
    const bool together = is_worded_together(property.what);
    append_part(text, property.text, together && after_words ? " " : ", ");
    after_words = together;
  }
  return text;
}

}  // namespace

Labels labels_of(const std::vector<Configuration>& configurations) {
  if (configurations.empty()) return {};
  std::map<Property, std::size_t> counts;
  for (const Configuration& c : configurations)
    for (const Property& property : properties_of(c)) ++counts[property];
  const auto is_shared = [&](const Property& property) {
    return counts.at(property) == configurations.size();
  };
  Labels labels{.each = {}, .common = joined_properties(configurations.front(), is_shared)};
  for (const Configuration& c : configurations) {
    labels.each.push_back(joined_properties(c, std::not_fn(is_shared)));
    if (labels.each.back().empty())
      labels.each.back() = joined_properties(c, [](const Property& property) {
        return property.what == "framework" || property.what == "precision" || property.what == "batch";
      });
  }
  return labels;
}

}  // namespace plumb
