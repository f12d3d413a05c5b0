// SPDX-License-Identifier: Apache-2.0
// Switches inside one process, one or several in a row, between two packet ports that know no
// frames, such as those of a PacketNetwork. Each packet is put into a frame, processed by one
// switch after another, and taken out again. Where there are no packets either, as in the simulated
// fabric (fabric/sim), READs are looked up directly. Where there are several paths, a route says
// which switches each packet passes (fat_tree.hpp).
//
// Thread: one; functions are installed by any (installed_function.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/installed_function.hpp"
#include "fabric/roce/frame.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::dataplane {

class ProcessSwitch {
 public:
  /// Of switches in a row, from the clients on. The functions outlive it.
  ProcessSwitch(std::initializer_list<InstalledFunction*> functions);
  explicit ProcessSwitch(InstalledFunction& function) : ProcessSwitch({&function}) {}
  explicit ProcessSwitch(std::span<InstalledFunction> functions);

  /// A packet passes, from its BTH to its ICRC. One that is lost on the way, or no packet behind
  /// it, comes out with a wrong ICRC, so that it is dropped where it arrives. Cost: a copy of it,
  /// and the packet functions'.
  void process(const fabric::roce::PortAddress& from, const fabric::roce::PortAddress& to,
               std::span<std::byte> ib);
  /// The same of a datagram of another protocol; empty: it is lost, or did not come out whole.
  [[nodiscard]] std::vector<std::byte> process_datagram(const fabric::roce::PortAddress& from,
                                                        const fabric::roce::PortAddress& to,
                                                        std::span<const std::byte> datagram);
  /// A READ passes, by this key and of this address. Cost: a lookup in each. Requires: no route.
  void process(std::uint32_t& key, std::uint64_t& address);
  /// The same by the route between these. One that is lost on the way stays as it is.
  void process(const fabric::roce::PortAddress& from, const fabric::roce::PortAddress& to,
               std::uint32_t& key, std::uint64_t& address);

  /// A switch by its number, and what is around it where a packet passes.
  struct Stop {
    std::size_t number = 0;
    Hop hop;
  };
  /// Has the switches that a packet passes, in order; false: it is lost on the way. Null: all.
  std::function<bool(const fabric::roce::PortAddress& from, const fabric::roce::PortAddress& to,
                     std::vector<Stop>& way)>
      route;

  /// Sees frames, and shims of READs that are no packets, between one switch and the next, and may
  /// change them; an empty frame is lost. May be null.
  std::function<void(std::vector<std::byte>& frame)> between;
  std::function<void(std::optional<Shim>& shim)> between_reads;

  struct Counters {
    std::uint64_t packets = 0;  // or READs that were no packets
    std::uint64_t reads_passed = 0;
    std::uint64_t keys_unknown = 0;   // READs by keyed keys that no map has
    std::uint64_t redirected = 0;     // READs that met a table
    std::uint64_t carried = 0;        // the same, to the next switch, once for each
    std::uint64_t shims_passed = 0;   // of other tables
    std::uint64_t shims_removed = 0;  // the same, at the last switch
    std::uint64_t gets_hinted = 0;    // in datagrams
    std::uint64_t lost = 0;  // shims that were no good, and what `between` or the route has lost
  };
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  [[nodiscard]] bool find_way(const fabric::roce::PortAddress& from,
                              const fabric::roce::PortAddress& to);
  void take_all();
  fabric::roce::FrameHeader put_into_frame(const fabric::roce::PortAddress& from,
                                           const fabric::roce::PortAddress& to,
                                           std::span<const std::byte> content);
  void redirect(std::uint32_t& key, std::uint64_t& address);
  void count(const Processed& done);
  enum class Came : std::uint8_t { lost, as_it_was, changed };
  Came pass_through();

  std::vector<InstalledFunction::Reader> readers_;
  std::vector<Stop> way_;
  std::vector<std::byte> frame_;
  Counters counters_;
};

}  // namespace espalier::dataplane
