// SPDX-License-Identifier: Apache-2.0
// The calls of ranking models: requests and replies.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "espalier/error.hpp"
#include "kinds/embedding/model/model_format.hpp"
#include "wire/call_codec.hpp"

namespace espalier::catalog {
class Catalog;
}
namespace espalier::embedding {
class RankingObject;
}

namespace espalier::model_calls {

/// A model, by the number that its node assigned.
struct Opened {
  std::uint32_t id = 0;
  embedding::ModelShape shape{};

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.id);
    message.fixed(self.shape);
  }
  [[nodiscard]] static Opened of(const auto& model) { return {model.id(), model.shape()}; }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    using embedding::kWidthMax;
    const auto is_size = [](std::uint32_t number, std::uint32_t most) {
      return number >= 1 && number <= most;
    };
    const bool good = is_size(shape.dense, kWidthMax) && is_size(shape.outputs, kWidthMax) &&
                      is_size(shape.tables, embedding::kModelTablesMax) &&
                      is_size(shape.dimension, kWidthMax);
    return good ? std::nullopt
                : std::optional(wire::Fault{shape.dense, "no model is of this size"});
  }
};

/// Floats, 4 bytes each, query by query.
struct Inferred {
  std::string_view ranks;

  static constexpr void fields(auto& self, auto& message) {
    message.rest(self.ranks, "the ranks", kRanksBytesMax);
  }
  /// Of the widest top layer, for the most queries that fit an answer.
  static constexpr std::uint32_t kRanksBytesMax = 256 << 10;
};

struct Create {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::model_create,
                                       .name = "model_create",
                                       .summary =
                                           "makes a ranking model; answers its number and "
                                           "ModelShape",
                                       .right = wire::Right::admin,
                                       .object = wire::Names::by_name,
                                       .at_device = wire::AtDevice::relayed,
                                       .changes = true,
                                       .opens = true};
  using Reply = Opened;

  std::string_view name;
  std::string_view file;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the model's name");
    message.rest(self.file, "a file of a model, up to 30 MiB", embedding::kModelBytesMax);
  }
};

struct Open {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::model_open,
                                       .name = "model_open",
                                       .summary = "answers a ranking model's number and ModelShape",
                                       .right = wire::Right::read,
                                       .object = wire::Names::by_name,
                                       .at_device = wire::AtDevice::relayed,
                                       .opens = true};
  using Reply = Opened;

  std::string_view name;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the model's name");
  }
};

/// Node and client handle it separately, because it takes many steps at a node. The answer reveals
/// which tables have the names that the model has.
struct Infer {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::model_infer,
                                       .name = "model_infer",
                                       .summary = "ranks queries; answers the floats of each",
                                       .right = wire::Right::read,
                                       .object = wire::Names::by_id,
                                       .at_device = wire::AtDevice::relayed,
                                       .tells_of_objects = true};
  using Reply = Inferred;

  std::uint32_t model = 0;
  embedding::InferShape shape{};
  std::string_view queries;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.model, "the model's id");
    message.fixed(self.shape, "InferShape");
    message.rest(self.queries, "queries, as text or words, up to 1 MiB", embedding::kQueryBytesMax);
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    if (shape.text > 1 || (shape.text == 1 && shape.queries != 0)) {
      return wire::Fault{shape.text, "queries are text or words"};
    }
    return std::nullopt;
  }
};

using All = wire::CallList<Create, Open, Infer>;

/// Errors: those of Catalog::open; not_found (it is unmade), busy (it is being made).
Result<std::shared_ptr<embedding::RankingObject>> obtain(catalog::Catalog& catalog,
                                                         const Open& asked);

}  // namespace espalier::model_calls
