// SPDX-License-Identifier: Apache-2.0
// absl::btree_map, the peer that every machine can install: ratios to it compare machines.
//
// It is tuned: keys of a fixed length lie inside its nodes and are compared as big-endian words,
// nodes come from huge pages, and with one thread there is no lock. With several threads that
// write, a shared mutex guards it. A read-modify-write is one search.
#include <absl/container/btree_map.h>
#include <fmt/core.h>

#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "bench/huge_memory.hpp"
#include "bench/target.hpp"

namespace espalier::bench {
namespace {

// Bytes of a length known at compile time, with conversions from and to a view of them.
template <std::size_t kBytes>
struct Fixed {
  using Type = std::array<char, kBytes>;
  using Wanted = Type;  // the argument of a search

  struct Less {
    bool operator()(const Type& a, const Type& b) const {
      for (std::size_t at = 0; at < kBytes; at += 8) {
        const std::uint64_t left = word(a, at);
        const std::uint64_t right = word(b, at);
        if (left != right) return left < right;
      }
      return false;
    }
    static std::uint64_t word(const Type& bytes, std::size_t at) {
      std::uint64_t result;
      std::memcpy(&result, bytes.data() + at, sizeof result);
      return std::endian::native == std::endian::little ? __builtin_bswap64(result) : result;
    }
  };

  static Type make(std::string_view bytes, HugeArena*) {
    Type result;
    std::memcpy(result.data(), bytes.data(), kBytes);
    return result;
  }
  static Wanted wanted(std::string_view bytes) { return make(bytes, nullptr); }
  static void assign(Type& to, std::string_view bytes) {
    std::memcpy(to.data(), bytes.data(), kBytes);
  }
  static std::string_view view(const Type& bytes) { return {bytes.data(), kBytes}; }
};

// Bytes of any length, on huge pages too.
struct Text {
  using Type = std::basic_string<char, std::char_traits<char>, ArenaAllocator<char>>;
  using Wanted = std::string_view;

  struct Less {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const { return a < b; }
  };

  static Type make(std::string_view bytes, HugeArena* arena) {
    return Type(bytes, ArenaAllocator<char>(arena));
  }
  static Wanted wanted(std::string_view bytes) { return bytes; }
  static void assign(Type& to, std::string_view bytes) { to.assign(bytes); }
  static std::string_view view(const Type& bytes) { return bytes; }
};

template <class Key, class Value>
struct Shared {
  using Pair = std::pair<const typename Key::Type, typename Value::Type>;
  using Tree = absl::btree_map<typename Key::Type, typename Value::Type, typename Key::Less,
                               ArenaAllocator<Pair>>;

  HugeArena arena;  // outlives the tree
  Tree tree{typename Key::Less(), ArenaAllocator<Pair>(&arena)};
  std::shared_mutex mutex;
};

template <class Key, class Value, bool kLocked>
class AbslSession : public SerialSession<AbslSession<Key, Value, kLocked>> {
 public:
  explicit AbslSession(Shared<Key, Value>& shared) : shared_(shared), tree_(shared.tree) {}

  void execute(const Request& request, Answers& answers) {
    const bool reads = request.op == Op::scan || request.op == Op::scan_floor ||
                       (request.op == Op::get && (request.tag & kReadModifyWriteTag) == 0);
    if constexpr (!kLocked) {
      reads ? read(request, answers) : write(request, answers);
    } else if (reads) {
      const std::shared_lock lock(shared_.mutex);
      read(request, answers);
    } else {
      const std::unique_lock lock(shared_.mutex);
      write(request, answers);
    }
  }

 private:
  void read(const Request& request, Answers& answers) {
    if (request.op != Op::get) return scan(request, answers);
    const auto at = tree_.find(Key::wanted(request.key));
    if (at == tree_.end()) return answers.missing(request.tag);
    answers.value(request.tag, Value::view(at->second));
  }

