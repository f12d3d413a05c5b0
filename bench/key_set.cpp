// SPDX-License-Identifier: Apache-2.0
#include "bench/key_set.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "base/random.hpp"

namespace espalier::bench {
namespace {

// The first 8 bytes as a number with the same order.
std::uint64_t prefix_of(std::string_view key) {
  std::uint64_t word = 0;
  std::memcpy(&word, key.data(), std::min<std::size_t>(key.size(), sizeof word));
  return std::endian::native == std::endian::little ? __builtin_bswap64(word) : word;
}

void fill_words(std::uint64_t first, std::uint64_t state, std::uint32_t bytes, char* out) {
  std::uint64_t word = first;
  for (std::uint32_t at = 0; at < bytes; at += 8) {
    std::memcpy(out + at, &word, std::min<std::uint32_t>(8, bytes - at));
    word = base::splitmix64(state);
  }
}

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read the key file " + path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty() && line.size() <= kKeyBytesMax) lines.push_back(std::move(line));
  }
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return lines;
}

std::vector<std::string> keys_of_shape(std::uint64_t count, KeySet::Shape shape) {
  std::vector<std::string> keys(count);
  for (std::uint64_t i = 0; i < count; ++i) shape(i, keys[i]);
  return keys;
}

}  // namespace

KeySet KeySet::random(std::uint64_t count, std::uint32_t key_bytes, std::uint64_t seed) {
  KeySet set;
  set.size_ = count;
  set.seed_ = seed;
  set.fixed_bytes_ = key_bytes;
  set.bytes_ = HugeBuffer(count * key_bytes);
  char* const out = reinterpret_cast<char*>(set.bytes_.data());
  for (std::uint64_t i = 0; i < count; ++i) set.random_key(i, out + i * key_bytes);
  set.sort();
  return set;
}

KeySet KeySet::from_file(const std::string& path, std::uint64_t count_max, std::uint64_t seed) {
  std::vector<std::string> lines = read_lines(path);
  // Shuffle by drawing without repetition; a shorter set is a sample of the file.
  base::Random random(seed);
  const std::uint64_t count =
      count_max == 0 ? lines.size() : std::min<std::uint64_t>(count_max, lines.size());
  for (std::uint64_t i = 0; i < count; ++i) {
    std::swap(lines[i], lines[i + random.below(lines.size() - i)]);
  }
  lines.resize(count);
  KeySet set;
  set.seed_ = seed;
  set.take(lines);
  return set;
}

KeySet KeySet::of_shape(std::uint64_t count, Shape shape, std::uint64_t seed) {
  std::vector<std::string> keys = keys_of_shape(count, shape);
  base::Random random(seed);
  for (std::uint64_t i = 0; i < count; ++i) std::swap(keys[i], keys[i + random.below(count - i)]);
  KeySet set;
  set.seed_ = seed;
  set.shape_ = shape;
  set.take(keys);
  return set;
}

KeySet KeySet::in_order(std::uint64_t count, Shape shape) {
  KeySet set;
  set.shape_ = shape;
  set.take(keys_of_shape(count, shape));
  return set;
}

void KeySet::take(const std::vector<std::string>& keys) {
  size_ = keys.size();
  offsets_.reserve(size_ + 1);
  std::uint64_t bytes = 0;
  for (const std::string& key : keys) {
    offsets_.push_back(bytes);
    bytes += key.size();
  }
  offsets_.push_back(bytes);
  bytes_ = HugeBuffer(bytes);
  for (std::uint64_t i = 0; i < size_; ++i) {
    std::memcpy(bytes_.data() + offsets_[i], keys[i].data(), keys[i].size());
  }
  sort();
}

std::string_view KeySet::key(std::uint64_t i) const {
  const char* const bytes = reinterpret_cast<const char*>(bytes_.data());
  if (fixed_bytes_ != 0) return {bytes + i * fixed_bytes_, fixed_bytes_};
  return {bytes + offsets_[i], offsets_[i + 1] - offsets_[i]};
}

double KeySet::mean_key_bytes() const {
  if (fixed_bytes_ != 0 || size_ == 0) return fixed_bytes_;
  return static_cast<double>(offsets_.back()) / static_cast<double>(size_);
}

void KeySet::random_key(std::uint64_t i, char* out) const {
  // i + constant and mix64 are bijections of 64-bit numbers: no two indices share a first word.
  const std::uint64_t first = base::mix64(i + base::mix64(seed_));
  fill_words(first, first ^ seed_, fixed_bytes_, out);
}

void KeySet::fresh(std::uint64_t i, std::string& out) const {
  if (fixed_bytes_ != 0) {
    out.resize(fixed_bytes_);
    random_key(size_ + i, out.data());
    return;
  }
  if (shape_ != nullptr) return shape_(size_ + i, out);
  // A word, a separator, and a number that makes it new. The loop is for files with such keys.
  for (std::uint64_t number = i;; number += std::uint64_t{1} << 40) {
    const std::string tail = "~" + std::to_string(number);
    const std::string_view word = key(base::mix64(i ^ seed_) % size_);
    out.assign(word.substr(0, kKeyBytesMax - tail.size()));
    out += tail;
    if (!contains(out)) return;
  }
}

bool KeySet::contains(std::string_view wanted) const {
  const auto at = std::lower_bound(
      sorted_.begin(), sorted_.end(), wanted,
      [this](std::uint32_t index, std::string_view other) { return key(index) < other; });
  return at != sorted_.end() && key(*at) == wanted;
}

void KeySet::sort() {
  // Pairs of prefix and index: few comparisons need the keys.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order(size_);
  for (std::uint64_t i = 0; i < size_; ++i) {
    order[i] = {prefix_of(key(i)), static_cast<std::uint32_t>(i)};
  }
  std::sort(order.begin(), order.end(), [this](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : key(a.second) < key(b.second);
  });
  sorted_.resize(size_);
  for (std::uint64_t i = 0; i < size_; ++i) sorted_[i] = order[i].second;
}

void integer_key(std::uint64_t number, std::string& out) {
  out.clear();
  fmt::format_to(std::back_inserter(out), "user{:012}", number);
}

void prefix_key(std::uint64_t number, std::string& out) {
  out.clear();
  fmt::format_to(std::back_inserter(out), "user:{:012}", number);
}

// Few hosts have most pages, and the number is last, as in an article's URL.
void url_key(std::uint64_t number, std::string& out) {
  const std::uint64_t hash = base::mix64(number + 1);
  const std::uint64_t host = (hash >> 48) * ((hash >> 32) & 0xFFFF) >> 22;  // below 1024
  out.clear();
  fmt::format_to(std::back_inserter(out),
                 "https://www.site-{:04}.example.org/{:06x}/articles/{:014}", host, hash & 0xFFFFFF,
                 number);
}

void make_value(std::uint64_t key_id, std::uint64_t round, ValueLength length, std::string& out) {
  const std::uint64_t first = base::mix64(base::mix64(key_id + 1) + round);
  const auto bytes = length.drawn ? static_cast<std::uint32_t>(base::scale(
                                        base::mix64(first), std::uint64_t{length.bytes} + 1))
                                  : length.bytes;
  out.resize(bytes);
  fill_words(first, first, bytes, out.data());
}

}  // namespace espalier::bench
