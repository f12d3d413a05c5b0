// SPDX-License-Identifier: Apache-2.0
#include "tests/support/durable_client.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kinds/embedding/testing/ranking_files.hpp"

namespace espalier::test {
namespace {

/// The number behind a value's first letter.
std::uint64_t value_number(const std::string& value) { return std::stoull(value.substr(1)); }

constexpr const char* kRowSchema = "client i64 not null, number i64 not null";

}  // namespace

Result<DurableClient::Handles> DurableClient::open(const std::string& address) const {
  auto store = Store::connect(address);
  if (!store) return std::unexpected(store.error());
  auto map = store->open_map("default");
  if (!map) return std::unexpected(map.error());
  auto hash = store->open_hash_map("hash");
  if (!hash) hash = store->create_hash_map("hash");
  if (!hash && hash.error().code == Code::already_exists) hash = store->open_hash_map("hash");
  if (!hash) return std::unexpected(hash.error());
  auto table = store->open_table("rows");
  if (!table) table = store->create_table("rows", *Schema::parse(kRowSchema));
  if (!table) table = store->open_table("rows");
  if (!table) return std::unexpected(table.error().error);
  auto numbers = store->open_sequencer("numbers");
  if (!numbers) numbers = store->create_sequencer("numbers");
  if (!numbers) numbers = store->open_sequencer("numbers");
  if (!numbers) return std::unexpected(numbers.error());
  auto vectors = store->open_embedding_table(vectors_name());
  if (!vectors) {
    vectors = store->create_embedding_table(vectors_name(), {.dimension = kColumns});
  }
  if (!vectors) return std::unexpected(vectors.error());
  return Handles{std::move(*store),   std::move(*map),     std::move(*hash), std::move(*table),
                 std::move(*numbers), std::move(*vectors), std::nullopt};
}

std::string DurableClient::check(const std::string& address) {
  to_believe_.clear();
  auto opened = open(address);
  if (!opened) return "cannot come to the node: " + message(opened.error());
  store_.emplace(std::move(*opened));
  for (const auto look :
       {&DurableClient::check_keys, &DurableClient::check_numbers, &DurableClient::check_others,
        &DurableClient::check_vectors, &DurableClient::check_model}) {
    if (std::string wrong = (this->*look)(); !wrong.empty()) return wrong;
  }
  return {};
}

std::string DurableClient::check_keys() {
  const auto check = [](auto& object, std::map<std::string, KeyTruth>& truths) -> std::string {
    for (auto& [key, truth] : truths) {
      const auto got = object.get(key);
      if (!got) return "get: " + message(got.error());
      const std::string value = *got ? (*got)->value : "";
      const std::string may_be = truth.text();
      if (truth.found(value)) continue;
      return "key " + key + " has '" + value + "' and not " + may_be;
    }
    return {};
  };
  if (std::string wrong = check(store_->map, map_); !wrong.empty()) return "map: " + wrong;
  std::string of_batch = "not known";
  for (const std::string& key : batch_keys()) {
    const auto got = store_->map.get(key);
    if (!got) return "get: " + message(got.error());
    const std::string value = *got ? (*got)->value : "";
    if (of_batch != "not known" && of_batch != value) return "half of a batch is there";
    of_batch = value;
  }
  if (std::string wrong = check(store_->hash, hash_); !wrong.empty()) return "hash: " + wrong;
  return {};
}

// Of adds and appends that were not answered each may be there.
std::string DurableClient::check_numbers() {
  const auto sum = store_->map.add(sum_key(), 0);
  if (!sum) return "add: " + message(sum.error());
  if (!sum_.may_be(*sum)) return "a sum of " + std::to_string(*sum) + ", " + sum_.text();
  sum_ = {*sum, *sum};
  auto rows = store_->table.read_rows();
  if (!rows) return "rows: " + message(rows.error().error);
  std::uint64_t own = 0;
  for (;;) {
    const auto next = rows->next();
    if (!next) return "rows: " + message(next.error().error);
    if (!*next) break;
    for (std::size_t i = 0; i < (*next)->size(); ++i) {
      const auto client = (**next)[i].get<std::int64_t>(0);
      if (client == static_cast<std::int64_t>(number_)) ++own;
    }
  }
  if (!rows_.may_be(own)) return std::to_string(own) + " rows, " + rows_.text();
  rows_ = {own, own};
  return {};
}

// What a reader has seen of others' keys is not lost either: their values ascend.
std::string DurableClient::check_others() {
  for (const auto& [key, number] : seen_) {
    const auto got = store_->map.get(key);
    if (!got) return "get: " + message(got.error());
    if (!*got || value_number((*got)->value) < number) {
      return "key " + key + " was seen as " + std::to_string(number) + " and is " +
             (*got ? (*got)->value : "gone");
    }
  }
  return {};
}

std::string DurableClient::check_vectors() {
  const auto stats = store_->vectors.stats();
  if (!stats) return "vectors: " + message(stats.error());
  if (!vectors_.may_be(stats->rows)) {
    return std::to_string(stats->rows) + " vectors, " + vectors_.text();
  }
  vectors_ = {stats->rows, stats->rows};
  if (stats->rows == 0) return {};
  const std::uint32_t ids[] = {0, static_cast<std::uint32_t>(stats->rows - 1)};
  const std::uint32_t offsets[] = {0, 1};
  const auto found = store_->vectors.reduce(Reduction::sum, {ids, offsets});
  if (!found) return "vectors: " + message(found.error());
  for (std::size_t i = 0; i < found->size(); ++i) {
    if ((*found)[i] != (*found)[i / kColumns * kColumns]) return "half of a vector is there";
  }
  const auto first = static_cast<std::uint64_t>(found->front());
  if (!vector_.may_be(first)) {
    return "vector 0 is " + std::to_string(first) + ", " + vector_.text();
  }
  vector_ = {first, first};
  if (ids[1] != 0 && found->back() != static_cast<float>(ids[1])) {
    return "vector " + std::to_string(ids[1]) + " is " + std::to_string(found->back());
  }
  return {};
}

std::string DurableClient::check_model() {
  const auto opened = store_->store.open_ranking_model(model_name());
  if (!opened) {
    const bool may_lack = !model_made_ && opened.error().code == Code::not_found;
    return may_lack ? "" : "model: " + message(opened.error());
  }
  store_->model.emplace(*opened);
  const auto ranked = rank();
  if (!ranked) return "model: " + message(ranked.error());
  if (rank_ && std::abs(*rank_ - *ranked) > 1e-5F) {
    return "a rank is " + std::to_string(*ranked) + ", and was " + std::to_string(*rank_);
  }
  rank_ = *ranked;
  return {};
}

TableResult<float> DurableClient::rank() const {
  const auto ranks = store_->model->infer_text("1 0.5 -1 0 0.25 |\n");
  if (!ranks) return std::unexpected(ranks.error());
  return ranks->front();
}

bool DurableClient::is_gone(const Error& error) {
  return error.code == Code::connection_lost ||
         (error.code == Code::system && (error.detail == ECONNREFUSED || error.detail == ENOENT));
}

Result<void> DurableClient::step() {
  const std::string key = own_key(random_.below(kKeys));
  if (async_ && random_.below(12) == 0) return await_durable();
  switch (random_.below(13)) {
    case 0: return write_batch();
    case 1: return write_burst();
    case 2: return add();
    case 3: return append();
    case 4: return take();
    case 5: return look_at_others();
    case 6:
    case 7: return write_hash(key);
    case 8: return append_vectors();
    case 9: return replace_vector();
    case 10: return make_model();
    default: return write_map(key);
  }
}

void DurableClient::believe(std::function<void()> what) {
  if (!async_) return what();
  to_believe_.push_back(std::move(what));
}

Result<void> DurableClient::await_durable() {
  const auto state = store_->store.await_durable();
  if (!state) return std::unexpected(state.error());
  if (state->durable < state->recorded) return fail(Code::corrupt, 3);
  for (const auto& what : std::exchange(to_believe_, {})) what();
  return {};
}

Result<void> DurableClient::take_version(Version version) {
  if (version == 0) return {};  // nothing was written
  if (version <= highest_version_) return fail(Code::corrupt, 4);
  highest_version_ = version;
  return {};
}

// A put or an erase of a key, whose truth hears of it before and after.
template <class Object>
Result<void> DurableClient::write_one(Object& object, KeyTruth& truth, const std::string& key,
                                      const std::string& value) {
  const std::uint64_t number = truth.begin(value);
  const auto written = value.empty() ? object.erase(key) : object.put(key, value);
  if (!written) return std::unexpected(written.error());
  believe([&truth, number] { truth.acknowledged(number); });
  if constexpr (std::is_same_v<Object, Map>) return take_version(written->version);
  return {};
}

Result<void> DurableClient::write_map(const std::string& key) {
  std::string value;
  if (random_.below(4) != 0) {
    value = "v" + std::to_string(++written_);
    if (random_.below(8) == 0) value.append(random_.below(3000), ' ');  // out of line
  }
  return write_one(store_->map, map_[key], key, value);
}

Result<void> DurableClient::write_hash(const std::string& key) {
  std::string value;
  if (random_.below(4) != 0) value = "v" + std::to_string(++written_);
  return write_one(store_->hash, hash_[key], key, value);
}

// All or none: the keys of a batch are of their own, and have one value.
Result<void> DurableClient::write_batch() {
  const std::string value = "v" + std::to_string(++written_);
  const auto keys = batch_keys();
  std::vector<std::uint64_t> numbers;
  WriteBatch batch;
  for (const std::string& key : keys) {
    batch.put(key, value);
    numbers.push_back(map_[key].begin(value));
  }
  const auto written = store_->map.write(batch);
  if (!written) return std::unexpected(written.error());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    believe([&truth = map_[keys[i]], number = numbers[i]] { truth.acknowledged(number); });
  }
  return take_version(written->version);
}

