#include "launch/hosts/finding_list.h"

#include <algorithm>
#include <utility>

#include "base/paths.h"
#include "base/text.h"

namespace plumb {

void FindingList::add(Severity severity, const std::string& check, const std::string& host,
                      const std::string& what, const std::string& detail, const std::string& remedy) {
  const std::string key = fmt::format("{}\n{}\n{}\n{}", static_cast<int>(severity), check, what, remedy);
  const auto [entry, is_new] = index_.try_emplace(key, collected_.size());
  if (is_new) collected_.push_back({{severity, check, {}, printable(what), printable(remedy)}, detail});
  Collected& found = collected_[entry->second];
  found.details_differ |= found.detail != detail;
  if (std::vector<std::string>& hosts = found.finding.hosts; hosts.empty() || hosts.back() != host)
    hosts.push_back(host);
}

std::vector<Finding> FindingList::take() && {
  std::vector<Finding> findings;
  for (Collected& found : collected_) {
    if (!found.detail.empty())
      found.finding.what += fmt::format(" ({}{})", printable(found.detail),
                                        found.details_differ ? " on " + found.finding.hosts.front() : "");
    findings.push_back(std::move(found.finding));
  }
  std::ranges::stable_sort(findings, {}, &Finding::severity);
  return findings;
}

}  // namespace plumb
