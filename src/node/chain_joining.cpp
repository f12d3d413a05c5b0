// SPDX-License-Identifier: Apache-2.0
#include "node/chain_joining.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/system_error.hpp"
#include "chain/file_text.hpp"
#include "chain/membership.hpp"
#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "fabric/address.hpp"
#include "log/checkpoint_reader.hpp"
#include "log/checkpoint_writer.hpp"
#include "log/posix_folder.hpp"
#include "log/segment_maker.hpp"
#include "log/store_file.hpp"
#include "log/unit_buffer.hpp"
#include "node/chain_calls.hpp"
#include "node/chain_folder.hpp"

namespace espalier::node {
namespace {

namespace fs = std::filesystem;

using CannotJoin = std::unexpected<std::string>;

constexpr int kAgainMs = 100;
constexpr std::size_t kFetchedWriteBytes = std::size_t{1} << 20;
constexpr std::uint64_t kFetchedBytesMax = std::uint64_t{1} << 46;
static_assert(kFetchedWriteBytes % chain_calls::kPieceBytes == 0);

std::expected<void, std::string> make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return chain::cannot("make", path);
}

/// The files of a folder that belong to a log: segments and checkpoints.
std::expected<std::vector<std::string>, std::string> log_files_in(log::LogFolder& folder) {
  auto names = folder.names();
  if (!names) return CannotJoin(message(names.error()));
  std::erase_if(*names, [](const std::string& name) {
    for (const std::string_view end : {log::kInUse, log::kBeingMade, log::kGivenUp, log::kWhole}) {
      if (log::segment_of(name, end) || log::number_in(name, log::kCheckpointBegin, end)) {
        return false;
      }
    }
    return true;
  });
  return std::move(*names);
}

std::expected<void, std::string> remove_log_files(log::LogFolder& folder) {
  const auto names = log_files_in(folder);
  if (!names) return CannotJoin(names.error());
  for (const std::string& name : *names) {
    if (const auto removed = folder.remove(name); !removed) {
      return CannotJoin(fmt::format("cannot remove {}: {}", name, message(removed.error())));
    }
  }
  if (const auto synced = folder.sync(); !synced) return CannotJoin(message(synced.error()));
  return {};
}

/// A connection to the tail, for one request at a time.
class TailConnection {
 public:
  /// Errors: why it cannot be reached now.
  static std::expected<TailConnection, std::string> open(const chain::View& view) {
    const auto address = fabric::parse(view.members.back().address);
    if (!address) return CannotJoin("its address is none");
    client::FabricConnectionOptions options;
    options.response_rings = 1;
    options.response_slots = 4096;  // for some pieces
    options.timeout_ns = std::max<std::uint64_t>(view.fence_ms, 1000) * 1'000'000;
    auto secret = client::KnownSecret::or_of_process(nullptr);
    if (!secret) return CannotJoin("the secret of this process cannot be read");
    options.secret = std::move(*secret);
    auto connection = client::FabricConnection::open(*address, options);
    if (!connection) return CannotJoin(message(connection.error()));
    auto rings = client::ThreadRings::open(*connection);
    if (!rings) return CannotJoin(message(rings.error()));
    return TailConnection(std::move(*connection), std::move(*rings));
  }
  Result<chain_calls::Piece> fetch(const chain_calls::Wanted& wanted, std::string& data) {
    const chain_calls::Fetch request{wanted};
    const wire::RequestMessage<chain_calls::Fetch> call(request);
    client::RemoteRequests requests(*rings_, 1);
    const auto reply = requests.ask(call.get());
    if (!reply) return std::unexpected(reply.error().error);
    const std::string_view payload(reply->payload.data(), reply->payload.size());
    const auto read = wire::read_reply<chain_calls::Fetched>(reply->header, payload);
    if (!read || read->data.size() > chain_calls::kPieceBytes) return fail(Code::corrupt);
    data.assign(read->data);
    return read->piece;
  }

