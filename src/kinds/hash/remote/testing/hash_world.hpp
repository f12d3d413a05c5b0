// SPDX-License-Identifier: Apache-2.0
// A simulated world in which a hash map is read by READs while its host writes it: pairs of all
// lengths come and go, bins move, snapshots are held, versions are released late, and memory is
// reused as soon as leases allow, or, where the host counts none, at once. A check that tests run
// on good readers and on broken ones.
//
// Thread: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "fabric/sim/testing/two_ends.hpp"
#include "kinds/hash/remote/hash_gets.hpp"
#include "kinds/hash/testing/hash_fixture.hpp"

namespace espalier::place {

struct HashWorldOptions {
  std::uint32_t partitions = 1;
  std::uint32_t in_flight = 4;
  bool together = false;
  std::string group{};       // that the map names
  bool counts_lease = true;  // else the host reuses memory as if nobody read it
  std::uint64_t cache_bytes = 64 << 10;
  std::uint64_t record_cache_bytes = 0;
  std::uint64_t directory_bytes = 1 << 20;
  std::uint64_t value_bytes_max = hash::kValueBytesMax;
  std::uint32_t keys = 2500;         // of which the first part is there at the begin
  std::uint32_t first_keys = 1'120;  // a segment splits at 1150
  std::uint32_t gets = 600;
  bool writes = true;
  bool long_pairs = true;
  bool releases_late = true;
  std::uint64_t release_held_ns = 40'000;  // at most
  bool drops = false;                      // the map, at some moment
  std::uint64_t frees = 1;  // of a hundred acts of the host, those that free what can be freed
};

/// How often the rare was reached.
struct HashWorldCounts {
  HashGetCounts gets;
  std::uint64_t splits = 0;
  std::uint64_t links = 0;  // writes while a snapshot was held
  std::uint64_t late = 0;   // writes that were released late
  std::uint64_t torn = 0;
  std::uint64_t reordered = 0;
  std::uint64_t contended = 0;
  std::uint64_t lost = 0;       // gets without an answer, for the pair has failed
  std::uint64_t not_found = 0;  // of a map that was dropped
  std::uint64_t round_trips = 0;
};

class HashWorld final : private Handler {
 public:
  HashWorld(std::uint64_t seed, const fabric::sim::Faults& faults, const HashWorldOptions& options)
      : options_(options),
        random_(seed),
        f_({.partitions = options.partitions,
            .seed = hash::HashSeed{seed, 2},
            .group = options.group}),
        world_(seed, faults),
        host_(world_.add_node("host")),
        client_(world_.add_node("client")),
        here_(*client_),
        there_(*host_),
        cache_(options.cache_bytes),
        records_(options.record_cache_bytes) {
    auto region = host_->regions().offer({f_.parts.region.at(0), f_.parts.region.bytes()},
                                         fabric::RemoteRights::read, 0);
    region_ = *std::move(region);
    connected_ = host_->listen("host").has_value() && connect(world_, here_, there_, "host");
    for (std::uint32_t i = 0; i < options.first_keys; ++i) write(i);
    if (connected_) open();
  }

  ~HashWorld() override {
    if (held_version_) f_.map->clock().done(*held_version_);
    if (snapshot_) f_.map->drop(*snapshot_);
  }
  HashWorld(const HashWorld&) = delete;
  HashWorld& operator=(const HashWorld&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] hash::HashFixture& host() { return f_; }
  [[nodiscard]] fabric::sim::World& world() { return world_; }
  [[nodiscard]] HashGets& gets() { return *gets_; }
  [[nodiscard]] ReadPort& port() { return *port_; }
  [[nodiscard]] static std::string key_of(std::uint32_t number) {
    return "key" + std::to_string(number * 7919);
  }

