// SPDX-License-Identifier: Apache-2.0
// Counters of an endpoint of `roce`; for monitoring, and so that tests can show that they have
// reached rare paths.
//
// Thread: that of the endpoint.
#pragma once

#include <cstdint>

namespace espalier::fabric::roce {

struct EndpointCounters {
  std::uint64_t packets = 0;
  std::uint64_t malformed = 0;  // no packet
  std::uint64_t unknown_peers = 0;  // for no pair of ours
  std::uint64_t foreign = 0;        // for a pair of ours, but not from its peer
  std::uint64_t out_of_window = 0;  // with a PSN that the peer cannot have outstanding

  // Requester.
  std::uint64_t go_back_n_events = 0;  // something is retransmitted, for whatever reason
  std::uint64_t timeouts = 0;        // no answer in time
  std::uint64_t sequence_naks = 0;   // the peer reported a missing packet
  std::uint64_t receiver_not_ready_naks = 0;  // the peer had no receive
  std::uint64_t reads_resumed = 0;   // asked again for a part of what a READ had asked for
  std::uint64_t port_full = 0;       // a packet that had to wait for the next flush

  // Responder.
  std::uint64_t gaps = 0;
  std::uint64_t not_ready = 0;      // no receive for a message
  std::uint64_t duplicates = 0;     // of WRITEs and SENDs
  std::uint64_t reads_again = 0;    // duplicates of READs
  std::uint64_t atomics_again = 0;  // duplicates of atomics

  // Connecting: messages that were retransmitted for want of an answer.
  std::uint64_t requests_again = 0;
  std::uint64_t replies_again = 0;
  std::uint64_t readies_again = 0;
  std::uint64_t repeated_terminates = 0;

  // Work before a peer has proved its address.
  std::uint64_t cookies_sent = 0;      // REQs that were sent back with one, and forgotten
  std::uint64_t cookies_accepted = 0;  // that came back
  std::uint64_t cookies_refused = 0;   // that came and were not right, or too old
  std::uint64_t messages_shed = 0;     // connection messages beyond those of a turn: as if lost
  std::uint64_t messages_withheld = 0;  // that would be more than what has come allows
};

}  // namespace espalier::fabric::roce
