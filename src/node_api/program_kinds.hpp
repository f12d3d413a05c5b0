// SPDX-License-Identifier: Apache-2.0
// Adapts the calls and kinds of a program to a node: the one place where espalier/offload.hpp meets
// the engine's rows and handlers.
//
// Thread: any, once it was made.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/registry.hpp"
#include "kinds/program/own_calls.hpp"

namespace espalier::node_api {

class ProgramKinds {
 public:
  explicit ProgramKinds(std::shared_ptr<const program::OwnCalls> own);
  ProgramKinds(const ProgramKinds&) = delete;
  ProgramKinds& operator=(const ProgramKinds&) = delete;

  /// For NodeOptions::own_kinds; they point into this.
  [[nodiscard]] std::span<const offload::Kind> kinds() const { return {&kind_, 1}; }

  /// What the steps of a row's handler know of it, by Offload::context.
  struct Served {
    std::shared_ptr<const program::OwnCalls> own{};
    const Offload* call = nullptr;              ///< null: it makes or opens an object
    const program::ServedKind* kind = nullptr;  ///< of that
    std::string name{};                         ///< of the row
    std::string summary{};
  };

 private:
  const std::shared_ptr<const program::OwnCalls> own_;
  std::vector<std::unique_ptr<Served>> served_;
  std::vector<offload::Offload> rows_;
  std::span<const offload::Offload> all_rows_;
  offload::Kind kind_;
};

}  // namespace espalier::node_api
