// SPDX-License-Identifier: Apache-2.0
// A session's state for kinds of objects, and the events that it reports to each part: pairs
// attached and detached, completed WRITEs, and the loss of access.
//
// Thread: the session's scheduler's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/node_parts.hpp"

namespace espalier::fabric {
class QueuePair;
struct Completion;
}  // namespace espalier::fabric

namespace espalier::offload {

class SessionPart {
 public:
  virtual ~SessionPart() = default;
  /// The pair of the session's rings is usable until detach(). A part may post WRITEs on it, with
  /// work ids that have kPartMark.
  virtual void attach(fabric::QueuePair&) {}
  virtual void detach() {}
  /// A post of a part has completed.
  virtual void completed(const fabric::Completion&) {}
  /// Whether it has posts in flight.
  [[nodiscard]] virtual bool busy() const { return false; }
  /// The session loses read access, until it opens it again.
  virtual void fence() {}
  /// The session ends: what it could reach is revoked before its pairs are closed.
  virtual void end() {}
};

/// Marks the work ids of parts; all others belong to the rings.
inline constexpr std::uint64_t kPartMark = std::uint64_t{1} << 63;
/// Posts in flight, of all parts of one session: the completion queue has room for them.
inline constexpr std::size_t kPartPostsMax = 4;

class SessionParts {
 public:
  template <class P>
  [[nodiscard]] P* find() const {
    return parts_.find<P>();
  }
  /// The part, created from these arguments if there is none.
  template <class P, class... Arguments>
  [[nodiscard]] P& of(Arguments&&... arguments) {
    if (P* const known = parts_.find<P>()) return *known;
    P& made = parts_.make<P>(std::forward<Arguments>(arguments)...);
    if (pair_ != nullptr) made.attach(*pair_);
    return made;
  }

  void attach(fabric::QueuePair& pair) {
    pair_ = &pair;
    parts_.for_each([&](SessionPart& part) { part.attach(pair); });
  }
  void detach() {
    pair_ = nullptr;
    parts_.for_each([](SessionPart& part) { part.detach(); });
  }
  /// Whether this work id belongs to a part.
  [[nodiscard]] static bool is_of_part(std::uint64_t work_id) { return (work_id & kPartMark) != 0; }
  void completed(const fabric::Completion& completion) {
    parts_.for_each([&](SessionPart& part) { part.completed(completion); });
  }
  [[nodiscard]] bool busy() const {
    bool any = false;
    parts_.for_each([&](const SessionPart& part) { any = any || part.busy(); });
    return any;
  }
  void fence() {
    parts_.for_each([](SessionPart& part) { part.fence(); });
  }
  void end() {
    parts_.for_each([](SessionPart& part) { part.end(); });
  }

 private:
  TypedSlots<SessionPart> parts_;
  fabric::QueuePair* pair_ = nullptr;
};

}  // namespace espalier::offload
