// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/map_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "catalog/catalog.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "kinds/map/host/host_executor.hpp"
#include "kinds/map/redo_record.hpp"
#include "kinds/map/write/map_core.hpp"
#include "store/store_core.hpp"
#include "store/thread_context.hpp"

namespace espalier::offload {
namespace {

/// Copies by scans, each at its current read version. All versions taken when the copy began are
/// released before the first scan, so items not changed since are in it.
class MapCopy final : public ObjectCopy, private Handler {
 public:
  MapCopy(tree::StoreCore& store, std::shared_ptr<tree::MapCore> map, base::EpochSlot slot)
      : map_(std::move(map)),
        wait_for_(map_->clock.taken()),
        context_(store, std::move(slot), 0),
        executor_(context_, *map_, 1, [this](std::uint32_t, base::ReadyQueue& queue) {
          return tree::HostAccess(map_->base, queue, false, &kNever);
        }) {
    last_.reserve(map_->geometry.key_bytes_max);  // so that no allocation throws during a scan
  }

  Result<CopyStep> next(CopyPiece& piece) override {
    if (map_->is_dropped()) return CopyStep::done;
    const bool is_visible = map_->clock.released_now() >= wait_for_;
    if (!is_visible && !planted(Bug::copy_waits_for_nothing)) return CopyStep::wait;
    piece_ = &piece;
    stopped_ = false;
    espalier::Request request;
    request.op = Op::scan;
    request.key = last_;
    executor_.run({&request, this, nullptr, {}, {}});
    if (!failed_.has_value()) return std::unexpected(failed_.error());
    if (stopped_) return CopyStep::more;
    add_version(piece);
    return CopyStep::done;
  }

 private:
  bool items(std::uint64_t, std::span<const Item> items) override {
    for (const Item& item : items) {
      if (item.key == last_) continue;  // copied before; the scan resumed at it
      stopped_ = piece_->full() || !add(item);
      if (stopped_) return false;
      last_.assign(item.key);
    }
    return true;
  }
  void done(const Completion& completion) override {
    if (!completion.ok) failed_ = std::unexpected(completion.error);
  }

  bool add(const Item& item) {
    const std::size_t bytes = sizeof(tree::WrittenRecord) + sizeof(tree::WriteFields) +
                              item.key.size() + item.value.size();
    const auto room = piece_->add(bytes);
    if (room.empty()) return false;
    tree::WrittenRecord record = tree::written_record(tree::RedoType::written, map_->id, bytes, 1);
    record.version = item.version;
    catalog::RedoWriter writer(room);
    writer.part(record);
    tree::write_fields(writer, tree::WriteOp::put, item.key, item.value);
    return true;
  }
  void add_version(CopyPiece& piece) {
    tree::WrittenRecord record = tree::written_record(tree::RedoType::restructured, map_->id,
                                                      sizeof(tree::WrittenRecord), 0);
    record.version = map_->clock.taken();
    if (record.version == 0) return;
    const auto room = piece.add(sizeof record);
    if (!room.empty()) catalog::RedoWriter(room).part(record);
  }

  static constexpr bool kNever = false;

  const std::shared_ptr<tree::MapCore> map_;
  const std::uint64_t wait_for_;
  tree::ThreadContext context_;
  tree::MapExecutor executor_;
  std::string last_;  // key of the last item taken
  CopyPiece* piece_ = nullptr;
  bool stopped_ = false;
  Result<void> failed_;
};

}  // namespace

Result<std::unique_ptr<ObjectCopy>> copy_a_map(Services& services,
                                               const std::shared_ptr<const catalog::Entry>& entry) {
  auto map = std::static_pointer_cast<tree::MapCore>(entry->object);
  if (!map->options.versions) return fail(Code::unsupported, entry->id);
  auto slot = services.store.epochs.join();
  if (!slot) return std::unexpected(slot.error());
  return std::make_unique<MapCopy>(services.store, std::move(map), std::move(*slot));
}

}  // namespace espalier::offload
