// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/model/networks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/assert.hpp"

namespace espalier::embedding {
namespace {

// Eight partial sums of every eighth product each, so that the compiler may vectorise them. The
// dimension is a multiple of 8.
float product_of(const float* a, const float* b, std::uint32_t dimension) {
  std::array<float, 8> sums{};
  for (std::uint32_t i = 0; i < dimension; i += 8) {
    for (std::uint32_t j = 0; j < 8; ++j) sums[j] += a[i + j] * b[i + j];
  }
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

// Floats of the longest row of inputs or outputs.
std::size_t widest_row(const ModelWeights& weights) {
  std::size_t widest = 0;
  for (const auto layers : {weights.bottom(), weights.top()}) {
    for (const ModelWeights::Layer& layer : layers) {
      widest = std::max({widest, std::size_t{layer.shape.inputs},
                         std::size_t{whole_panels(layer.shape.outputs)}});
    }
  }
  return widest;
}

// Number of queries of a step.
std::size_t most_queries(std::span<const DenseItem> items) {
  std::size_t queries = 0;
  for (const DenseItem& item : items) queries += item.queries;
  return std::min(queries, std::size_t{Networks::kStepQueries});
}

}  // namespace

Networks::Networks(const ModelWeights& weights, std::uint32_t tables,
                   std::span<const DenseItem> items)
    : weights_(weights),
      tables_(tables),
      items_(items),
      now_(most_queries(items) * widest_row(weights)),
      next_(now_.size()) {
  some_.reserve(most_queries(items));
}

void Networks::take_some() {
  some_.clear();
  while (item_ < items_.size() && some_.size() < kStepQueries) {
    if (number_ == items_[item_].queries) {
      ++item_;
      number_ = 0;
      continue;
    }
    some_.push_back({&items_[item_], number_++});
  }
}

// Nothing may fail once the next query has advanced: a batch that is left continues there.
bool Networks::step() noexcept {
  take_some();
  if (some_.empty()) return false;
  stride_ = weights_.bottom().front().shape.inputs;
  for (std::size_t q = 0; q < some_.size(); ++q) {
    std::copy_n(some_[q].item->dense + some_[q].number * stride_, stride_,
                now_.begin() + static_cast<std::ptrdiff_t>(q * stride_));
  }
  run(weights_.bottom());
  add_products();
  run(weights_.top());
  put_out();
  return true;
}

void Networks::run(std::span<const ModelWeights::Layer> layers) {
  for (const ModelWeights::Layer& layer : layers) {
    const std::size_t stride = whole_panels(layer.shape.outputs);
    weights_.run_layer(layer, now_.data(), stride_, next_.data(),
                       static_cast<std::uint32_t>(some_.size()));
    now_.swap(next_);
    stride_ = stride;
  }
}

// Appends the product of each two vectors to the output of the bottom network.
void Networks::add_products() {
  const std::uint32_t dimension = weights_.bottom().back().shape.outputs;
  const std::size_t stride = weights_.top().front().shape.inputs;
  ESPALIER_ASSERT(stride == dimension + interaction_pairs(tables_));
  std::array<const float*, kModelTablesMax + 1> vectors;
  for (std::size_t q = 0; q < some_.size(); ++q) {
    const DenseItem& item = *some_[q].item;
    vectors[0] = now_.data() + q * stride_;
    for (std::uint32_t t = 0; t < tables_; ++t) {
      vectors[t + 1] = item.pooled + (std::size_t{t} * item.queries + some_[q].number) * dimension;
    }
    float* to = std::copy_n(vectors[0], dimension, next_.data() + q * stride);
    for (std::uint32_t i = 1; i <= tables_; ++i) {
      for (std::uint32_t j = 0; j < i; ++j) *to++ = product_of(vectors[i], vectors[j], dimension);
    }
  }
  now_.swap(next_);
  stride_ = stride;
}

void Networks::put_out() {
  const std::uint32_t outputs = weights_.top().back().shape.outputs;
  for (std::size_t q = 0; q < some_.size(); ++q) {
    float* const to = some_[q].item->ranks + std::size_t{some_[q].number} * outputs;
    for (std::uint32_t o = 0; o < outputs; ++o) {
      to[o] = 1 / (1 + std::exp(-now_[q * stride_ + o]));
    }
  }
}

}  // namespace espalier::embedding
