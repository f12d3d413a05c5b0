// SPDX-License-Identifier: Apache-2.0
// What a session keeps for a kind of object, and what it tells such a part of the session's way:
// pairs that come and go, WRITEs that have ended, and that nothing of it may be reached any more.
//
// Thread: that of the session's scheduler.
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
  /// The pair of the session's rings is there, until detach(). By it a part may post WRITEs, whose
  /// numbers have kPartMark.
  virtual void attach(fabric::QueuePair&) {}
  virtual void detach() {}
  /// What a part has posted has ended.
  virtual void completed(const fabric::Completion&) {}
  /// Whether something that it has posted has not ended.
  [[nodiscard]] virtual bool busy() const { return false; }
  /// The session may read no memory any more, unless it opens it again.
  virtual void fence() {}
  /// The session is over: what it could reach is revoked before its pairs are closed.
  virtual void end() {}
};

/// Of posts of parts, whose number else belongs to the rings.
inline constexpr std::uint64_t kPartMark = std::uint64_t{1} << 63;
/// Posts of all parts of one session that have not ended: the completion queue has room for them.
inline constexpr std::size_t kPartPostsMax = 4;

class SessionParts {
 public:
  template <class P>
  [[nodiscard]] P* find() const {
    return parts_.find<P>();
  }
  /// What is there, or made of these.
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
  /// Whether the completion of this number is of what a part has posted.
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
