// SPDX-License-Identifier: Apache-2.0
// Sequencers in this process's own store. Handles keep the sequencer that they reach, also of a
// store that is gone.
//
// Thread: any.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "client/sequencers.hpp"
#include "tree/write/map_core.hpp"

namespace espalier::client {

class EmbeddedSequencers final : public SequencersImpl {
 public:
  explicit EmbeddedSequencers(std::shared_ptr<tree::StoreCore> core) : core_(std::move(core)) {}

  Result<std::shared_ptr<SequencerImpl>> create(std::string_view name,
                                                std::uint64_t first) override;
  Result<std::shared_ptr<SequencerImpl>> open(std::string_view name) override;
  Result<void> drop(std::string_view name) override;
  Result<std::vector<SequencerInfo>> list() override;

 private:
  const std::shared_ptr<tree::StoreCore> core_;
};

}  // namespace espalier::client
