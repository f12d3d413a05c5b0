// SPDX-License-Identifier: Apache-2.0
// Where the lines of an endpoint come from: one of the ways in which providers carry frames. Each
// makes links to those who are dialled and of those who dial, and says when they have come up, have
// brought something, or are gone.
//
// Thread: that of its endpoint.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/error.hpp"
#include "fabric/ofi/library.hpp"
#include "fabric/ofi/link.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric::ofi {

/// Who hears of those who dial.
class Hall {
 public:
  /// Whether one more may come in.
  [[nodiscard]] virtual bool has_room() = 0;
  /// Sends one away who has not said yet what he wants, if there is one.
  virtual bool send_one_away() = 0;
  virtual void let_in(Link& link, std::string peer) = 0;

 protected:
  ~Hall() = default;
};

class Lines {
 public:
  virtual ~Lines() = default;

  /// Begins to connect to who listens there. Errors: out_of_memory (too many), unsupported (detail:
  /// a Lack), system.
  virtual Result<Link*> dial(const roce::PortAddress& where) = 0;
  /// Errors: already_exists, unsupported (detail: a Lack), system.
  virtual Result<void> listen(const roce::PortAddress& where) = 0;
  /// Where, with the port that was taken. Requires: listen() has succeeded.
  [[nodiscard]] virtual roce::PortAddress listens_at() const = 0;

  /// The next take() looks at everything; others leave out now and then what costs a call of the
  /// system.
  virtual void look() = 0;
  /// Takes what has come. Returns whether anything has.
  virtual bool take() = 0;
  /// What comes last in a turn. Returns whether it has told anybody anything.
  virtual bool settle(std::uint64_t now_ns) = 0;
  [[nodiscard]] virtual bool any() const = 0;

  /// When there is something to do although nothing came; UINT64_MAX: never.
  [[nodiscard]] virtual std::uint64_t due_ns() const = 0;
  /// Adds what tells that there is something to do, and shortens the time to wait where nothing
  /// does. Returns false if there is something already.
  [[nodiscard]] virtual bool watch(std::vector<pollfd>& into, std::uint64_t& timeout_ns) = 0;
};

/// As the provider can: by connections where it makes them, else by datagrams where it sends those.
/// `hall` outlives them. Errors: system.
Result<std::unique_ptr<Lines>> open_lines(std::shared_ptr<const Library> library,
                                          std::string_view provider, Hall& hall);

}  // namespace espalier::fabric::ofi
