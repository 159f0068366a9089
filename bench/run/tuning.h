// Which engines and fused patterns a run uses: rank 0 finds out, every rank takes its answer.
#pragma once

#include "bench/run/session.h"

namespace plumb {

// Fills in Session::tuning. Rank 0 shows progress on stderr unless --quiet: a bar on a terminal, elsewhere a
// line every ten seconds. Every rank calls it, after read_inputs().
void tune_session(const Job& job, Session& session, const UpdateRule& rule);

}  // namespace plumb