 private:
  TailConnection(std::shared_ptr<client::FabricConnection> connection,
                 std::unique_ptr<client::ThreadRings> rings)
      : connection_(std::move(connection)), rings_(std::move(rings)) {}

  std::shared_ptr<client::FabricConnection> connection_;
  std::unique_ptr<client::ThreadRings> rings_;
};

class ChainJoiner {
 public:
  explicit ChainJoiner(const JoiningTerms& terms)
      : terms_(terms),
        name_(terms.config.chain.name),
        dir_(terms.config.data.dir),
        folder_(dir_),
        log_folder_(dir_ + "/log"),
        fetched_folder_(dir_ + "/fetched") {}

  std::expected<bool, std::string> run() {
    auto opened = chain::open_membership(terms_.config.chain.members);
    if (!opened) return CannotJoin(opened.error());
    membership_ = std::move(*opened);
    const auto wanted = wants_to_begin();
    if (!wanted) return CannotJoin(wanted.error());
    if (!*wanted) return true;
    if (auto claimed = claim(); !claimed || !*claimed) return claimed;
    for (;;) {
      if (is_stopped()) return false;
      const auto done = fetch_and_begin();
      if (!done) return CannotJoin(done.error());
      if (*done) return true;
      ::poll(nullptr, 0, kAgainMs);
    }
  }

 private:
  [[nodiscard]] bool is_stopped() const { return terms_.stopped && terms_.stopped(); }
  void report(const std::string& line) const {
    if (terms_.report) terms_.report(line);
  }
  [[nodiscard]] bool joins_here() const { return view_.joining && view_.joining->name == name_; }
  std::expected<bool, std::string> read_view() {
    auto view = membership_->read();
    if (!view) return CannotJoin(view.error());
    if (!*view) return false;
    view_ = std::move(**view);
    return true;
  }

  /// Whether it joins with a folder that has nothing for that yet.
  std::expected<bool, std::string> wants_to_begin() {
    const auto there = read_view();
    if (!there || !*there || !joins_here()) return there ? false : std::move(there);
    const auto found = read_chain_folder(dir_);
    if (!found) return CannotJoin(found.error());
    if (*found == ChainFolder{view_.chain, view_.joining->number}) return false;
    if (*found && (*found)->chain != view_.chain) {
      return CannotJoin(fmt::format("the data folder '{}' is that of another chain", dir_));
    }
    if (*found && view_.find((*found)->member) != nullptr) return is_of_member(**found);
    if (*found || !fs::exists(dir_ + "/log")) return true;
    const auto files = log_files_in(log_folder_);
    if (!files) return CannotJoin(files.error());
    if (files->empty()) return true;
    return CannotJoin(fmt::format(
        "the data folder '{}' has records that are of no member of this chain, and one that joins "
        "begins with an empty folder, or with its own of before",
        dir_));
  }

  [[nodiscard]] CannotJoin is_of_member(const ChainFolder& folder) const {
    return CannotJoin(fmt::format("the data folder '{}' is that of '{}', a member of the chain",
                                  dir_, view_.find(folder.member)->name));
  }

