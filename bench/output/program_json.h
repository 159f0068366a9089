// program.json: the Program of a run, for the simulator, the report and for people.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "kernels/program/memory_plan.h"
#include "kernels/program/program.h"

namespace plumb {

// {"format", "arena_bytes", ["layout": of a GPU: "nhwc"|"nchw"],
//  "buffers": [{"name", "role", "dtype", "dims", "bytes", "offset", ["persistent": true],
//               ["sharded": true], ["view": {"of": index, "offset": bytes}]}],
//  "ops": [{"name", "kind", "phase", "lane", "uses": [{"buffer": index, "access": "r"|"w"|"rw"}],
//             "workspace_bytes", "macs", "bytes", ["collective": {"kind", "buffer", "elements", "dtype"}]}]}
// `plan` gives arena_bytes and offsets.
nlohmann::ordered_json program_json(const Program& program, const MemoryPlan& plan);

}  // namespace plumb
