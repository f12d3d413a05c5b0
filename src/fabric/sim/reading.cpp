// SPDX-License-Identifier: Apache-2.0
// How a target does READs: any number at a time, each for itself.
#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/sim/pair.hpp"
#include "fabric/sim/responder.hpp"
#include "fabric/sim/world.hpp"

namespace espalier::fabric::sim {

void Responder::begin_reading(Message request, bool again) {
  World& world = pair_.world();
  const std::uint64_t id = ++last_reading_;
  Reading& reading = readings_[id];
  reading.request = std::move(request);
  reading.again = again;
  if (reading.request.bytes != 0 && is_shared_read(pair_, reading.request)) {
    reading.pieces.push_back({0, reading.request.bytes, 0});
  } else {
    reading.pieces = cut_in_pieces(reading.request.remote, reading.request.bytes, world.faults(),
                                   world.random());
  }
  reading.data.resize(reading.request.bytes);
  if (reading.pieces.empty()) return finish_reading(id);
  if (reading.pieces.size() > 1) {
    // It has just been looked up, so this cannot fail.
    reading.before.resize(reading.request.bytes);
    static_cast<void>(copy_from_region(pair_, reading.request, {0, reading.request.bytes, 0},
                                       reading.before.data()));
  }
  std::uint64_t delay = reading.pieces.front().after_ns;
  if (world.random().chance(world.faults().hold_read)) {
    delay += world.faults().hold_read_ns.draw(world.random());
  }
  schedule_read(id, delay);
}

void Responder::schedule_read(std::uint64_t id, std::uint64_t delay_ns) {
  pair_.after(delay_ns, What::line_read, id, [id](Pair& pair) { pair.responder().read_piece(id); });
}

void Responder::read_piece(std::uint64_t id) {
  const auto found = readings_.find(id);
  if (found == readings_.end()) return;
  Reading& reading = found->second;
  if (peer_stops(reading.request)) {
    readings_.erase(found);
    return end_if_refused();
  }
  const Piece& piece = reading.pieces[reading.done];
  if (!copy_from_region(pair_, reading.request, piece, reading.data.data() + piece.offset)) {
    const Message request = std::move(reading.request);
    const bool again = reading.again;
    readings_.erase(found);
    // The first time decides what becomes of the request.
    if (again) return send_answer(request.sequence);
    ++pair_.world().counts().revoked;
    return refuse(request, Status::remote_access, Status::remote_access);
  }
  if (++reading.done == reading.pieces.size()) return finish_reading(id);
  schedule_read(id, reading.pieces[reading.done].after_ns - piece.after_ns);
}

void Responder::finish_reading(std::uint64_t id) {
  Reading reading = std::move(readings_.at(id));
  readings_.erase(id);
  const std::uint64_t sequence = reading.request.sequence;
  count_torn(reading);
  if (!reading.again && reads_before(sequence)) ++pair_.world().counts().reads_reordered;
  answer(reading.request, Status::success).data = std::move(reading.data);
  send_answer(sequence);
  end_if_refused();
  go_on();
}

// It is torn if one line was read before it changed, and another after.
void Responder::count_torn(const Reading& reading) {
  if (reading.pieces.size() < 2) return;
  std::vector<std::byte> now(reading.data.size());
  if (!copy_from_region(pair_, reading.request, {0, reading.request.bytes, 0}, now.data())) return;
  bool of_before = false;
  bool of_after = false;
  for (const Piece& piece : reading.pieces) {
    const auto same = [&](const std::vector<std::byte>& other) {
      return std::memcmp(reading.data.data() + piece.offset, other.data() + piece.offset,
                         piece.bytes) == 0;
    };
    of_before |= same(reading.before) && !same(now);
    of_after |= !same(reading.before);
  }
  if (of_before && of_after) ++pair_.world().counts().torn_reads;
}

bool Responder::reads_before(std::uint64_t sequence) const {
  return std::any_of(readings_.begin(), readings_.end(), [sequence](const auto& entry) {
    return !entry.second.again && entry.second.request.sequence < sequence;
  });
}

void Responder::give_up_reads(std::uint64_t from) {
  std::erase_if(readings_, [from](const auto& entry) {
    return entry.second.again || entry.second.request.sequence >= from;
  });
}

}  // namespace espalier::fabric::sim
