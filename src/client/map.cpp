// SPDX-License-Identifier: Apache-2.0
#include "espalier/map.hpp"

#include <type_traits>

#include "client/impl.hpp"
#include "tree/audit.hpp"

namespace espalier {

namespace client {

void Answer::done(const Completion& done) {
  completion = done;
  if (value != nullptr && done.found) value->assign(done.value);
  key.assign(done.key);
  completion.key = key;
  completion.value = {};
}

bool Answer::items(std::uint64_t, std::span<const Item> items) {
  return sink == nullptr || (*sink)(items);
}

Result<void> MapImpl::run(const tree::WalkRequest& request) {
  const auto session = SessionLease::take(sessions);
  if (!session) return std::unexpected(session.error());
  (*session)->engine(*core).run(request);
  return {};
}

namespace {

// Runs a request and returns its answer.
Result<Completion> run(MapImpl& map, const Request& request, Answer& answer,
                       const tree::HeldVersion* held = nullptr) {
  if (const auto ran = map.run({&request, &answer, held, {}, {}}); !ran) {
    return std::unexpected(ran.error());
  }
  if (!answer.completion.ok) return std::unexpected(answer.completion.error);
  return answer.completion;
}

Result<Written> write(MapImpl& map, Op op, std::string_view key, std::string_view value,
                      const tree::WriteCondition& condition = {}) {
  Request request;
  request.op = op;
  request.key = key;
  request.value = value;
  Answer answer;
  if (const auto ran = map.run({&request, &answer, nullptr, {}, condition}); !ran) {
    return std::unexpected(ran.error());
  }
  const Completion& done = answer.completion;
  if (!done.ok) return std::unexpected(done.error);
  return Written{done.applied ? done.version : 0, done.applied, done.found};
}

// Reads one item, as a Found or, if its key is not known before, as a FoundItem.
template <class T>
Result<std::optional<T>> find(MapImpl& map, Op op, std::string_view key,
                              const tree::HeldVersion* held) {
  Request request;
  request.op = op;
  request.key = key;
  T found;
  Answer answer;
  answer.value = &found.value;
  const auto done = run(map, request, answer, held);
  if (!done) return std::unexpected(done.error());
  if (!done->found) return std::optional<T>{};
  if constexpr (std::is_same_v<T, FoundItem>) found.key = std::move(answer.key);
  found.version = done->version;
  return std::optional<T>(std::move(found));
}

// Lets go of what a read at once has pinned, whatever its user does.
class LetGo {
 public:
  explicit LetGo(HostEngine& engine) : engine_(engine) {}
  ~LetGo() { engine_.let_go(); }
  LetGo(const LetGo&) = delete;
  LetGo& operator=(const LetGo&) = delete;

