// SPDX-License-Identifier: Apache-2.0
#include "kinds/sequencer/client/sequencer_adder.hpp"

#include <utility>

#include "base/clock.hpp"
#include "channel/rings/typed_call.hpp"
#include "kinds/sequencer/calls.hpp"

namespace espalier::client {
namespace {

constexpr std::uint64_t kAdderNapNs = 1'000'000;
constexpr std::uint64_t kGiveUpNs = 10'000'000'000;  // without a completion
constexpr int kSpins = 2000;
constexpr int kTriesMax = 3;

}  // namespace

Result<void> SequencerAdder::open_link(NodeConnection& connection) {
  if (link_ && link_->pair().state() == fabric::QueuePair::State::connected) return {};
  link_.reset();
  auto link = connection.open_beside(wire::LinkWay::writes);
  if (!link) return std::unexpected(link.error());
  link_ = std::move(*link);
  return {};
}

Result<wire::SequencerGrant> SequencerAdder::ask_word(RemoteRequests& requests,
                                                      std::uint32_t number) {
  const auto granted = ask(requests, sequencer_calls::OpenWord{number});
  if (!granted) return std::unexpected(granted.error());
  return granted->grant;
}

std::optional<std::uint64_t> SequencerAdder::add(const wire::SequencerGrant& to,
                                                 std::uint32_t count) {
  const auto request = fabric::WorkRequest::fetch_add(++posted_, to.key, to.word, count);
  if (link_->pair().post(request).taken != 1) return std::nullopt;
  const std::uint64_t since_ns = base::monotonic_ns();
  for (int spins = 0;; ++spins) {
    fabric::Completion completion;
    if (link_->completions().poll({&completion, 1}) != 0) {
      if (completion.status != fabric::Status::success) return std::nullopt;
      if (completion.work_id == posted_) return completion.old_value;
    }
    if (spins < kSpins) continue;
    if (base::monotonic_ns() - since_ns > kGiveUpNs) return std::nullopt;
    link_->endpoint().wait(kAdderNapNs);
  }
}

Result<sequencer::Range> SequencerAdder::take(RemoteRequests& requests, NodeConnection& connection,
                                              std::uint32_t number, std::uint32_t epoch,
                                              std::uint32_t count) {
  for (int tries = 0; tries < kTriesMax; ++tries) {
    if (const auto opened = open_link(connection); !opened) return std::unexpected(opened.error());
    auto known = words_.find(number);
    if (known == words_.end() || known->second.epoch != epoch) {
      const auto word = ask_word(requests, number);
      if (!word) return std::unexpected(word.error());
      known = words_.insert_or_assign(number, *word).first;
      if (word->epoch != epoch) return fail(Code::sealed, word->epoch);
    }
    const auto before = add(known->second, count);
    // What was sent may be added yet, which leaves a gap; the pair is not used again.
    if (!before) {
      link_.reset();
      words_.clear();
      continue;
    }
    const auto range = sequencer::check_answer(*before, epoch, count);
    if (range && range->end() <= known->second.mark) return *range;
    // Ask the node for the state: it reads the word itself before it answers. Numbers above the
    // mark may be used if it reports a later mark of the same epoch.
    words_.erase(known);
    const auto word = ask_word(requests, number);
    if (!range && range.error() == sequencer::NoAnswer::exhausted) return fail(Code::exhausted);
    if (!word) return std::unexpected(word.error());
    words_.insert_or_assign(number, *word);
    if (word->epoch != epoch) return fail(Code::sealed, word->epoch);
    if (range && range->end() <= word->mark) return *range;
  }
  return fail(Code::connection_lost);
}

}  // namespace espalier::client
