// Manual pages and completions, written when the programs are built, from the same tables of options that the
// programs read.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/options/completions.h"
#include "base/options/man_page.h"

namespace plumb {

class Documents {
 public:
  explicit Documents(std::string folder) : folder_(std::move(folder)) {}
  void write_page(const ManPage& page) const;                                              // man1/NAME.1
  void write_completions(const std::string& program) const;                                // completions/…
  void write_schema(const std::string& name, const nlohmann::ordered_json& schema) const;  // schemas/…
  void write(const std::string& name, const std::string& text) const;

 private:
  std::string folder_;
};

// The main function of a program whose one argument is the folder to write to.
int write_documents(int argc, char** argv, const std::function<void(const Documents&)>& documents);

}  // namespace plumb
