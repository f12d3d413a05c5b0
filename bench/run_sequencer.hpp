// SPDX-License-Identifier: Apache-2.0
// `espalier-bench sequencer`: numbers that clients take of one sequencer, by asking the node and by
// FETCH_ADD on its memory, one at a time and in ranges [DPU §6, Figs. 11 and 12].
//
//   rpc         the node is asked, and adds once for each batch that it polls
//   one-sided   the client adds to the word itself
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/node_transport.hpp"
#include "bench/point_options.hpp"

namespace espalier::bench {

enum class SequencerForm : std::uint8_t { rpc, one_sided };

[[nodiscard]] std::string_view name(SequencerForm form);
[[nodiscard]] std::optional<SequencerForm> parse_sequencer_form(std::string_view text);

struct SequencerOptions : PointOptions {
  static constexpr const char* kBench = "sequencer";
  static constexpr const char* kSummary = "numbers that clients take of one sequencer";

  std::vector<SequencerForm> forms{SequencerForm::rpc, SequencerForm::one_sided};
  /// Those over which nobody can add are left out of the other form.
  std::vector<NodeTransport> transports{NodeTransport::shm, NodeTransport::roce_udp};
  std::vector<std::uint32_t> clients{1, 2};
  std::vector<std::uint32_t> ranges{1, 16};  ///< numbers of one request
  std::uint32_t node_cores = 1;
  double slowness = 1;          ///< of the node's workers: the other place's [DPU §6]
  std::uint64_t ops = 100'000;  ///< requests of all clients together

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

}  // namespace espalier::bench