 private:
  HostEngine& engine_;
};

// Reads one key; calls `use` with the answer if there is one, while its bytes stay.
template <class Use>
Result<bool> get_at_once(MapImpl& map, std::string_view key, const Use& use) {
  const auto session = SessionLease::take(map.sessions);
  if (!session) return std::unexpected(session.error());
  HostEngine& engine = (*session)->engine(*map.core);
  Completion answer;
  if (!engine.get_at_once(key, answer)) {
    return fail(Code::key_too_long, map.core->geometry.key_bytes_max);
  }
  const LetGo let_go(engine);
  if (answer.found) use(answer);
  return answer.found;
}

// A scan of few items the short way, if there is one; else nothing was done.
Result<bool> scan_at_once(MapImpl& map, std::string_view low, std::size_t few,
                          const ItemSink& sink) {
  const auto session = SessionLease::take(map.sessions);
  if (!session) return std::unexpected(session.error());
  HostEngine& engine = (*session)->engine(*map.core);
  const Item* const items = engine.scan_at_once(low, static_cast<std::uint32_t>(few));
  if (items == nullptr) return false;
  const LetGo let_go(engine);
  [&]() noexcept { sink({items, few}); }();  // as everywhere: a sink that throws ends the process
  return true;
}

Result<std::uint64_t> scan(MapImpl& map, std::string_view low, std::string_view high,
                           const ItemSink& sink, ScanOptions options,
                           const tree::HeldVersion* held) {
  if (options.from_floor && options.reverse) return fail(Code::invalid_argument);
  if (options.limit > ~std::uint32_t{0}) options.limit = 0;
  const bool plain = !options.from_floor && !options.reverse && high.empty() && held == nullptr;
  if (plain && options.limit != 0 && options.limit <= tree::LeafScan::kFew) {
    const auto done = scan_at_once(map, low, options.limit, sink);
    if (!done) return std::unexpected(done.error());
    if (*done) return options.limit;
  }
  Request request;
  request.op = options.reverse ? Op::scan_reverse : Op::scan;
  if (options.from_floor) request.op = Op::scan_floor;
  request.key = low;
  request.high = high;
  request.limit = static_cast<std::uint32_t>(options.limit);
  Answer answer;
  answer.sink = &sink;
  const auto done = run(map, request, answer, held);
  if (!done) return std::unexpected(done.error());
  return done->items;
}

}  // namespace
}  // namespace client

// --- Map -----------------------------------------------------------------------------------------

Result<std::optional<Found>> Map::get(std::string_view key) const {
  std::optional<Found> found;
  const auto done = client::get_at_once(*impl_, key, [&](const Completion& answer) {
    found = Found{std::string(answer.value), answer.version};
  });
  if (!done) return std::unexpected(done.error());
  return found;
}

Result<bool> Map::get(std::string_view key, std::string& value) const {
  return client::get_at_once(*impl_, key, [&](const Completion& answer) { value = answer.value; });
}

Result<Written> Map::put(std::string_view key, std::string_view value) {
  return client::write(*impl_, Op::put, key, value);
}
Result<Written> Map::insert(std::string_view key, std::string_view value) {
  return client::write(*impl_, Op::insert, key, value);
}
Result<Written> Map::update(std::string_view key, std::string_view value) {
  return client::write(*impl_, Op::update, key, value);
}
Result<Written> Map::erase(std::string_view key) {
  return client::write(*impl_, Op::erase, key, {});
}

Result<Written> Map::modify(
    std::string_view key,
    const std::function<std::optional<std::string>(std::optional<std::string_view>)>& change) {
  using Kind = tree::WriteCondition::Kind;
  for (;;) {
    const auto found = get(key);
    if (!found) return std::unexpected(found.error());
    const bool present = found->has_value();
    const auto now = present ? change((*found)->value) : change(std::nullopt);
    tree::WriteCondition condition;
    // Without versions only the value can tell whether something came between.
    const bool by_version = impl_->core->options.versions;
    condition.kind = !present ? Kind::absent : by_version ? Kind::version : Kind::value;
    condition.version = present ? (*found)->version : 0;
    if (present) condition.value = (*found)->value;
    // An erase of nothing is a write that checks and changes nothing.
    const auto written =
        client::write(*impl_, now ? Op::put : Op::erase, key,
                      now ? std::string_view(*now) : std::string_view{}, condition);
    if (written || written.error().code != Code::condition_failed) return written;
  }
}

Result<std::uint64_t> Map::scan(std::string_view low, std::string_view high, const ItemSink& sink,
                                ScanOptions options) const {
  return client::scan(*impl_, low, high, sink, options, nullptr);
}

Result<std::optional<FoundItem>> Map::floor(std::string_view key) const {
  return client::find<FoundItem>(*impl_, Op::floor, key, nullptr);
}

Result<std::uint64_t> Map::count(std::string_view low, std::string_view high) const {
  return client::scan(
      *impl_, low, high, [](std::span<const Item>) { return true; }, {}, nullptr);
}

Result<std::uint64_t> Map::count_estimate(std::string_view low, std::string_view high) const {
  const tree::MapCore& core = *impl_->core;
  if (low.size() > core.geometry.key_bytes_max || high.size() > core.geometry.key_bytes_max) {
    return fail(Code::key_too_long, core.geometry.key_bytes_max);
  }
  const auto session = client::SessionLease::take(impl_->sessions);
  if (!session) return std::unexpected(session.error());
  tree::SearchKey key;
  base::EpochSlot& slot = (*session)->worker.slot;
  slot.enter();
  double below_high = static_cast<double>(core.items.sum());
  if (!high.empty()) {
    key.assign(high);
    below_high = tree::estimate_rank(core, key);
  }
  double below_low = 0;
  if (!low.empty()) {
    key.assign(low);
    below_low = tree::estimate_rank(core, key);
  }
  slot.exit();
  return below_high > below_low ? static_cast<std::uint64_t>(below_high - below_low + 0.5) : 0;
}

Result<Snapshot> Map::snapshot() const {
  if (!impl_->core->options.versions) return fail(Code::unsupported);
  const auto session = client::SessionLease::take(impl_->sessions);
  if (!session) return std::unexpected(session.error());
  base::EpochSlot& slot = (*session)->worker.slot;
  slot.enter();
  const auto held = impl_->core->store.reclaimer.hold(*impl_->core, impl_->core->clock.released());
  slot.exit();
  return Snapshot(std::make_unique<client::SnapshotImpl>(*impl_, held));
}

const std::string& Map::name() const { return impl_->core->name; }
const MapOptions& Map::options() const { return impl_->core->options; }
std::uint32_t Map::max_key_bytes() const { return impl_->core->geometry.key_bytes_max; }

MapStats Map::stats() const {
  const tree::MapCore& core = *impl_->core;
  const auto waiting = core.store.reclaimer.waiting(core, false);
  MapStats stats;
  stats.items = core.items.sum();
  stats.leaves = core.leaves.load(std::memory_order_relaxed);
  stats.interior_nodes = core.interior_nodes.load(std::memory_order_relaxed);
  stats.height = core.node(core.root).level() + 1;
  stats.node_bytes = (stats.leaves + stats.interior_nodes) * core.options.node_bytes;
  stats.value_bytes = core.value_bytes.load(std::memory_order_relaxed);
  stats.waiting_bytes = waiting.bytes;
  stats.log_merges = core.log_merges.sum();
  stats.splits = core.splits.load(std::memory_order_relaxed);
  stats.gives = core.gives.load(std::memory_order_relaxed);
  stats.merges = core.merges.load(std::memory_order_relaxed);
  stats.read_version = core.clock.released();
  stats.write_version = core.clock.taken();
  stats.snapshots = waiting.snapshots;
  return stats;
}

// What one map took of the store's memory can only be told from what all of them have.
std::vector<std::string> Map::audit() const { return tree::audit_store(impl_->core->store); }

// --- Snapshot ------------------------------------------------------------------------------------

Snapshot::Snapshot(std::unique_ptr<client::SnapshotImpl> impl) : impl_(std::move(impl)) {}
Snapshot::Snapshot(Snapshot&&) noexcept = default;
Snapshot& Snapshot::operator=(Snapshot&&) noexcept = default;
Snapshot::~Snapshot() = default;

Version Snapshot::version() const { return impl_->held->version; }

Result<std::optional<Found>> Snapshot::get(std::string_view key) const {
  return client::find<Found>(impl_->map, Op::get, key, &*impl_->held);
}
Result<std::optional<FoundItem>> Snapshot::floor(std::string_view key) const {
  return client::find<FoundItem>(impl_->map, Op::floor, key, &*impl_->held);
}
Result<std::uint64_t> Snapshot::scan(std::string_view low, std::string_view high,
                                     const ItemSink& sink, ScanOptions options) const {
  return client::scan(impl_->map, low, high, sink, options, &*impl_->held);
}

}  // namespace espalier
