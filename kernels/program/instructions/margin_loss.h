// A margin softmax over class centers. Formulas and order of collectives: kernels/program/margin_lowering.h.
// N: images of all ranks in the head's batch, n: this rank's images, E: embedding size, C: class centers per
// instruction. Operands are f32 unless noted; rows, products and d_rows have the weight's dtype.
#pragma once

#include "kernels/program/instructions/operand.h"

namespace plumb {

// x / |x| of this rank's features; also copies its labels into the buffer of all ranks' labels.
struct MarginNormalize {
  static constexpr std::string_view kName = "margin_features";
  Read features, labels;                        // [n, E], i32 [n]
  Write normalized, own_labels, inverse_norms;  // [n, E], i32 [n], [n]
  static void operands(auto& self, auto&& each) {
    each("features", self.features, "labels", self.labels, "normalized", self.normalized, "own_labels",
         self.own_labels, "inverse_norms", self.inverse_norms);
  }
};

struct MarginSampleClasses {
  static constexpr std::string_view kName = "margin_sample";
  Read labels, state;                    // i32 [N]
  Write samples, sample_count, columns;  // i32 [C], [1], [N]
  static void operands(auto& self, auto&& each) {
    each("labels", self.labels, "state", self.state, "samples", self.samples, "sample_count",
         self.sample_count, "columns", self.columns);
  }
};

struct MarginGatherRows {
  static constexpr std::string_view kName = "margin_gather";
  Read samples, sample_count, weight;  // weight: the fp32 master [classes, E]
  Write rows;                          // [C, E]
  static void operands(auto& self, auto&& each) {
    each("samples", self.samples, "sample_count", self.sample_count, "weight", self.weight, "rows",
         self.rows);
  }
};

struct MarginClassNorms {
  static constexpr std::string_view kName = "margin_class_norms";
  Read rows;                         // [C, E]
  std::optional<Read> sample_count;  // i32 [1]
  Write class_inverse_norms;         // [C]
  static void operands(auto& self, auto&& each) {
    each("rows", self.rows, "sample_count", self.sample_count, "class_inverse_norms",
         self.class_inverse_norms);
  }
};

struct MarginProducts {
  static constexpr std::string_view kName = "margin_products";
  Read normalized, rows;  // [N, E], [C, E]
  Write products;         // [N, C]
  static void operands(auto& self, auto&& each) {
    each("normalized", self.normalized, "rows", self.rows, "products", self.products);
  }
};

struct MarginStatistics {
  static constexpr std::string_view kName = "margin_statistics";
  Read products, class_inverse_norms, columns;        // [N, C], [C], i32 [N]
  std::optional<Read> sample_count;                   // i32 [1]
  Write local_max, row_max, row_sums, target_factor;  // [N], [N], [2, N], [N]
  static void operands(auto& self, auto&& each) {
    each("products", self.products, "class_inverse_norms", self.class_inverse_norms, "columns", self.columns,
         "sample_count", self.sample_count, "local_max", self.local_max, "row_max", self.row_max, "row_sums",
         self.row_sums, "target_factor", self.target_factor);
  }
};

// Rescales the sums from local_max to row_max.
struct MarginRescale {
  static constexpr std::string_view kName = "margin_rescale";
  Read local_max, row_max;
  ReadWrite row_sums;
  static void operands(auto& self, auto&& each) {
    each("local_max", self.local_max, "row_max", self.row_max, "row_sums", self.row_sums);
  }
};

// Overwrites the products with their gradient.
struct MarginGradient {
  static constexpr std::string_view kName = "margin_gradient";
  ReadWrite products;
  Read class_inverse_norms, columns;
  std::optional<Read> sample_count;
  Read row_max, row_sums, target_factor;
  ReadWrite state;
  static void operands(auto& self, auto&& each) {
    each("products", self.products, "class_inverse_norms", self.class_inverse_norms, "columns", self.columns,
         "sample_count", self.sample_count, "row_max", self.row_max, "row_sums", self.row_sums,
         "target_factor", self.target_factor, "state", self.state);
  }
};

struct MarginFeatureProducts {
  static constexpr std::string_view kName = "margin_feature_products";
  Read products, rows;
  Write d_normalized;  // [N, E]
  static void operands(auto& self, auto&& each) {
    each("products", self.products, "rows", self.rows, "d_normalized", self.d_normalized);
  }
};

struct MarginWeightGradient {
  static constexpr std::string_view kName = "margin_weight_gradient";
  Read products, normalized, rows, class_inverse_norms;
  Write d_rows;  // [C, E]
  static void operands(auto& self, auto&& each) {
    each("products", self.products, "normalized", self.normalized, "rows", self.rows, "class_inverse_norms",
         self.class_inverse_norms, "d_rows", self.d_rows);
  }
};

struct MarginFeaturesBackward {
  static constexpr std::string_view kName = "margin_features_backward";
  Read d_normalized, normalized, inverse_norms;  // [n, E], [n, E], [n]
  Write d_features;                              // [n, E]
  static void operands(auto& self, auto&& each) {
    each("d_normalized", self.d_normalized, "normalized", self.normalized, "inverse_norms",
         self.inverse_norms, "d_features", self.d_features);
  }
};

}  // namespace plumb
