// SPDX-License-Identifier: Apache-2.0
#include "tests/durability/store_world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "kinds/hash/audit.hpp"
#include "kinds/table/testing/redo_tables.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kWorldKeys = 30;
constexpr const char* kOther = "other";
constexpr const char* kCounter = "counter";
constexpr int kOtherItems = 8;
constexpr std::uint64_t kStepsAsync = 32;  // so old may be what is not durable

thread_local std::uint64_t steps_now = 0;  // the worlds' time
std::uint64_t now_in_steps() noexcept { return steps_now; }

}  // namespace

StoreLife::~StoreLife() {
  checkpoint_.reset();
  executor_.reset();
  map_.reset();
  hash_.reset();
  filling_.reset();
  lost_.reset();
  lost_rows_.reset();
  other_table_.reset();
  table_.reset();
  sealed_.reset();
  grouping_.reset();
  embedding_.reset();
  numbers_.reset();
}

// Every fourth life by two threads; what is there and what is refused is the same.
log::LogResult<std::unique_ptr<log::Log>> StoreLife::open_log() {
  log::LogOptions options = log::small_options();
  const auto begin_above = [&](auto& redo) {
    options.recovery.begins = [&redo](std::uint64_t incarnation) {
      redo.begin_versions_above(offload::versions_before_run(incarnation));
    };
  };
  if (++world_.recoveries % 4 != 1) {
    begin_above(target_);
    return log::Log::open(
        world_.disk, options, [this](std::uint64_t, std::span<const std::byte> record) {
          return target_.apply({reinterpret_cast<const char*>(record.data()), record.size()});
        });
  }
  // Short pieces have threads meet; of long ones many records are applied as one run.
  const std::size_t piece_bytes = world_.random.below(2) == 0 ? 256 : 16384;
  const auto redo = offload::ParallelRedo::start(
      {.services = services_, .own = {}, .threads = 2, .piece_bytes = piece_bytes});
  begin_above(**redo);
  options.applied = [&] { return (*redo)->finish(); };
  return log::Log::open(
      world_.disk, options,
      [&](std::uint64_t, std::span<const std::byte> record) { return (*redo)->apply(record); });
}

bool StoreLife::recover() {
  auto opened = open_log();
  if (!opened) {
    EXPECT_TRUE(world_.disk.crashed()) << log::message(opened.error());
    return false;
  }
  log_ = std::move(*opened);
  EXPECT_TRUE(log_->recovered().damaged_checkpoints.empty()) << "no bit was changed";
  if (log_->recovered().checkpoint) ++world_.begun_with_one;
  age_ = std::make_unique<catalog::UnflushedAge>(log_->writer(), kStepsAsync, now_in_steps);
  const bool promises_async = world_.async != world_.by_object;
  log_->writer().set_promise({promises_async ? Durability::async : Durability::sync, age_.get()});
  core_.catalog.record_to(&log_->writer());
  EXPECT_TRUE(offload::record_recovered(services_, {}));
  if (!log_->writer().flush()) return false;  // the disk crashed
  open_objects();
  return true;
}

void StoreLife::check() {
  for (auto& [key, truth] : world_.map) {
    const std::string value = get(key);
    const std::string may_be = truth.text();
    EXPECT_TRUE(truth.found(value)) << key << ": " << value << " not " << may_be;
  }
  for (auto& [key, truth] : world_.hash) {
    const std::string value = hash_->get(hash_thread_, key)->value_or("");
    const std::string may_be = truth.text();
    EXPECT_TRUE(truth.found(value)) << key << ": " << value << " not " << may_be;
  }
  EXPECT_TRUE(world_.rows.may_be(table_->rows())) << table_->rows() << world_.rows.text();
  world_.rows = {table_->rows(), table_->rows()};
  EXPECT_GE(numbers_->facts().next, world_.next_number);
  EXPECT_GE(*core_.parts.of<sequencer::Counters>().take(kCounter, 0), world_.next_count);
  EXPECT_GE(map_->clock.taken(), world_.highest_version) << "a version would come again";
  EXPECT_GE(hash_->clock().taken(), world_.highest_hash_version) << "a version would come again";
  check_numbers();
  check_names();
  check_other();
  check_sealed();
  EXPECT_EQ(tree::audit_store(core_), std::vector<std::string>{});
}

