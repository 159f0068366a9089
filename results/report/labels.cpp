#include "results/report/labels.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "models/catalogue.h"

namespace plumb {
namespace {

struct Property {
  std::string what, text;
  bool of_model = false;    // models have their own: heads, classes, dropout
  bool is_setting = false;  // one that isn't named is as usual; any other one isn't known then
};

std::string image_size_text(const Configuration& c) {
  const Model* model = find_model(c.model);
  const bool is_usual_size = model != nullptr && model->image_size == c.image_size;
  return c.image_size > 0 && !is_usual_size ? fmt::format("{} pixels", c.image_size) : "";
}

// In the order in which labels name them.
std::vector<Property> properties_of(const Configuration& c) {
  std::vector<Property> properties;
  const auto add = [&](const std::string& what, const std::string& text, bool of_model = false,
                       bool is_setting = false) {
    if (!text.empty()) properties.push_back({what, text, of_model, is_setting});
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
  add("image size", image_size_text(c), true);
  add("head", c.head == "none" || c.head.empty() ? "" : "head " + c.head, true);
  add("classes", c.classes > 0 ? fmt::format("{} classes", c.classes) : "", true);
  for (const auto& [name, value] : c.options)
    if (!is_usual(name, value)) add("option " + name, words(name, value), true);
  for (const auto& [name, value] : c.settings) add("setting " + name, words(name, value), false, true);
  return properties;
}

// The texts of a property among all configurations, or among those of one model.
struct Texts {
  std::set<std::string> distinct;
  std::size_t count = 0;
};

class Shared {
 public:
  explicit Shared(const std::vector<Configuration>& configurations) {
    for (const Configuration& c : configurations) {
      ++members_[""];
      ++members_[c.model];
      for (const Property& property : properties_of(c)) {
        Texts& texts = texts_[{scope(c, property), property.what}];
        texts.distinct.insert(property.text);
        ++texts.count;
      }
    }
  }
  bool has(const Configuration& c, const Property& property) const {
    const Texts& texts = texts_.at({scope(c, property), property.what});
    return texts.distinct.size() == 1 &&
           (!property.is_setting || texts.count == members_.at(scope(c, property)));
  }

 private:
  static std::string scope(const Configuration& c, const Property& property) {
    return property.of_model ? c.model : "";
  }
  std::map<std::pair<std::string, std::string>, Texts> texts_;
  std::map<std::string, std::size_t> members_;
};

bool is_worded_together(const std::string& what) {
  return what == "framework" || what == "model" || what == "precision";
}

// "Plumbline fp16, batch 128"
void append_property(std::string& label, const Property& property, bool& after_words) {
  const bool together = is_worded_together(property.what);
  append_part(label, property.text, together && after_words ? " " : ", ");
  after_words = together;
}

template <typename Wanted>
std::string joined_properties(const Configuration& c, const Wanted& wanted) {
  std::string text;
  bool after_words = false;
  for (const Property& property : properties_of(c))
    if (wanted(property)) append_property(text, property, after_words);
  return text;
}

std::string common_text(const std::vector<Configuration>& configurations, const Shared& shared) {
  std::string text = joined_properties(configurations.front(), [&](const Property& property) {
    return !property.of_model && shared.has(configurations.front(), property);
  });
  std::map<std::string, std::string> by_model;
  for (const Configuration& c : configurations)
    by_model.emplace(c.model, joined_properties(c, [&](const Property& property) {
                       return property.of_model && shared.has(c, property);
                     }));
  const bool several = by_model.size() > 1;
  for (const auto& [model, own] : by_model)
    if (!own.empty()) append_part(text, several ? model + ": " + own : own, several ? "; " : ", ");
  return text;
}

}  // namespace

Labels labels_of(const std::vector<Configuration>& configurations) {
  if (configurations.empty()) return {};
  const Shared shared(configurations);
  Labels labels;
  for (const Configuration& c : configurations) {
    labels.each.push_back(
        joined_properties(c, [&](const Property& property) { return !shared.has(c, property); }));
    if (labels.each.back().empty())
      labels.each.back() = joined_properties(c, [](const Property& property) {
        return property.what == "framework" || property.what == "precision" || property.what == "batch";
      });
  }
  labels.common = common_text(configurations, shared);
  return labels;
}

}  // namespace plumb
