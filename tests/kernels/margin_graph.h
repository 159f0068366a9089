// A Graph whose only operation is a margin loss: its images are the features.
#pragma once

#include "models/graph.h"

namespace plumb {

inline Graph margin_graph(std::int64_t images, std::int64_t embedding, std::int64_t classes,
                          const MarginLoss& loss = {}, Head head = Head::sharded, double sample_rate = 1) {
  Graph graph{.model = "test"};
  graph.values.push_back({"images", {images, 1, 1, embedding}});
  graph.parameters.push_back({.name = "head.weight", .dims = {classes, embedding}});
  if (head != Head::replicated) graph.parameters[0].shard = RowShard{0, classes};
  MarginLoss op = loss;
  op.name = "head";
  op.classes = classes;
  op.head = head;
  op.sample_rate = sample_rate;
  op.seed = 5;
  graph.ops.push_back(op);
  return graph;
}

}  // namespace plumb