// Many writes in flight, so that a group of records is, too. The last one is a key that others
// read.
Result<void> DurableClient::write_burst() {
  struct Answers : Handler {
    void done(const Completion& completion) override {
      if (!completion.ok) {
        failed = completion.error;
        return;
      }
      owner->believe([&truth = owner->map_[keys[completion.tag]],
                      number = numbers[completion.tag]] { truth.acknowledged(number); });
    }
    DurableClient* owner = nullptr;
    std::vector<std::string> keys;
    std::vector<std::string> values;
    std::vector<std::uint64_t> numbers;  // of the writes
    Error failed{};
  };
  constexpr std::uint64_t kBurst = 24;
  Answers answers;
  answers.owner = this;
  std::vector<Request> puts(kBurst);
  for (std::uint64_t i = 0; i < kBurst; ++i) {
    answers.keys.push_back(i + 1 == kBurst ? own_key(1000) : own_key(100 + i));
    answers.values.push_back("v" + std::to_string(++written_));
  }
  for (std::uint64_t i = 0; i < kBurst; ++i) {
    puts[i].op = Op::put;
    puts[i].tag = i;
    puts[i].key = answers.keys[i];
    puts[i].value = answers.values[i];
    answers.numbers.push_back(map_[answers.keys[i]].begin(answers.values[i]));
  }
  auto pipeline = Pipeline::open(store_->map, kBurst);
  if (!pipeline) return std::unexpected(pipeline.error());
  pipeline->submit(puts, answers);
  while (pipeline->poll() != 0) {
  }
  if (answers.failed.code != Code::invalid) return std::unexpected(answers.failed);
  return {};
}

