// SPDX-License-Identifier: Apache-2.0
// What must hold of hash maps at the moments at which other threads can do harm, as checks that
// tests run on a good map and on a broken one. They need moments, so they are for the build with
// planted bugs.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "catalog/testing/recording_sink.hpp"
#include "kinds/hash/hash_walk.hpp"
#include "kinds/hash/redo_record.hpp"
#include "kinds/hash/testing/hash_fixture.hpp"

#if defined(ESPALIER_PLANTED_BUGS)

namespace espalier::hash {

/// Does something once, when this thread comes to a moment.
class Once {
 public:
  template <class Do>
  Once(Moment moment, Do act) {
    on_moment = [this, moment, act](Moment now) {
      if (now != moment || done_) return;
      done_ = true;
      act();
    };
  }
  ~Once() { on_moment = nullptr; }
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;
  [[nodiscard]] bool done() const { return done_; }

 private:
  bool done_ = false;
};

/// Says when this thread comes to a moment, as often as it does.
class WhenReached {
 public:
  WhenReached(Moment moment, std::atomic<bool>& flag) {
    on_moment = [moment, &flag](Moment now) {
      if (now == moment) flag = true;
    };
  }
  ~WhenReached() { on_moment = nullptr; }
  WhenReached(const WhenReached&) = delete;
  WhenReached& operator=(const WhenReached&) = delete;
};

/// Waits until something holds that must come to hold, however slow the machine: a minute at most.
template <class Holds>
void wait_until(const Holds& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "it does not come to hold";
      return;
    }
    std::this_thread::yield();
  }
}

/// A map just before its first split, and a key that the split will move.
class BeforeSplit {
 public:
  BeforeSplit() {
    for (int i = 0; key.empty(); ++i) {
      std::string one = "moves" + std::to_string(i);
      if (f.map->hash(one).bit_at(0)) key = std::move(one);
    }
    f.put(key, "old");
    for (std::uint32_t i = 1; i + 1 < Partition::kSplitSlots; ++i) add();
  }
  void add() {
    HashThread thread = f.another_thread();
    const auto put = f.map->put(thread, "other" + std::to_string(count_++), "o");
    EXPECT_TRUE(put);
  }
  /// Has the split begun, and ended.
  void split() {
    for (int i = 0; i < 100; ++i) add();
    EXPECT_EQ(f.map->partitions().front().splits(), 1u);
  }

  HashFixture f{{.partitions = 1, .seed = HashSeed{8, 9}}};
  std::string key;

 private:
  int count_ = 0;
};

/// Whether a key is found whose bin moves after its reader has read the directory.
inline bool a_moved_bin_leads_to_the_new_one() {
  BeforeSplit world;
  const Once once(Moment::entry_read, [&] { world.split(); });
  return world.f.get(world.key) == "old" && once.done();
}

/// Whether it is when the bin moves after the reader has read its header.
inline bool a_bin_that_moves_is_read_again() {
  BeforeSplit world;
  const Once once(Moment::bin_read, [&] { world.split(); });
  return world.f.get(world.key) == "old" && once.done();
}

/// Whether a key is found whose slot moves to a bucket that its reader has searched already. Where
/// versions are on, what the erase has taken out would have the reader begin again.
inline bool a_slot_that_moves_to_the_front_is_found() {
  HashFixture f({.partitions = 1, .versions = false, .seed = HashSeed{3, 4}});
  const auto keys = keys_of_one_bin(*f.map, kSlotsPerBucket + 1, 17);
  for (const std::string& key : keys) f.put(key, "v");
  const Once once(Moment::bucket_read, [&] {
    HashThread writer = f.another_thread();
    EXPECT_TRUE(f.map->erase(writer, keys.front()));
  });
  return f.get(keys.back()) == "v" && once.done();
}

/// How often a walk delivers each key.
inline std::map<std::string, int> times_walked(HashFixture& f) {
  std::map<std::string, int> times;
  HashWalk walk(*f.map);
  const auto take = [&times](const WalkedItem& item) {
    ++times[std::string(item.key)];
    return true;
  };
  while (!walk.at_end()) static_cast<void>(walk.step(f.thread, take));
  return times;
}