void StoreLife::check_other() {
  const catalog::EntryPointer there = core_.catalog.find_any(kOther);
  const std::string id = there != nullptr ? std::to_string(there->id) : "";
  const std::string may_be = world_.other.text();
  EXPECT_TRUE(world_.other.found(id)) << "object " << id << " not " << may_be;
  if (there == nullptr) return;
  other_table_ = core_.catalog.find<table::Table>(there->id);
  if (other_table_ != nullptr) {
    NumberTruth& rows = world_.other_rows[id];
    EXPECT_TRUE(rows.may_be(other_table_->rows())) << other_table_->rows() << rows.text();
    rows = {other_table_->rows(), other_table_->rows()};
    return;
  }
  const auto map = core_.catalog.find<hash::HashMap>(there->id);
  for (int i = 0; i < kOtherItems; ++i) {
    const std::string value = map->get(hash_thread_, std::to_string(i))->value_or("");
    EXPECT_TRUE(value == id || (value.empty() && !world_.filled.contains(id)))
        << "item " << i << " of object " << id << ": " << value;
  }
}

void StoreLife::work(int steps) {
  for (; steps > 0 && !world_.disk.crashed(); --steps) step();
  crash();
}

void StoreLife::step() {
  ++steps_now;
  switch (world_.random.below(21)) {
    case 0:
    case 1:
    case 2: return write_map();
    case 3: return write_hash();
    case 4: return append();
    case 5: return take();
    case 6: return look();
    case 7: return make_or_drop();
    case 8: return append_other();
    case 14: return seal();
    case 15: return seal();
    case 16: return append_numbers();
    case 17: return replace_numbers();
    case 18: return group_numbers();
    case 19: return write_lost();
    case 20: return rename_some();
    case 9:
    case 10:
    case 11: return go_on_with_checkpoint();
    default: return flush();
  }
}

void StoreLife::open_objects() {
  const auto must = [](auto result) { return std::move(*result); };
  auto map = core_.catalog.open<tree::MapCore>("map");
  MapOptions of_map{.node_bytes = 512};
  of_map.durability = own_durability();
  map_ = map ? *map : must(tree::create_map(core_, "map", of_map));
  auto hash = core_.catalog.open<hash::HashMap>("hash");
  hash_ = hash ? *hash
               : must(hash::create_hash_map(hash_maps_, "hash",
                                            {.partitions = 2, .durability = own_durability()}));
  auto table = core_.catalog.open<table::Table>("rows");
  table_ = table
               ? *table
               : must(table::create_table(core_.catalog, core_.pool, "rows", table::append_schema(),
                                          {.durability = own_durability()}));
  auto sealed = core_.catalog.open<table::Table>("sealed");
  sealed_ = sealed ? *sealed
                   : must(table::create_table(core_.catalog, core_.pool, "sealed",
                                              table::append_schema(), {.encrypted = true}));
  auto rows = core_.catalog.open<embedding::EmbeddingTable>("embedding");
  embedding_ = rows ? *rows
                    : must(embedding::create_embedding_table(
                          core_.catalog, core_.pool, "embedding",
                          embedding::shape_of({.dimension = kNumbersOfARow})));
  auto numbers = core_.catalog.open<sequencer::Sequencer>("numbers");
  numbers_ = numbers ? *numbers : must(sequencer::create_sequencer(core_.catalog, "numbers", 0));
  open_lost();
  executor_ = std::make_unique<tree::HostExecutor<tree::HostAccess>>(
      context_, *map_, 8, [this](std::uint32_t, base::ReadyQueue& queue) {
        return tree::HostAccess(map_->base, queue, true, &kNever);
      });
}

