// SPDX-License-Identifier: Apache-2.0
// The pipelines loaded in one session, by numbers of that session. They are dropped with it, and
// their memory counts as message memory.
//
// They contain no keys: each run brings its own.
//
// Thread: that of the session's scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/places.hpp"
#include "engine/session_parts.hpp"
#include "espalier/error.hpp"
#include "kinds/table/calls.hpp"
#include "kinds/table/pipeline_message.hpp"
#include "rings/message_budget.hpp"

namespace espalier::offload {

class Connection;

struct LoadedPipeline {
  std::uint32_t table = 0;  // that it was checked against
  table::PipelineMessage message;
};

class LoadedPipelines final : public SessionPart {
 public:
  /// The session's pipelines, created on first use.
  [[nodiscard]] static LoadedPipelines& of(Connection& connection);
  static constexpr std::size_t kMost = table_calls::kPipelinesMax;  // of one session

  /// `share`: the session's share of message memory; it outlives this.
  explicit LoadedPipelines(rings::MessageShare& share) : share_(share) {}
  ~LoadedPipelines() override {
    for (const auto& [number, kept] : kept_) share_.give(kept.bytes);
  }
  LoadedPipelines(const LoadedPipelines&) = delete;
  LoadedPipelines& operator=(const LoadedPipelines&) = delete;

  /// Returns its number, which is never reused. Errors: too_many_participants (detail: kMost),
  /// out_of_memory.
  Result<std::uint64_t> keep(LoadedPipeline pipeline) {
    const std::size_t bytes = table::encoded_bytes(pipeline.message) + kOverheadBytes;
    if (kept_.size() >= kMost) return base::full(base::Places::pipelines, kMost);
    if (!share_.take(bytes)) return fail(Code::out_of_memory);
    kept_.emplace(next_, Entry{std::make_shared<const LoadedPipeline>(std::move(pipeline)), bytes});
    return next_++;
  }
  /// False: not found.
  bool drop(std::uint64_t number) {
    const auto found = kept_.find(number);
    if (found == kept_.end()) return false;
    share_.give(found->second.bytes);
    kept_.erase(found);
    return true;
  }
  /// Null: not found.
  [[nodiscard]] std::shared_ptr<const LoadedPipeline> find(std::uint64_t number) const {
    const auto found = kept_.find(number);
    return found == kept_.end() ? nullptr : found->second.pipeline;
  }
  [[nodiscard]] std::size_t size() const { return kept_.size(); }

 private:
  static constexpr std::size_t kOverheadBytes = 256;
  struct Entry {
    std::shared_ptr<const LoadedPipeline> pipeline;
    std::size_t bytes;
  };

  rings::MessageShare& share_;
  std::unordered_map<std::uint64_t, Entry> kept_;
  std::uint64_t next_ = 1;
};

}  // namespace espalier::offload
