// SPDX-License-Identifier: Apache-2.0
// For tests: what must hold of every kernel of a network's layers.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "kinds/embedding/model/dense.hpp"
#include "kinds/embedding/model/model_weights.hpp"
#include "kinds/embedding/testing/embedding_store.hpp"
#include "kinds/embedding/testing/ranking_files.hpp"

namespace espalier::embedding {

inline float small_number(base::Random& random) {
  return static_cast<float>(random.below(2001)) / 1000 - 1;
}

/// Puts out a layer of one shape, for some numbers of rows, and compares it with doubles.
inline void expect_layer_near_doubles(const DenseKit& kit, std::uint32_t inputs,
                                      std::uint32_t outputs, base::Random& random) {
  EmbeddingStore store;
  RankingParts parts;
  parts.dense = inputs;
  parts.bottom = {outputs, 8};
  parts.draw(random);
  const std::string file = parts.file();
  const auto plan = read_model_plan(file);
  ASSERT_TRUE(plan) << plan.error();
  const auto weights = ModelWeights::create(store.pool, *plan, file, kit);
  ASSERT_TRUE(weights);
  const ModelWeights::Layer& layer = (*weights)->bottom().front();
  for (const std::uint32_t rows : {1u, 3u, 8u, 13u}) {
    std::vector<float> in(std::size_t{rows} * inputs);
    for (float& value : in) value = small_number(random);
    std::vector<float> out(std::size_t{rows} * whole_panels(outputs));
    (*weights)->run_layer(layer, in.data(), inputs, out.data(), rows);
    for (std::uint32_t r = 0; r < rows; ++r) {
      std::vector<Bounded> values;
      for (std::uint32_t i = 0; i < inputs; ++i) values.push_back({in[r * inputs + i], 0});
      const float* floats = parts.floats.data();
      const auto wanted = run_plainly(std::move(values), {outputs}, floats, true);
      for (std::uint32_t o = 0; o < outputs; ++o) {
        ASSERT_NEAR(out[r * whole_panels(outputs) + o], wanted[o].value, wanted[o].error)
            << kit.name << ' ' << inputs << ' ' << outputs << ' ' << rows;
      }
    }
  }
}

/// Layers of any shape, with and without rests of panels and rows.
inline void expect_layers_near_doubles(const DenseKit& kit) {
  base::Random random(1);
  for (const std::uint32_t inputs : {1u, 7u, 100u}) {
    for (const std::uint32_t outputs : {1u, 16u, 33u, 64u}) {
      expect_layer_near_doubles(kit, inputs, outputs, random);
    }
  }
}

}  // namespace espalier::embedding
