// plumbline_documents FOLDER: writes plumbline's manual page and completions, and the schemas of files.
#include <string>

#include "base/options/documents.h"
#include "launch/hosts/findings.h"
#include "launch/hosts/host_facts.h"
#include "launch/sweep/sweep_lock.h"
#include "launch/verdict/expectation.h"
#include "launch/verdict/verdict.h"
#include "plumbline/command.h"
#include "results/analysis/analyze.h"
#include "results/compare/compare.h"
#include "results/compare/gate.h"
#include "results/explain/explain.h"
#include "results/postmortem/postmortem.h"
#include "results/published/published.h"
#include "results/record/environment.h"
#include "results/record/last_words.h"
#include "results/record/links.h"
#include "results/record/schema.h"
#include "results/report/history.h"
#include "results/simulation/scaling_verdicts.h"

int main(int argc, char** argv) {
  using namespace plumb;
  return write_documents(argc, argv, [](const Documents& documents) {
    documents.write_page(plumbline_man_page(plumbline_commands()));
    documents.write_completions("plumbline");
    for (const Document& of : {kAnalyzeDocument, kCompareDocument, kDoctorDocument, kExpectationDocument,
                               kExplainDocument, kGateDocument, kHistoryDocument, kHostDocument,
                               kLastWordsDocument, kLinksDocument, kPostmortemDocument, kPublishedDocument,
                               kResultDocument, kScalingDocument, kSweepDocument, kVerdictDocument})
      // "gate" of "plumbline.gate/1"
      documents.write_schema(split(split(of.name, '.').back(), '/').front(),
                             of.make_schema(of.name, of.about));
    documents.write_schema("environment", json_schema_of<EnvironmentRecord>(
                                              "env.json", "Where a run ran: rank 0's host, then others."));
    documents.write_schema("version",
                           json_schema_of<BuildRecord>("--version --json", "A program and its libraries."));
  });
}