/// Whether a walk delivers an item whose slot moves to a bucket that it has read already.
inline bool a_walk_takes_a_slot_that_moves_to_the_front() {
  HashFixture f({.partitions = 1, .versions = false, .seed = HashSeed{3, 4}});
  const auto keys = keys_of_one_bin(*f.map, kSlotsPerBucket + 1, 17);
  for (const std::string& key : keys) f.put(key, "v");
  const Once once(Moment::bucket_read, [&] {
    HashThread writer = f.another_thread();
    EXPECT_TRUE(f.map->erase(writer, keys.front()));
  });
  const auto times = times_walked(f);
  return once.done() && times.size() == keys.size() - 1 && times.contains(keys.back());
}

/// Whether it delivers an item once whose bin moves while it is read. There is one segment until
/// then, so that a step is a bin.
inline bool a_walk_reads_a_bin_that_moves_again() {
  BeforeSplit world;
  const std::uint32_t bin = world.f.map->hash(world.key).bin();
  int times = 0;
  const auto take = [&](const WalkedItem& item) {
    times += item.key == world.key ? 1 : 0;
    return true;
  };
  HashWalk walk(*world.f.map);
  bool moved = false;
  for (std::uint32_t step = 0; !walk.at_end(); ++step) {
    if (step != bin) {
      static_cast<void>(walk.step(world.f.thread, take));
      continue;
    }
    const Once once(Moment::bin_read, [&] { world.split(); });
    static_cast<void>(walk.step(world.f.thread, take));
    moved = once.done();
  }
  return moved && times == 1;
}

/// Whether a walk delivers an item once whose slot is in two places.
inline bool a_walk_takes_a_slot_in_two_places_once() {
  HashFixture f({.partitions = 1, .versions = false, .seed = HashSeed{3, 4}});
  const auto keys = keys_of_one_bin(*f.map, 3, 17);
  for (const std::string& key : keys) f.put(key, "v");
  HashThread writer = f.another_thread();
  int walks = 0;
  bool once = true;
  on_moment = [&](Moment now) {
    if (now != Moment::slot_doubled) return;
    ++walks;
    const std::map<std::string, int> wanted = {{keys[1], 1}, {keys[2], 1}};
    once = once && times_walked(f) == wanted;
  };
  EXPECT_TRUE(f.map->erase(writer, keys.front()));
  on_moment = nullptr;
  return once && walks == 2;
}

/// Whether a walk whose bin changes at each look has writers wait at last.
inline bool a_walk_does_not_look_without_end() {
  HashFixture f({.partitions = 1, .versions = false, .seed = HashSeed{3, 4}});
  const auto keys = keys_of_one_bin(*f.map, 2, 17);
  for (const std::string& key : keys) f.put(key, "v");
  HashThread writer = f.another_thread();
  std::atomic<bool> waits{false};
  std::atomic<bool> written{false};
  std::uint32_t looks = 0;
  bool early = false;
  std::thread last;
  const auto change = [&](Moment now) {
    if (now != Moment::bin_read || ++looks > kLooksMax + 1) return;
    if (looks <= kLooksMax) {
      // The first of the bin: the other one takes its place.
      const std::string& key = keys[(looks - 1) % 2];
      EXPECT_TRUE(f.map->erase(writer, key));
      EXPECT_TRUE(f.map->put(writer, key, "v"));
      return;
    }
    last = std::thread([&] {
      HashThread another = f.another_thread();
      const WhenReached when(Moment::lock_awaited, waits);
      EXPECT_TRUE(f.map->put(another, "last", "v"));
      written = true;
    });
    wait_until([&] { return waits || written; });
    early = written;
  };
  int taken = 0;
  const auto take = [&](const WalkedItem& item) {
    taken += item.key == "last" ? 0 : 1;
    return true;
  };
  HashWalk walk(*f.map);
  for (std::uint32_t step = 0; !walk.at_end(); ++step) {
    if (step == f.map->hash(keys[0]).bin()) on_moment = change;
    static_cast<void>(walk.step(f.thread, take));
    on_moment = nullptr;
  }
  if (!last.joinable()) return false;
  last.join();
  return !early && taken == 2;
}

