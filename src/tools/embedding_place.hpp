// SPDX-License-Identifier: Apache-2.0
// Shared code of the commands on embedding tables: access to a node's tables, and messages for its
// refusals.
#pragma once

#include <CLI/CLI.hpp>

#include <expected>
#include <optional>
#include <string>

#include "espalier/embedding_table.hpp"
#include "tools/commands.hpp"
#include "tools/environment.hpp"

namespace espalier::tools {

/// A node, and the table concerned.
struct EmbeddingPlace {
  std::string address;
  Store store;
};

/// Connects to the node that --at or ESPALIER_AT names.
[[nodiscard]] Outcome<EmbeddingPlace> open_embeddings(const Environment& environment,
                                                      const std::optional<std::string>& at,
                                                      Access access = Access::rpc);
/// "embedding table 'items'".
[[nodiscard]] std::string embedding_quoted(const std::string& name);
/// "model 'ads'".
[[nodiscard]] std::string model_quoted(const std::string& name);
/// The failed action on a table of this name, and the reason.
[[nodiscard]] std::unexpected<Failure> fail_on_embedding(const EmbeddingPlace& place,
                                                         const std::string& what,
                                                         const std::string& name,
                                                         const Error& error);

/// espalier embedding build.
void add_embedding_build(CLI::App& parent, Environment& environment, Action& chosen);
/// espalier embedding model, infer.
void add_embedding_models(CLI::App& parent, Environment& environment, Action& chosen);

}  // namespace espalier::tools