std::optional<Durability> StoreLife::own_durability() const {
  if (!world_.by_object) return std::nullopt;
  return world_.async ? Durability::async : Durability::sync;
}

// That they are there is kept, and nothing that is in them.
void StoreLife::open_lost() {
  const auto hash = core_.catalog.open<hash::HashMap>("lost");
  const auto rows = core_.catalog.open<table::Table>("lost rows");
  EXPECT_TRUE(!hash || (*hash)->numbers().entries == 0) << "what is kept nowhere was kept";
  EXPECT_TRUE(!rows || (*rows)->rows() == 0) << "what is kept nowhere was kept";
  EXPECT_TRUE(!hash || (*hash)->durability() == Durability::none);
  constexpr Durability kNone = Durability::none;
  lost_ = hash ? *hash
               : *hash::create_hash_map(hash_maps_, "lost",
                                        {.partitions = 1, .versions = false, .durability = kNone});
  lost_rows_ = rows ? *rows
                    : *table::create_table(core_.catalog, core_.pool, "lost rows",
                                           table::append_schema(), {.durability = kNone});
}

// It waits for no disk, and makes no record.
void StoreLife::write_lost() {
  const std::uint64_t records = log_->writer().handed_over();
  const std::string key = std::to_string(world_.random.below(kWorldKeys));
  const std::string value = random_value();
  const auto begun = lost_->begin(hash_thread_, hash::WriteOp::put, key, value);
  EXPECT_TRUE(begun.answer);
  EXPECT_EQ(lost_->get(hash_thread_, key)->value_or(""), value);
  const std::uint64_t rows = lost_rows_->rows();
  const auto appended = lost_rows_->append(table::rows_of_append(lost_rows_->schema(), 1, 1));
  ASSERT_TRUE(appended) << message(appended.error().error);
  EXPECT_EQ(lost_rows_->rows(), rows + 1);
  EXPECT_EQ(log_->writer().handed_over(), records);
}

std::string StoreLife::random_value() {
  std::string value = std::to_string(++world_.values);
  if (world_.random.below(6) == 0) value.append(world_.random.below(1500), ' ');
  return value;
}

void StoreLife::submit(Pending& pending, Op op) {
  pending.request.op = op;
  pending.request.tag = pending_.size() - 1;  // it is the last one
  pending.request.key = pending.key;
  pending.request.value = pending.value;
  executor_->submit({&pending.request, 1}, *this);
  for (std::uint64_t turns = world_.random.below(6); turns != 0; --turns) {
    static_cast<void>(must_wait());  // it may write what was submitted long ago
    executor_->advance();
  }
}

// As each writer does, which has the disk make progress then.
bool StoreLife::must_wait() {
  if (!catalog::must_wait_for_disk(*map_)) return false;
  ++world_.waited;
  flush();
  return true;
}

// One whose disk has crashed answers nothing any more.
void StoreLife::answered_early(Answered answer) {
  if (world_.disk.crashed()) return;
  answer.sequence = log_->writer().handed_over();
  answer.at_step = last_answer_step_ = steps_now;
  early_.push_back(answer);
}

void StoreLife::take_early_answers(std::uint64_t durable) {
  std::erase_if(early_, [&](const Answered& each) {
    if (each.sequence > durable) return false;
    if (each.key != nullptr) each.key->acknowledged(each.number);
    if (each.rows != nullptr)
      each.rows->acknowledged = std::max(each.rows->acknowledged, each.number);
    return true;
  });
}

bool StoreLife::saw(KeyTruth& truth, const std::string& value) const {
  return world_.async ? truth.may_be(value) : truth.seen(value);
}

// No key twice: which of two comes first, only the map knows.
void StoreLife::write_map() {
  if (must_wait()) return;
  const std::string key = std::to_string(world_.random.below(kWorldKeys));
  if (!busy_.insert(key).second) return;
  const bool erases = world_.random.below(4) == 0;
  Pending& pending = pending_.emplace_back();
  pending.key = key;
  if (!erases) pending.value = random_value();
  pending.number = world_.map[key].begin(pending.value);
  submit(pending, erases ? Op::erase : Op::put);
}

