// SPDX-License-Identifier: Apache-2.0
#include "tools/embedding_place.hpp"

#include <fmt/format.h>

#include <utility>

#include "tools/data_place.hpp"

namespace espalier::tools {

std::string embedding_quoted(const std::string& name) {
  return fmt::format("embedding table '{}'", cmdline::escaped(name));
}

std::string model_quoted(const std::string& name) {
  return fmt::format("model '{}'", cmdline::escaped(name));
}

Outcome<EmbeddingPlace> open_embeddings(const Environment& environment,
                                        const std::optional<std::string>& at, Access access) {
  auto address = required_address(environment, at);
  if (!address) return std::unexpected(address.error());
  if (*address == "embedded") {
    return misused(fmt::format("'{}' is no node, and embedding tables are on nodes", *address),
                   "Start one: espalier serve --node-socket PATH.");
  }
  auto store = connect(environment, *address, access);
  if (!store) return std::unexpected(store.error());
  return EmbeddingPlace{std::move(*address), std::move(*store)};
}

std::unexpected<Failure> fail_on_embedding(const EmbeddingPlace& place, const std::string& what,
                                           const std::string& name, const Error& error) {
  if (error.code == Code::not_found) {
    return failed(fmt::format("the node at {} has no {}", place.address, embedding_quoted(name)),
                  "espalier list shows what it has; espalier embedding load makes one.");
  }
  if (error.code == Code::wrong_kind) return other_kind(place.address, name, error);
  return call_failed(fmt::format("{} {}", what, embedding_quoted(name)), error);
}

}  // namespace espalier::tools