  void write(const Request& request, Answers& answers) {
    switch (request.op) {
      case Op::get: {  // of a read-modify-write
        const auto at = tree_.find(Key::wanted(request.key));
        if (at == tree_.end()) return answers.missing(request.tag);
        answers.value(request.tag, Value::view(at->second));
        Value::assign(at->second, request.value);
        return answers.written(request.tag, true);
      }
      case Op::put: {
        const auto [at, is_new] = emplace(request);
        if (!is_new) Value::assign(at->second, request.value);
        return answers.written(request.tag, true);
      }
      case Op::insert: return answers.written(request.tag, emplace(request).second);
      default: return answers.written(request.tag, tree_.erase(Key::wanted(request.key)) != 0);
    }
  }

  auto emplace(const Request& request) {
    return tree_.try_emplace(Key::make(request.key, &shared_.arena),
                             Value::make(request.value, &shared_.arena));
  }

  void scan(const Request& request, Answers& answers) {
    std::uint64_t sum = 0;
    std::uint64_t count = 0;
    if (request.op == Op::scan_floor) {
      auto at = tree_.upper_bound(Key::wanted(request.key));
      if (at != tree_.begin()) --at;
      const auto high = Key::wanted(request.high);
      const typename Key::Less less{};
      for (; at != tree_.end() && !less(high, at->first); ++at, ++count) {
        sum += item_hash(Key::view(at->first), Value::view(at->second));
      }
    } else {
      auto at = tree_.lower_bound(Key::wanted(request.key));
      for (; count < request.limit && at != tree_.end(); ++at, ++count) {
        sum += item_hash(Key::view(at->first), Value::view(at->second));
      }
    }
    answers.items(request.tag, sum);
    answers.scan_done(request.tag, count);
  }

  Shared<Key, Value>& shared_;
  typename Shared<Key, Value>::Tree& tree_;
};

template <class Key, class Value>
class AbslTarget : public Target {
 public:
  explicit AbslTarget(const TargetOptions& options)
      : locked_(options.threads > 1 && options.writes) {}

  std::unique_ptr<TargetSession> open_session() override {
    if (locked_) return std::make_unique<AbslSession<Key, Value, true>>(shared_);
    return std::make_unique<AbslSession<Key, Value, false>>(shared_);
  }

  Contents contents() override {
    Contents result;
    for (const auto& [key, value] : shared_.tree) {
      result.hash += item_hash(Key::view(key), Value::view(value));
      ++result.items;
    }
    return result;
  }

  [[nodiscard]] std::string settings() const override {
    return fmt::format("one call at a time, {}, {}",
                       std::is_same_v<Key, Text> ? "keys as strings" : "keys as big-endian words",
                       locked_ ? "one shared mutex" : "no lock");
  }

 private:
  bool locked_;
  Shared<Key, Value> shared_;
};

template <class Key, class Value>
std::unique_ptr<Target> make(const TargetOptions& options) {
  return std::make_unique<AbslTarget<Key, Value>>(options);
}

// The lengths with types of their own; all others are stored as strings.
using Maker = std::unique_ptr<Target> (*)(const TargetOptions&);
struct Form {
  std::uint32_t key_bytes;
  std::uint32_t value_bytes;
  Maker make;
};
constexpr std::array kForms{
    Form{8, 8, make<Fixed<8>, Fixed<8>>},     Form{8, 16, make<Fixed<8>, Fixed<16>>},
    Form{16, 16, make<Fixed<16>, Fixed<16>>}, Form{24, 16, make<Fixed<24>, Fixed<16>>},
    Form{32, 16, make<Fixed<32>, Fixed<16>>}, Form{32, 32, make<Fixed<32>, Fixed<32>>},
    Form{48, 16, make<Fixed<48>, Fixed<16>>}, Form{64, 16, make<Fixed<64>, Fixed<16>>},
    Form{64, 64, make<Fixed<64>, Fixed<64>>},
};

}  // namespace

std::unique_ptr<Target> make_absl_target(const TargetOptions& options) {
  for (const Form& form : kForms) {
    if (options.fixed_values && form.key_bytes == options.fixed_key_bytes &&
        form.value_bytes == options.value_bytes) {
      return form.make(options);
    }
  }
  if (options.fixed_key_bytes == 16) return make<Fixed<16>, Text>(options);
  return make<Text, Text>(options);
}

}  // namespace espalier::bench