void StoreLife::look() {
  Pending& pending = pending_.emplace_back();
  pending.key = std::to_string(world_.random.below(kWorldKeys));
  pending.read = true;
  pending.since = KeyTruth::Since(world_.map[pending.key]);
  submit(pending, Op::get);
}

void StoreLife::done(const Completion& completion) {
  Pending& pending = pending_[completion.tag];
  KeyTruth& truth = world_.map[pending.key];
  if (pending.read) {
    EXPECT_TRUE(completion.ok);
    const std::string value(completion.found ? completion.value : "");
    if (completion.found) saw_version(pending.key, completion.version, value);
    EXPECT_TRUE(saw(truth, value) || pending.since.may_have_been(truth, value)) << pending.key;
    found_ = value;
    return;
  }
  busy_.erase(pending.key);
  if (completion.ok && world_.async) {
    return answered_early({.key = &truth, .number = pending.number});
  }
  if (completion.ok) return truth.acknowledged(pending.number);
  EXPECT_TRUE(log_->writer().acknowledgements().error()) << message(completion.error);
  // A write that was refused with the log's own error was not done; but its caller cannot know.
}

// Whatever was lost, and however it was recovered: conditions on versions rely on it.
void StoreLife::saw_version(const std::string& key, std::uint64_t version,
                            const std::string& value) {
  const auto [at, is_new] = world_.by_version.try_emplace({key, version}, value);
  EXPECT_EQ(at->second, value) << key << " had that at version " << version;
}

std::string StoreLife::get(const std::string& key) {
  Pending& pending = pending_.emplace_back();
  pending.key = key;
  pending.read = true;
  pending.since = KeyTruth::Since(world_.map[pending.key]);
  submit(pending, Op::get);
  executor_->drain();
  return found_;
}

void StoreLife::write_hash() {
  if (must_wait()) return;
  const std::string key = std::to_string(world_.random.below(kWorldKeys));
  const bool erases = world_.random.below(4) == 0;
  const std::string value = random_value();
  const std::uint64_t number = world_.hash[key].begin(erases ? "" : value);
  const auto begun =
      hash_->begin(hash_thread_, erases ? hash::WriteOp::erase : hash::WriteOp::put, key, value);
  if (begun.answer && world_.async && hash_->released(begun.version)) {
    answered_early({.key = &world_.hash[key], .number = number});
  } else if (begun.answer) {
    hashes_.push_back(
        {key, number, begun.version, world_.async ? log_->writer().handed_over() : 0});
  }
  const std::string seen = hash_->get(hash_thread_, key)->value_or("");
  EXPECT_TRUE(saw(world_.hash[key], seen)) << key;
}

void StoreLife::append_to(table::Table& table, NumberTruth& truth) {
  const auto count = static_cast<std::int64_t>(1 + world_.random.below(3));
  truth.asked += static_cast<std::uint64_t>(count);
  const std::uint64_t visible = table.rows();
  const auto first = table.append(table::rows_of_append(table.schema(), 1, count));
  if (!first) truth.asked -= static_cast<std::uint64_t>(count);
  if (!world_.async) {
    EXPECT_EQ(table.rows(), visible) << "no record can be durable yet";
  } else if (first) {
    EXPECT_EQ(table.rows(), visible + static_cast<std::uint64_t>(count));
    answered_early({.number = table.rows(), .rows = &truth});
  }
}

void StoreLife::append() {
  if (world_.appends && !must_wait()) append_to(*table_, world_.rows);
}

void StoreLife::append_other() {
  if (other_table_ == nullptr || must_wait()) return;
  append_to(*other_table_, world_.other_rows[std::to_string(other_table_->id())]);
}

