// SPDX-License-Identifier: Apache-2.0
// Gathers a piece of a walk over all items of a hash map into an answer: helpers run it in bounded
// steps, because in a map of which most was erased the next item may be far.
//
// Thread: steps by one helper at a time, all else by the scheduler's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/helper_job.hpp"
#include "espalier/error.hpp"

namespace espalier::hash {
class HashMap;
class HashWalk;
}  // namespace espalier::hash

namespace espalier::offload {

class WalkPiece {
 public:
  /// Behind this key; empty: from the beginning. The key must live until the piece is whole.
  WalkPiece(std::shared_ptr<hash::HashMap> map, std::string_view after);
  WalkPiece(const WalkPiece&) = delete;
  WalkPiece& operator=(const WalkPiece&) = delete;
  ~WalkPiece();

  /// Continues until the piece is whole or the step's time is over. Throws std::bad_alloc.
  JobStep gather(StepContext& context);

  /// Whether it is complete, or will never be (error()).
  [[nodiscard]] bool whole() const { return whole_; }
  /// Errors: those of HashThread::join(); not_found (the map was dropped).
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  [[nodiscard]] const std::string& items() const { return items_; }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  /// Whether items may follow.
  [[nodiscard]] bool more() const;

 private:
  const std::shared_ptr<hash::HashMap> map_;
  const std::string_view after_;
  std::unique_ptr<hash::HashWalk> walk_;  // goes before the map
  std::string items_;
  std::uint32_t count_ = 0;
  bool whole_ = false;
  std::optional<Error> error_;
};

}  // namespace espalier::offload
