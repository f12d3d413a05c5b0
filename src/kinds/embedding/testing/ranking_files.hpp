// SPDX-License-Identifier: Apache-2.0
// For tests: files of ranking models of random weights, queries, and the model written down
// plainly, in double precision, with a bound on how far single precision may be from it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "kinds/embedding/model/model_format.hpp"

namespace espalier::embedding {

/// What a model of tests is made of.
struct RankingParts {
  std::uint32_t dense = 5;
  std::uint32_t dimension = 8;
  std::vector<std::uint32_t> bottom = {19, 8};
  std::vector<std::uint32_t> top = {33, 1};
  std::vector<std::string> tables = {"a", "b"};
  Reduction reduction = Reduction::sum;
  std::vector<float> floats;  // as in the file

  [[nodiscard]] std::uint32_t interaction() const {
    return dimension + interaction_pairs(static_cast<std::uint32_t>(tables.size()));
  }
  /// Weights and biases, small enough that ranks are not all 0 or 1.
  void draw(base::Random& random) {
    floats.clear();
    for (const auto& [inputs, widths] :
         {std::pair(dense, &bottom), std::pair(interaction(), &top)}) {
      std::uint32_t before = inputs;
      for (const std::uint32_t width : *widths) {
        const float scale = 2 / std::sqrt(static_cast<float>(before));
        for (std::uint32_t i = 0; i < (before + 1) * width; ++i) {
          floats.push_back((static_cast<float>(random() >> 40) * 0x1p-23F - 1) * scale);
        }
        before = width;
      }
    }
  }
  [[nodiscard]] std::string file() const {
    ModelHeader header{};
    header.magic = kModelMagic;
    header.format = kModelFormat;
    header.dense = dense;
    header.dimension = dimension;
    header.tables = static_cast<std::uint32_t>(tables.size());
    header.bottom = static_cast<std::uint32_t>(bottom.size());
    header.top = static_cast<std::uint32_t>(top.size());
    header.reduction = static_cast<std::uint32_t>(reduction);
    std::string bytes(base::bytes_of(header));
    for (const auto* widths : {&bottom, &top}) {
      for (const std::uint32_t width : *widths) bytes += base::bytes_of(width);
    }
    for (const std::string& name : tables) {
      bytes += base::bytes_of(static_cast<std::uint32_t>(name.size()));
      bytes += name;
    }
    bytes.resize((bytes.size() + 7) / 8 * 8);
    bytes.append(reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float));
    return bytes;
  }
};

/// A number, and how far single precision may be from it.
struct Bounded {
  double value = 0;
  double error = 0;
};

/// A network of these widths, with the errors of its inputs carried along.
inline std::vector<Bounded> run_plainly(std::vector<Bounded> values,
                                        const std::vector<std::uint32_t>& widths,
                                        const float*& floats, bool rectify_last) {
  constexpr double kUnit = 0x1p-23;
  for (std::size_t layer = 0; layer < widths.size(); ++layer) {
    const std::size_t inputs = values.size();
    const float* const biases = floats + inputs * widths[layer];
    std::vector<Bounded> next(widths[layer]);
    for (std::uint32_t o = 0; o < widths[layer]; ++o, floats += inputs) {
      Bounded& sum = next[o];
      double magnitude = std::abs(double{biases[o]});
      sum.value = biases[o];
      for (std::size_t i = 0; i < inputs; ++i) {
        const double weight = floats[i];
        sum.value += weight * values[i].value;
        sum.error += std::abs(weight) * values[i].error;
        magnitude += std::abs(weight) * (std::abs(values[i].value) + values[i].error);
      }
      sum.error += magnitude * static_cast<double>(inputs + 1) * kUnit;
      if ((rectify_last || layer + 1 < widths.size()) && sum.value < 0) sum.value = 0;
    }
    floats = biases + widths[layer];
    values = std::move(next);
  }
  return values;
}

/// Ranks of one query: its features, and of each table its rows' sum or mean, in double precision.
inline std::vector<Bounded> rank_plainly(const RankingParts& parts, std::span<const float> dense,
                                         const std::vector<std::vector<Bounded>>& pooled) {
  constexpr double kUnit = 0x1p-23;
  std::vector<Bounded> values;
  for (const float feature : dense) values.push_back({feature, 0});
  const float* floats = parts.floats.data();
  values = run_plainly(std::move(values), parts.bottom, floats, true);
  std::vector<std::vector<Bounded>> vectors = {values};
  vectors.insert(vectors.end(), pooled.begin(), pooled.end());
  for (std::size_t i = 1; i < vectors.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      Bounded product;
      double magnitude = 0;
      for (std::uint32_t c = 0; c < parts.dimension; ++c) {
        const Bounded& a = vectors[i][c];
        const Bounded& b = vectors[j][c];
        product.value += a.value * b.value;
        product.error +=
            std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error;
        magnitude += (std::abs(a.value) + a.error) * (std::abs(b.value) + b.error);
      }
      product.error += magnitude * (parts.dimension + 1) * kUnit;
      values.push_back(product);
    }
  }
  values = run_plainly(std::move(values), parts.top, floats, false);
  for (Bounded& rank : values) {
    rank.value = 1 / (1 + std::exp(-rank.value));
    rank.error = rank.error / 4 + 8 * kUnit;  // the sigmoid is nowhere steeper
  }
  return values;
}

}  // namespace espalier::embedding