void StoreLife::take() {
  log::LogWriter& writer = log_->writer();
  if (world_.random.below(2) == 0) {
    const auto first = core_.parts.of<sequencer::Counters>().take(kCounter, 3, &writer);
    if (!first) return;
    EXPECT_GE(*first, world_.next_count);
    counted_.emplace_back(*first + 3, writer.handed_over());
    return;
  }
  const auto range = numbers_->take(wire::kAnyEpoch, 2);
  if (!range) return;
  EXPECT_GE(range->first, world_.next_number);
  taken_.emplace_back(range->end(), writer.handed_over());
}

// An object whose name comes again, and its id never.
void StoreLife::make_or_drop() {
  log::LogWriter& writer = log_->writer();
  if (core_.catalog.find_any(kOther) != nullptr) {
    if (world_.random.below(3) != 0) return;
    const std::uint64_t number = world_.other.begin("");
    filling_.reset();
    other_table_.reset();
    if (core_.catalog.drop(kOther)) others_.push_back({number, writer.handed_over(), 0});
    return;
  }
  const bool is_table = world_.appends && world_.random.below(2) == 0;
  const bool is_made =
      is_table ? table::create_table(core_.catalog, core_.pool, kOther, table::append_schema(),
                                     {.durability = own_durability()})
                     .has_value()
               : hash::create_hash_map(hash_maps_, kOther,
                                       {.partitions = 1, .durability = own_durability()})
                     .has_value();
  if (!is_made) return;
  const std::uint32_t id = core_.catalog.find_any(kOther)->id;
  EXPECT_GT(id, world_.highest_id) << "the id of another object";
  others_.push_back({world_.other.begin(std::to_string(id)), writer.handed_over(), id});
  if (is_table) {
    other_table_ = core_.catalog.find<table::Table>(id);
    world_.other_rows[std::to_string(id)] = {};  // the id may be that of one that was lost
    return append_other();
  }
  const auto map = core_.catalog.find<hash::HashMap>(id);
  if (fill(*map)) filling_ = map;
}

/// Returns whether each item was written.
bool StoreLife::fill(hash::HashMap& map) {
  const std::string id = std::to_string(map.id());
  filling_version_ = 0;
  for (int i = 0; i < kOtherItems; ++i) {
    const auto begun = map.begin(hash_thread_, hash::WriteOp::put, std::to_string(i), id);
    if (!begun.answer) return false;
    filling_version_ = begun.version;
  }
  filling_sequence_ = world_.async ? log_->writer().handed_over() : 0;
  return true;
}

void StoreLife::go_on_with_checkpoint() {
  if (!world_.makes_checkpoints) return;
  log::LogWriter& writer = log_->writer();
  const auto is_excused = [&] {
    return world_.disk.crashed() || writer.acknowledgements().error();
  };
  if (!checkpoint_) {
    if (world_.random.below(4) != 0) return;
    const std::size_t piece_bytes = std::size_t{64} << world_.random.below(7);
    offload::CheckpointRun::Terms terms{
        services_, {}, world_.disk, log::kSomeNode, writer, 2 * log::kUnitBytes, piece_bytes};
    auto begun = offload::CheckpointRun::begin(terms);
    EXPECT_TRUE(begun || is_excused()) << log::message(begun.error());
    if (begun) checkpoint_ = std::move(*begun);
    return;
  }
  const std::size_t segments = writer.segments().count();
  auto state = checkpoint_->step();
  for (std::uint64_t more = world_.random.below(4); more != 0; --more) {
    if (state && *state == offload::CheckpointRun::State::copying) state = checkpoint_->step();
  }
  EXPECT_TRUE(state || is_excused()) << log::message(state.error());
  if (state && *state != offload::CheckpointRun::State::done) return;
  world_.checkpoints += state.has_value();
  world_.crashed_in_one += !state.has_value();
  world_.segments_removed += segments - writer.segments().count();
  checkpoint_.reset();
}