  /// Gets a new number, and marks the folder as beginning. Returns false: it was stopped.
  std::expected<bool, std::string> claim() {
    for (const std::string& path : {dir_, dir_ + "/log"}) {
      if (auto made = make_private_folder(path); !made) return CannotJoin(made.error());
    }
    auto lock = folder_.lock();
    if (!lock) return CannotJoin(fmt::format("another process uses the data folder '{}'", dir_));
    lock_ = std::move(*lock);
    for (;;) {
      if (is_stopped()) return false;
      if (const auto there = read_view(); !there) return CannotJoin(there.error());
      if (!joins_here()) return CannotJoin(fmt::format("'{}' joins the chain no more", name_));
      const auto found = read_chain_folder(dir_);  // another process may have used it until now
      if (!found) return CannotJoin(found.error());
      if (*found && view_.find((*found)->member) != nullptr) return is_of_member(**found);
      const chain::View next = view_.with_joining(name_, view_.joining->address);
      const auto taken = membership_->replace(next);
      if (!taken) return CannotJoin(taken.error());
      if (*taken) {
        view_ = next;
        number_ = next.joining->number;
        break;
      }
      ::poll(nullptr, 0, kAgainMs / 10);
    }
    const auto before = log_files_in(log_folder_);
    if (before && !before->empty()) {
      report(fmt::format(
          "what the data folder '{}' has is thrown away: the chain went on without it", dir_));
    }
    // Until the checkpoint is there its log may be the chain's last ('chain restore').
    if (const auto own = read_chain_folder(dir_); own && *own && !(*own)->begins) {
      if (auto kept = keep_chain_folder_before(dir_, **own); !kept) {
        return CannotJoin(kept.error());
      }
    }
    if (auto said = write_chain_folder(dir_, {view_.chain, number_, true}); !said) {
      return CannotJoin(said.error());
    }
    return true;
  }

  /// Returns false: the membership or the tail did not answer, or the tail has changed.
  std::expected<bool, std::string> fetch_and_begin() {
    if (const auto there = read_view(); !there) return is_unreachable(there.error());
    if (!joins_here() || view_.joining->number != number_) {
      return CannotJoin(fmt::format("'{}' joins the chain no more", name_));
    }
    auto tail = TailConnection::open(view_);
    if (!tail) return is_unreachable(tail.error());
    chain_calls::Wanted wanted{.chain = view_.chain, .member = number_};
    std::string data;
    const auto first = tail->fetch(wanted, data);
    if (!first) return is_unreachable(message(first.error()));
    if (first->number != 0) {
      wanted.number = first->number;
      const auto fetched = fetch_file(*tail, wanted, *first, data);
      if (!fetched || !*fetched) return fetched;
    }
    if (auto gone = forget_chain_folder_before(dir_); !gone) return CannotJoin(gone.error());
    if (first->number != 0) {
      if (auto taken = take_checkpoint(*first); !taken) return CannotJoin(taken.error());
    } else if (auto removed = remove_log_files(log_folder_); !removed) {
      return CannotJoin(removed.error());
    }
    if (auto said = write_chain_folder(dir_, {view_.chain, number_}); !said) {
      return CannotJoin(said.error());
    }
    lock_.reset();
    return true;
  }
  /// Reports a reason to people, once.
  bool is_unreachable(const std::string& why) {
    if (why != unreachable_) {
      report(fmt::format("'{}' cannot be asked for records: {}", view_.members.back().name, why));
    }
    unreachable_ = why;
    return false;
  }

  /// Fetches the tail's checkpoint, from the first piece on.
  std::expected<bool, std::string> fetch_file(TailConnection& tail, chain_calls::Wanted wanted,
                                              const chain_calls::Piece& of, std::string& data) {
    if (auto made = make_private_folder(dir_ + "/fetched"); !made) return CannotJoin(made.error());
    if (auto removed = remove_log_files(fetched_folder_); !removed)
      return CannotJoin(removed.error());
    auto file =
        fetched_folder_.create(log::numbered_name(log::kCheckpointBegin, of.number, log::kWhole));
    if (!file) return CannotJoin(message(file.error()));
    if (of.bytes > kFetchedBytesMax) return is_unreachable("it has a checkpoint of no size");
    report(fmt::format("checkpoint {} of '{}' is fetched, of {} bytes", of.number,
                       view_.members.back().name, of.bytes));
    log::UnitBuffer gathered;
    gathered.reserve(kFetchedWriteBytes);
    std::size_t used = 0;
    std::uint64_t written = 0;
    while (wanted.offset < of.bytes) {
      if (is_stopped()) return false;
      if (data.size() !=
          std::min<std::uint64_t>(chain_calls::kPieceBytes, of.bytes - wanted.offset)) {
        return is_unreachable("its checkpoint ends early");
      }
      std::memcpy(gathered.bytes().data() + used, data.data(), data.size());
      used += data.size();
      wanted.offset += data.size();
      const bool is_last = wanted.offset >= of.bytes;
      if (used == kFetchedWriteBytes || is_last) {
        if (used % log::kUnitBytes != 0) return is_unreachable("its checkpoint ends early");
        const auto wrote = (*file)->write(written, gathered.bytes().first(used));
        if (!wrote) return CannotJoin(message(wrote.error()));
        if (*wrote != used) return CannotJoin("the disk is full");
        written += std::exchange(used, 0);
      }
      if (is_last) return true;
      const auto next = tail.fetch(wanted, data);
      if (!next) return is_unreachable(message(next.error()));
      if (*next != of) return is_unreachable("it has another checkpoint now");
    }
    return is_unreachable("its checkpoint is empty");
  }

