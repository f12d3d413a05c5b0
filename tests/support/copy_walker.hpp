// SPDX-License-Identifier: Apache-2.0
// A participant that walks over copies, and writes down what it was answered.
#pragma once

#include <cstdint>
#include <utility>

#include "tests/support/copy_access.hpp"
#include "tests/support/walk_recorder.hpp"

namespace espalier::test {

/// Thread: one.
class CopyWalker {
 public:
  CopyWalker(tree::StoreCore& store, tree::MapCore& map, std::uint32_t index, Clock& clock,
             std::uint32_t lanes, std::uint64_t seed,
             CopyMachine::Order order = CopyMachine::Order::random);

  void submit(Question question, const tree::HeldVersion* held = nullptr, wire::Ref hint = {}) {
    engine.submit(recorder.ask(std::move(question), held, hint));
  }
  /// Works until all is answered.
  void drain() { run(engine, machine); }

  tree::Worker worker;
  WalkRecorder recorder;
  CopyMachine machine;
  tree::Engine<CopyAccess> engine;
};

}  // namespace espalier::test

namespace espalier::tree {
extern template class Engine<test::CopyAccess>;
}  // namespace espalier::tree
