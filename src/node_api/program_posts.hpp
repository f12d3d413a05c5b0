// SPDX-License-Identifier: Apache-2.0
// The posts of a step of a program's own call (espalier/offload.hpp), as the engine's: peers and
// regions by name become links, sessions and keys.
//
//   posts of regions that are not known in this session: open -> key -> posts
//   others:                                                             posts
//
// What is wrong with a post is found here, before anything leaves: what a peer refuses would end
// the link for all.
//
// Thread: the scheduler's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "channel/peer_link.hpp"
#include "engine/call.hpp"
#include "kinds/program/running_call.hpp"
#include "kinds/region/format.hpp"
#include "wire/call_message.hpp"

namespace espalier::node_api {

/// Of one request.
class ProgramPosts {
 public:
  /// Posts what a step asks for, or what is next once the engine's posts have ended. Nothing: they
  /// have ended, and the call's next step may look at them. Requires: the call posts something.
  [[nodiscard]] std::optional<offload::Next> go_on(offload::Call& call,
                                                   program::RunningCall& running);

 private:
  enum class Stage : std::uint8_t { none, opens, keys, posts };
  /// A region that is asked for, with all that the calls to its peer point to.
  struct Asked {
    std::size_t peer = 0;
    std::string region{};
    std::uint64_t session = 0;
    wire::CallMessage message{};
    channel::PeerAnswer answer{};
    std::array<std::byte, 64> bytes{};

    [[nodiscard]] std::string_view payload() const;
  };
  /// A call of the program, likewise.
  struct Called {
    wire::CallMessage message{};
    channel::PeerAnswer answer{};
  };

  std::optional<offload::Next> begin(offload::Call& call, program::RunningCall& running);
  std::optional<offload::Next> ask_for_keys(offload::Call& call, program::RunningCall& running);
  std::optional<offload::Next> keep_keys(offload::Call& call, program::RunningCall& running);
  std::optional<offload::Next> post(offload::Call& call, program::RunningCall& running);
  std::optional<offload::Next> finish(const offload::Call& call, program::RunningCall& running);
  std::optional<offload::Next> refuse(program::RunningCall& running, const Error& why);
  [[nodiscard]] offload::Next ask_all(offload::Call& call, Stage stage);
  /// Whether all that was asked was answered; else it has refused the posts.
  [[nodiscard]] bool are_answered(const offload::Call& call, program::RunningCall& running);

  Stage stage_ = Stage::none;
  std::vector<std::size_t> peers_;  // of each post
  std::vector<Asked> asked_;
  std::vector<Called> called_;  // by post
};

}  // namespace espalier::node_api
