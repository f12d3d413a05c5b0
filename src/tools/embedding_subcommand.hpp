// SPDX-License-Identifier: Apache-2.0
// Shared code of the commands of embedding tables and of models: a name, an address, --json, and an
// action at that node.
#pragma once

#include <CLI/CLI.hpp>
#include <expected>
#include <memory>
#include <type_traits>

#include "tools/embedding_place.hpp"
#include "tools/environment.hpp"
#include "tools/options.hpp"

namespace espalier::tools {

template <class Options>
using EmbeddingWork = Outcome<int> (*)(Environment&, const Options&, EmbeddingPlace&);

/// Adds one. `Options` has `name`, `json` and `at`, and, if the command may read directly,
/// `access`; `of` describes NAME.
template <class Options>
CLI::App& add_embedding_subcommand(CLI::App& parent, const std::shared_ptr<Options>& options,
                                   Environment& environment, Action& chosen, const char* name,
                                   const char* of, const char* description,
                                   std::type_identity_t<EmbeddingWork<Options>> work) {
  CLI::App& command = *parent.add_subcommand(name, description);
  command.add_option("NAME", options->name, of)->required();
  add_json_option(command, options->json);
  add_address_option(command, options->at);
  command.callback([options, &environment, &chosen, work] {
    chosen = reporting(environment, [options, &environment, work]() -> Outcome<int> {
      Access access = Access::rpc;
      if constexpr (requires { options->access; }) access = options->access;
      auto place = open_embeddings(environment, options->at, access);
      if (!place) return std::unexpected(place.error());
      return work(environment, *options, *place);
    });
  });
  return command;
}

}  // namespace espalier::tools
