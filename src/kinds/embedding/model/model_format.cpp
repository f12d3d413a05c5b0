// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/model/model_format.hpp"

#include <cstring>

#include "kinds/embedding/format.hpp"
#include "wire/object.hpp"

namespace espalier::embedding {
namespace {

std::unexpected<std::string> no_model(std::string why) { return std::unexpected(std::move(why)); }

/// Parses the parts of a file in order.
class FileParts {
 public:
  explicit FileParts(std::string_view file) : left_(file), bytes_(file.size()) {}
  template <class T>
  [[nodiscard]] bool take(T& into) {
    if (left_.size() < sizeof into) return false;
    std::memcpy(&into, left_.data(), sizeof into);
    left_.remove_prefix(sizeof into);
    return true;
  }
  [[nodiscard]] bool take_text(std::uint32_t bytes, std::string& into) {
    if (left_.size() < bytes) return false;
    into = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return true;
  }
  [[nodiscard]] std::size_t at() const { return bytes_ - left_.size(); }

 private:
  std::string_view left_;
  const std::size_t bytes_;
};

std::string fault_of_header(const ModelHeader& header) {
  if (header.magic != kModelMagic) return "this is no file of a model";
  if (header.format != kModelFormat) return "this version does not read the file's format";
  for (const std::uint32_t word : header.reserved) {
    if (word != 0) return "the file has a reserved word that is not 0";
  }
  if (header.dense == 0 || header.dense > kWidthMax) return "dense features are 1 to 8192";
  if (!is_shape(shape_of({header.dimension, EmbeddingType::fp32}))) {
    return "the dimension is a multiple of 8, up to 1024";
  }
  if (header.tables == 0 || header.tables > kModelTablesMax) return "a model has 1 to 128 tables";
  const auto wrong = [](std::uint32_t layers) { return layers == 0 || layers > kLayersMax; };
  if (wrong(header.bottom) || wrong(header.top)) return "a network has 1 to 16 layers";
  const auto reduction = static_cast<Reduction>(header.reduction);
  if (header.reduction > 255 || (reduction != Reduction::sum && reduction != Reduction::mean)) {
    return "rows are reduced to their sum or mean";
  }
  return {};
}

/// Reads the layers of a network; false: they are invalid.
bool take_layers(FileParts& parts, std::uint32_t count, std::uint32_t inputs,
                 std::vector<LayerShape>& layers) {
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t outputs = 0;
    if (!parts.take(outputs) || outputs == 0 || outputs > kWidthMax) return false;
    layers.push_back({inputs, outputs});
    inputs = outputs;
  }
  return true;
}

std::size_t layer_floats(const std::vector<LayerShape>& layers) {
  std::size_t floats = 0;
  for (const LayerShape& layer : layers) {
    floats += (std::size_t{layer.inputs} + 1) * layer.outputs;
  }
  return floats;
}

}  // namespace

std::expected<ModelPlan, std::string> read_model_head(std::string_view file) {
  FileParts parts(file);
  ModelHeader header{};
  if (!parts.take(header)) return no_model("this is no file of a model");
  if (std::string fault = fault_of_header(header); !fault.empty()) {
    return no_model(std::move(fault));
  }
  ModelPlan plan;
  plan.dense = header.dense;
  plan.dimension = header.dimension;
  plan.reduction = static_cast<Reduction>(header.reduction);
  const std::uint32_t interaction = header.dimension + interaction_pairs(header.tables);
  if (!take_layers(parts, header.bottom, header.dense, plan.bottom) ||
      !take_layers(parts, header.top, interaction, plan.top)) {
    return no_model("layers have 1 to 8192 outputs");
  }
  if (interaction > kWidthMax) return no_model("the top network takes more than 8192 inputs");
  if (plan.bottom.back().outputs != header.dimension) {
    return no_model("the bottom network does not put out as many values as a row has");
  }
  for (std::uint32_t i = 0; i < header.tables; ++i) {
    std::uint32_t bytes = 0;
    if (!parts.take(bytes) || bytes == 0 || bytes > wire::kObjectNameBytesMax ||
        !parts.take_text(bytes, plan.tables.emplace_back())) {
      return no_model("names of tables have 1 to 255 bytes");
    }
  }
  plan.floats_at = (parts.at() + 7) / 8 * 8;
  return plan;
}

std::expected<ModelPlan, std::string> read_model_plan(std::string_view file) {
  auto plan = read_model_head(file);
  if (plan && file.size() != plan->file_bytes()) {
    return no_model("the file has " + std::to_string(file.size()) + " bytes, and its layers take " +
                    std::to_string(plan->file_bytes()));
  }
  return plan;
}

std::size_t ModelPlan::file_bytes() const {
  return floats_at + sizeof(float) * (layer_floats(bottom) + layer_floats(top));
}

}  // namespace espalier::embedding
