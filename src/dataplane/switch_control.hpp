// SPDX-License-Identifier: Apache-2.0
// The control protocol of a switch, by which it is configured and reports its state. A request is a
// word, followed by a body if the word has one. control_server.hpp serves them at a socket.
//
//   put BYTES       the maps of a controller, a program (switch_program.hpp) in place of those that
//                   it has put before; they go when the controller does
//   install BYTES   a program in place of all that there is; it stays
//   change BYTES    changes of entries, atomically; of maps that another one holds, none
//   held            how many maps this connection holds
//   program         what it runs with
//   status          a line "name value" for each number
//
//   ok BYTES        the answer follows
//   error BYTES     what was wrong, in words; nothing was changed
//
// Stale tables are worse than none: the key that they write is void once the controller's lease is
// lost, and each READ that they redirect fails. So a connection holds what it puts, and the switch
// removes it when the connection closes, or makes no request for kHolderSilentNs.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "dataplane/installed_function.hpp"
#include "dataplane/switch_program.hpp"

namespace espalier::dataplane {

/// A holder that makes no request for so long loses its maps.
inline constexpr std::uint64_t kHolderSilentNs = 3'000'000'000;

/// Executes requests in order, without a socket. Thread: any.
class SwitchControl {
 public:
  /// Adds lines "name value" of what the switch counts.
  using AddStatus = std::function<void(std::string& text)>;

  /// The function outlives it.
  SwitchControl(InstalledFunction& function, AddStatus add_status)
      : function_(function), add_status_(std::move(add_status)) {}

  /// A connection, by a number that no other one has had.
  using Holder = std::uint64_t;
  static constexpr Holder kNobody = 0;

  using Answer = std::expected<std::string, std::string>;  // else what was wrong
  /// Executes a request: its word and its body. Without a holder `put` is refused.
  Answer ask(std::string_view word, std::string_view body, Holder holder = kNobody);
  /// The holder has disconnected or is silent: removes its maps. Cost: constant if it holds
  /// nothing; else as put.
  void drop(Holder holder);

 private:
  Answer put(std::string_view text, Holder holder);
  Answer install(std::string_view text);
  Answer change(std::string_view text, Holder holder);
  [[nodiscard]] std::string held_by_another(const TablesName& name, Holder holder) const;
  void take(SwitchProgram program);
  [[nodiscard]] SwitchProgram without(Holder holder) const;
  [[nodiscard]] std::string status() const;

  std::mutex mutex_;  // of all below
  InstalledFunction& function_;
  const AddStatus add_status_;
  SwitchProgram program_;
  std::map<TablesName, Holder> holders_;  // of its maps, where held
  std::uint64_t installed_ = 0;
  std::uint64_t changed_ = 0;  // entries
};

}  // namespace espalier::dataplane
