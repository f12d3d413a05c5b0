// SPDX-License-Identifier: Apache-2.0
// Requests for an engine over any access, with hints and held versions, and their answers as the
// operations of a history.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kinds/map/host/host_executor.hpp"
#include "tests/support/history.hpp"
#include "tests/support/question.hpp"
#include "tests/support/recorder.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {

/// A get, floor or scan of some of these keys. Bounds may differ from all keys, or be missing.
Question random_read(Random& random, const std::vector<std::string>& keys,
                     std::size_t key_bytes_max);

/// Thread: one.
class WalkRecorder final : private Handler {
 public:
  /// Requires: the clock outlives it.
  WalkRecorder(Clock& clock, std::uint32_t thread) : clock_(clock), thread_(thread) {}

  /// The request of a question; lives until it is answered. The question is stamped now.
  tree::WalkRequest ask(Question question, const memory::HeldVersion* held = nullptr,
                        wire::Ref hint = {});

  /// Called when something is delivered: an answer, items before it, or an error. May be empty.
  std::function<void(const Error&)> on_handed_out;

  /// Requests and answers, in the order of the answers.
  [[nodiscard]] std::vector<Operation>& log() { return log_; }
  /// Such an error is expected: the operation counts as refused.
  void expect_refusals(std::vector<Code> codes) { expected_ = std::move(codes); }
  /// An answer that cannot belong to any question of a test.
  [[nodiscard]] const std::optional<std::string>& unexpected() const { return unexpected_; }

 private:
  struct Pending {
    Question question;
    Request request;
    Operation operation;
  };

  void done(const Completion& completion) override;
  bool items(std::uint64_t tag, std::span<const Item> items) override;

  Clock& clock_;
  std::uint32_t thread_;
  std::uint64_t next_tag_ = 1;
  std::unordered_map<std::uint64_t, std::unique_ptr<Pending>> pending_;
  std::unique_ptr<Pending> answered_;  // the engine may use it until done() has returned
  std::vector<Operation> log_;
  std::optional<std::string> unexpected_;
  std::vector<Code> expected_;
};

/// A participant with an engine that reads and writes in place, like a session's.
class HostWalker {
 public:
  HostWalker(tree::StoreCore& store, tree::MapCore& map, std::uint32_t index, Clock& clock,
             std::uint32_t lanes = 1);

  /// Submits a question and waits for the answer. Reads of the newest state alternate between
  /// groups and lanes.
  void ask(Question question, const memory::HeldVersion* held = nullptr, wire::Ref hint = {}) {
    const tree::WalkRequest walk = recorder.ask(std::move(question), held, hint);
    const Op op = walk.request->op;
    const bool writes = op >= Op::put && op <= Op::erase;
    if (held == nullptr && !writes && (++asked % 2) == 0) {
      executor.submit(*walk.request, *walk.handler, hint);
    } else {
      executor.submit(walk);
    }
    executor.drain();
  }

  tree::ThreadContext context;
  WalkRecorder recorder;
  tree::HostExecutor<tree::HostAccess> executor;
  std::uint64_t asked = 0;
};

}  // namespace espalier::test
