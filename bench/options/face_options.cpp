#include "base/error.h"
#include "base/text.h"
#include "bench/options/options.h"
#include "models/arcface.h"

namespace plumb {
namespace {

// ArcFace, Deng et al. 2019; CosFace as insightface's partial_fc and glint360k have it; combined,
// insightface's recommendation for m1, m2, m3.
Margins margins_of(FaceLoss loss) {
  if (loss == FaceLoss::cosface) return {.m1 = 1, .m2 = 0, .m3 = 0.4};
  if (loss == FaceLoss::combined) return {.m1 = 1, .m2 = 0.3, .m3 = 0.2};
  return {.m1 = 1, .m2 = 0.5, .m3 = 0};
}

Margins parse_margins(const std::string& text) {
  const auto number = [](const std::string& part) {
    return parse_number<double>("--margins", part, {.lowest = -10, .highest = 10});
  };
  const std::vector<std::string> parts = split(text, ',');
  try {
    if (parts.size() == 3) return {.m1 = number(parts[0]), .m2 = number(parts[1]), .m3 = number(parts[2])};
  } catch (const Error&) {  // as for any other text that isn't three numbers
  }
  throw Error(ExitCode::usage,
              "--margins {}: expected three numbers from -10 to 10; pass m1,m2,m3 as in 1,0.5,0", text);
}

OptionSpec margins_option(FaceOptions& o) {
  OptionSpec spec = make_option("--margins", "m1,m2,m3",
                                "margins of the target's logit: scale * (cos(m1 angle + m2) - m3)");
  spec.set = [&o](const std::string& text) { o.margins = parse_margins(text); };
  spec.get = [&o]() -> nlohmann::ordered_json {
    const Margins margins = o.margins.value_or(margins_of(o.loss));
    return {margins.m1, margins.m2, margins.m3};
  };
  spec.default_text = "arcface 1,0.5,0; cosface 1,0,0.4; combined 1,0.3,0.2";
  return spec;
}

}  // namespace

std::vector<OptionSpec> backbone_options(FaceOptions& o) {
  return {number_option("--embedding", "N", o.embedding, {1, kMaxEmbedding}, "features of a face")
              .with_default("512; y1 128")
              .rare(),
          enum_option<bool>("--prelu", o.prelu_per_layer, {{"channel", false}, {"layer", true}},
                            "slopes of PReLUs\nchannel: one per channel\n"
                            "layer: one per layer, and a trained scale in the last norm, as in PLSC")
              .rare(),
          number_option("--dropout", "P", o.dropout, {.lowest = 0, .highest = 1, .below_highest = true},
                        "share of features dropped before the last dense layer")
              .with_default("0.4; y1 has none")
              .rare()};
}

OptionGroup margin_group(FaceOptions& o) {
  using Gradient = MarginLoss::Gradient;
  return {
      "Class centers and loss",
      {number_option("--classes", "N", o.classes, {1, kMaxClasses}, "identities, over all ranks"),
       enum_option<Head>("--head", o.head,
                         {{"dp", Head::replicated}, {"mp", Head::sharded}, {"pfc", Head::sampled}},
                         "where the class centers are\ndp: all on every rank\nmp: spread over the ranks\n"
                         "pfc: Partial FC, spread, with a sample of the negative classes"),
       number_option("--sample-rate", "R", o.sample_rate, {.lowest = 0, .highest = 1, .above_lowest = true},
                     "share of a rank's classes that a step of pfc uses")
           .with_default("0.1")
           .rare(),
       enum_option<FaceLoss>(
           "--loss", o.loss,
           {{"arcface", FaceLoss::arcface}, {"cosface", FaceLoss::cosface}, {"combined", FaceLoss::combined}},
           "default of --margins")
           .rare(),
       margins_option(o).rare(),
       number_option("--scale", "S", o.scale, {.lowest = 0, .highest = 1e4, .above_lowest = true},
                     "factor on all logits")
           .rare(),
       enum_option<Gradient>("--margin-gradient", o.margin_gradient,
                             {{"exact", Gradient::exact}, {"straight-through", Gradient::straight_through}},
                             "gradient of the target's logit\n"
                             "straight-through: as if its margin were a constant, as in arcface_torch")
           .rare(),
       enum_option<HeadDtype>(
           "--head-dtype", o.head_dtype,
           {{"fp32", HeadDtype::fp32}, {"tf32", HeadDtype::tf32}, {"same", HeadDtype::same}},
           "precision of the last dense layer, last norm and class centers with --fp16 and --bf16\n"
           "tf32: fp32 in memory; products are rounded to TF32\nsame: as the backbone")
           .rare()}};
}

void check_face(const FaceOptions& o, const Model& model) {
  if (o.sample_rate && o.head != Head::sampled)
    throw Error(ExitCode::usage,
                "--sample-rate needs --head pfc, as other heads use all classes; leave it out");
  if (model.dropout == 0 && o.dropout.value_or(0) > 0)
    throw Error(ExitCode::usage, "--dropout: {} has no dropout; leave it out", model.name);
  if (!model.prelu_per_layer && o.prelu_per_layer)
    throw Error(ExitCode::usage, "--prelu layer: {} has slopes per channel; leave it out", model.name);
}

FaceOptions resolve_face(FaceOptions o, const Model& model) {
  if (!model.margin_head) return o;
  if (!o.embedding) o.embedding = model.embedding;
  if (!o.dropout) o.dropout = model.dropout;
  if (!o.sample_rate && o.head == Head::sampled) o.sample_rate = 0.1;
  if (!o.margins) o.margins = margins_of(o.loss);
  return o;
}

}  // namespace plumb
