// SPDX-License-Identifier: Apache-2.0
// LMDB with a writable map and no syncing, in a temporary directory that is removed afterwards.
//
// Transactions. With one thread, each window of requests is one transaction, a writing one if any
// of them writes: far fewer commits than calls, which favours it. With several threads each request
// is a transaction of its own, for LMDB admits one writer at a time.
#include <fmt/core.h>
#include <lmdb.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/temporary_folder.hpp"
#include "bench/target.hpp"

namespace espalier::bench {
namespace {

void require_lmdb(int status, std::string_view what) {
  if (status != MDB_SUCCESS) {
    throw std::runtime_error(fmt::format("{}: {}", what, mdb_strerror(status)));
  }
}

MDB_val bytes_of(std::string_view bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};  // LMDB does not write to it
}

std::string_view view(const MDB_val& bytes) {
  return {static_cast<const char*>(bytes.mv_data), bytes.mv_size};
}

bool writes(const Request& request) {
  return request.op == Op::put || request.op == Op::insert || request.op == Op::erase ||
         (request.tag & kReadModifyWriteTag) != 0;
}

// A transaction with one cursor. Without commit() it has no effect.
class LmdbTransaction {
 public:
  LmdbTransaction(MDB_env* env, MDB_dbi dbi, bool writing) : dbi_(dbi) {
    require_lmdb(mdb_txn_begin(env, nullptr, writing ? 0 : MDB_RDONLY, &txn_),
                 "cannot begin an LMDB transaction");
    const int status = mdb_cursor_open(txn_, dbi_, &cursor_);
    if (status != MDB_SUCCESS) mdb_txn_abort(txn_);
    require_lmdb(status, "cannot open an LMDB cursor");
  }
  LmdbTransaction(const LmdbTransaction&) = delete;
  LmdbTransaction& operator=(const LmdbTransaction&) = delete;
  ~LmdbTransaction() {
    mdb_cursor_close(cursor_);
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }

  int commit() {
    mdb_cursor_close(std::exchange(cursor_, nullptr));
    return mdb_txn_commit(std::exchange(txn_, nullptr));
  }

  [[nodiscard]] MDB_txn* txn() const { return txn_; }
  [[nodiscard]] MDB_cursor* cursor() const { return cursor_; }

 private:
  MDB_dbi dbi_;
  MDB_txn* txn_ = nullptr;
  MDB_cursor* cursor_ = nullptr;
};

class LmdbSession : public SerialSession<LmdbSession> {
 public:
  LmdbSession(MDB_env* env, MDB_dbi dbi, bool whole_windows)
      : env_(env), dbi_(dbi), whole_windows_(whole_windows) {}

  void begin(std::span<const Request> requests) {
    if (whole_windows_) window_.emplace(env_, dbi_, std::ranges::any_of(requests, writes));
  }

  void end() {
    if (!window_) return;
    require_lmdb(window_->commit(), "cannot commit to LMDB");
    window_.reset();
  }

  void execute(const Request& request, Answers& answers) {
    if (window_) return execute_in(*window_, request, answers);
    LmdbTransaction own(env_, dbi_, writes(request));
    execute_in(own, request, answers);
    require_lmdb(own.commit(), "cannot commit to LMDB");
  }

 private:
  void execute_in(LmdbTransaction& in, const Request& request, Answers& answers) {
    MDB_val key = bytes_of(request.key);
    MDB_val value{};
    switch (request.op) {
      case Op::get: get(in, request, answers); break;
      case Op::put: put(in, request, 0, answers); break;
      case Op::insert: put(in, request, MDB_NOOVERWRITE, answers); break;
      case Op::erase:
        take(mdb_del(in.txn(), dbi_, &key, &value), MDB_NOTFOUND, request, answers);
        break;
      default: scan(in, request, answers);
    }
  }

  void get(LmdbTransaction& in, const Request& request, Answers& answers) {
    MDB_val key = bytes_of(request.key);
    MDB_val value{};
    const int status = mdb_get(in.txn(), dbi_, &key, &value);
    if (status == MDB_SUCCESS) {
      answers.value(request.tag, view(value));
    } else if (status == MDB_NOTFOUND) {
      answers.missing(request.tag);
    } else {
      return answers.fail(mdb_strerror(status));
    }
    if ((request.tag & kReadModifyWriteTag) != 0) put(in, request, 0, answers);
  }

  void put(LmdbTransaction& in, const Request& request, unsigned flags, Answers& answers) {
    MDB_val key = bytes_of(request.key);
    MDB_val value = bytes_of(request.value);
    take(mdb_put(in.txn(), dbi_, &key, &value, flags), MDB_KEYEXIST, request, answers);
  }