/// A lock, and a holder that has become its owner.
struct OwnedLock {
  OwnedLock() {
    for (std::uint32_t i = 0; i < PartitionLock::kTurns + 2; ++i) {
      const PartitionGuard guard(lock, owner);
    }
  }

  PartitionLock lock;
  LockHolder owner;
  LockHolder other;
};

/// Whether an owner stays out whose lock is taken away after it has looked whether it has it.
inline bool a_former_owner_waits() {
  OwnedLock world;
  std::atomic<bool> inside{false};
  std::atomic<bool> decided{false};  // the owner waits, or is inside
  std::thread taker;
  bool both = false;
  on_moment = [&](Moment now) {
    if (now == Moment::lock_awaited) decided = true;
    if (now != Moment::owner_seen || taker.joinable()) return;
    taker = std::thread([&] {
      const PartitionGuard guard(world.lock, world.other);
      inside = true;
      wait_until([&] { return decided.load(); });
      inside = false;
    });
    wait_until([&] { return inside.load(); });
  };
  {
    const PartitionGuard guard(world.lock, world.owner);
    both = inside;
    decided = true;
  }
  on_moment = nullptr;
  const bool seen = taker.joinable();
  if (seen) taker.join();
  return seen && !both;
}

/// Whether a thread that takes a lock away waits until its owner is out.
inline bool a_lock_is_taken_from_an_owner_that_is_out() {
  OwnedLock world;
  std::atomic<bool> waits{false};
  std::atomic<bool> inside{false};
  std::thread taker;
  bool both = false;
  {
    const PartitionGuard guard(world.lock, world.owner);
    taker = std::thread([&] {
      const WhenReached when(Moment::lock_awaited, waits);
      const PartitionGuard taken(world.lock, world.other);
      inside = true;
    });
    wait_until([&] { return waits || inside; });
    both = inside;
  }
  taker.join();
  return !both && inside;
}

/// Whether what a stale slot names is not taken for what it named.
inline bool a_freed_record_is_not_believed() {
  HashFixture f({.partitions = 1});
  f.put("first", "1");
  const HashView& view = *f.map;
  const Slot stale = look_up(view, view.hash("first"), "first", kAnyVersion, true).record;
  (void)f.map->erase(f.thread, "first");
  f.map->give_back(f.thread);
  // Until another key has the place.
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "key" + std::to_string(i);
    f.put(key, "2");
    const Looked now = look_up(view, view.hash(key), key, kAnyVersion, true);
    if (now.record.offset() != stale.offset()) continue;
    bool other = false;
    return resolve(view, stale, key, kAnyVersion, other).look == Look::changed;
  }
  ADD_FAILURE() << "no record was used again";
  return false;
}

/// Whether a reader that nothing keeps records for notices that one was used again while it copied.
inline bool a_torn_record_is_not_believed() {
  HashFixture f({.partitions = 1, .versions = false});
  const std::string before(48, 'a');
  f.put("first", before);
  const HashView& view = *f.map;
  const Slot slot = look_up(view, view.hash("first"), "first", kAnyVersion, true).record;
  const RecordView record(view.image, slot);
  if (!record.confirmed()) return false;
  std::string copied(record.pair().value.substr(0, 24));
  for (int i = 0; i < 1000 && record.pair().value == before; ++i) {
    f.put("first", std::string(48, 'b'));
    f.map->give_back(f.thread);
  }
  copied += record.pair().value.substr(24);
  EXPECT_NE(copied, before);
  return !record.confirmed();
}

/// Whether a reader sees the old value while the new one is stored and not released.
inline bool unreleased_records_are_not_answered() {
  HashFixture f({.partitions = 1});
  f.put("k", "old");
  std::string seen;
  bool unborn = false;
  {
    const Once once(Moment::before_done, [&] {
      HashThread reader = f.another_thread();
      seen = f.map->get(reader, "k").value().value_or("");
    });
    f.put("k", "new");
  }
  {
    const Once once(Moment::before_done, [&] {
      HashThread reader = f.another_thread();
      unborn = !f.map->get(reader, "fresh").value().has_value();
    });
    f.put("fresh", "1");
  }
  return seen == "old" && unborn && f.get("k") == "new" && f.get("fresh") == "1";
}

