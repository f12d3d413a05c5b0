// SPDX-License-Identifier: Apache-2.0
// A machine in memory, to load configurations on.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "node/config_load.hpp"

namespace espalier::node {

/// Runs as user 1000 on 8 GiB unless a test says otherwise.
struct Machine {
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<FlagValue> flags;
  std::map<std::string, std::string> files;
  std::map<std::string, Error> broken_files;
  std::uint64_t user_id = 1000;
  std::uint64_t memory_bytes = std::uint64_t{8} << 30;

  [[nodiscard]] std::expected<Loaded, std::vector<Problem>> load() const {
    const auto read = [this](const std::string& path) -> Result<std::string> {
      if (const auto broken = broken_files.find(path); broken != broken_files.end()) {
        return std::unexpected(broken->second);
      }
      const auto found = files.find(path);
      if (found == files.end()) return fail(Code::not_found);
      return found->second;
    };
    return node::load(World{environment, read, user_id, memory_bytes}, flags);
  }

  /// What load() has against it, a line for each problem.
  [[nodiscard]] std::string problems() const {
    const auto loaded = load();
    std::string text;
    if (loaded) return text;
    for (const Problem& problem : loaded.error()) text += describe(problem) + "\n";
    return text;
  }
};

}  // namespace espalier::node
