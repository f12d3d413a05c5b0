// SPDX-License-Identifier: Apache-2.0
// The calls of sequencers: requests and replies.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "wire/call_codec.hpp"
#include "wire/sequencer.hpp"

namespace espalier::sequencer_calls {

/// An impossible epoch is an error, not an ended epoch.
[[nodiscard]] inline std::optional<wire::Fault> fault_of_epoch(std::uint32_t epoch) {
  if (epoch <= wire::kSequencerEpochMax) return std::nullopt;
  return wire::Fault{epoch, "no sequencer has such an epoch"};
}

[[nodiscard]] inline std::optional<wire::Fault> fault_of_facts(const wire::SequencerFacts& facts) {
  const bool bounded = facts.epoch != wire::kAnyEpoch && facts.epoch <= wire::kSequencerEpochMax &&
                       facts.first <= facts.next && facts.next <= wire::kSequencerEnd;
  return bounded ? std::nullopt : std::optional(wire::Fault{facts.epoch});
}

// --- replies -------------------------------------------------------------------------------------

/// A sequencer by its number at the node.
struct Opened {
  std::uint32_t id = 0;
  wire::SequencerFacts facts{};

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.id);
    message.fixed(self.facts);
  }
  [[nodiscard]] static Opened of(const auto& sequencer) {
    return {sequencer.id(), sequencer.facts()};
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const { return fault_of_facts(facts); }
};

struct Facts {
  wire::SequencerFacts facts{};

  static constexpr void fields(auto& self, auto& message) { message.fixed(self.facts); }
  [[nodiscard]] std::optional<wire::Fault> fault() const { return fault_of_facts(facts); }
};

/// As many numbers as requested, from this one on.
struct Taken {
  std::uint64_t first = 0;
  std::uint32_t epoch = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.first);
    message.read_version(self.epoch);
  }
};

struct Granted {
  wire::SequencerGrant grant{};

  static constexpr void fields(auto& self, auto& message) { message.fixed(self.grant); }
};

/// The first of as many numbers as requested.
struct Counted {
  std::uint64_t first = 0;

  static constexpr void fields(auto& self, auto& message) { message.version(self.first); }
};

// --- requests ------------------------------------------------------------------------------------

struct Create {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::sequencer_create,
      .name = "sequencer_create",
      .summary = "makes a sequencer, in epoch 1; answers its number and SequencerFacts",
      .right = wire::Right::admin,
      .object = wire::Names::by_name,
      .at_device = wire::AtDevice::relayed,
      .changes = true,
      .opens = true};
  using Reply = Opened;

  std::string_view name;
  std::uint64_t first = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the sequencer's name");
    message.fixed(self.first, "its first number");
  }
};

struct Open {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::sequencer_open,
                                       .name = "sequencer_open",
                                       .summary = "answers a sequencer's number and SequencerFacts",
                                       .right = wire::Right::read,
                                       .object = wire::Names::by_name,
                                       .at_device = wire::AtDevice::relayed,
                                       .opens = true};
  using Reply = Opened;

  std::string_view name;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the sequencer's name");
  }
};

struct Take {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::sequencer_take,
      .name = "sequencer_take",
      .summary =
          "answers the first of so many numbers in a row that nobody else gets, and their "
          "epoch; or sealed",
      .right = wire::Right::write,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = Taken;

  std::uint32_t sequencer = 0;
  std::uint32_t count = 0;
  std::uint32_t epoch = wire::kAnyEpoch;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.sequencer, "the sequencer's id");
    message.argument(self.count, "how many numbers");
    message.fixed(self.epoch, "the epoch, 0 for any");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    if (count == 0) return wire::Fault{0, "no numbers are asked for"};
    return fault_of_epoch(epoch);
  }
};

struct Seal {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::sequencer_seal,
      .name = "sequencer_seal",
      .summary =
          "ends the epoch: nobody is given a number of it from now on; answers "
          "SequencerFacts",
      .right = wire::Right::admin,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = Facts;

  std::uint32_t sequencer = 0;
  std::uint32_t epoch = wire::kAnyEpoch;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.sequencer, "the sequencer's id");
    message.fixed(self.epoch, "the epoch, 0 for any");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const { return fault_of_epoch(epoch); }
};

struct Advance {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::sequencer_advance,
      .name = "sequencer_advance",
      .summary =
          "ends the epoch and begins the next, above all numbers that were given; answers "
          "SequencerFacts",
      .right = wire::Right::admin,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = Facts;

  std::uint32_t sequencer = 0;
  wire::SequencerAdvance to{};

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.sequencer, "the sequencer's id");
    message.fixed(self.to, "SequencerAdvance");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    if (const auto wrong = fault_of_epoch(to.epoch)) return wrong;
    if (to.reserved != 0) return wire::Fault{to.reserved};
    return std::nullopt;
  }
};

/// Requests access to the word, so that the session can add to it directly [DPU §6].
struct OpenWord {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::one_sided_sequencer,
      .name = "one_sided_sequencer",
      .summary =
          "lets this session add to the word of the present epoch by FETCH_ADD; answers a "
          "SequencerGrant",
      .right = wire::Right::write,
      .object = wire::Names::by_id,
      .changes = true};
  using Reply = Granted;

  std::uint32_t sequencer = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.sequencer, "the sequencer's id");
  }
};

/// Numbers of a named counter, which is created on first use and has no epochs.
struct Count {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::sequence,
      .name = "sequence",
      .summary = "answers the first of so many numbers in a row that nobody else gets",
      .right = wire::Right::write,
      .object = wire::Names::by_name,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = Counted;

  std::string_view name;
  std::uint32_t count = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the sequencer's name");
    message.argument(self.count, "how many numbers");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    return count == 0 ? std::optional(wire::Fault{}) : std::nullopt;
  }
};

using All = wire::CallList<Create, Open, Take, Seal, Advance, OpenWord, Count>;

}  // namespace espalier::sequencer_calls