/// Whether a reader begins again whose version is taken out before it comes to the bin.
inline bool a_reader_that_comes_too_late_begins_again() {
  HashFixture f({.partitions = 1});
  f.put("k", "old");
  const Once once(Moment::entry_read, [&] {
    HashThread writer = f.another_thread();
    EXPECT_TRUE(f.map->put(writer, "k", "new"));
  });
  return f.get("k") == "new" && once.done();
}

/// Whether what a snapshot needs is there.
inline bool snapshots_have_what_they_need() {
  HashFixture f({.partitions = 1});
  f.put("k", "old");
  f.put("gone", "1");
  const HashSnapshot snapshot = f.map->hold(f.thread).value();
  f.put("k", "new");
  (void)f.map->erase(f.thread, "gone");
  bool good = false;
  {
    HashReader reader(*f.map, f.thread, snapshot);
    good = reader.get("k").value == "old" && reader.get("gone").value == "1";
  }
  f.map->drop(snapshot);
  return good;
}

/// Whether a snapshot has what was replaced between its version and its registration.
inline bool a_snapshot_in_the_making_keeps_what_it_needs() {
  HashFixture f({.partitions = 1});
  f.put("k", "old");
  Result<HashSnapshot> snapshot = fail(Code::out_of_memory);
  {
    const Once once(Moment::hold_read, [&] {
      HashThread writer = f.another_thread();
      EXPECT_TRUE(f.map->put(writer, "k", "new"));
    });
    snapshot = f.map->hold(f.thread);
  }
  bool good = false;
  {
    HashReader reader(*f.map, f.thread, *snapshot);
    good = reader.get("k").value == "old";
  }
  f.map->drop(*snapshot);
  return good;
}

/// Whether a write waits until its version is released.
inline bool writes_wait_for_their_release() {
  HashFixture f({.partitions = 2, .seed = HashSeed{8, 9}});
  std::string here = "a";
  std::string there = "b";
  while (f.map->hash(there).partition() == f.map->hash(here).partition()) there += "b";
  std::atomic<bool> waits{false};
  std::atomic<bool> returned{false};
  bool early = false;
  std::thread second;
  {
    const Once once(Moment::before_done, [&] {
      second = std::thread([&] {
        HashThread writer = f.another_thread();
        const WhenReached when(Moment::release_awaited, waits);
        EXPECT_TRUE(f.map->put(writer, there, "2"));
        returned = true;
      });
      wait_until([&] { return waits || returned; });
      early = returned;
    });
    f.put(here, "1");
  }
  second.join();
  return !early && returned;
}

/// Whether a write that was begun says that it may not be answered, while an earlier one is under
/// way.
inline bool begun_writes_wait_for_their_release() {
  HashFixture f({.partitions = 2, .seed = HashSeed{8, 9}});
  std::string here = "a";
  std::string there = "b";
  while (f.map->hash(there).partition() == f.map->hash(here).partition()) there += "b";
  HashThread writer = f.another_thread();
  std::uint64_t version = 0;
  bool early = false;
  {
    const Once once(Moment::before_done, [&] {
      const auto begun = f.map->begin(writer, WriteOp::put, there, "2");
      version = begun.version;
      early = f.map->released(version);
    });
    f.put(here, "1");
  }
  return !early && version == 2 && f.map->released(version);
}

/// Whether the value that a reader was given stays as it is while the reader is there.
inline bool values_stay_for_their_reader() {
  HashFixture f({.partitions = 1});
  f.put("k", "old value");
  HashThread writer = f.another_thread();
  HashReader reader(*f.map, f.thread);
  const std::string_view value = reader.get("k").value;
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(f.map->put(writer, "k", "new value"));
  f.map->give_back(writer);
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(f.map->put(writer, "k", "new value"));
  return value == "old value";
}

/// Whether a reader sees nothing of a write before its record is durable, and all of it then.
inline bool writes_are_seen_once_they_are_durable() {
  catalog::RecordingSink sink(catalog::RecordingSink::Durable::by_hand);
  HashFixture f({.partitions = 1});
  f.put("k", "old");
  f.map->record_to(&sink);
  const auto put = f.map->begin(f.thread, WriteOp::put, "k", "new");
  const auto erase = f.map->begin(f.thread, WriteOp::erase, "k", {});
  bool good = put.answer && erase.answer && f.get("k") == "old" && !f.map->released(put.version);
  sink.make_durable(1);
  good = good && f.get("k") == "new" && f.map->released(put.version) &&
         !f.map->released(erase.version);
  sink.make_durable(2);
  good = good && f.get("k") == std::nullopt && f.map->released(erase.version);
  f.map->record_to(nullptr);
  return good;
}

