// SPDX-License-Identifier: Apache-2.0
// The bytes of a file of a ranking model (docs/formats/model.md), and the formats of its calls.
//
//   header 64 | widths of layers, 4 each | names: length 4, bytes | zeros to 8 | floats
//
// The floats are, layer by layer in the order of the widths, its weights (output by output, as
// PyTorch's Linear has them) and then its biases.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "espalier/embedding_types.hpp"

namespace espalier::embedding {

inline constexpr std::uint64_t kModelMagic = 0x4C444D2052494C45;  // "ELIR MDL"
inline constexpr std::uint32_t kModelFormat = 1;

struct ModelHeader {
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t dense;      // features of a query that are numbers
  std::uint32_t dimension;  // of each embedding table, and of what the bottom network puts out
  std::uint32_t tables;
  std::uint32_t bottom;  // layers of each network
  std::uint32_t top;
  std::uint32_t reduction;  // Reduction: sum or mean
  std::uint32_t reserved[7];
};
static_assert(sizeof(ModelHeader) == 64 && offsetof(ModelHeader, dense) == 12);
static_assert(offsetof(ModelHeader, bottom) == 24 && offsetof(ModelHeader, reduction) == 32);
static_assert(std::has_unique_object_representations_v<ModelHeader>);

inline constexpr std::uint32_t kLayersMax = 16;
inline constexpr std::uint32_t kWidthMax = 8192;
inline constexpr std::uint32_t kModelTablesMax = 128;
/// Limit on a file: what fits a message.
inline constexpr std::uint32_t kModelBytesMax = 30 << 20;

struct LayerShape {
  std::uint32_t inputs;
  std::uint32_t outputs;
};

/// The description of a model in its file.
struct ModelPlan {
  std::uint32_t dense = 0;
  std::uint32_t dimension = 0;
  Reduction reduction = Reduction::sum;
  std::vector<LayerShape> bottom;
  std::vector<LayerShape> top;
  std::vector<std::string> tables;  // their names
  std::size_t floats_at = 0;        // in the file

  /// Size of the whole file.
  [[nodiscard]] std::size_t file_bytes() const;
  [[nodiscard]] std::uint32_t outputs() const { return top.back().outputs; }
};

/// Pairs of vectors whose products the top network takes: the bottom's output and the tables'.
[[nodiscard]] constexpr std::uint32_t interaction_pairs(std::uint32_t tables) {
  return (tables + 1) * tables / 2;
}

/// Parses the head of a file; errors in words.
[[nodiscard]] std::expected<ModelPlan, std::string> read_model_head(std::string_view file);
/// The same for a whole file. Cost: its head.
[[nodiscard]] std::expected<ModelPlan, std::string> read_model_plan(std::string_view file);

/// The answer that describes a model.
struct ModelShape {
  std::uint32_t dense;
  std::uint32_t tables;
  std::uint32_t dimension;
  std::uint32_t outputs;  // floats for each query
};
static_assert(sizeof(ModelShape) == 16 && std::has_unique_object_representations_v<ModelShape>);

/// What is asked of a model, in front of the queries: as text, or dense features of all, 4 bytes
/// each; then how many ids there are of each table; then of each table the grouping by which they
/// are renumbered, or 0; then of each table offsets and ids.
struct InferShape {
  std::uint32_t queries;
  std::uint32_t text;  // 1: as text, and queries is 0
};
static_assert(sizeof(InferShape) == 8 && offsetof(InferShape, text) == 4);

/// Limits on the queries of a request, and on the bytes of its reduced rows.
inline constexpr std::uint32_t kQueriesMax = 1024;
inline constexpr std::uint32_t kQueryBytesMax = 1 << 20;
inline constexpr std::uint32_t kPooledBytesMax = 16 << 20;

}  // namespace espalier::embedding