  /// Turns it into a checkpoint of this store, which replaces the previous log, and a log that
  /// begins where it ends. The tail's log may have further records: those arrive later, and until
  /// then this node is no member.
  std::expected<void, std::string> take_checkpoint(const chain_calls::Piece& of) {
    std::uint64_t drawn = 0;
    if (::getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) {
      return CannotJoin("the system gives no random number");
    }
    const auto store = log::open_store_file(folder_, std::max<std::uint64_t>(1, drawn));
    if (!store) return CannotJoin(log::message(store.error()));
    const auto found = log::find_checkpoints(fetched_folder_, of.store);
    if (!found) return CannotJoin(log::message(found.error()));
    if (!found->newest) return CannotJoin("the checkpoint that came is damaged");
    if (auto removed = remove_log_files(log_folder_); !removed) return removed;
    const std::uint64_t sequence = found->newest->sequence;
    auto writer =
        log::CheckpointWriter::begin(log_folder_, {.store = *store, .sequence = sequence});
    if (!writer) return CannotJoin(log::message(writer.error()));
    std::optional<log::LogError> wrong;
    const auto add = [&](std::uint64_t, std::span<const std::byte> record) -> Result<void> {
      const auto added = (*writer)->add(record);
      if (added) return {};
      wrong = added.error();
      return std::unexpected(added.error().error);
    };
    const auto read = log::read_checkpoint(fetched_folder_, *found->newest, add);
    if (!read) return CannotJoin(log::message(wrong ? *wrong : read.error()));
    if (const auto done = (*writer)->finish(sequence - 1); !done) {
      return CannotJoin(log::message(done.error()));
    }
    log::SegmentMaker maker(log_folder_, *store, terms_.segment_bytes, 1, 1);
    if (const auto made = maker.take(sequence, false); !made) {
      return CannotJoin(log::message(made.error()));
    }
    if (auto removed = remove_log_files(fetched_folder_); !removed) return removed;
    static_cast<void>(::rmdir((dir_ + "/fetched").c_str()));  // not needed, and harmless
    report(fmt::format("{} records of it are taken; the log goes on from sequence {}",
                       (*writer)->records(), sequence));
    return {};
  }

  const JoiningTerms& terms_;
  const std::string name_;
  const std::string dir_;
  log::PosixFolder folder_;
  log::PosixFolder log_folder_;
  log::PosixFolder fetched_folder_;
  std::unique_ptr<chain::Membership> membership_;
  std::unique_ptr<log::FolderLock> lock_;
  chain::View view_;
  std::uint32_t number_ = 0;
  std::string unreachable_;
};

}  // namespace

std::expected<bool, std::string> begin_to_join(const JoiningTerms& terms) {
  if (terms.config.chain.name.empty() || terms.config.data.dir.empty()) return true;
  return ChainJoiner(terms).run();
}

}  // namespace espalier::node