  /// Gets by chance, while the host writes by chance. Returns what is wrong; empty: nothing.
  std::string run(HashWorldCounts& counts) {
    if (!connected_) return "";  // such faults: nothing was read
    if (options_.writes) write_after();
    if (options_.drops) {
      world_.after(random_.below(400'000), [this] {
        dropped_ = true;
        f_.map->set_dropped();
      });
    }
    std::uint32_t begun = 0;
    for (std::uint64_t turns = 0; done_ < options_.gets && wrong_.empty(); ++turns) {
      if (turns == kTurnsMax) wrong_ = "it does not end";
      while (begun < options_.gets && begun - done_ < options_.in_flight) begin(begun++);
      turn();
    }
    ended_ = true;
    for (std::uint64_t turns = 0; gets_->pending() != 0 && turns < kTurnsMax; ++turns) turn();
    count(counts);
    return wrong_;
  }
  /// One get, alone. `meanwhile` happens when its first READs are done. Requires: connected().
  std::optional<std::string> get(const std::string& key,
                                 const std::function<void()>& meanwhile = {}) {
    One one;
    Request request;
    request.op = Op::get;
    request.key = key;
    gets_->submit({&request, 1}, one);
    if (meanwhile) {
      gets_->poll();
      world_.run_for(100'000);
      meanwhile();
    }
    for (std::uint64_t turns = 0; gets_->pending() != 0 && turns < kTurnsMax; ++turns) turn();
    if (!one.completed) wrong_ = "it does not end";
    error = one.error;
    return one.value;
  }
  Code error = Code::invalid;  ///< of the last get(), if it has no answer

 private:
  static constexpr std::uint64_t kTurnsMax = 2'000'000;

  struct One final : Handler {
    void done(const Completion& completion) override {
      completed = true;
      if (!completion.ok) error = completion.error.code;
      if (completion.ok && completion.found) value = std::string(completion.value);
    }
    bool completed = false;
    Code error = Code::invalid;
    std::optional<std::string> value;
  };
  struct State {
    std::uint64_t moment = 0;
    std::optional<std::string> value;
  };
  struct Asked {
    Request request;
    std::string key;
    std::uint64_t moment = 0;
    bool dropped = false;
  };

  void open() {
    hash::HashHeader header{};
    std::memcpy(&header, f_.parts.region.at(f_.map->header_offset), sizeof header);
    const auto target =
        HashTarget::read(header, f_.map->header_offset, f_.parts.region.bytes()).value();
    port_.emplace(*here_.pair, here_.sends, region_.remote(), client_->properties());
    gets_.emplace(
        *port_, target,
        HashGets::Options{.in_flight = options_.in_flight,
                          .now_ns = [this] { return world_.now_ns(); },
                          .cache = options_.cache_bytes != 0 ? &cache_ : nullptr,
                          .records = options_.record_cache_bytes != 0 ? &records_ : nullptr,
                          .directory_bytes = options_.directory_bytes,
                          .value_bytes_max = options_.value_bytes_max,
                          .together = options_.together});
    const auto granted = f_.parts.leases.grant(1, world_.now_ns());
    lease_ = granted.id;
    if (!options_.counts_lease) f_.parts.leases.end(lease_);
    gets_->lease().granted(lease_, granted.epoch, world_.now_ns(), world_.now_ns());
  }

  void turn() {
    gets_->poll();
    if (const auto asked = gets_->lease().due(world_.now_ns())) {
      const auto renewed = options_.counts_lease
                               ? f_.parts.leases.renew(asked->id, asked->oldest, world_.now_ns())
                               : Result<std::uint64_t>(1);
      if (renewed) {
        gets_->lease().renewed(*renewed, world_.now_ns());
      } else {
        gets_->lease().end_all();
      }
    }
    client_->wait(100'000);
  }

  // --- what is asked -----------------------------------------------------------------------------

  void begin(std::uint32_t number) {
    asked_.push_back(std::make_unique<Asked>());
    Asked& asked = *asked_.back();
    asked.key = key_of(static_cast<std::uint32_t>(random_.below(known_ + 20)));
    asked.moment = moment_;
    asked.dropped = dropped_;
    asked.request.op = Op::get;
    asked.request.tag = number;
    asked.request.key = asked.key;
    gets_->submit({&asked.request, 1}, *this);
  }
  void done(const Completion& completion) override {
    ++done_;
    acts_since_a_get_ = 0;
    const Asked& asked = *asked_[completion.tag];
    if (!completion.ok) {
      const Code code = completion.error.code;
      contended_ += code == Code::contended ? 1 : 0;
      lost_ += code == Code::connection_lost ? 1 : 0;
      not_found_ += code == Code::not_found ? 1 : 0;
      const bool known = code == Code::contended || code == Code::connection_lost ||
                         (code == Code::not_found && dropped_);
      if (!known) wrong_ = "it ended with " + message(completion.error);
      return;
    }
    if (asked.dropped) wrong_ = "a map answers that was dropped before";
    std::optional<std::string> value;
    if (completion.found) value = std::string(completion.value);
    if (!could_be(asked, value)) {
      wrong_ = asked.key + (value ? " came as " + value->substr(0, 40) : " did not come") +
               ", which it was not";
    }
  }
  /// Whether the key was that at some moment since the get began.
  [[nodiscard]] bool could_be(const Asked& asked, const std::optional<std::string>& value) const {
    const auto known = states_.find(asked.key);
    if (known == states_.end()) return !value;
    const std::vector<State>& states = known->second;
    bool before = true;  // there was nothing before the first state
    for (std::size_t i = states.size(); i-- > 0;) {
      if (states[i].value == value) return true;
      if (states[i].moment <= asked.moment) {
        before = false;
        break;
      }
    }
    return before && !value;
  }

  // --- what the host does ------------------------------------------------------------------------

  /// A get that waits for lost frames is tried as well by few acts as by thousands.
  void write_after() {
    const std::uint64_t pause_ns = acts_since_a_get_ < 256 ? 3'000 : 100'000;
    world_.after(random_.below(pause_ns), [this] {
      if (ended_) return;
      ++acts_since_a_get_;
      if (!dropped_) act();
      write_after();
    });
  }
  void act() {
    const std::uint64_t what = random_.below(100);
    if (what < 25 && known_ < options_.keys) return write(known_);
    if (what < 70) return write(static_cast<std::uint32_t>(random_.below(known_)));
    if (what < 80) return erase(static_cast<std::uint32_t>(random_.below(known_)));
    if (what < 83) return hold_or_drop();
    if (what < 88 && options_.releases_late && !held_version_) return hold_release();
    // It costs barriers of the machine, which take as long as they like.
    if (what >= 100 - options_.frees && !held_version_) f_.map->give_back(f_.thread);
  }
  [[nodiscard]] std::string value_for(std::uint32_t number) {
    // All its bytes say when it was written, so that no two mix unseen.
    static constexpr std::uint64_t kLengths[] = {0, 8, 48, 200, 900, 3'000};
    const std::uint64_t length = kLengths[random_.below(options_.long_pairs ? 6 : 5)];
    const std::string stamp = std::to_string(number) + "@" + std::to_string(moment_ + 1) + ";";
    if (length == 0) return {};
    std::string value((length / stamp.size() + 1) * stamp.size(), '\0');
    for (std::size_t at = 0; at < value.size(); at += stamp.size())
      stamp.copy(&value[at], stamp.size());
    return value;
  }
  void write(std::uint32_t number) {
    known_ = std::max(known_, number + 1);
    const std::string value = value_for(number);
    const std::string key = key_of(number);
    if (snapshot_) ++links_;
    const auto begun = f_.map->begin(f_.thread, hash::WriteOp::put, key, value);
    if (begun.answer) note_state(key, value);
  }
  void erase(std::uint32_t number) {
    const std::string key = key_of(number);
    const auto begun = f_.map->begin(f_.thread, hash::WriteOp::erase, key, {});
    if (begun.answer && begun.answer->applied) note_state(key, std::nullopt);
  }
  /// It is so from now on, or from the release on that all wait for.
  void note_state(const std::string& key, std::optional<std::string> value) {
    ++moment_;
    if (held_version_) {
      ++late_;
      waiting_.emplace_back(key, std::move(value));
      return;
    }
    states_[key].push_back({moment_, std::move(value)});
  }
  /// A version that is taken holds back all later ones.
  void hold_release() {
    held_version_ = f_.map->clock().take();
    world_.after(random_.below(options_.release_held_ns), [this] {
      f_.map->clock().done(*std::exchange(held_version_, std::nullopt));
      ++moment_;
      for (auto& [key, value] : waiting_) states_[key].push_back({moment_, std::move(value)});
      waiting_.clear();
    });
  }
  void hold_or_drop() {
    if (snapshot_) {
      f_.map->drop(*std::exchange(snapshot_, std::nullopt));
    } else if (auto held = f_.map->hold(f_.thread)) {
      snapshot_ = *held;
    }
  }
  void count(HashWorldCounts& counts) const {
    const HashGetCounts& own = gets_->counts();
    counts.gets.answers += own.answers;
    counts.gets.found += own.found;
    counts.gets.grouped += own.grouped;
    counts.gets.kept += own.kept;
    counts.gets.restarts += own.restarts;
    counts.gets.changed += own.changed;
    counts.gets.too_late += own.too_late;
    for (const hash::Partition& partition : f_.map->partitions()) {
      counts.splits += partition.splits();
    }
    counts.links += links_;
    counts.late += late_;
    counts.contended += contended_;
    counts.lost += lost_;
    counts.not_found += not_found_;
    counts.round_trips += gets_->traffic().round_trips;
    auto& world = const_cast<fabric::sim::World&>(world_);
    counts.torn += world.counts().torn_reads;
    counts.reordered += world.counts().reads_reordered;
  }

  const HashWorldOptions options_;
  base::Random random_;
  hash::HashFixture f_;
  fabric::sim::World world_;
  std::unique_ptr<fabric::Endpoint> host_;
  std::unique_ptr<fabric::Endpoint> client_;
  fabric::Registration region_;
  fabric::sim::End here_;
  fabric::sim::End there_;
  BinCache cache_;
  RecordCache records_;
  std::optional<ReadPort> port_;
  std::optional<HashGets> gets_;
  base::LeaseId lease_ = 0;
  bool connected_ = false;

  std::vector<std::unique_ptr<Asked>> asked_;
  std::uint64_t moment_ = 0;
  std::unordered_map<std::string, std::vector<State>> states_;
  std::vector<std::pair<std::string, std::optional<std::string>>> waiting_;
  std::optional<std::uint64_t> held_version_;
  std::optional<hash::HashSnapshot> snapshot_;
  std::uint32_t known_ = 0;
  std::uint32_t done_ = 0;
  std::uint32_t acts_since_a_get_ = 0;  // of the host
  bool ended_ = false;
  bool dropped_ = false;
  std::string wrong_;
  std::uint64_t links_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t contended_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t not_found_ = 0;
};

/// Runs one seed. Returns what is wrong, with the seed.
inline std::string wrong_with_hash_reads(std::uint64_t seed, const fabric::sim::Faults& faults,
                                         const HashWorldOptions& options, HashWorldCounts& counts) {
  HashWorld world(seed, faults, options);
  const std::string wrong = world.run(counts);
  return wrong.empty() ? "" : "seed " + std::to_string(seed) + ": " + wrong;
}

/// Keys of one bin, all of other tags, so that no bucket seems to have another one's.
inline std::vector<std::string> keys_of_other_tags(const hash::HashMap& map, std::size_t count,
                                                   std::uint32_t bin) {
  std::vector<std::string> keys;
  std::vector<std::uint64_t> tags;
  for (std::string& key : keys_of_one_bin(map, 2 * count, bin)) {
    const std::uint64_t tag = map.hash(key).tag();
    if (keys.size() == count || std::ranges::find(tags, tag) != tags.end()) continue;
    tags.push_back(tag);
    keys.push_back(std::move(key));
  }
  return keys;
}

/// Has a reader remember that a bin X goes on in the bucket A; then has X go on in B, while A is
/// free; then has a get of the last key in B meet an insert that moves it to A, behind B. The get
/// has read A with X, as it remembers it, and reads B later. Returns what is wrong.
inline std::string wrong_where_a_chain_grows() {
  fabric::sim::Faults faults;
  faults.reads_in_order = true;
  HashWorldOptions options;
  options.writes = false;
  options.first_keys = 0;
  HashWorld world(1, faults, options);
  if (!world.connected()) return "no pair";
  hash::HashFixture& host = world.host();
  const std::vector<std::string> own = keys_of_other_tags(*host.map, 15, 3);
  const std::vector<std::string> other = keys_of_other_tags(*host.map, 8, 4);
  const auto put = [&](const std::string& key) { host.put(key, "here"); };
  const auto erase = [&](const std::string& key) {
    static_cast<void>(host.map->erase(host.thread, key));
  };
  for (int i = 0; i < 8; ++i) put(own[i]);  // X -> A
  if (world.get(own[14])) return "what was never there is found";
  for (int i = 7; i > 5; --i) erase(own[i]);
  for (int i = 0; i < 8; ++i) put(other[i]);  // it is another's
  for (int i = 6; i < 13; ++i) put(own[i]);   // X -> B, full
  for (int i = 7; i > 5; --i) erase(other[i]);
  const auto found = world.get(own[12], [&] { put(own[13]); });  // X -> B -> A
  return found == "here" ? "" : "a key that was there throughout did not come";
}

/// The record that a key has now.
inline hash::Slot slot_of(const hash::HashMap& map, const std::string& key) {
  return look_up(map, map.hash(key), key, hash::kAnyVersion, true).record;
}

/// Has a free record come back until its place's next generation is as a slot says it. Returns
/// whether it was there to be had. Requires: no reader may come upon it.
inline bool age_free_record(hash::RecordStore& records, hash::RecordClass cls,
                            const std::byte* image, hash::Slot until) {
  std::vector<std::uint64_t> taken(1024);
  const std::uint64_t offset = until.offset();
  for (std::uint32_t count = 0, got = 1; got == 1 && count < taken.size(); ++count) {
    got = records.take(cls, {&taken[count], 1});
    if (got == 0 || taken[count] != offset) continue;
    const auto generation = [&] {
      return base::load_plain<std::uint32_t>(image + offset +
                                             offsetof(hash::RecordHeader, generation));
    };
    while ((hash::next_record_generation(generation()) & hash::Slot::kGenerationMask) !=
           until.generation()) {
      records.give(cls, {&offset, 1});
      if (records.take(cls, {&taken[count], 1}) != 1 || taken[count] != offset) return false;
    }
    records.give(cls, {taken.data(), count});
    records.give(cls, {&offset, 1});  // last, so that it is the next one to be taken
    return true;
  }
  return false;
}

/// Has a reader remember a record; then has its key written again and again, until the very same
/// slot names another record of it, in the place of the first. Returns what is wrong.
inline std::string wrong_where_a_slot_comes_back(bool in_order, bool together) {
  fabric::sim::Faults faults;
  faults.reads_in_order = in_order;
  HashWorldOptions options;
  options.together = together;
  options.counts_lease = false;  // else it would keep all of these records
  options.writes = false;
  options.first_keys = 0;
  options.record_cache_bytes = 64 << 10;
  HashWorld world(1, faults, options);
  if (!world.connected()) return "no pair";
  hash::HashFixture& host = world.host();
  const auto value = [](char of) { return std::string(40, of); };
  host.put("key", value('1'));
  for (int times = 0; times < 2; ++times) {
    if (world.get("key") != value('1')) return "a key that is there is not found";
  }
  if (world.gets().counts().kept != 1) return "its record was not remembered";
  const hash::Slot first = slot_of(*host.map, "key");
  host.put("key", value('2'));
  host.map->give_back(host.thread);
  const auto cls = hash::record_class_of(sizeof(hash::RecordHeader) + 3 + value('1').size());
  if (!age_free_record(host.map->records(), cls, host.map->image, first)) return "it is not free";
  host.put("key", value('3'));
  if (slot_of(*host.map, "key") != first) return "the slot did not come back";
  const auto found = world.get("key");
  return found == value('3') ? "" : "it came as " + found.value_or("none");
}

/// Has a reader remember that a bin names a record; then has another of the same bin take its
/// place, and a get of the first bring that by the slot that is remembered, its last byte not
/// written yet. Returns what is wrong.
inline std::string wrong_where_a_record_is_read_ahead(bool in_order) {
  fabric::sim::Faults faults;
  faults.reads_in_order = in_order;
  HashWorldOptions options;
  options.counts_lease = false;  // else it would keep the first record
  options.writes = false;
  options.first_keys = 0;
  options.record_cache_bytes = 64 << 10;
  HashWorld world(1, faults, options);
  if (!world.connected()) return "no pair";
  hash::HashFixture& host = world.host();
  const std::vector<std::string> keys = keys_of_other_tags(*host.map, 2, 3);
  const auto value = [&](int key, char of) { return std::string(60 - keys[key].size(), of); };
  const std::uint64_t bytes = sizeof(hash::RecordHeader) + 60;  // of all of them
  host.put(keys[0], value(0, '1'));
  const hash::Slot first = slot_of(*host.map, keys[0]);
  if (world.get(keys[1])) return "what was never there is found";
  host.put(keys[0], value(0, '2'));
  host.map->give_back(host.thread);
  const auto cls = hash::record_class_of(bytes);
  if (!age_free_record(host.map->records(), cls, host.map->image, first)) return "it is not free";
  host.put(keys[1], value(1, '3'));
  if (slot_of(*host.map, keys[1]).offset() != first.offset()) return "it is in another place";
  std::byte* const last = host.parts.region.at(first.offset() + bytes - 1);
  const std::byte whole = std::exchange(*last, std::byte{'0'});
  if (world.get(keys[0]) != value(0, '2')) return "a key that is there is not found";
  *last = whole;
  const auto found = world.get(keys[1]);
  return found == value(1, '3') ? "" : "what was read before it was whole is answered";
}

/// Has a reader lose its lease, and be granted another, while READs of a get are under way. Returns
/// what is wrong.
inline std::string wrong_where_a_lease_is_lost(bool together) {
  fabric::sim::Faults faults;
  faults.reads_in_order = true;
  HashWorldOptions options;
  options.together = together;
  options.writes = false;
  options.first_keys = 0;
  HashWorld world(1, faults, options);
  if (!world.connected()) return "no pair";
  world.host().put("key", "value");
  if (world.get("key") != "value") return "a key that is there is not found";
  const HashGetCounts before = world.gets().counts();
  const auto found = world.get("key", [&] {
    LeaseGuard& lease = world.gets().lease();
    lease.lost();
    const auto granted = world.host().parts.leases.grant(1, world.world().now_ns());
    lease.granted(granted.id, granted.epoch, world.world().now_ns(), world.world().now_ns());
  });
  if (found != "value") return "a key that is there is not found";
  const HashGetCounts& after = world.gets().counts();
  const bool again =
      together ? after.grouped == before.grouped : after.restarts == before.restarts + 1;
  return again ? "" : "what was read under a lease that was lost is answered";
}

}  // namespace espalier::place