/// Whether no reader sees what a record says before it is handed over.
inline bool records_come_before_their_release() {
  catalog::RecordingSink sink;
  bool good = true;
  HashFixture f({.partitions = 1});
  f.map->record_to(&sink);
  sink.when_handed_over = [&](std::string_view record) {
    const auto redo = read_hash_redo(record, kValueBytesMax);
    good = good && redo && f.map->clock().released() < redo->version;
  };
  f.put("k", "1");
  f.put("k", "2");
  EXPECT_TRUE(f.map->erase(f.thread, "k")->applied);
  return good && sink.count() == 3;
}

/// Whether no other write of the key comes between a write and its record.
inline bool records_come_under_the_lock() {
  catalog::RecordingSink sink;
  HashFixture f({.partitions = 1});
  f.map->record_to(&sink);
  std::atomic<bool> begun{false};
  std::atomic<bool> waits{false};
  std::atomic<bool> done{false};
  std::thread second;
  bool early = false;
  sink.when_handed_over = [&](std::string_view) {
    if (begun.exchange(true)) return;
    second = std::thread([&] {
      HashThread writer = f.another_thread();
      const WhenReached when(Moment::lock_awaited, waits);
      EXPECT_TRUE(f.map->put(writer, "k", "2"));
      done = true;
    });
    wait_until([&] { return waits || done; });
    early = done;
  };
  f.put("k", "1");
  second.join();
  return !early && sink.count() == 2;
}

/// Whether a reader whom writers have begin again and again has them wait at last.
inline bool a_reader_does_not_look_without_end() {
  HashFixture f({.partitions = 1});
  f.put("k", "v");
  HashThread writer = f.another_thread();
  std::atomic<bool> waits{false};
  std::atomic<bool> written{false};
  std::uint32_t looks = 0;
  bool early = false;
  std::thread last;
  on_moment = [&](Moment now) {
    if (now != Moment::entry_read || ++looks > kLooksMax + 1) return;
    if (looks <= kLooksMax) {
      EXPECT_TRUE(f.map->put(writer, "k", std::to_string(looks)));
      return;
    }
    last = std::thread([&] {
      HashThread another = f.another_thread();
      const WhenReached when(Moment::lock_awaited, waits);
      EXPECT_TRUE(f.map->put(another, "k", "last"));
      written = true;
    });
    wait_until([&] { return waits || written; });
    early = written;
  };
  const auto found = f.get("k");
  on_moment = nullptr;
  if (!last.joinable()) return false;
  last.join();
  return !early && found == std::to_string(kLooksMax);
}

/// Whether erases find version links in a full store that pairs as long as these have filled, and
/// of which all that comes back is wanted by such pairs, too.
inline bool erases_have_links_among_tiny_pairs() {
  HashFixture f({.partitions = 1}, std::uint64_t{8} << 20);
  const auto key_of = [](int i) { return std::to_string(10'000'000 + i); };
  int stored = 0;
  // What was unlinked comes back some epochs later: until several refusals follow each other.
  const auto fill = [&] {
    for (int refused = 0; refused < 8; ++refused) {
      for (; f.map->put(f.thread, key_of(stored), "tiny pai"); ++stored) refused = 0;
    }
  };
  fill();
  EXPECT_GT(stored, 20'000);
  int erased = 0;
  for (int round = 0; round < 8; ++round) {
    {
      // What they unlink is not free before this reader has gone.
      HashThread slow = f.another_thread();
      const HashReader reader(*f.map, slow);
      for (int i = 0; i < 16; ++i) {
        const auto gone = f.map->erase(f.thread, key_of(erased++));
        if (!gone || !gone->applied) return false;
      }
    }
    fill();
  }
  return f.faults().empty();
}

}  // namespace espalier::hash

#endif
