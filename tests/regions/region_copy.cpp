// SPDX-License-Identifier: Apache-2.0
#include "tests/regions/region_copy.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

#include "engine/peer_posts.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/region/calls.hpp"

namespace espalier::test {
namespace {

using fabric::PostEnd;
using offload::Call;
using offload::Next;
using offload::PeerPosts;
using region::RegionGrant;
using region_copy_calls::CopyWord;

constexpr std::array<std::string_view, 2> kEnds{"b", "c"};

/// What a scheduler may do at its peers, and in which session.
struct WordsGrants final : offload::SchedulerPart {
  struct Of {
    std::uint64_t session = 0;
    RegionGrant grant{};
  };
  std::array<Of, kEnds.size()> peers;
};

/// A call to one peer, with all that it points to.
struct AskedPeer {
  std::size_t peer = 0;
  std::uint64_t session = 0;
  wire::CallMessage message;
  channel::PeerAnswer answer;
  std::array<std::byte, sizeof(RegionGrant)> bytes{};  // of the longer answer

  [[nodiscard]] std::string_view payload() const {
    return {reinterpret_cast<const char*>(bytes.data()), answer.payload_bytes};
  }
};

struct CopyWordState {
  enum class After : std::uint8_t { nothing, opened, granted, read, written };
  After after = After::nothing;
  std::array<AskedPeer, kEnds.size()> asked;
  std::uint64_t word = 0;
};

Next refuse_copy(Call& call, PostEnd how) {
  return call.fail({Code::connection_lost, 0, 0}, how == PostEnd::unknown
                                                      ? "it is not known whether it was copied"
                                                      : "a peer is not there: nothing was copied");
}

/// What a peer answered, or its error.
template <class Reply>
Result<Reply> reply_of(const AskedPeer& asked) {
  const auto code = static_cast<Code>(asked.answer.header.code);
  if (code != Code::invalid) return fail(code);
  if (asked.answer.payload_bytes > asked.bytes.size()) return fail(Code::corrupt);
  const auto reply = wire::read_reply<Reply>(asked.answer.header, asked.payload());
  if (!reply) return fail(Code::corrupt);
  return *reply;
}

Next ask_both(Call& call, CopyWordState& state, CopyWordState::After after) {
  offload::PeerBatch batch(call);
  for (AskedPeer& each : state.asked) {
    each.answer.into = each.bytes;
    batch.call(each.peer, each.session, each.message, each.answer);
  }
  state.after = after;
  return batch.completed();
}

Next open_words(Call& call, CopyWordState& state) {
  for (AskedPeer& each : state.asked) {
    each.session = PeerPosts::of(call).link(each.peer).session();
    each.message = {.offload = region_calls::Open::kCall.id, .key = kWordsRegion};
  }
  return ask_both(call, state, CopyWordState::After::opened);
}

Next ask_for_keys(Call& call, CopyWordState& state) {
  for (AskedPeer& each : state.asked) {
    const auto opened = reply_of<region_calls::Opened>(each);
    if (!opened) return call.fail(opened.error());
    each.message = {.offload = region_calls::OpenKey::kCall.id, .map = opened->id};
  }
  return ask_both(call, state, CopyWordState::After::granted);
}

bool is_granted(Call& call, const CopyWordState& state) {
  const auto& peers = call.scheduler_part<WordsGrants>().peers;
  for (std::size_t i = 0; i < kEnds.size(); ++i) {
    const std::uint64_t now = PeerPosts::of(call).link(state.asked[i].peer).session();
    if (now == 0 || peers[i].session != now) return false;
  }
  return true;
}

std::optional<Error> keep_keys(Call& call, const CopyWordState& state) {
  for (std::size_t i = 0; i < kEnds.size(); ++i) {
    const auto granted = reply_of<region_calls::Granted>(state.asked[i]);
    if (!granted) return granted.error();
    call.scheduler_part<WordsGrants>().peers[i] = {state.asked[i].session, granted->grant};
  }
  return std::nullopt;
}

// Bounds are checked here: a refusal by a peer ends the link for all.
Next read_word(Call& call, CopyWordState& state, const CopyWord& asked) {
  const auto& [b, c] = call.scheduler_part<WordsGrants>().peers;
  if (region::fault_of_word(b.grant.bytes, asked.from) ||
      region::fault_of_word(c.grant.bytes, asked.to)) {
    return call.fail({Code::invalid_argument, 0, 0}, "there is no such word");
  }
  offload::PeerBatch batch(call);
  batch.read(state.asked[0].peer, b.session, std::as_writable_bytes(std::span(&state.word, 1)),
             b.grant.key, b.grant.base + asked.from);
  state.after = CopyWordState::After::read;
  return batch.completed();
}

Next write_word(Call& call, CopyWordState& state, const CopyWord& asked) {
  const WordsGrants::Of& c = call.scheduler_part<WordsGrants>().peers[1];
  offload::PeerBatch batch(call);
  batch.write(state.asked[1].peer, c.session, std::as_bytes(std::span(&state.word, 1)), c.grant.key,
              c.grant.base + asked.to);
  state.after = CopyWordState::After::written;
  return batch.completed();
}

Next copy_word(Call& call, const CopyWord& asked) {
  using After = CopyWordState::After;
  CopyWordState& state = call.state<CopyWordState>();
  for (const offload::PeerEnd& end : peer_ends(call)) {
    if (end.how != PostEnd::done) return refuse_copy(call, end.how);
  }
  switch (state.after) {
    case After::nothing:
      for (std::size_t i = 0; i < kEnds.size(); ++i) {
        const auto number = PeerPosts::of(call).find(kEnds[i]);
        if (!number) return call.fail({Code::unsupported, 0, 0}, "this node has no peers b and c");
        state.asked[i].peer = *number;
      }
      if (!is_granted(call, state)) return open_words(call, state);
      return read_word(call, state, asked);
    case After::opened: return ask_for_keys(call, state);
    case After::granted:
      if (const auto error = keep_keys(call, state)) return call.fail(*error);
      return read_word(call, state, asked);
    case After::read: return write_word(call, state, asked);
    case After::written: break;
  }
  return answer(call, region_copy_calls::Copied{state.word});
}

}  // namespace

const offload::Kind& region_copy_kind() {
  static const offload::Offload calls[] = {
      offload::serve<CopyWord, copy_word>({.executor = &offload::kPeerPosts}),
  };
  static const std::span<const offload::Offload> all(calls);
  static const offload::Kind kind{.name = "region_copy", .calls = {&all, 1}};
  return kind;
}

}  // namespace espalier::test