void StoreLife::flush() {
  static_cast<void>(log_->writer().flush());
  if (world_.random.below(3) == 0) static_cast<void>(log_->writer().prepare_spare());
  for (int turns = 0; turns < 4; ++turns) executor_->advance();
  take_acknowledgements();
}

// As a node gives them: once versions and rows are released, and records durable.
void StoreLife::take_acknowledgements() {
  const std::uint64_t durable = log_->writer().mark().released();
  take_early_answers(durable);
  std::erase_if(hashes_, [&](const PendingHash& each) {
    if (hash_->clock().released() < each.version || each.sequence > durable) return false;
    world_.hash[each.key].acknowledged(each.number);
    return true;
  });
  if (!world_.async) world_.rows.acknowledged = std::max(world_.rows.acknowledged, table_->rows());
  world_.sealed_rows.acknowledged = std::max(world_.sealed_rows.acknowledged, sealed_->rows());
  if (other_table_ != nullptr && !world_.async) {
    NumberTruth& rows = world_.other_rows[std::to_string(other_table_->id())];
    rows.acknowledged = std::max(rows.acknowledged, other_table_->rows());
  }
  world_.numbered_rows.acknowledged =
      std::max(world_.numbered_rows.acknowledged, embedding_->rows());
  world_.highest_version = std::max(world_.highest_version, map_->clock.released());
  world_.highest_hash_version = std::max(world_.highest_hash_version, hash_->clock().released());
  std::erase_if(replaced_, [&](const PendingRow& each) {
    if (each.sequence > durable) return false;
    world_.numbered[each.row].acknowledged(each.number);
    return true;
  });
  std::erase_if(grouped_, [&](const PendingRow& each) {
    if (each.sequence > durable) return false;
    world_.grouped.acknowledged(each.number);
    return true;
  });
  std::erase_if(named_, [&](const PendingRow& each) {
    if (each.sequence > durable) return false;
    world_.names.acknowledged(each.number);
    return true;
  });
  for (const auto& [next, sequence] : taken_) {
    if (sequence <= durable) world_.next_number = std::max(world_.next_number, next);
  }
  for (const auto& [next, sequence] : counted_) {
    if (sequence <= durable) world_.next_count = std::max(world_.next_count, next);
  }
  std::erase_if(others_, [&](const PendingOther& each) {
    if (each.sequence > durable) return false;
    world_.other.acknowledged(each.number);
    world_.highest_id = std::max(world_.highest_id, each.id);
    return true;
  });
  const bool filled = filling_ != nullptr && filling_->clock().released() >= filling_version_;
  if (filled && filling_sequence_ <= durable) {
    world_.filled.insert(std::to_string(filling_->id()));
    filling_.reset();
  }
}

// What waits hears of it, and nothing more is acknowledged.
void StoreLife::crash() {
  take_acknowledgements();
  for (const Answered& each : early_) {  // this is lost
    EXPECT_LT(last_answer_step_ - each.at_step, kStepsAsync) << "older than it may be";
    ++world_.lost;
  }
  if (checkpoint_) ++world_.crashed_in_one;
  world_.disk.crash();
  if (executor_->pending() != 0) {
    // So that there is something to fail with.
    static_cast<void>(numbers_->take(wire::kAnyEpoch, 1));
    EXPECT_FALSE(log_->writer().flush());
  }
  executor_->drain();
}

namespace {

void live_once(StoreWorld& world) {
  StoreLife process(world);
  if (world.random.below(4) == 0) world.disk.crash_in(1 + world.random.below(30));
  if (!process.recover()) return;
  process.check();
  if (world.random.below(5) != 0) world.disk.crash_in(1 + world.random.below(60));
  process.work(300);
}

}  // namespace

void live_some_lives(StoreWorld& world, int lives) {
  for (int life = 0; life < lives; ++life) {
    SCOPED_TRACE("life " + std::to_string(life));
    live_once(world);
    if (testing::Test::HasFailure()) return;
    world.disk.restart(world.random.below(2) == 0);
  }
}

}  // namespace espalier::test