Result<void> DurableClient::add() {
  ++sum_.asked;
  const auto sum = store_->map.add(sum_key(), 1);
  if (!sum) return std::unexpected(sum.error());
  sum_.asked = *sum;
  believe([this, sum = *sum] { sum_.acknowledged = sum; });
  return {};
}

Result<void> DurableClient::append() {
  auto writer = store_->table.writer();
  const std::uint64_t count = 1 + random_.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (const auto added = writer.add(static_cast<std::int64_t>(number_),
                                      static_cast<std::int64_t>(rows_.asked + i));
        !added) {
      return std::unexpected(added.error().error);
    }
  }
  rows_.asked += count;
  const auto first = writer.commit();
  if (!first) return std::unexpected(first.error().error);
  believe([this, count] { rows_.acknowledged += count; });
  return {};
}

// Each number once: those that come after it, from any client, are above.
Result<void> DurableClient::take() {
  const auto range = store_->numbers.take(3);
  if (!range) return std::unexpected(range.error());
  if (range->first < next_number_) return fail(Code::corrupt, 1);
  next_number_ = range->first + 3;
  const auto counted = store_->store.sequence("counter", 2);
  if (!counted) return std::unexpected(counted.error());
  if (*counted < next_counted_) return fail(Code::corrupt, 2);
  next_counted_ = *counted + 2;
  return {};
}

Result<void> DurableClient::append_vectors() {
  const std::uint64_t count = 1 + random_.below(3);
  std::vector<float> values;
  for (std::uint64_t i = 0; i < count; ++i) {
    values.insert(values.end(), kColumns, static_cast<float>(vectors_.asked + i));
  }
  const std::uint64_t before = vectors_.asked;
  vectors_.asked += count;
  const auto first = store_->vectors.append(values);
  if (!first) return std::unexpected(first.error().error);
  if (*first != before) return fail(Code::corrupt, 5);
  believe([this, all = before + count] { vectors_.acknowledged = all; });
  return {};
}

Result<void> DurableClient::replace_vector() {
  if (vectors_.asked == 0) return append_vectors();
  const std::uint64_t number = ++vector_.asked;
  const std::vector<float> values(kColumns, static_cast<float>(number));
  const auto replaced = store_->vectors.replace(0, values);
  if (!replaced) return std::unexpected(replaced.error().error);
  believe([this, number] { vector_.acknowledged = number; });
  return {};
}

// Once; then it is asked.
Result<void> DurableClient::make_model() {
  if (!store_->model) {
    embedding::RankingParts parts;
    parts.tables = {vectors_name()};
    base::Random random(number_);
    parts.draw(random);
    const auto made = store_->store.create_ranking_model(model_name(), parts.file());
    if (!made) return std::unexpected(made.error().error);
    store_->model.emplace(*made);
    believe([this] { model_made_ = true; });
  }
  const auto ranked = rank();
  if (!ranked) return std::unexpected(ranked.error().error);
  if (rank_ && std::abs(*rank_ - *ranked) > 1e-5F) return fail(Code::corrupt, 6);
  rank_ = *ranked;
  return {};
}

Result<void> DurableClient::look_at_others() {
  for (std::uint64_t other = 0; other < 3; ++other) {
    if (other == number_) continue;
    const std::string key = "c" + std::to_string(other) + "/1000";
    const auto got = store_->map.get(key);
    if (!got) return std::unexpected(got.error());
    if (!*got) continue;
    believe([this, key, number = value_number((*got)->value)] {
      seen_[key] = std::max(seen_[key], number);
    });
  }
  return {};
}

}  // namespace espalier::test