  static void scan(LmdbTransaction& in, const Request& request, Answers& answers) {
    const bool bounded = request.op == Op::scan_floor;
    MDB_val key = bytes_of(request.key);
    MDB_val value{};
    int status = mdb_cursor_get(in.cursor(), &key, &value, MDB_SET_RANGE);
    if (bounded) status = step_to_floor(in.cursor(), status, request.key, key, value);
    std::uint64_t sum = 0;
    std::uint64_t count = 0;
    while (status == MDB_SUCCESS) {
      if (bounded && view(key) > request.high) break;
      sum += item_hash(view(key), view(value));
      if (++count == request.limit) break;
      status = mdb_cursor_get(in.cursor(), &key, &value, MDB_NEXT);
    }
    if (status != MDB_SUCCESS && status != MDB_NOTFOUND) {
      return answers.fail(mdb_strerror(status));
    }
    answers.items(request.tag, sum);
    answers.scan_done(request.tag, count);
  }

  // From the first item not below `wanted` to the last one not above it, if there is one.
  static int step_to_floor(MDB_cursor* cursor, int status, std::string_view wanted, MDB_val& key,
                           MDB_val& value) {
    if (status == MDB_NOTFOUND) return mdb_cursor_get(cursor, &key, &value, MDB_LAST);
    if (status != MDB_SUCCESS || view(key) == wanted) return status;
    const int before = mdb_cursor_get(cursor, &key, &value, MDB_PREV);
    return before == MDB_NOTFOUND ? mdb_cursor_get(cursor, &key, &value, MDB_FIRST) : before;
  }

  // `refused`: the status of a write that found nothing to do.
  static void take(int status, int refused, const Request& request, Answers& answers) {
    if (status == MDB_SUCCESS || status == refused) {
      answers.written(request.tag, status == MDB_SUCCESS);
    } else {
      answers.fail(mdb_strerror(status));
    }
  }

  MDB_env* env_;
  MDB_dbi dbi_;
  bool whole_windows_;
  std::optional<LmdbTransaction> window_;
};

class LmdbTarget : public Target {
 public:
  explicit LmdbTarget(const TargetOptions& options) : whole_windows_(options.threads == 1) {
    MDB_env* env = nullptr;
    require_lmdb(mdb_env_create(&env), "cannot open LMDB");
    env_.reset(env);
    const std::uint64_t key_bytes = options.fixed_key_bytes == 0 ? 64 : options.fixed_key_bytes;
    const std::uint64_t bytes = options.items_max * (key_bytes + options.value_bytes + 32) * 4;
    require_lmdb(mdb_env_set_mapsize(env, bytes + (std::uint64_t{256} << 20)),
                 "cannot size the LMDB map");
    require_lmdb(
        mdb_env_open(env, folder_.path().c_str(), MDB_WRITEMAP | MDB_NOSYNC | MDB_NOTLS, 0600),
        "cannot open LMDB in " + folder_.string());
    MDB_txn* txn = nullptr;
    require_lmdb(mdb_txn_begin(env, nullptr, 0, &txn), "cannot begin an LMDB transaction");
    const int status = mdb_dbi_open(txn, nullptr, 0, &dbi_);
    if (status != MDB_SUCCESS) mdb_txn_abort(txn);
    require_lmdb(status, "cannot open an LMDB database");
    require_lmdb(mdb_txn_commit(txn), "cannot commit to LMDB");
  }

  std::unique_ptr<TargetSession> open_session() override {
    return std::make_unique<LmdbSession>(env_.get(), dbi_, whole_windows_);
  }

  Contents contents() override {
    Contents result;
    const LmdbTransaction reading(env_.get(), dbi_, false);
    MDB_val key{};
    MDB_val value{};
    int status = mdb_cursor_get(reading.cursor(), &key, &value, MDB_FIRST);
    for (; status == MDB_SUCCESS; ++result.items) {
      result.hash += item_hash(view(key), view(value));
      status = mdb_cursor_get(reading.cursor(), &key, &value, MDB_NEXT);
    }
    if (status != MDB_NOTFOUND) require_lmdb(status, "cannot scan LMDB");
    return result;
  }

  [[nodiscard]] std::string settings() const override {
    return whole_windows_ ? "one call at a time, no syncing, 4096 requests in a transaction"
                          : "one call at a time, no syncing, a transaction for each request";
  }
  [[nodiscard]] std::string pages() const override { return "4 KiB pages of a mapped file"; }

 private:
  struct Close {
    void operator()(MDB_env* env) const { mdb_env_close(env); }
  };

  bool whole_windows_;
  base::TemporaryFolder folder_;  // outlives the environment
  std::unique_ptr<MDB_env, Close> env_;
  MDB_dbi dbi_ = 0;
};

}  // namespace

std::unique_ptr<Target> make_lmdb_target(const TargetOptions& options) {
  return std::make_unique<LmdbTarget>(options);
}

}  // namespace espalier::bench
