// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/model/model_weights.hpp"

#include <algorithm>
#include <cstring>

#include "base/bytes.hpp"
#include "kinds/embedding/page_buffer.hpp"

namespace espalier::embedding {

Result<std::unique_ptr<ModelWeights>> ModelWeights::create(memory::BufferPool& pool,
                                                           const ModelPlan& plan,
                                                           std::string_view file,
                                                           const DenseKit& kit) {
  std::unique_ptr<ModelWeights> made(new ModelWeights(pool, kit));
  const char* floats = file.data() + plan.floats_at;
  const auto load_all = [&](std::span<const LayerShape> shapes, bool rectify_last,
                            std::vector<Layer>& layers) -> Result<void> {
    for (const LayerShape& shape : shapes) {
      auto layer = made->load(shape, rectify_last || &shape != &shapes.back(), floats);
      if (!layer) return std::unexpected(layer.error());
      layers.push_back(std::move(*layer));
    }
    return {};
  };
  if (const auto done = load_all(plan.bottom, true, made->bottom_); !done) {
    return std::unexpected(done.error());
  }
  if (const auto done = load_all(plan.top, false, made->top_); !done) {
    return std::unexpected(done.error());
  }
  return made;
}

ModelWeights::~ModelWeights() {
  for (const std::uint64_t offset : pages_) pool_.release(offset, kPageClass);
}

void ModelWeights::belong_to(std::uint32_t model) {
  for (const std::uint64_t offset : pages_) {
    begin_buffer(pool_.at(offset), sizeof(PageHeader), model);
    set_live(pool_.at(offset));
  }
}

std::uint64_t ModelWeights::memory_bytes() const { return pages_.size() * kPageBytes; }

Result<std::byte*> ModelWeights::room(std::size_t bytes) {
  if (pages_.empty() || used_ + bytes > kPageBytes) {
    pages_.reserve(pages_.size() + 1);  // so that no page is lost to an exception
    const auto offset = pool_.allocate_or_reclaim(kPageClass);
    if (!offset) return std::unexpected(offset.error());
    pages_.push_back(*offset);
    used_ = sizeof(PageHeader);
  }
  std::byte* const at = pool_.at(pages_.back()) + used_;
  used_ += base::round_up(bytes, std::size_t{64});
  return at;
}

Result<ModelWeights::Layer> ModelWeights::load(const LayerShape& shape, bool rectify,
                                               const char*& floats) {
  Layer layer{shape, rectify, {}, std::vector<float>(whole_panels(shape.outputs))};
  const std::size_t panel = std::size_t{shape.inputs} * kPanelOutputs * sizeof(float);
  const auto most = static_cast<std::uint32_t>((kPageBytes - sizeof(PageHeader)) / panel);
  for (std::uint32_t first = 0; first < shape.outputs;) {
    Slab slab{nullptr, first, std::min(most * kPanelOutputs, shape.outputs - first)};
    const auto at = room(panel * (whole_panels(slab.outputs) / kPanelOutputs));
    if (!at) return std::unexpected(at.error());
    float* const to = reinterpret_cast<float*>(*at);
    store(shape, slab, floats, to);
    slab.weights = to;
    layer.slabs.push_back(slab);
    first += slab.outputs;
  }
  floats += std::size_t{shape.inputs} * shape.outputs * sizeof(float);
  std::memcpy(layer.biases.data(), floats, shape.outputs * sizeof(float));
  floats += shape.outputs * sizeof(float);
  return layer;
}

void ModelWeights::store(const LayerShape& shape, Slab slab, const char* floats, float* to) const {
  const std::size_t row_bytes = std::size_t{shape.inputs} * sizeof(float);
  const char* const from = floats + slab.first * row_bytes;
  if (!kit_.panels) {
    std::memcpy(to, from, slab.outputs * row_bytes);
    return;
  }
  std::memset(to, 0, whole_panels(slab.outputs) * row_bytes);
  for (std::uint32_t output = 0; output < slab.outputs; ++output) {
    float* const panel = to + std::size_t{output / kPanelOutputs} * kPanelOutputs * shape.inputs;
    for (std::uint32_t input = 0; input < shape.inputs; ++input) {
      std::memcpy(panel + std::size_t{input} * kPanelOutputs + output % kPanelOutputs,
                  from + output * row_bytes + input * sizeof(float), sizeof(float));
    }
  }
}

bool ModelWeights::add_floats(Place& place, std::vector<float>& to) const {
  if (place.layer == bottom_.size() + top_.size()) return false;
  const Layer& layer =
      place.layer < bottom_.size() ? bottom_[place.layer] : top_[place.layer - bottom_.size()];
  if (place.output == layer.shape.outputs) {
    to.insert(to.end(), layer.biases.begin(), layer.biases.begin() + layer.shape.outputs);
    place = {place.layer + 1, 0};
    return true;
  }
  const auto slab = std::ranges::find_if(
      layer.slabs, [&](const Slab& each) { return place.output - each.first < each.outputs; });
  const std::uint32_t output = place.output++ - slab->first;
  const std::size_t inputs = layer.shape.inputs;
  const std::size_t row = output * inputs;
  const std::size_t panel = std::size_t{output / kPanelOutputs} * kPanelOutputs * inputs;
  for (std::size_t input = 0; input < inputs; ++input) {
    to.push_back(slab->weights[kit_.panels ? panel + input * kPanelOutputs + output % kPanelOutputs
                                           : row + input]);
  }
  return true;
}

void ModelWeights::run_layer(const Layer& layer, const float* inputs, std::size_t input_stride,
                             float* outputs, std::uint32_t rows) const {
  for (const Slab& slab : layer.slabs) {
    kit_.layer({inputs, input_stride, slab.weights, layer.biases.data() + slab.first,
                outputs + slab.first, whole_panels(layer.shape.outputs), rows, layer.shape.inputs,
                slab.outputs, layer.rectify});
  }
}

}  // namespace espalier::embedding
